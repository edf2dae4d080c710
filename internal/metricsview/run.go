// Package metricsview reads the metrics streams of training runs whole and shows them: as
// the documented JSON, as charts, and in words for people.
package metricsview

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/foldlog/foldlog/metrics"
)

// Read reads and folds a whole stream, that of path.
func Read(ctx context.Context, f Source, path string) (*Run, error) {
	run := &Run{Path: path}
	err := metrics.ReadStream(run.counting(Watched(ctx, f, nil)), run.Take)
	run.finish()
	return run, err
}

// Run is a stream that has been read.
type Run struct {
	Path      string
	Fold      metrics.Fold
	FirstLine []byte
	Bytes     int64
	Bad       int64 // lines that are no events
	FirstBad  error
	Torn      int64 // bytes of a last line without its newline
	lines     BadLines
}

func (r *Run) counting(in io.Reader) io.Reader {
	return readerFunc(func(p []byte) (int, error) {
		n, err := in.Read(p)
		r.Bytes += int64(n)
		return n, err
	})
}

// Take applies one line.
func (r *Run) Take(it *metrics.Item) {
	if it.Number == 1 && r.FirstLine == nil {
		r.FirstLine = bytes.Clone(it.Line)
	}
	if it.Kind == metrics.ItemEvent {
		if r.lines.held != nil || it.Event.Kind == metrics.KindOpen {
			r.lines.See(it)
		}
		r.Fold.Apply(&it.Event)
		return
	}
	r.lines.See(it)
}

func (r *Run) finish() {
	if r.Bad, r.FirstBad = r.lines.total(), r.lines.first; r.lines.torn {
		r.Torn = r.Bytes - r.lines.tornAt
	}
}

// Name is what people call the run: its slug, or its file without one.
func (r *Run) Name() string {
	if r.Fold.Slug != "" {
		return r.Fold.Slug
	}
	return strings.TrimSuffix(r.Path, metrics.Extension)
}

// Source is what is read and has a size.
type Source interface {
	io.Reader
	Stat() (fs.FileInfo, error)
}

// Part is a part of a file.
type Part struct {
	io.Reader
	Source Source
}

// Stat implements measured.
func (p Part) Stat() (fs.FileInfo, error) { return p.Source.Stat() }

// Watched is a file whose reading ends with ctx, and tells its progress.
func Watched(ctx context.Context, f Source, progress func(done, total int64)) io.Reader {
	total := int64(0)
	if info, err := f.Stat(); err == nil {
		total = info.Size()
	}
	done := int64(0)
	return UntilCancelled(ctx, readerFunc(func(p []byte) (int, error) {
		n, err := f.Read(p)
		if done += int64(n); progress != nil {
			progress(done, max(done, total))
		}
		return n, err
	}))
}

// UntilCancelled ends reading when ctx does.
func UntilCancelled(ctx context.Context, in io.Reader) io.Reader {
	return readerFunc(func(p []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return in.Read(p)
	})
}

// readerFunc is a function as an io.Reader.
type readerFunc func(p []byte) (int, error)

// Read implements io.Reader.
func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// BadLines counts the lines of a stream that are no events. A torn last line is
// not one, nor is what is no JSON right before an open: a process was killed
// there.
type BadLines struct {
	count int64
	first error
	held  error
	// torn tells that the last line has no newline; it begins at tornAt.
	torn   bool
	tornAt int64
}

// See counts a line, if it is bad.
func (b *BadLines) See(it *metrics.Item) {
	switch {
	case it.Torn:
		b.tornAt, b.torn = it.Offset, true
	case it.Kind == metrics.ItemBad:
		b.release()
		b.held = it.Err
	case it.Kind == metrics.ItemEvent && it.Event.Kind == metrics.KindOpen && !isObject(b.held):
		b.held = nil
	default:
		b.release()
	}
}

// isObject tells an object with something wrong from what is no JSON.
func isObject(err error) bool {
	return errors.Is(err, metrics.ErrKind) || errors.Is(err, metrics.ErrMissing) || errors.Is(err, metrics.ErrEmpty)
}

func (b *BadLines) release() {
	if b.held == nil {
		return
	}
	if b.count++; b.first == nil {
		b.first = b.held
	}
	b.held = nil
}

// total is how many there were, once the end has come.
func (b *BadLines) total() int64 {
	b.release()
	return b.count
}

// Err says how many lines are no events, once the end has come; nil if none is bad.
func (b *BadLines) Err() error {
	switch n := b.total(); n {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("no event: %w", b.first)
	default:
		return fmt.Errorf("%d lines are no events, the first: %w", n, b.first)
	}
}

// StatusText is a status with what is known besides.
func StatusText(f *metrics.Fold) string {
	text := f.Status.String()
	if signal := f.Interrupted(); signal != "" && f.Status == metrics.StatusRunning {
		text += ", interrupted by " + signal
	}
	return text
}

// ChangeText is "a -> b", "new: b" or "gone: a".
func ChangeText(c metrics.Change) string {
	switch {
	case c.From == "":
		return "new: " + c.To
	case c.To == "":
		return "gone: " + c.From
	}
	return c.From + " -> " + c.To
}
