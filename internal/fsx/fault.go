package fsx

import (
	"errors"
	"io/fs"
	"os"

	"github.com/foldlog/foldlog/internal/fault"
)

// Call names one call that went through a [Fault].
type Call struct {
	// N counts the calls that change something, from 1. Calls that only read
	// carry the number of the change before them.
	N int
	// Op is the method in lower case: "open", "create", "write", "sync",
	// "mkdir", "rename", "link", "remove", "chmod", "syncdir", "lock"; and the
	// reading ones: "read", "stat", "readdir", "evalsymlinks".
	Op string
	// Path is the file's name; of a rename or link the new one.
	Path string
}

// Mutates reports whether the call changes the file system.
func (c Call) Mutates() bool {
	switch c.Op {
	case "open", "read", "stat", "readdir", "evalsymlinks", "lock":
		return false
	}
	return true
}

// Fate is what becomes of a call. The zero value lets it pass.
type Fate struct {
	// Err, if not nil, is what the caller gets.
	Err error
	// Done lets the call take effect before Err is returned, as when the answer
	// of a network file system is lost.
	Done bool
	// Short, with Err on a write, is the number of bytes that still arrive.
	Short int
	// Crash makes this and every later call fail with [ErrCrashed].
	Crash bool
}

// ErrCrashed is what every call answers after a crash.
var ErrCrashed = errors.New("fsx: the process has crashed here")

// Fault passes calls on to another file system unless Hook decides otherwise.
type Fault struct {
	fault.Calls

	fs   FS
	hook func(Call) Fate
}

// NewFault wraps a file system. The hook is called once before every call, by
// whichever goroutine makes it.
func NewFault(fsys FS, hook func(Call) Fate) *Fault {
	return &Fault{fs: fsys, hook: hook}
}

func (f *Fault) fate(op, path string) (fate Fate) {
	c := Call{Op: op, Path: path}
	if !f.Admit(c.Mutates(), func(n int) bool { c.N = n; fate = f.hook(c); return fate.Crash }) {
		fate.Err = ErrCrashed
	}
	return fate
}

// do runs one call under its fate.
func (f *Fault) do(op, path string, call func() error) error {
	fate := f.fate(op, path)
	if fate.Err == nil {
		return call()
	}
	if fate.Done {
		if err := call(); err != nil {
			return err
		}
	}
	return &fs.PathError{Op: op, Path: path, Err: fate.Err}
}

func faultValue[T any](f *Fault, op, path string, call func() (T, error)) (v T, err error) {
	err = f.do(op, path, func() error { v, err = call(); return err })
	return v, err
}

// OpenFile implements [FS].
func (f *Fault) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	op := "open"
	if flag&os.O_CREATE != 0 {
		op = "create"
	}
	file, err := faultValue(f, op, name, func() (File, error) { return f.fs.OpenFile(name, flag, perm) })
	if err != nil {
		if file != nil {
			file.Close()
		}
		return nil, err
	}
	return &faultFile{File: file, fault: f, name: name}, nil
}

// Mkdir implements [FS].
func (f *Fault) Mkdir(name string, perm fs.FileMode) error {
	return f.do("mkdir", name, func() error { return f.fs.Mkdir(name, perm) })
}

// Rename implements [FS].
func (f *Fault) Rename(oldname, newname string) error {
	return f.do("rename", newname, func() error { return f.fs.Rename(oldname, newname) })
}

// Link implements [FS].
func (f *Fault) Link(oldname, newname string) error {
	return f.do("link", newname, func() error { return f.fs.Link(oldname, newname) })
}

// Remove implements [FS].
func (f *Fault) Remove(name string) error {
	return f.do("remove", name, func() error { return f.fs.Remove(name) })
}

// Stat implements [FS].
func (f *Fault) Stat(name string) (fs.FileInfo, error) {
	return faultValue(f, "stat", name, func() (fs.FileInfo, error) { return f.fs.Stat(name) })
}

// Lstat implements [FS].
func (f *Fault) Lstat(name string) (fs.FileInfo, error) {
	return faultValue(f, "stat", name, func() (fs.FileInfo, error) { return f.fs.Lstat(name) })
}

// ReadDir implements [FS].
func (f *Fault) ReadDir(name string) ([]fs.DirEntry, error) {
	return faultValue(f, "readdir", name, func() ([]fs.DirEntry, error) { return f.fs.ReadDir(name) })
}

// EvalSymlinks implements [FS].
func (f *Fault) EvalSymlinks(name string) (string, error) {
	return faultValue(f, "evalsymlinks", name, func() (string, error) { return f.fs.EvalSymlinks(name) })
}

// SyncDir implements [FS].
func (f *Fault) SyncDir(name string) error {
	return f.do("syncdir", name, func() error { return f.fs.SyncDir(name) })
}

type faultFile struct {
	File
	fault *Fault
	name  string
}

func (f *faultFile) ReadAt(b []byte, off int64) (int, error) {
	if fate := f.fault.fate("read", f.name); fate.Err != nil {
		return 0, &fs.PathError{Op: "read", Path: f.name, Err: fate.Err}
	}
	return f.File.ReadAt(b, off)
}

func (f *faultFile) WriteAt(b []byte, off int64) (int, error) {
	fate := f.fault.fate("write", f.name)
	if fate.Err == nil {
		return f.File.WriteAt(b, off)
	}
	n := 0
	if fate.Done {
		n = len(b)
	}
	if fate.Short > 0 {
		n = min(fate.Short, len(b))
	}
	if n > 0 {
		if wrote, err := f.File.WriteAt(b[:n], off); err != nil {
			return wrote, err
		}
	}
	return n, &fs.PathError{Op: "write", Path: f.name, Err: fate.Err}
}

func (f *faultFile) Sync() error { return f.fault.do("sync", f.name, f.File.Sync) }

func (f *faultFile) Chmod(mode fs.FileMode) error {
	return f.fault.do("chmod", f.name, func() error { return f.File.Chmod(mode) })
}

func (f *faultFile) Stat() (fs.FileInfo, error) {
	return faultValue(f.fault, "stat", f.name, f.File.Stat)
}

func (f *faultFile) TryLock() (bool, error) {
	return faultValue(f.fault, "lock", f.name, f.File.TryLock)
}
