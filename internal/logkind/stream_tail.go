package logkind

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/foldlog/foldlog/metrics"
)

// Tail prints events as they are in the file. Bad lines are passed over: they
// are for verify to tell.
func (k metricsKind) Tail(ctx context.Context, log string, w io.Writer, opts TailOptions) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	follower := k.Follower(log)
	defer follower.Close()
	last := lastLines{most: opts.Last}
	if err := follower.Poll(last.see); err != nil {
		return err
	}
	if err := last.write(w); err != nil || !opts.Follow {
		return err
	}
	err := follower.Follow(ctx, k.poll(), func(it *metrics.Item) {
		if it.Kind == metrics.ItemEvent && ctx.Err() == nil {
			if err := writeWhole(w, it.Line); err != nil {
				cancel(&tailWriteError{err})
			}
		}
	})
	var failedWrite *tailWriteError
	if errors.As(err, &failedWrite) {
		return failedWrite.err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// tailWriteError is why a tail ended that nobody has cancelled.
type tailWriteError struct{ err error }

func (e *tailWriteError) Error() string { return e.err.Error() }

// writeWhole writes a line and its newline at once.
func writeWhole(w io.Writer, line []byte) error {
	_, err := w.Write(append(bytes.Clone(line), '\n'))
	return err
}

// lastLines keeps the lines of the last events.
type lastLines struct {
	most   int64
	lines  [][]byte
	oldest int
}

func (l *lastLines) see(it *metrics.Item) {
	switch {
	case it.Kind != metrics.ItemEvent || l.most == 0:
	case int64(len(l.lines)) < l.most:
		l.lines = append(l.lines, bytes.Clone(it.Line))
	default:
		l.lines[l.oldest] = append(l.lines[l.oldest][:0], it.Line...)
		l.oldest = (l.oldest + 1) % len(l.lines)
	}
}

func (l *lastLines) write(w io.Writer) error {
	for i := range l.lines {
		if err := writeWhole(w, l.lines[(l.oldest+i)%len(l.lines)]); err != nil {
			return err
		}
	}
	l.lines = nil
	return nil
}
