package journal

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/foldlog/foldlog/internal/serde"
)

// FormatVersion is the format that this package writes. Raise it when a reader
// of the old number would misread the new bytes; readers refuse higher numbers.
const FormatVersion = 6

// firstFormat is the oldest format there has been.
const firstFormat = 1

const (
	// maxMetaLine bounds the header, head and extent lines, newline included.
	maxMetaLine = 2048
	// HardLimit bounds what a reader asks memory for, whatever caps a writer
	// was given: the length of one extent in bytes.
	HardLimit = 1 << 30
	// extentMagic marks an extent and its format.
	extentMagic = "atune.extent/6"
	magicPrefix = "atune.extent/"
)

// Header is the first line of a journal.
type Header struct {
	// Format is the on-disk format version.
	Format uint64
	// Program names what created the journal and its version (the "atune"
	// field), for people.
	Program string
	// CreatedAtMillis is the creator's clock in Unix milliseconds.
	CreatedAtMillis uint64
	// CreatedBy is the worker that created the journal.
	CreatedBy uint64
}

// Pointer names an extent.
type Pointer struct {
	// File is the base name of a data file.
	File string
	// Offset and Len are the extent's place in it in bytes, metadata line and
	// payload together.
	Offset, Len int64
}

// Head is the second line: what the journal holds at this moment.
type Head struct {
	// Tip is the last extent, nil while there is no operation.
	Tip *Pointer
	// Ops is the number of operations, which is the last sequence number.
	Ops uint64
	// Bytes is the length of the virtual stream: the header line and every
	// operation line.
	Bytes uint64
}

// extentHeader is the metadata line of an extent.
type extentHeader struct {
	previous    *Pointer
	first, last uint64
	start       uint64
	payloadLen  int64
	checksum    uint64
}

func appendHeader(dst []byte, h Header) []byte {
	dst = append(dst, `{"record":"header","format":`...)
	dst = strconv.AppendUint(dst, h.Format, 10)
	dst = append(dst, `,"atune":`...)
	dst = serde.AppendString(dst, h.Program)
	dst = append(dst, `,"created_at_millis":`...)
	dst = strconv.AppendUint(dst, h.CreatedAtMillis, 10)
	dst = append(dst, `,"created_by":`...)
	dst = strconv.AppendUint(dst, h.CreatedBy, 10)
	return append(dst, "}\n"...)
}

func appendPointer(dst []byte, p *Pointer) []byte {
	if p == nil {
		return append(dst, "null"...)
	}
	dst = append(dst, `{"file":`...)
	dst = serde.AppendString(dst, p.File)
	dst = append(dst, `,"offset":`...)
	dst = strconv.AppendInt(dst, p.Offset, 10)
	dst = append(dst, `,"len":`...)
	dst = strconv.AppendInt(dst, p.Len, 10)
	return append(dst, '}')
}

func appendHead(dst []byte, h Head) []byte {
	dst = append(dst, `{"tip":`...)
	dst = appendPointer(dst, h.Tip)
	dst = append(dst, `,"ops":`...)
	dst = strconv.AppendUint(dst, h.Ops, 10)
	dst = append(dst, `,"bytes":`...)
	dst = strconv.AppendUint(dst, h.Bytes, 10)
	return append(dst, "}\n"...)
}

func appendExtentHeader(dst []byte, e extentHeader) []byte {
	dst = append(dst, `{"magic":"`+extentMagic+`","previous":`...)
	dst = appendPointer(dst, e.previous)
	dst = append(dst, `,"first":`...)
	dst = strconv.AppendUint(dst, e.first, 10)
	dst = append(dst, `,"last":`...)
	dst = strconv.AppendUint(dst, e.last, 10)
	dst = append(dst, `,"start":`...)
	dst = strconv.AppendUint(dst, e.start, 10)
	dst = append(dst, `,"payload_len":`...)
	dst = strconv.AppendInt(dst, e.payloadLen, 10)
	dst = append(dst, `,"checksum":`...)
	dst = strconv.AppendUint(dst, e.checksum, 10)
	return append(dst, "}\n"...)
}

