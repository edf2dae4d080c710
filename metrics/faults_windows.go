package metrics

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

const (
	errorHandleDiskFull = syscall.Errno(39)
	errorDiskFull       = syscall.Errno(112)
	errorNoData         = syscall.Errno(232)
	errorWriteProtect   = syscall.Errno(19)
)

// diagnose puts the sentinel to an error of the operating system.
func diagnose(err error) error {
	for _, known := range []struct {
		sentinel error
		causes   []error
	}{
		{ErrDiskFull, []error{errorDiskFull, errorHandleDiskFull}},
		{ErrReadOnly, []error{errorWriteProtect, fs.ErrPermission}},
		{ErrPipeClosed, []error{syscall.ERROR_BROKEN_PIPE, errorNoData, os.ErrClosed}},
		{ErrGone, []error{fs.ErrNotExist}},
	} {
		for _, cause := range known.causes {
			if errors.Is(err, cause) && !errors.Is(err, known.sentinel) {
				return fmt.Errorf("%w: %w", known.sentinel, err)
			}
		}
	}
	return err
}

// pipeErrors has nothing to do where there is no signal for closed pipes.
func pipeErrors() (stop func()) { return func() {} }
