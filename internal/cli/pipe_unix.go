//go:build !windows

package cli

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
)

func isClosedPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }

// CatchClosedPipe makes a write to a closed standard output return an error
// instead of ending the process at once, so that a command can leave its logs
// in order. The signal is caught and not ignored, because ignoring it would
// pass on to child processes.
func CatchClosedPipe() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
}
