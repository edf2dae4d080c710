package logkind

import (
	"context"
	"io/fs"
	"sync/atomic"

	"github.com/foldlog/foldlog/internal/fsx"
)

// watched is the world of one who reads a table whole, some passes over, and tells how
// far he is. Of how many bytes a pass takes only the size of the table is known: it never
// gets further than the end. Nobody counts what is read of a bucket.
func (w World) watched(ctx context.Context, table string, passes int64, progress func(done, total int64)) World {
	if progress == nil || InBucket(table) {
		return w
	}
	_, size, _, err := w.treeSize(ctx, table)
	if err != nil {
		return w // who reads it will say so
	}
	var read atomic.Int64
	w.read = func(n int64) { progress(min(read.Add(n), passes*size), passes*size) }
	return w
}

// watchedFS tells the bytes that are read of its files.
type watchedFS struct {
	fsx.FS
	read func(n int64)
}

// OpenFile implements fsx.FS.
func (w watchedFS) OpenFile(name string, flag int, perm fs.FileMode) (fsx.File, error) {
	f, err := w.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return watchedFile{f, w.read}, nil
}

type watchedFile struct {
	fsx.File
	read func(n int64)
}

// ReadAt implements io.ReaderAt.
func (w watchedFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := w.File.ReadAt(p, off)
	w.read(int64(n))
	return n, err
}
