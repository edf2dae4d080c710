package fsx

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// Writable reports whether this platform's durability calls have been proved;
// where they have not, it answers with an error for which [IsUnsupported] holds.
func Writable() error { return errors.ErrUnsupported }

// openFile lets readers share deletion, so that a reader never keeps a writer
// elsewhere from replacing the file.
func openFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	if flag != os.O_RDONLY {
		return os.OpenFile(name, flag, perm)
	}
	path, err := syscall.UTF16PtrFromString(name)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	h, err := syscall.CreateFile(path, syscall.GENERIC_READ,
		syscall.FILE_SHARE_READ|syscall.FILE_SHARE_WRITE|syscall.FILE_SHARE_DELETE,
		nil, syscall.OPEN_EXISTING, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(h), name), nil
}

// nonblock is no flag here: there are no pipes in directories.
const nonblock = 0

func syncDirIn(*os.Root, string) error { return errors.ErrUnsupported }

func syncDir(string) error { return errors.ErrUnsupported }

func tryLock(*os.File) (bool, error) { return false, errors.ErrUnsupported }

func isUnsupportedErrno(err error) bool { return errors.Is(err, syscall.EWINDOWS) }
