//go:build unix

package metrics

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// diagnose puts the sentinel to an error of the operating system.
func diagnose(err error) error {
	for _, known := range []struct {
		sentinel error
		causes   []error
	}{
		{ErrDiskFull, []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG}},
		{ErrReadOnly, []error{syscall.EROFS, syscall.EACCES, syscall.EPERM}},
		{ErrPipeClosed, []error{syscall.EPIPE, os.ErrClosed}},
		{ErrGone, []error{syscall.ENOENT, syscall.ESTALE, syscall.ENOTDIR}},
	} {
		for _, cause := range known.causes {
			if errors.Is(err, cause) && !errors.Is(err, known.sentinel) {
				return fmt.Errorf("%w: %w", known.sentinel, err)
			}
		}
	}
	return err
}

// pipeErrors makes a write to a closed standard output an error instead of the
// end of the process, until the returned function is called.
func pipeErrors() (stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGPIPE)
	return func() { signal.Stop(c) }
}
