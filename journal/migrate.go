package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"

	"github.com/foldlog/foldlog/internal/fsx"
	"github.com/foldlog/foldlog/internal/serde"
)

// KeptPath returns where a migration keeps the file of an older format.
func KeptPath(path string, format uint64) string {
	return path + ".v" + strconv.FormatUint(format, 10)
}

// migrate turns a single-file journal of format 1 to 5 into format 6, once,
// under the lease. Until the new head is published the old file is the journal;
// it stays under another name. The header but for its format, and every
// operation line, keep their bytes. A torn last line stays behind.
func (w *Writer) migrate(ctx context.Context) error {
	if err := w.checkLegacy(); err != nil {
		return err
	}
	if err := w.l.mkdirIfMissing(w.l.data); err != nil {
		return err
	}
	defer w.layDown()
	return w.underLease(ctx, w.migrateHeld)
}

// migrateHeld is the part of a migration that the lease guards.
func (w *Writer) migrateHeld() error {
	snap, err := w.l.readHead()
	if err != nil || !snap.legacy() {
		return err
	}
	kept := KeptPath(w.l.head, snap.header.Format)
	if w.opts.OnMigrate != nil {
		w.opts.OnMigrate(snap.header.Format, kept)
	}
	next, err := migratedHeader(snap)
	if err != nil {
		return err
	}
	head, err := w.copyLegacy(next)
	if err != nil {
		return fmt.Errorf("copy operations: %w", err)
	}
	if err := w.keepLegacy(kept); err != nil {
		return fmt.Errorf("keep old file: %w", err)
	}
	return w.publishFirst(next, head)
}

// checkLegacy replays the old journal, so that one that cannot be replayed is
// left as it is.
func (w *Writer) checkLegacy() error {
	r, err := newReader(w.l)
	if err != nil {
		return err
	}
	defer r.Close()
	defer w.m.Reset()
	return r.Refresh(w.m)
}

// migratedHeader is the old header with the new format number in the place of
// the old.
func migratedHeader(snap *snapshot) (*snapshot, error) {
	line := snap.headerLine
	s := serde.NewScanner(line)
	from, to := 0, 0
	for s.Object(); s.NextKey(); {
		if string(s.Key()) == "format" {
			raw := s.Raw()
			to = s.Offset()
			from = to - len(raw)
		} else {
			s.Skip()
		}
	}
	if s.Err() != nil || to == 0 {
		return nil, ErrNotJournal
	}
	next := *snap
	next.header.Format = FormatVersion
	next.headerLine = append(strconv.AppendUint(bytes.Clone(line[:from]), FormatVersion, 10), line[to:]...)
	if len(next.headerLine) > maxMetaLine {
		return nil, &TooLargeError{"header", int64(len(next.headerLine)), maxMetaLine}
	}
	return &next, nil
}

func (w *Writer) copyLegacy(next *snapshot) (Head, error) {
	r, err := newReader(w.l)
	if err != nil {
		return Head{}, err
	}
	defer r.Close()
	name := w.opts.DataFile(w.Worker(), w.nFiles)
	w.nFiles++
	b, err := newBulk(w.l, name, next.start())
	if err != nil {
		return Head{}, err
	}
	applyErr := r.Refresh(b)
	head, err := b.finish()
	if err := errors.Join(applyErr, err); err != nil {
		w.l.fs.Remove(w.l.dataFile(name)) // no head can name it
		return Head{}, err
	}
	return head, w.l.syncDirs()
}

// keepLegacy gives the old file its second name. A hard link lets verify see
// what a writer of the old format still appends; without links a copy is made.
func (w *Writer) keepLegacy(kept string) error {
	err := w.l.fs.Link(w.l.head, kept)
	switch {
	case errors.Is(err, fs.ErrExist):
		same, err := isPrefix(w.l.fs, kept, w.l.head)
		if err != nil {
			return err
		}
		if !same {
			return fmt.Errorf("%s holds something else: %w", kept, fs.ErrExist)
		}
		err = w.copyKept(kept)
		if err != nil {
			return err
		}
	case err != nil && fsx.IsUnsupported(err):
		if err := w.copyKept(kept); err != nil {
			return err
		}
	case err != nil:
		return err
	}
	return w.l.syncParent()
}

// copyKept copies the old file, unless what an interrupted migration left is
// already all of it.
func (w *Writer) copyKept(kept string) error {
	if same, err := isPrefix(w.l.fs, w.l.head, kept); err == nil && same {
		return nil
	}
	temporary := w.l.dataFile(fmt.Sprintf("keep-%016x", random64()))
	if err := copyFile(context.Background(), w.l.fs, w.l.head, w.l.fs, temporary, -1); err != nil {
		w.l.fs.Remove(temporary)
		return err
	}
	return w.l.fs.Rename(temporary, kept)
}

// copyFile copies the first n bytes of a file, all if n is negative, to a new
// durable file.
func copyFile(ctx context.Context, fromFS fsx.FS, from string, toFS fsx.FS, to string, n int64) error {
	in, err := fromFS.OpenFile(from, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := createShared(toFS, to, os.O_WRONLY)
	if err != nil {
		return err
	}
	if err = copyBytes(ctx, out, in, n); err != nil {
		err = fmt.Errorf("copy %s to %s: %w", from, to, err)
	} else {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}

func copyBytes(ctx context.Context, out fsx.File, in io.ReaderAt, n int64) error {
	buf := make([]byte, 1<<20)
	for at := int64(0); n < 0 || at < n; {
		if err := ctx.Err(); err != nil {
			return err
		}
		want := int64(len(buf))
		if n >= 0 {
			want = min(want, n-at)
		}
		got, err := in.ReadAt(buf[:want], at)
		if err := fsx.WriteFull(out, buf[:got], at); err != nil {
			return err
		}
		at += int64(got)
		if errors.Is(err, io.EOF) && (n < 0 || at == n) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// isPrefix tells whether the file a holds nothing but what b begins with.
func isPrefix(fsys fsx.FS, a, b string) (bool, error) {
	fa, err := fsys.OpenFile(a, os.O_RDONLY, 0)
	if err != nil {
		return false, err
	}
	defer fa.Close()
	fb, err := fsys.OpenFile(b, os.O_RDONLY, 0)
	if err != nil {
		return false, err
	}
	defer fb.Close()
	bufA, bufB := make([]byte, 64<<10), make([]byte, 64<<10)
	for at := int64(0); ; {
		n, err := fa.ReadAt(bufA, at)
		if n > 0 {
			if readErr := readFull(fb, bufB[:n], at); readErr != nil {
				return false, nil
			}
			if !bytes.Equal(bufA[:n], bufB[:n]) {
				return false, nil
			}
		}
		at += int64(n)
		if errors.Is(err, io.EOF) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
	}
}
