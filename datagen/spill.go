package datagen

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"time"

	"github.com/klauspost/compress/s2"
)

// spillFile is a temporary file for what is too much for memory. It belongs to one
// goroutine, and is gone once it is closed.
type spillFile struct {
	f    spillDisk
	end  int64
	pack []byte
}

// spillDisk is an open file.
type spillDisk interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Name() string
}

func newSpillFile() (*spillFile, error) {
	f, err := os.CreateTemp("", "foldlog-*.spill")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(f.Name()) // where an open file can be: then nothing stays after a crash
	return &spillFile{f: f}, nil
}

func (s *spillFile) close() {
	_ = s.f.Close()
	_ = os.Remove(s.f.Name())
}

// spillBlock is how many bytes of a sequence are written at once.
const spillBlock = 64 << 10

// spilled is a sequence of records in a spillFile.
type spilled struct {
	file   *spillFile
	buf    []byte // the last block, in full records
	blocks []spillPlace
}

type spillPlace struct {
	off  int64
	size int
}

// wrote is called after each record that was appended to buf.
func (s *spilled) wrote() error {
	if len(s.buf) < spillBlock {
		return nil
	}
	return s.flush()
}

func (s *spilled) flush() error {
	if len(s.buf) == 0 {
		return nil
	}
	f := s.file
	f.pack = s2.Encode(f.pack[:cap(f.pack)], s.buf)
	if _, err := f.f.WriteAt(f.pack, f.end); err != nil {
		return fmt.Errorf("spill: %w", err)
	}
	s.blocks = append(s.blocks, spillPlace{f.end, len(f.pack)})
	f.end += int64(len(f.pack))
	s.buf = s.buf[:0]
	return nil
}

// errSpill: what was spilled is not read back as it was.
var errSpill = errors.New("spilled records are damaged")

// records yields what read makes of each record.
func records[T any](s *spilled, read func(*spillReader) T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		if err := s.flush(); err != nil {
			yield(none, err)
			return
		}
		var packed []byte
		var r spillReader
		for _, at := range s.blocks {
			packed = append(packed[:0], make([]byte, at.size)...)
			_, err := s.file.f.ReadAt(packed, at.off)
			if err == nil {
				r.b, err = s2.Decode(nil, packed)
			}
			for err == nil && len(r.b) > 0 {
				r.slot = 0
				if x := read(&r); !r.bad && !yield(x, nil) {
					return
				}
				if r.bad {
					err = errSpill
				}
			}
			if err != nil {
				yield(none, fmt.Errorf("spill: %w", err))
				return
			}
		}
	}
}

// spillWriter appends the parts of records.
type spillWriter []byte

func (w *spillWriter) text(s string) { *w = append(binary.AppendUvarint(*w, uint64(len(s))), s...) }
func (w *spillWriter) int(v int64)   { *w = binary.AppendVarint(*w, v) }

func (w *spillWriter) fixed(v uint64) { *w = binary.LittleEndian.AppendUint64(*w, v) }

// raw keeps nil apart from what is empty.
func (w *spillWriter) raw(b []byte) {
	if b == nil {
		w.int(-1)
		return
	}
	w.int(int64(len(b)))
	*w = append(*w, b...)
}

func (w *spillWriter) bool(b bool) {
	v := int64(0)
	if b {
		v = 1
	}
	w.int(v)
}

func (w *spillWriter) time(t time.Time) {
	if t.IsZero() {
		w.int(math.MinInt64)
		return
	}
	w.int(t.UnixMicro())
}

// spillReader reads them in the same order. A text that repeats the one at its place in
// the record before shares its memory.
type spillReader struct {
	b    []byte
	last [24]string
	slot int
	bad  bool
}

func (r *spillReader) take(n int64) []byte {
	if n < 0 || n > int64(len(r.b)) {
		r.bad, r.b = true, nil
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *spillReader) text() string {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || v > math.MaxInt64 {
		r.take(-1)
		return ""
	}
	r.b = r.b[n:]
	b := r.take(int64(v))
	last := &r.last[r.slot%len(r.last)]
	if r.slot++; string(b) != *last {
		*last = string(b)
	}
	return *last
}

func (r *spillReader) int() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.take(-1)
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *spillReader) fixed() uint64 {
	if b := r.take(8); len(b) == 8 {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (r *spillReader) raw() []byte {
	n := r.int()
	if n < 0 {
		return nil
	}
	return append([]byte{}, r.take(n)...)
}

func (r *spillReader) bool() bool { return r.int() != 0 }

func (r *spillReader) time() time.Time {
	v := r.int()
	if v == math.MinInt64 {
		return time.Time{}
	}
	return time.UnixMicro(v).UTC()
}
