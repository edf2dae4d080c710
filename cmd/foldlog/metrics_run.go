package main

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

// readRun reads and folds a whole stream.
func (w world) readRun(ctx context.Context, path string) (*foldedRun, error) {
	f, err := w.open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	run := &foldedRun{path: w.name(path)}
	err = metrics.ReadStream(run.counting(watched(ctx, f, nil)), run.take)
	run.finish()
	return run, err
}

// foldedRun is a stream that has been read.
type foldedRun struct {
	path      string
	fold      metrics.Fold
	firstLine []byte
	bytes     int64
	bad       int64 // lines that are no events
	firstBad  error
	torn      int64 // bytes of a last line without its newline
	lines     badLines
}

func (r *foldedRun) counting(in io.Reader) io.Reader {
	return readerFunc(func(p []byte) (int, error) {
		n, err := in.Read(p)
		r.bytes += int64(n)
		return n, err
	})
}

// take applies one line.
func (r *foldedRun) take(it *metrics.Item) {
	if it.Number == 1 && r.firstLine == nil {
		r.firstLine = bytes.Clone(it.Line)
	}
	if it.Kind == metrics.ItemEvent {
		if r.lines.held != nil || it.Event.Kind == metrics.KindOpen {
			r.lines.see(it)
		}
		r.fold.Apply(&it.Event)
		return
	}
	r.lines.see(it)
}

func (r *foldedRun) finish() {
	if r.bad, r.firstBad = r.lines.total(), r.lines.first; r.lines.torn {
		r.torn = r.bytes - r.lines.tornAt
	}
}

// name is what people call the run: its slug, or its file without one.
func (r *foldedRun) name() string {
	if r.fold.Slug != "" {
		return r.fold.Slug
	}
	return strings.TrimSuffix(r.path, metrics.Extension)
}

// measured is what is read and has a size.
type measured interface {
	io.Reader
	Stat() (fs.FileInfo, error)
}

// part is a part of a file.
type part struct {
	io.Reader
	file logFile
}

// Stat implements measured.
func (p part) Stat() (fs.FileInfo, error) { return p.file.Stat() }

// watched is a file whose reading ends with ctx, and tells its progress.
func watched(ctx context.Context, f measured, progress func(done, total int64)) io.Reader {
	total := int64(0)
	if info, err := f.Stat(); err == nil {
		total = info.Size()
	}
	done := int64(0)
	return untilCancelled(ctx, readerFunc(func(p []byte) (int, error) {
		n, err := f.Read(p)
		if done += int64(n); progress != nil {
			progress(done, max(done, total))
		}
		return n, err
	}))
}

// untilCancelled ends reading when ctx does.
func untilCancelled(ctx context.Context, in io.Reader) io.Reader {
	return readerFunc(func(p []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return in.Read(p)
	})
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// badLines counts the lines of a stream that are no events. A torn last line is
// not one, nor is what is no JSON right before an open: a process was killed
// there.
type badLines struct {
	count int64
	first error
	held  error
	// torn tells that the last line has no newline; it begins at tornAt.
	torn   bool
	tornAt int64
}

func (b *badLines) see(it *metrics.Item) {
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

func (b *badLines) release() {
	if b.held == nil {
		return
	}
	if b.count++; b.first == nil {
		b.first = b.held
	}
	b.held = nil
}

// total is how many there were, once the end has come.
func (b *badLines) total() int64 {
	b.release()
	return b.count
}

func (b *badLines) err() error {
	switch n := b.total(); n {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("no event: %w", b.first)
	default:
		return fmt.Errorf("%d lines are no events, the first: %w", n, b.first)
	}
}

// statusText is a status with what is known besides.
func statusText(f *metrics.Fold) string {
	text := f.Status.String()
	if signal := f.Interrupted(); signal != "" && f.Status == metrics.StatusRunning {
		text += ", interrupted by " + signal
	}
	return text
}

// changeText is "a -> b", "new: b" or "gone: a".
func changeText(c metrics.Change) string {
	switch {
	case c.From == "":
		return "new: " + c.To
	case c.To == "":
		return "gone: " + c.From
	}
	return c.From + " -> " + c.To
}
