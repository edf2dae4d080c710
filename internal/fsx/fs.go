// Package fsx is the seam between Foldlog's logs and the file system: every
// call that durability rests on goes through [FS], so that tests can fail,
// shorten, delay or crash any single one of them.
//
// [OS] is the real thing, [NewMem] a file system in memory that knows what a
// power loss would leave, and [Fault] wraps either to misbehave on command.
package fsx

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// FS is the part of a file system that the logs use. Names are paths of the
// operating system. Errors are those of package os: they satisfy errors.Is for
// fs.ErrNotExist, fs.ErrExist and fs.ErrPermission.
type FS interface {
	// OpenFile opens a file with the flags of package os.
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
	// Mkdir makes one directory; it fails with fs.ErrExist if the name is taken.
	Mkdir(name string, perm fs.FileMode) error
	// Rename moves a file or directory. A file replaces a file at the new name;
	// a directory is never replaced: that fails with fs.ErrExist. Where both
	// names are the same file's nothing happens.
	Rename(oldname, newname string) error
	// Link gives a file a second name. File systems without hard links answer
	// with an error for which [IsUnsupported] holds.
	Link(oldname, newname string) error
	// Remove deletes a file or an empty directory.
	Remove(name string) error
	// Stat follows symbolic links, Lstat does not.
	Stat(name string) (fs.FileInfo, error)
	Lstat(name string) (fs.FileInfo, error)
	// ReadDir lists a directory, sorted by name.
	ReadDir(name string) ([]fs.DirEntry, error)
	// EvalSymlinks resolves every symbolic link in a path that exists.
	EvalSymlinks(name string) (string, error)
	// SyncDir makes the names in a directory durable.
	SyncDir(name string) error
}

// File is an open file.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Sync makes the file's content and size durable.
	Sync() error
	Stat() (fs.FileInfo, error)
	Chmod(mode fs.FileMode) error
	// TryLock takes the kernel's advisory exclusive lock on the file without
	// waiting and reports whether it got it. The lock ends with the file's
	// last close or the process. Where there are no such locks the answer is
	// an error for which [IsUnsupported] holds.
	TryLock() (bool, error)
}

// IsUnsupported reports whether err says that the platform or the file system
// lacks the call, as against a call that failed.
func IsUnsupported(err error) bool {
	return errors.Is(err, errors.ErrUnsupported) || isUnsupportedErrno(err)
}

// ReadFile reads a whole file of at most limit bytes. A longer one is an error
// for which errors.Is(err, ErrTooLong) holds, and costs no more memory than the
// limit.
func ReadFile(fsys FS, name string, limit int64) ([]byte, error) {
	f, err := fsys.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.NewSectionReader(f, 0, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > limit {
		return nil, &fs.PathError{Op: "read", Path: name, Err: ErrTooLong}
	}
	return b, nil
}

// ErrTooLong is the cause when [ReadFile] meets its limit.
var ErrTooLong = errors.New("file is longer than allowed")

// WriteFull writes all of b at an offset, treating a short write without an
// error as the failure that it is.
func WriteFull(f File, b []byte, off int64) error {
	n, err := f.WriteAt(b, off)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return err
}
