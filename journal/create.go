package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// Create makes a new journal without operations and opens it for writing.
// Where there is one already it fails with [ErrExist] and changes nothing;
// where data lies without a head it fails with [ErrHeadMissing].
func Create(ctx context.Context, path string, opts *WriterOptions, m Machine) (*Writer, error) {
	w, err := newWriter(path, opts, m)
	if err != nil {
		return nil, err
	}
	if err := w.vacant(); err != nil {
		return nil, err
	}
	if err := w.l.mkdirIfMissing(w.l.data); err != nil {
		return nil, fmt.Errorf("create journal: %w", err)
	}
	if err := w.acquire(ctx); err != nil {
		return nil, fmt.Errorf("create journal: %w", err)
	}
	if err := w.createHead(); err != nil {
		w.layDown()
		return nil, err
	}
	if err := w.start(); err != nil {
		w.layDown()
		return nil, err
	}
	return w, nil
}

// vacant checks that nothing is at the study path.
func (w *Writer) vacant() error {
	_, err := w.l.readHead()
	switch {
	case err == nil:
		return fmt.Errorf("%s: %w", w.l.head, ErrExist)
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return err
}

// createHead publishes the first head under the lease.
func (w *Writer) createHead() error {
	if err := w.vacant(); err != nil {
		return err
	}
	header := Header{
		Format: FormatVersion, Program: w.opts.Program,
		CreatedAtMillis: uint64(max(w.opts.Clock().UnixMilli(), 0)), CreatedBy: w.opts.Worker,
	}
	snap := &snapshot{header: header, headerLine: appendHeader(nil, header)}
	if len(snap.headerLine) > maxMetaLine {
		return &TooLargeError{"header", int64(len(snap.headerLine)), maxMetaLine}
	}
	if err := w.l.syncDirs(); err != nil {
		return fmt.Errorf("create journal: %w", err)
	}
	ticket, err := w.writeTicket(snap, snap.start())
	if err != nil {
		return fmt.Errorf("create journal: %w", err)
	}
	if err := w.l.fs.Rename(ticket, w.l.head); err != nil {
		return fmt.Errorf("create journal: %w", err)
	}
	return w.l.syncParent()
}

// acquire takes the lease before the writer's goroutine runs.
func (w *Writer) acquire(ctx context.Context) (err error) {
	w.lease, err = w.keeper.acquire(func(d time.Duration) bool {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(d):
			return true
		}
	})
	if errors.Is(err, errGaveUp) {
		err = ctx.Err()
	}
	return err
}