// appendRecord spells an operation line.
func appendRecord(dst []byte, seq, worker, atMillis uint64, op []byte) []byte {
	dst = append(dst, `{"record":"op","seq":`...)
	dst = strconv.AppendUint(dst, seq, 10)
	dst = append(dst, `,"worker":`...)
	dst = strconv.AppendUint(dst, worker, 10)
	dst = append(dst, `,"at_millis":`...)
	dst = strconv.AppendUint(dst, atMillis, 10)
	dst = append(dst, `,"op":`...)
	dst = append(dst, op...)
	return append(dst, "}\n"...)
}

// fields notes which fields of an object were seen, a bit each.
type fields uint

func (f *fields) see(s *serde.Scanner, bit uint) {
	if *f&(1<<bit) != 0 {
		s.Fail(fmt.Errorf("field %q stands twice", s.Key()))
	}
	*f |= 1 << bit
}

func (f fields) require(names ...string) error {
	for i, name := range names {
		if f&(1<<i) == 0 {
			return fmt.Errorf("field %q is missing", name)
		}
	}
	return nil
}

// finish reports what went wrong with an object and everything after it.
func (f fields) finish(s *serde.Scanner, names ...string) error {
	if err := s.End(); err != nil {
		return err
	}
	return f.require(names...)
}

// headerFormat reads the format number of a header line and nothing else, so
// that a newer header is refused by its number whatever else it holds.
func headerFormat(line []byte) (uint64, error) {
	s := serde.NewScanner(line)
	record, format, seen := false, uint64(0), false
	for s.Object(); s.NextKey(); {
		switch string(s.Key()) {
		case "record":
			record = s.Peek() == '"' && string(s.Bytes()) == "header"
		case "format":
			format, seen = s.Uint64(), true
		default:
			s.Skip()
		}
	}
	if s.End() != nil || !record || !seen || format < firstFormat {
		return 0, ErrNotJournal
	}
	return format, nil
}

func decodeHeader(line []byte) (h Header, err error) {
	s := serde.NewScanner(line)
	var seen fields
	for s.Object(); s.NextKey(); {
		switch string(s.Key()) {
		case "record":
			seen.see(&s, 0)
			s.Skip()
		case "format":
			seen.see(&s, 1)
			h.Format = s.Uint64()
		case "atune":
			seen.see(&s, 2)
			h.Program = s.String()
		case "created_at_millis":
			seen.see(&s, 3)
			h.CreatedAtMillis = s.Uint64()
		case "created_by":
			seen.see(&s, 4)
			h.CreatedBy = s.Uint64()
		default:
			s.Skip()
		}
	}
	return h, seen.finish(&s, "record", "format", "atune", "created_at_millis", "created_by")
}

func decodeHead(line []byte) (h Head, err error) {
	s := serde.NewScanner(line)
	var seen fields
	for s.Object(); s.NextKey(); {
		switch string(s.Key()) {
		case "tip":
			seen.see(&s, 0)
			h.Tip = scanPointer(&s)
		case "ops":
			seen.see(&s, 1)
			h.Ops = s.Uint64()
		case "bytes":
			seen.see(&s, 2)
			h.Bytes = s.Uint64()
		default:
			s.Skip()
		}
	}
	return h, seen.finish(&s, "tip", "ops", "bytes")
}

func decodeExtentHeader(line []byte) (e extentHeader, err error) {
	s := serde.NewScanner(line)
	var seen fields
	for s.Object(); s.NextKey(); {
		switch string(s.Key()) {
		case "magic":
			seen.see(&s, 0)
			if m := s.Bytes(); string(m) != extentMagic {
				s.Fail(magicError(m))
			}
		case "previous":
			seen.see(&s, 1)
			e.previous = scanPointer(&s)
		case "first":
			seen.see(&s, 2)
			e.first = s.Uint64()
		case "last":
			seen.see(&s, 3)
			e.last = s.Uint64()
		case "start":
			seen.see(&s, 4)
			e.start = s.Uint64()
		case "payload_len":
			seen.see(&s, 5)
			e.payloadLen = scanSize(&s)
		case "checksum":
			seen.see(&s, 6)
			e.checksum = s.Uint64()
		default:
			s.Skip()
		}
	}
	return e, seen.finish(&s, "magic", "previous", "first", "last", "start", "payload_len", "checksum")
}

