package logkind

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/foldlog/foldlog/journal"
)

func (k journalKind) Tail(ctx context.Context, log string, w io.Writer, opts TailOptions) error {
	fsys := k.fs()
	if opts.Follow {
		fsys = k.liveFS()
	}
	r, err := journal.OpenReader(log, journal.ReaderOptions{FS: fsys})
	if err != nil {
		return err
	}
	defer r.Close()
	t := &tailer{ctx: ctx, last: uint64(opts.Last)}
	if err := r.Refresh(t); err != nil {
		return err
	}
	if err := t.flush(w); err != nil || !opts.Follow {
		return err
	}
	return r.Follow(ctx, k.poll(), t, func() error { return t.flush(w) })
}

// errRewound ends a tail whose journal lost what was already printed.
var errRewound = errors.New("a power loss took back operations that were printed already")

// tailer keeps the last lines until they are first flushed, and then every one.
type tailer struct {
	ctx     context.Context
	last    uint64
	lines   [][]byte
	oldest  int // where the ring of the last lines begins, until the first flush
	flushed bool
	// seen is the last operation, and its line. When the history comes again
	// (a migration, a power loss), what was printed is passed over, provided
	// that it is the same.
	seen     uint64
	seenLine []byte
	again    bool
}

func (t *tailer) Apply(rec *journal.Record) error {
	if err := t.ctx.Err(); err != nil {
		return err
	}
	if t.again {
		if rec.Seq == t.seen && !bytes.Equal(rec.Line, t.seenLine) {
			return errRewound
		}
		t.again = rec.Seq < t.seen
		return nil
	}
	t.seen, t.seenLine = rec.Seq, append(t.seenLine[:0], rec.Line...)
	t.keep(rec.Line)
	return nil
}

func (t *tailer) keep(line []byte) {
	switch {
	case t.flushed || uint64(len(t.lines)) < t.last:
		t.lines = append(t.lines, bytes.Clone(line))
	case t.last > 0:
		t.lines[t.oldest] = append(t.lines[t.oldest][:0], line...)
		t.oldest = (t.oldest + 1) % len(t.lines)
	}
}

func (t *tailer) Reset() {
	if t.flushed {
		t.again = t.seen > 0
	} else {
		t.lines, t.oldest, t.seen = nil, 0, 0
	}
}

// flush writes the lines that are kept, in order, and forgets them.
func (t *tailer) flush(w io.Writer) error {
	for _, line := range append(t.lines[t.oldest:len(t.lines):len(t.lines)], t.lines[:t.oldest]...) {
		if _, err := w.Write(line); err != nil {
			return err
		}
	}
	t.lines, t.oldest, t.flushed = t.lines[:0], 0, true
	return nil
}
