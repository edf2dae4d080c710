package journal

import (
	"bytes"
	"errors"
	"io"
	"os"
)

// keptFiles compares what migrations left with the journal: bytes beyond it
// were torn, or come from an older writer that was never stopped.
func (v *verifier) keptFiles() error {
	for _, path := range v.l.keptFiles() {
		at, rest, err := v.keptRest(path)
		switch {
		case err != nil:
			return err
		case rest == restTorn:
			v.find(Note, path, at, 0, errors.New("torn last line that the migration left behind"))
		case rest == restLines:
			v.find(Warning, path, at, 0, errors.New("lines that the journal does not hold: an older writer was still appending; stop it"))
		}
	}
	return nil
}

// kindOfRest is what a kept file holds beyond the journal.
type kindOfRest int

const (
	restNone kindOfRest = iota
	restTorn
	restLines
)

// keptRest returns where a kept file leaves the journal's virtual stream, and
// what follows.
func (v *verifier) keptRest(path string) (int64, kindOfRest, error) {
	f, err := v.l.fs.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return 0, restNone, err
	}
	defer f.Close()
	r, err := newReader(v.l)
	if err != nil {
		return 0, restNone, err
	}
	defer r.Close()
	c := &comparer{f: f, at: int64(len(r.snap.headerLine))}
	if err := r.Refresh(until{v.ctx, c}); err != nil && !errors.Is(err, errDiffers) {
		var corrupt *CorruptError
		if errors.As(err, &corrupt) {
			return 0, restNone, nil // reported already
		}
		return 0, restNone, err
	}
	rest, err := restOf(f, c.at)
	return c.at, rest, err
}

func restOf(f io.ReaderAt, at int64) (kind kindOfRest, err error) {
	buf := make([]byte, 64<<10)
	for {
		n, err := f.ReadAt(buf, at)
		if bytes.IndexByte(buf[:n], '\n') >= 0 {
			return restLines, nil
		}
		if n > 0 {
			kind = restTorn
		}
		at += int64(n)
		if errors.Is(err, io.EOF) {
			return kind, nil
		}
		if err != nil {
			return kind, err
		}
	}
}

var errDiffers = errors.New("the files differ")

// comparer follows a file as long as it holds the same lines.
type comparer struct {
	f   io.ReaderAt
	at  int64
	buf []byte
}

func (c *comparer) Apply(rec *Record) error {
	if len(c.buf) < len(rec.Line) {
		c.buf = make([]byte, 2*len(rec.Line))
	}
	b := c.buf[:len(rec.Line)]
	if readFull(c.f, b, c.at) != nil || !bytes.Equal(b, rec.Line) {
		return errDiffers
	}
	c.at += int64(len(rec.Line))
	return nil
}

func (c *comparer) Reset() {}
