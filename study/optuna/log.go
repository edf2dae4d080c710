package optuna

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// The operations of Optuna's journal files.
const (
	opCreateStudy = iota
	opDeleteStudy
	opSetStudyUserAttr
	opSetStudySystemAttr
	opCreateTrial
	opSetTrialParam
	opSetTrialStateValues
	opSetTrialIntermediateValue
	opSetTrialUserAttr
	opSetTrialSystemAttr
)

// maxLineBytes is the longest line of a journal file that is read.
const maxLineBytes = 64 << 20

// LineError is a line of a journal file that is not what it must be.
type LineError struct {
	// Line counts from 1.
	Line int64
	// Err is what is wrong with it.
	Err error
}

// Error implements error.
func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns what is wrong.
func (e *LineError) Unwrap() error { return e.Err }

// What can be wrong with a line.
var (
	// ErrTorn is the last line, of which the end is missing. It was never part of
	// the log.
	ErrTorn = errors.New("the last line is torn")
	// ErrBlank is a line without a record.
	ErrBlank = errors.New("a blank line")
	// ErrGlued is a line on which half a record stands before a whole one.
	ErrGlued = errors.New("half a record stands before this one")
	// ErrLine is a line that holds no record.
	ErrLine = errors.New("no record of Optuna's journal")
	// ErrNoLog is a file that is no journal file of Optuna's: lines could not be used,
	// and none makes a study.
	ErrNoLog = errors.New("no journal file of Optuna's")
)

// record is one line. Fields that an operation does not have are nil.
type record map[string][]byte

// logReader reads records line by line.
type logReader struct {
	in   *bufio.Reader
	line int64
	read int64 // bytes
	buf  []byte
}

func newLogReader(in io.Reader) *logReader { return &logReader{in: bufio.NewReaderSize(in, 256<<10)} }

// next returns the next record, io.EOF after the last. A [*LineError] says what
// is wrong with a line, and that the next one can be read; with ErrGlued there is
// a record too. The record is valid until the next call.
func (r *logReader) next() (record, error) {
	whole, err := r.nextLine()
	if err != nil {
		return nil, err
	}
	text := bytes.TrimRight(r.buf, "\r\n")
	switch {
	case len(bytes.TrimSpace(text)) == 0 && whole:
		return nil, r.fault(ErrBlank)
	case len(r.buf) > maxLineBytes:
		return nil, r.fault(fmt.Errorf("%w: longer than %d bytes", ErrLine, maxLineBytes))
	}
	switch {
	case !whole:
		// Optuna ignores a line without its end, whatever is on it.
		return nil, r.fault(ErrTorn)
	case !utf8.Valid(text):
		return nil, r.fault(fmt.Errorf("%w: not UTF-8", ErrLine))
	}
	rec, err := parseRecord(text)
	if err == nil {
		return rec, nil
	}
	for i, tries := len(text), 0; tries < mostGlued; tries++ {
		if i = bytes.LastIndex(text[:i], []byte(`{"op_code"`)); i <= 0 {
			break
		}
		if rec, err := parseRecord(text[i:]); err == nil {
			return rec, r.fault(ErrGlued)
		}
	}
	return nil, r.fault(fmt.Errorf("%w: %w", ErrLine, err))
}

// mostGlued is how many places of a line are tried as the beginning of its record.
const mostGlued = 64

func (r *logReader) fault(err error) error { return &LineError{r.line, err} }

// nextLine reads a line into buf, of a line that is too long the beginning. Whole
// is false for a last line without its newline.
func (r *logReader) nextLine() (whole bool, err error) {
	r.buf = r.buf[:0]
	for {
		part, err := r.in.ReadSlice('\n')
		r.read += int64(len(part))
		if len(r.buf) <= maxLineBytes {
			r.buf = append(r.buf, part...)
		}
		switch {
		case err == nil:
			r.line++
			return true, nil
		case err == bufio.ErrBufferFull:
		case err == io.EOF && len(r.buf) > 0:
			r.line++
			return false, nil
		default:
			return false, err
		}
	}
}

// parseRecord reads a line of UTF-8.
func parseRecord(text []byte) (record, error) {
	rec := record{}
	err := pyMembers(text, func(key string, value []byte) error {
		rec[key] = value
		return nil
	})
	if err == nil && rec["op_code"] == nil {
		err = errors.New("no op_code")
	}
	return rec, err
}

// has tells whether a field is there and not null.
func (r record) has(key string) bool { return r[key] != nil && !pyNull(r[key]) }

func (r record) int(key string) (int64, error) {
	n, err := pyInt(r[key])
	return n, inField(key, err)
}

func (r record) float(key string) (float64, error) {
	f, err := pyFloat(r[key])
	return f, inField(key, err)
}

func (r record) text(key string) (string, error) {
	s, err := pyString(r[key])
	return s, inField(key, err)
}

func (r record) floats(key string) ([]float64, error) {
	var list []float64
	err := pyElements(r[key], func(value []byte) error {
		f, err := pyFloat(value)
		list = append(list, f)
		return err
	})
	return list, inField(key, err)
}

// moment is the time in a field, not known if it is null or missing.
func (r record) moment(key string) (moment, error) {
	if !r.has(key) {
		return moment{}, nil
	}
	text, err := r.text(key)
	if err != nil {
		return moment{}, err
	}
	m, err := parseMoment(text)
	return m, inField(key, err)
}

// attrs are the attributes in a field; each is the whole value as it is written.
func (r record) attrs(key string, side side) ([]attr, error) {
	if !r.has(key) {
		return nil, nil
	}
	var list []attr
	err := pyMembers(r[key], func(name string, value []byte) error {
		list = append(list, attr{side, name, string(value)})
		return nil
	})
	return list, inField(key, err)
}

func inField(key string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("field %q: %w", key, err)
}
