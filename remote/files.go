package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/foldlog/foldlog/internal/fsx"
)

// Files is the files of the logs at a server as a file system that can be read, and
// nothing else: "/PATH" is the file at that path under the server's root. Its answers
// are those of the moment, except that of a file that is open up to ReadAhead bytes are
// kept. Its requests end with the context that it was made with.
type Files struct {
	c     *Client
	ctx   context.Context
	ahead int64
}

var _ fsx.FS = (*Files)(nil)

// DefaultReadAhead is what suits files that are read from one end to the other.
const DefaultReadAhead = 1 << 20

// Files returns the files of the logs at the server. ReadAhead is how many bytes are
// read at once, at the least: 0 where what was read may change while the file is open.
func (c *Client) Files(ctx context.Context, readAhead int64) *Files {
	return &Files{c, ctx, readAhead}
}

const filesPath = "/api/v1/files"

// key is a name as the server knows it.
func key(name string) string {
	return strings.Trim(path.Clean("/"+filepath.ToSlash(name[len(filepath.VolumeName(name)):])), "/")
}

func (f *Files) send(method, op, name string, query url.Values, header http.Header) (*http.Response, error) {
	resp, err := f.c.send(f.ctx, &request{method: method, path: filesPath, query: query, header: header})
	var status *StatusError
	if errors.As(err, &status) && status.Status == http.StatusNotFound {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, &fs.PathError{Op: op, Path: name, Err: err}
	}
	return resp, nil
}

// fileInfo is what a server says of a file.
type fileInfo struct {
	name     string
	size     int64
	modified time.Time
	dir      bool
}

func (i fileInfo) Name() string       { return i.name }
func (i fileInfo) Size() int64        { return i.size }
func (i fileInfo) ModTime() time.Time { return i.modified }
func (i fileInfo) IsDir() bool        { return i.dir }
func (i fileInfo) Sys() any           { return nil }

// Mode implements fs.FileInfo.
func (i fileInfo) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | 0o555
	}
	return 0o444
}

// stat asks for a regular file.
func (f *Files) stat(op, name string) (fileInfo, error) {
	resp, err := f.send(http.MethodHead, op, name, url.Values{"path": {key(name)}}, nil)
	if err != nil {
		return fileInfo{}, err
	}
	defer resp.Body.Close()
	at, err := time.Parse(time.RFC3339Nano, resp.Header.Get("Foldlog-Modified"))
	if err != nil || resp.ContentLength < 0 {
		return fileInfo{}, &fs.PathError{Op: op, Path: name, Err: fmt.Errorf("%w: the answer is not one of a Foldlog server", ErrRefused)}
	}
	return fileInfo{name: path.Base(key(name)), size: resp.ContentLength, modified: at}, nil
}

// Stat implements [fsx.FS].
func (f *Files) Stat(name string) (fs.FileInfo, error) {
	info, err := f.stat("stat", name)
	if !errors.Is(err, fs.ErrNotExist) {
		return info, err
	}
	if _, err := f.ReadDir(name); err != nil {
		return nil, err
	}
	return fileInfo{name: path.Base(key(name)), dir: true}, nil
}

// Lstat implements [fsx.FS].
func (f *Files) Lstat(name string) (fs.FileInfo, error) { return f.Stat(name) }

// EvalSymlinks implements [fsx.FS]. Links are the server's business.
func (f *Files) EvalSymlinks(name string) (string, error) { return name, nil }

// fileLine is a line of a listing.
type fileLine struct {
	Name     string
	Size     int64
	Modified time.Time
	Dir, End bool
}

// ReadDir implements [fsx.FS].
func (f *Files) ReadDir(name string) ([]fs.DirEntry, error) {
	for try := 1; ; try++ {
		entries, err := f.readDir(name)
		if !errors.Is(err, errCut) || try == mostCuts || f.ctx.Err() != nil {
			return entries, err
		}
	}
}

