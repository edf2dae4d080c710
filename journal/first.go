package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/foldlog/foldlog/internal/sleep"
)

// acquire takes the lease before the writer's goroutine runs.
func (w *Writer) acquire(ctx context.Context) (err error) {
	w.lease, err = w.keeper.acquire(func(d time.Duration) bool { return sleep.For(ctx, d) == nil })
	if errors.Is(err, errGaveUp) {
		err = ctx.Err()
	}
	return err
}

// underLease runs what publishes a journal's first head, again if the lease was
// lost before that. If it succeeds the lease is still held.
func (w *Writer) underLease(ctx context.Context, publish func() error) error {
	for {
		if err := w.acquire(ctx); err != nil {
			return err
		}
		err := publish()
		if err == nil {
			return nil
		}
		w.layDown()
		if !errors.Is(err, errFenced) {
			return err
		}
	}
}

// publishFirst publishes the first head of format 6 that the journal has.
// errFenced says that it certainly is not there.
func (w *Writer) publishFirst(next *snapshot, head Head) error {
	ticket, err := w.writeTicket(next, head)
	if err != nil {
		return err
	}
	uncertain := &UncertainError{}
	if err := w.l.fs.Rename(ticket, w.l.head); err != nil {
		uncertain.Err = fmt.Errorf("publish head: %w", err)
		if err := w.resolveFirst(next, uncertain); err != nil {
			return err
		}
	}
	return w.settleHead(uncertain)
}

// resolveFirst finds out what became of a first head whose rename failed.
func (w *Writer) resolveFirst(next *snapshot, uncertain *UncertainError) error {
	if err := w.reacquire(); err != nil {
		return uncertain
	}
	snap, err := w.l.readHead()
	switch {
	case err == nil && string(snap.headerLine) == string(next.headerLine):
		return nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return uncertain
	case errors.Is(uncertain.Err, fs.ErrNotExist):
		return errFenced
	}
	return uncertain.Err
}
