package server

import (
	"os"

	"golang.org/x/sys/unix"
)

// datasync makes the content and the size of a file durable.
func datasync(f *os.File) error {
	for {
		err := unix.Fdatasync(int(f.Fd()))
		if err != unix.EINTR {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}