func (f *Files) readDir(name string) (entries []fs.DirEntry, err error) {
	resp, err := f.send(http.MethodGet, "readdir", name, url.Values{"list": {key(name)}}, nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	dec := json.NewDecoder(resp.Body)
	for {
		var line fileLine
		if err := dec.Decode(&line); err != nil {
			return nil, &fs.PathError{Op: "readdir", Path: name, Err: fmt.Errorf("%w: %w", errCut, err)}
		}
		if line.End {
			return entries, nil
		}
		entries = append(entries, fs.FileInfoToDirEntry(fileInfo{line.Name, line.Size, line.Modified, line.Dir}))
	}
}

// errReadOnly refuses what would change a file.
func errReadOnly(op, name string) error {
	return &fs.PathError{Op: op, Path: name, Err: fmt.Errorf("%w: the files at a server are read only", fs.ErrPermission)}
}

// Mkdir implements [fsx.FS]: it fails, as does all else that would change a file.
func (f *Files) Mkdir(name string, _ fs.FileMode) error { return errReadOnly("mkdir", name) }

// Rename implements [fsx.FS].
func (f *Files) Rename(name, _ string) error { return errReadOnly("rename", name) }

// Link implements [fsx.FS].
func (f *Files) Link(name, _ string) error { return errReadOnly("link", name) }

// Remove implements [fsx.FS].
func (f *Files) Remove(name string) error { return errReadOnly("remove", name) }

// SyncDir implements [fsx.FS].
func (f *Files) SyncDir(name string) error { return errReadOnly("sync", name) }

// OpenFile implements [fsx.FS].
func (f *Files) OpenFile(name string, flag int, _ fs.FileMode) (fsx.File, error) {
	if flag != 0 {
		return nil, errReadOnly("open", name)
	}
	info, err := f.stat("open", name)
	if err != nil {
		return nil, err
	}
	return &file{fs: f, name: name, info: &info}, nil
}

// file is a file at a server.
type file struct {
	fs   *Files
	name string

	mu sync.Mutex // over what follows
	// info is that of the opening, until somebody has asked for it.
	info *fileInfo
	// blocks are what was read last: two, since one who reads windows that overlap
	// goes to and fro where they meet.
	blocks [2]block
}

// block is bytes of a file, and where they begin.
type block struct {
	b  []byte
	at int64
}

// Stat implements [fsx.File].
func (f *file) Stat() (fs.FileInfo, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if info := f.info; info != nil {
		f.info = nil
		return *info, nil
	}
	return f.fs.stat("stat", f.name)
}

// ReadAt implements io.ReaderAt.
func (f *file) ReadAt(b []byte, off int64) (n int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if int64(len(b)) >= f.fs.ahead {
		return f.get(b, off)
	}
	for n < len(b) {
		if got := copy(b[n:], f.kept(off+int64(n))); got > 0 {
			n += got
			continue
		}
		err := f.fill(off + int64(n))
		n += copy(b[n:], f.kept(off+int64(n)))
		switch {
		case n == len(b):
			return n, nil
		case err != nil:
			return n, err
		}
	}
	return n, nil
}

// kept is what is at hand from an offset on.
func (f *file) kept(off int64) []byte {
	for _, k := range f.blocks {
		if k.at <= off && off < k.at+int64(len(k.b)) {
			return k.b[off-k.at:]
		}
	}
	return nil
}

// fill reads the block that an offset is in, in the place of the older one. The end of
// the file in it is io.EOF.
func (f *file) fill(off int64) error {
	f.blocks[0], f.blocks[1] = f.blocks[1], f.blocks[0]
	k := &f.blocks[0]
	if int64(cap(k.b)) < f.fs.ahead {
		k.b = make([]byte, f.fs.ahead)
	}
	k.at = off - off%f.fs.ahead
	n, err := f.get(k.b[:f.fs.ahead], k.at)
	k.b = k.b[:n]
	return err
}

// fewBytes are read anew as a whole if their answer was cut: the head of a journal is
// replaced again and again, and one made of two would be none.
const fewBytes = 8 << 10

// get reads bytes from the server, again from where an answer was cut.
func (f *file) get(b []byte, off int64) (n int, err error) {
	for try := 1; n < len(b); try++ {
		more, err := f.getOnce(b[n:], off+int64(n))
		if n += more; more > 0 && n > fewBytes {
			try = 1
		}
		if err != nil && (!errors.Is(err, errCut) || try == mostCuts || f.fs.ctx.Err() != nil) {
			return n, err
		}
		if err != nil && n <= fewBytes {
			n = 0
		}
	}
	return n, nil
}

func (f *file) getOnce(b []byte, off int64) (int, error) {
	header := http.Header{"Range": {fmt.Sprintf("bytes=%d-%d", off, off+int64(len(b))-1)}}
	resp, err := f.fs.send(http.MethodGet, "read", f.name, url.Values{"path": {key(f.name)}}, header)
	var status *StatusError
	if errors.As(err, &status) && status.Status == http.StatusRequestedRangeNotSatisfiable {
		return 0, io.EOF
	}
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK && resp.ContentLength == 0 {
		return 0, io.EOF
	}
	if resp.StatusCode != http.StatusPartialContent || resp.ContentLength < 0 || resp.ContentLength > int64(len(b)) {
		return 0, &fs.PathError{Op: "read", Path: f.name, Err: fmt.Errorf("%w: the answer is not the part that was asked for", ErrRefused)}
	}
	n, err := io.ReadFull(resp.Body, b[:resp.ContentLength])
	switch {
	case err != nil:
		return n, &fs.PathError{Op: "read", Path: f.name, Err: fmt.Errorf("%w: %w", errCut, err)}
	case n < len(b):
		return n, io.EOF
	}
	return n, nil
}

// WriteAt implements io.WriterAt.
func (f *file) WriteAt([]byte, int64) (int, error) { return 0, errReadOnly("write", f.name) }

// Sync implements [fsx.File].
func (f *file) Sync() error { return errReadOnly("sync", f.name) }

// Chmod implements [fsx.File].
func (f *file) Chmod(fs.FileMode) error { return errReadOnly("chmod", f.name) }

// TryLock implements [fsx.File].
func (f *file) TryLock() (bool, error) { return false, errReadOnly("lock", f.name) }

// Close implements io.Closer.
func (f *file) Close() error { return nil }
