package fsx

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// InRoot is the file system under a directory and nothing else: names are paths
// that begin with root.Name(), and no name, "..", or symbolic link leads out of it.
// The caller keeps the root open.
func InRoot(root *os.Root) FS { return rootFS{root} }

type rootFS struct{ root *os.Root }

// rel is a name as the root knows it.
func (r rootFS) rel(op, name string) (string, error) {
	base := r.root.Name()
	if name == base {
		return ".", nil
	}
	inside, ok := strings.CutPrefix(name, strings.TrimSuffix(base, string(filepath.Separator))+string(filepath.Separator))
	if !ok {
		return "", &fs.PathError{Op: op, Path: name, Err: fmt.Errorf("outside of %s: %w", base, fs.ErrPermission)}
	}
	return inside, nil
}

func (r rootFS) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	rel, err := r.rel("open", name)
	if err != nil {
		return nil, err
	}
	f, err := OpenIn(r.root, rel, flag, perm)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

// OpenIn opens a file of a root; for reading it never waits for the other end of
// a named pipe.
func OpenIn(root *os.Root, name string, flag int, perm fs.FileMode) (*os.File, error) {
	if flag == os.O_RDONLY {
		flag |= nonblock
	}
	return root.OpenFile(name, flag, perm)
}

func (r rootFS) Mkdir(name string, perm fs.FileMode) error {
	rel, err := r.rel("mkdir", name)
	if err != nil {
		return err
	}
	return r.root.Mkdir(rel, perm)
}

func (r rootFS) two(op, a, b string, do func(a, b string) error) error {
	from, err := r.rel(op, a)
	to, err2 := r.rel(op, b)
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	return do(from, to)
}

func (r rootFS) Rename(oldname, newname string) error {
	return r.two("rename", oldname, newname, r.root.Rename)
}

func (r rootFS) Link(oldname, newname string) error {
	return r.two("link", oldname, newname, r.root.Link)
}

func (r rootFS) Remove(name string) error {
	rel, err := r.rel("remove", name)
	if err != nil {
		return err
	}
	return r.root.Remove(rel)
}

func (r rootFS) Stat(name string) (fs.FileInfo, error) {
	rel, err := r.rel("stat", name)
	if err != nil {
		return nil, err
	}
	return r.root.Stat(rel)
}

func (r rootFS) Lstat(name string) (fs.FileInfo, error) {
	rel, err := r.rel("lstat", name)
	if err != nil {
		return nil, err
	}
	return r.root.Lstat(rel)
}

func (r rootFS) ReadDir(name string) ([]fs.DirEntry, error) {
	rel, err := r.rel("readdir", name)
	if err != nil {
		return nil, err
	}
	return fs.ReadDir(r.root.FS(), filepath.ToSlash(rel))
}

// EvalSymlinks refuses what leads out of the root; that it might be changed
// afterwards does no harm, since every opening is checked again.
func (r rootFS) EvalSymlinks(name string) (string, error) {
	if _, err := r.Stat(name); err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return "", err
	}
	_, err = r.rel("readlink", real)
	return real, err
}

func (r rootFS) SyncDir(name string) error {
	rel, err := r.rel("sync", name)
	if err != nil {
		return err
	}
	return syncDirIn(r.root, rel)
}
