package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
)

// Create makes a new journal without operations and opens it for writing.
// Where there is one already it fails with [ErrExist] and changes nothing;
// where data lies without a head it fails with [ErrHeadMissing].
func Create(ctx context.Context, path string, opts WriterOptions, m Machine) (*Writer, error) {
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
	if err := w.underLease(ctx, w.createHead); err != nil {
		return nil, fmt.Errorf("create journal: %w", err)
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
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	info, err := w.l.fs.Lstat(w.l.head)
	switch {
	case err != nil:
		return nil
	case info.Mode()&fs.ModeSymlink == 0: // somebody has made it since it was looked for
		return fmt.Errorf("%s: %w", w.l.head, ErrExist)
	}
	return fmt.Errorf("%s is a symbolic link that leads nowhere: %w", w.l.head, fs.ErrNotExist)
}

// createHead publishes the first head under the lease.
func (w *Writer) createHead() error {
	if err := w.vacant(); err != nil {
		return err
	}
	header := Header{
		Format: FormatVersion, Program: w.opts.Program,
		CreatedAtMillis: uint64(max(w.opts.Clock().UnixMilli(), 0)), CreatedBy: w.Worker(),
	}
	snap := &snapshot{header: header, headerLine: appendHeader(nil, header)}
	if len(snap.headerLine) > maxMetaLine {
		return &TooLargeError{"header", int64(len(snap.headerLine)), maxMetaLine}
	}
	if err := w.l.syncDirs(); err != nil {
		return err
	}
	return w.publishFirst(snap, snap.start())
}
