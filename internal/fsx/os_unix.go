//go:build unix

package fsx

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// Writable reports whether this platform's durability calls have been proved;
// where they have not, it answers with an error for which [IsUnsupported] holds.
func Writable() error { return nil }

// openFile never waits for the other end of a named pipe that lies where a file
// should.
func openFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	if flag == os.O_RDONLY {
		flag |= syscall.O_NONBLOCK
	}
	return os.OpenFile(name, flag, perm)
}

// nonblock is the flag of an opening that does not wait.
const nonblock = syscall.O_NONBLOCK

func syncDirIn(root *os.Root, name string) error {
	d, err := root.Open(name)
	if err != nil {
		return err
	}
	err = d.Sync()
	return errors.Join(err, d.Close())
}

// syncDir relies on os.File.Sync, which asks macOS for its full sync.
func syncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	err = d.Sync()
	return errors.Join(err, d.Close())
}

func tryLock(f *os.File) (bool, error) {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		default:
			return false, &fs.PathError{Op: "flock", Path: f.Name(), Err: err}
		}
	}
}

func isUnsupportedErrno(err error) bool {
	for _, e := range []error{syscall.ENOTSUP, syscall.EOPNOTSUPP, syscall.ENOSYS, syscall.EPERM, syscall.EXDEV, syscall.EMLINK, syscall.ENOLCK} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