func magicError(m []byte) error {
	if digits, ok := strings.CutPrefix(string(m), magicPrefix); ok {
		if n, err := strconv.ParseUint(digits, 10, 64); err == nil && n > FormatVersion {
			return &NewerFormatError{Format: n}
		}
	}
	return fmt.Errorf("magic is %.40q, not %q", m, extentMagic)
}

func scanPointer(s *serde.Scanner) *Pointer {
	if s.Null() {
		return nil
	}
	p := new(Pointer)
	var seen fields
	for s.Object(); s.NextKey(); {
		switch string(s.Key()) {
		case "file":
			seen.see(s, 0)
			p.File = s.String()
		case "offset":
			seen.see(s, 1)
			p.Offset = scanSize(s)
		case "len":
			seen.see(s, 2)
			p.Len = scanSize(s)
		default:
			s.Skip()
		}
	}
	if s.Err() != nil {
		return nil
	}
	if err := seen.require("file", "offset", "len"); err != nil {
		s.Fail(err)
	} else if err := p.check(); err != nil {
		s.Fail(err)
	}
	return p
}

// scanSize reads a size or offset that must fit a file.
func scanSize(s *serde.Scanner) int64 {
	n := s.Uint64()
	if n > math.MaxInt64 {
		s.Fail(fmt.Errorf("%d is more than a file can hold", n))
		return 0
	}
	return int64(n)
}

// check refuses a pointer that could lead out of the data directory or that
// cannot lie in a file.
func (p *Pointer) check() error {
	switch {
	case p.File == "" || p.File == "." || p.File == ".." || len(p.File) > 255 || strings.ContainsAny(p.File, "/\\:\x00"):
		return fmt.Errorf("data file name %.80q is not a plain base name", p.File)
	case p.Len <= 0 || p.Offset > math.MaxInt64-p.Len:
		return fmt.Errorf("extent of %d bytes at %d cannot be", p.Len, p.Offset)
	case p.Len > HardLimit+maxMetaLine:
		return &TooLargeError{"extent", p.Len, HardLimit}
	}
	return nil
}

// decodeRecord splits an operation line, without its newline, into envelope and
// operation.
func decodeRecord(line []byte, rec *Record) error {
	if quickRecord(line, rec) {
		return nil
	}
	return scanRecord(line, rec)
}

func scanRecord(line []byte, rec *Record) error {
	s := serde.NewScanner(line)
	var seen fields
	for s.Object(); s.NextKey(); {
		switch string(s.Key()) {
		case "record":
			seen.see(&s, 0)
			if string(s.Bytes()) != "op" {
				s.Fail(errors.New(`record is not "op"`))
			}
		case "seq":
			seen.see(&s, 1)
			rec.Seq = s.Uint64()
		case "worker":
			seen.see(&s, 2)
			rec.Worker = s.Uint64()
		case "at_millis":
			seen.see(&s, 3)
			rec.AtMillis = s.Uint64()
		case "op":
			seen.see(&s, 4)
			if s.Peek() != '{' {
				s.Fail(errors.New("op is not an object"))
			}
			rec.Op = s.Raw()
		default:
			s.Skip()
		}
	}
	return seen.finish(&s, "record", "seq", "worker", "at_millis", "op")
}

const fnvOffset, fnvPrime = 14695981039346656037, 1099511628211

// checksum is FNV-1a, 64 bits.
func checksum(b []byte) uint64 { return addChecksum(fnvOffset, b) }

func addChecksum(h uint64, b []byte) uint64 {
	for _, c := range b {
		h = (h ^ uint64(c)) * fnvPrime
	}
	return h
}
