package objstore

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/foldlog/foldlog/internal/fsx"
)

// LocalOptions configures [OpenLocal]. The zero value is the durable default.
type LocalOptions struct {
	// NoSync leaves out every sync of files and directories: a crash of the
	// process loses nothing, a power loss may lose anything.
	NoSync bool
	// FS is the file system; nil is the operating system's.
	FS fsx.FS
}

// Local is a store in a directory. An object is a file, written under a temporary
// name beside it, synced, and then linked (where the key must be free) or renamed
// into place; the directory is synced before the write returns. File systems
// without hard links cannot do PutIfAbsent.
type Local struct {
	root    string
	fs      fsx.FS
	sync    bool
	settled settled
}

var (
	_ Store   = (*Local)(nil)
	_ Sweeper = (*Local)(nil)
)

// OpenLocal returns the store in a directory, which need not exist before the
// first write.
func OpenLocal(dir string, opts LocalOptions) (*Local, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, wrap("open", dir, err)
	}
	if opts.FS == nil {
		opts.FS = fsx.OS
	}
	return &Local{root: abs, fs: opts.FS, sync: !opts.NoSync}, nil
}

// Root returns the directory.
func (l *Local) Root() string { return l.root }

func (l *Local) path(key string) string { return filepath.Join(l.root, filepath.FromSlash(key)) }

// cause turns an error of the file system into one of this package's.
func cause(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ErrNotFound
	case errors.Is(err, fsx.ErrTooLong):
		return ErrTooLarge
	}
	return err
}

func (l *Local) open(ctx context.Context, key string) (fsx.File, error) {
	if err := errors.Join(ctx.Err(), CheckKey(key)); err != nil {
		return nil, err
	}
	f, err := l.fs.OpenFile(l.path(key), os.O_RDONLY, 0)
	if err != nil {
		return nil, cause(err)
	}
	return f, nil
}

