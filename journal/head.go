package journal

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
)

// snapshot is what the file at the study path says at one moment.
type snapshot struct {
	header Header
	// headerLine is the header verbatim, newline included: it is written back
	// unchanged with every head.
	headerLine []byte
	// head is the zero value for journals before format 6.
	head Head
	// mode is the file's permission bits.
	mode fs.FileMode
	// size is the file's length in bytes.
	size int64
}

// legacy tells a journal of format 1 to 5, which is one single file.
func (s *snapshot) legacy() bool { return s.header.Format < FormatVersion }

// start is the position before the first operation.
func (s *snapshot) start() Head { return Head{Bytes: uint64(len(s.headerLine))} }

// readHead reads the header and, of format 6, the head.
func (l layout) readHead() (*snapshot, error) {
	f, err := l.fs.OpenFile(l.head, os.O_RDONLY, 0)
	if err != nil {
		return nil, l.missing(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &CorruptError{Path: l.head, Err: ErrNotJournal}
	}
	// Not by its size: at a server the file may be another by now.
	b := make([]byte, 2*maxMetaLine+1)
	n, err := f.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	b = b[:n]
	s, err := parseHead(b)
	if err != nil {
		return nil, l.headError(err)
	}
	s.mode, s.size = info.Mode().Perm(), info.Size()
	return s, nil
}

func (l layout) headError(err error) error {
	var newer *NewerFormatError
	if errors.As(err, &newer) {
		newer.Path = l.head
		return newer
	}
	var corrupt *CorruptError
	if errors.As(err, &corrupt) {
		corrupt.Path = l.head
	}
	return err
}

// parseHead parses the beginning of the file at the study path. Errors leave
// the path for the caller to fill in.
func parseHead(b []byte) (*snapshot, error) {
	line, rest, ok := bytes.Cut(b, []byte("\n"))
	if !ok {
		return nil, &CorruptError{Err: ErrNotJournal}
	}
	s, err := parseHeader(line)
	if err != nil || s.legacy() {
		return s, err
	}
	at := int64(len(s.headerLine))
	line, rest, ok = bytes.Cut(rest, []byte("\n"))
	switch {
	case !ok || len(line)+1 > maxMetaLine:
		return nil, &CorruptError{Offset: at, Err: errors.New("the head line is torn or longer than 2048 bytes")}
	case len(rest) > 0:
		return nil, &CorruptError{Offset: at + int64(len(line)) + 1, Err: errors.New("bytes follow the head line")}
	}
	if s.head, err = decodeHead(line); err != nil {
		return nil, &CorruptError{Offset: at, Err: err}
	}
	if s.head.Tip == nil && s.head != s.start() {
		return nil, &CorruptError{Offset: at, Err: errors.New("the head counts operations but names no extent")}
	}
	return s, nil
}

// parseHeader parses a header line without its newline.
func parseHeader(line []byte) (*snapshot, error) {
	if len(line)+1 > maxMetaLine {
		return nil, &CorruptError{Err: ErrNotJournal}
	}
	format, err := headerFormat(line)
	if err != nil {
		return nil, &CorruptError{Err: err}
	}
	if format > FormatVersion {
		return nil, &NewerFormatError{Format: format}
	}
	s := &snapshot{headerLine: append(bytes.Clone(line), '\n')}
	if s.header, err = decodeHeader(line); err != nil {
		return nil, &CorruptError{Err: err}
	}
	return s, nil
}

// same tells whether two heads name the same history.
func (h Head) same(o Head) bool {
	tips := h.Tip == o.Tip || h.Tip != nil && o.Tip != nil && *h.Tip == *o.Tip
	return tips && h.Ops == o.Ops && h.Bytes == o.Bytes
}

// sameJournal tells whether two snapshots are of one journal: headers differ at
// most by a migration's new format.
func (s *snapshot) sameJournal(t *snapshot) bool {
	a, b := s.header, t.header
	a.Format, b.Format = 0, 0
	return a == b
}
