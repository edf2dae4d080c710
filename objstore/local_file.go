package objstore

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/foldlog/foldlog/internal/fsx"
)

// localWriter is a temporary file on its way to a key.
type localWriter struct {
	store        *Local
	file         fsx.File
	key          string
	temp, target string
	size         int64
	done         bool
}

func (w *localWriter) Write(b []byte) (int, error) {
	if w.done {
		return 0, wrap("write", w.key, errClosed)
	}
	if err := fsx.WriteFull(w.file, b, w.size); err != nil {
		return 0, wrap("write", w.key, err)
	}
	w.size += int64(len(b))
	return len(b), nil
}

// Close implements [Writer].
func (w *localWriter) Close() error {
	return wrap("close", w.key, w.publish((*localWriter).rename))
}

// publish syncs the file and gives it its name.
func (w *localWriter) publish(name func(*localWriter) error) error {
	if w.done {
		return errClosed
	}
	defer w.Abort()
	if w.store.sync {
		if err := w.file.Sync(); err != nil {
			return err
		}
	}
	if err := w.closeFile(); err != nil {
		return err
	}
	return name(w)
}

func (w *localWriter) closeFile() error {
	f := w.file
	w.file = nil
	return f.Close()
}

// rename gives the closed file its name, durably, whether it is free or not.
func (w *localWriter) rename() error {
	if err := w.store.fs.Rename(w.temp, w.target); err != nil {
		return err
	}
	return w.store.syncDir(filepath.Dir(w.target))
}

// link gives the closed file its name, which must be free, durably. A sync that failed is
// not tried again: the system may have forgotten by then what it had to write.
func (w *localWriter) link(ctx context.Context, data []byte) error {
	if err := w.store.fs.Link(w.temp, w.target); err != nil {
		if err := w.store.settle(ctx, w.key, data, err); err != nil {
			return err
		}
	}
	if err := w.store.syncDir(filepath.Dir(w.target)); err != nil {
		return errors.Join(ErrAmbiguous, err)
	}
	return nil
}

// Abort implements [Writer].
func (w *localWriter) Abort() error {
	if w.done {
		return nil
	}
	w.done = true
	if w.file != nil {
		_ = w.file.Close()
	}
	if err := w.store.fs.Remove(w.temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return wrap("abort", w.key, err)
	}
	return nil
}

// walk visits the files below a directory in byte order of their keys, and with
// Delimiter the directories at that depth instead of what is in them.
func (l *Local) walk(ctx context.Context, dir string, opts ListOptions, visit func(key string, e fs.DirEntry) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, err := l.fs.ReadDir(l.path(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range sortAsKeys(entries) {
		key := dir + e.Name()
		if e.IsDir() {
			key += "/"
		}
		inside := strings.HasPrefix(key, opts.Prefix)
		switch {
		case !inside && !(e.IsDir() && strings.HasPrefix(opts.Prefix, key)):
			continue
		case e.IsDir() && opts.Delimiter && inside && key != opts.Prefix:
			err = l.visitPrefix(ctx, key, e, visit)
		case e.IsDir():
			err = l.walk(ctx, key, opts, visit)
		default:
			err = visit(key, e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// visitPrefix visits a directory that holds an object somewhere below, as a
// bucket would know it.
func (l *Local) visitPrefix(ctx context.Context, key string, e fs.DirEntry, visit func(string, fs.DirEntry) error) error {
	found := false
	err := l.walk(ctx, key, ListOptions{Prefix: key}, func(_ string, e fs.DirEntry) error {
		if strings.HasPrefix(e.Name(), tempPrefix) {
			return nil
		}
		found = true
		return fs.SkipAll
	})
	if err != nil && !errors.Is(err, fs.SkipAll) {
		return err
	}
	if !found {
		return nil
	}
	return visit(key, e)
}

// sortAsKeys orders a directory as the keys in it are ordered: a directory's name
// counts with the slash that follows it.
func sortAsKeys(entries []fs.DirEntry) []fs.DirEntry {
	name := func(e fs.DirEntry) string {
		if e.IsDir() {
			return e.Name() + "/"
		}
		return e.Name()
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(name(a), name(b)) })
	return entries
}