// Get implements [Store].
func (l *Local) Get(ctx context.Context, key string, limit int64) ([]byte, error) {
	f, err := l.open(ctx, key)
	if err != nil {
		return nil, wrap("get", key, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = ErrNotFound
	}
	if err == nil && info.Size() > limit {
		err = ErrTooLarge
	}
	if err != nil {
		return nil, wrap("get", key, err)
	}
	b, err := readAt(f, 0, info.Size())
	return b, wrap("get", key, err)
}

// GetRange implements [Store].
func (l *Local) GetRange(ctx context.Context, key string, off, n int64) ([]byte, error) {
	f, err := l.open(ctx, key)
	if err != nil {
		return nil, wrap("get range", key, err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
	case info.IsDir():
		err = ErrNotFound
	case off < 0 || n < 0 || n > info.Size()-off:
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, wrap("get range", key, err)
	}
	b, err := readAt(f, off, n)
	return b, wrap("get range", key, err)
}

func readAt(f fsx.File, off, n int64) ([]byte, error) {
	b := make([]byte, n)
	got, err := f.ReadAt(b, off)
	if int64(got) == n {
		return b, nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return nil, err
}

// Stat implements [Store].
func (l *Local) Stat(ctx context.Context, key string) (Info, error) {
	if err := errors.Join(ctx.Err(), CheckKey(key)); err != nil {
		return Info{}, wrap("stat", key, err)
	}
	info, err := l.fs.Stat(l.path(key))
	if err != nil {
		return Info{}, wrap("stat", key, cause(err))
	}
	if info.IsDir() {
		return Info{}, wrap("stat", key, ErrNotFound)
	}
	return Info{Key: key, Size: info.Size(), Modified: info.ModTime()}, nil
}

// Put implements [Store].
func (l *Local) Put(ctx context.Context, key string, data []byte) error {
	return wrap("put", key, l.write(ctx, key, data, (*localWriter).rename))
}

// PutIfAbsent implements [Store].
func (l *Local) PutIfAbsent(ctx context.Context, key string, data []byte) error {
	return wrap("put if absent", key, l.write(ctx, key, data, func(w *localWriter) error { return w.link(ctx, data) }))
}

// settle tells who won a key after a link that failed: over a network file system
// it may have been made, its answer lost and its repetition refused.
func (l *Local) settle(ctx context.Context, key string, data []byte, cause error) error {
	got, err := l.Get(ctx, key, int64(len(data)))
	switch {
	case err == nil && bytes.Equal(got, data):
		return nil
	case err == nil || errors.Is(err, ErrTooLarge):
		return ErrExists
	case errors.Is(err, ErrNotFound) && !errors.Is(cause, fs.ErrExist):
		return cause
	}
	return errors.Join(ErrAmbiguous, cause, err)
}

// write makes a durable temporary file and publishes it.
func (l *Local) write(ctx context.Context, key string, data []byte, publish func(*localWriter) error) error {
	w, err := l.create(ctx, key)
	if err != nil {
		return err
	}
	defer w.Abort()
	if _, err := w.Write(data); err != nil {
		return err
	}
	return w.publish(publish)
}

// Create implements [Store].
func (l *Local) Create(ctx context.Context, key string) (Writer, error) {
	w, err := l.create(ctx, key)
	if err != nil {
		return nil, wrap("create", key, err)
	}
	return w, nil
}

func (l *Local) create(ctx context.Context, key string) (*localWriter, error) {
	if err := errors.Join(ctx.Err(), CheckKey(key), fsx.Writable()); err != nil {
		return nil, err
	}
	target := l.path(key)
	var token [8]byte
	_, _ = rand.Read(token[:])
	temp := filepath.Join(filepath.Dir(target), tempPrefix+hex.EncodeToString(token[:]))
	var err error
	for range 8 { // a deletion elsewhere may prune the directory that was just made
		var f fsx.File
		if f, err = l.fs.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644); err == nil {
			w := &localWriter{store: l, file: f, key: key, temp: temp, target: target}
			if err := l.settleNames(filepath.Dir(target)); err != nil {
				_ = w.Abort()
				return nil, err
			}
			return w, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if err = l.mkdir(filepath.Dir(target)); err != nil {
			return nil, err
		}
	}
	return nil, err
}

func (l *Local) syncDir(dir string) error {
	if !l.sync {
		return nil
	}
	return l.fs.SyncDir(dir)
}

// Delete implements [Store]. Directories that it leaves empty go with the object.
func (l *Local) Delete(ctx context.Context, key string) error {
	if err := errors.Join(ctx.Err(), CheckKey(key), fsx.Writable()); err != nil {
		return wrap("delete", key, err)
	}
	err := l.fs.Remove(l.path(key))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return wrap("delete", key, err)
	}
	for dir := path.Dir(key); dir != "."; dir = path.Dir(dir) {
		name := l.path(dir)
		if l.settled.change(name, func() error { return l.fs.Remove(name) }) != nil {
			break
		}
	}
	return nil
}

// Sweep implements [Sweeper]: it removes temporary files of writers that died.
func (l *Local) Sweep(ctx context.Context, prefix string, age time.Duration) (int, error) {
	if err := fsx.Writable(); err != nil {
		return 0, wrap("sweep", prefix, err)
	}
	swept := 0
	err := l.walk(ctx, "", ListOptions{Prefix: prefix}, func(key string, e fs.DirEntry) error {
		if !strings.HasPrefix(e.Name(), tempPrefix) {
			return nil
		}
		info, err := e.Info()
		if err != nil || time.Since(info.ModTime()) < age {
			return nil
		}
		if err := l.fs.Remove(l.path(key)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		swept++
		return nil
	})
	return swept, wrap("sweep", prefix, err)
}

// List implements [Store].
func (l *Local) List(ctx context.Context, opts ListOptions) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		err := l.walk(ctx, "", opts, func(key string, e fs.DirEntry) error {
			if strings.HasPrefix(e.Name(), tempPrefix) || key <= opts.StartAfter {
				return nil
			}
			info := Info{Key: key}
			if !e.IsDir() {
				st, err := e.Info()
				if errors.Is(err, fs.ErrNotExist) {
					return nil
				}
				if err != nil {
					return err
				}
				info.Size, info.Modified = st.Size(), st.ModTime()
			}
			if !yield(info, nil) {
				return fs.SkipAll
			}
			return nil
		})
		if err != nil && !errors.Is(err, fs.SkipAll) {
			yield(Info{}, wrap("list", opts.Prefix, err))
		}
	}
}
