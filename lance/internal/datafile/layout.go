// Package datafile reads and writes Lance data files. It writes format 2.0 and reads
// 2.0, 2.1 and 2.2, decoding any range of rows of a column with ranged reads, so that
// memory follows what is asked for and not the size of a file.
//
//	page buffers, each 64-byte aligned
//	global buffer 0: FileDescriptor{schema, rows}
//	column metadata messages
//	column metadata offsets  (u64 position, u64 length) per column
//	global buffer offsets    (u64 position, u64 length) per buffer
//	u64 first column metadata, u64 column table, u64 buffer table,
//	u32 global buffers, u32 columns, u16 major, u16 minor, "LANC"
package datafile

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/foldlog/foldlog/lance/internal/format"
	"github.com/foldlog/foldlog/lance/internal/wire"
)

const (
	footerSize  = 40
	alignment   = 64
	maxColumns  = 1 << 16
	maxMetadata = 256 << 20
	// tailRead is what is read from the end of a file at first, in bytes.
	tailRead = 64 << 10
)

var le = binary.LittleEndian

// Source is a file's bytes.
type Source interface {
	// ReadRange reads n bytes from an offset. The caller owns the result.
	ReadRange(ctx context.Context, off, n int64) ([]byte, error)
}

// version is the format of a data file.
type version struct{ Major, Minor int }

// version20 is the format that is written.
var version20 = version{2, 0}

// String is the version as manifests spell it.
func (v version) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

// footerVersion maps what a footer says to the format: 2.0 files are stamped 0.3.
func footerVersion(major, minor uint16) (version, error) {
	switch v := (version{int(major), int(minor)}); v {
	case version{0, 3}, version20:
		return version20, nil
	case version{2, 1}, version{2, 2}:
		return v, nil
	default:
		return v, &format.UnsupportedError{What: fmt.Sprintf("data file version %d.%d", major, minor)}
	}
}

func corrupt(msg string, args ...any) error {
	return fmt.Errorf("%w: %s", format.ErrCorrupt, fmt.Sprintf(msg, args...))
}

// corruptly marks an error of parsing as corruption, unless it names something
// unsupported.
func corruptly(err error) error {
	if err == nil || errors.Is(err, format.ErrCorrupt) || errors.As(err, new(*format.UnsupportedError)) {
		return err
	}
	if errors.Is(err, wire.ErrMalformed) {
		return fmt.Errorf("%w: %w", format.ErrCorrupt, err)
	}
	return err
}

// span is a part of a file.
type span struct{ off, n int64 }

func (s span) end() int64 { return s.off + s.n }

// within checks that a span from a file lies before its footer.
func within(off, n uint64, size int64) (span, error) {
	if off > math.MaxInt64 || n > math.MaxInt64 || int64(off) > size || int64(n) > size-int64(off) {
		return span{}, corrupt("%d bytes at %d of a file of %d", n, off, size)
	}
	return span{int64(off), int64(n)}, nil
}

// page is a run of rows of one column.
type page struct {
	first, rows int64
	buffers     []span
	// body is the encoding message of the page, without its Any.
	body []byte
	url  string
	// bytes is the size of all buffers.
	bytes int64
}

// column is one column of a file.
type column struct {
	field format.Field
	pages []*page
	// bits is what a row takes in memory at least, in bits.
	bits int64
}

func parsePage(b []byte, size int64) (*page, error) {
	fields, err := wire.Parse(b)
	if err != nil {
		return nil, err
	}
	offs, err := fields.AllUints(1)
	if err != nil {
		return nil, err
	}
	sizes, err := fields.AllUints(2)
	if err != nil {
		return nil, err
	}
	rows := fields.Uint(3)
	if len(offs) != len(sizes) || rows == 0 || rows > math.MaxUint32 {
		return nil, corrupt("page of %d rows with %d offsets and %d sizes", rows, len(offs), len(sizes))
	}
	p := &page{rows: int64(rows)}
	for i := range offs {
		s, err := within(offs[i], sizes[i], size)
		if err != nil {
			return nil, err
		}
		p.buffers = append(p.buffers, s)
		p.bytes += s.n
	}
	enc, err := fields.Sub(4)
	if err != nil {
		return nil, err
	}
	p.url, p.body, err = directEncoding(enc)
	return p, err
}

// directEncoding unwraps Encoding{direct{Any}}.
func directEncoding(enc wire.Message) (url string, body []byte, err error) {
	direct, ok := enc.Get(2)
	if !ok {
		return "", nil, &format.UnsupportedError{What: "page encoding that is not direct"}
	}
	fields, err := wire.Parse(direct.B)
	if err != nil {
		return "", nil, err
	}
	any, _ := fields.Get(1)
	return wire.ParseAny(any.B)
}

func parseColumn(b []byte, field format.Field, size int64, rows int64) (column, error) {
	fields, err := wire.Parse(b)
	if err != nil {
		return column{}, err
	}
	c := column{field: field, bits: decodedBits(field.Logical)}
	at := int64(0)
	for f := range fields.All() {
		if f.Num != 2 {
			continue
		}
		p, err := parsePage(f.B, size)
		if err != nil {
			return c, fmt.Errorf("column %s: page %d: %w", field.Name, len(c.pages), err)
		}
		p.first = at
		at += p.rows
		c.pages = append(c.pages, p)
	}
	if at != rows {
		return c, corrupt("column %s has %d rows, the file %d", field.Name, at, rows)
	}
	return c, nil
}

// encodingMessage wraps a page or column encoding as files hold it.
func encodingMessage(url string, body []byte) wire.Builder {
	return wire.Builder(nil).Bytes(2, wire.Builder(nil).Bytes(1, wire.Any(url, body)))
}
