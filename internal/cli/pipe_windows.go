package cli

import (
	"errors"
	"syscall"
)

// errorNoData is ERROR_NO_DATA: the pipe is being closed.
const errorNoData = syscall.Errno(232)

func isClosedPipe(err error) bool {
	return errors.Is(err, syscall.ERROR_BROKEN_PIPE) || errors.Is(err, errorNoData)
}

// CatchClosedPipe does nothing here: Windows has no signal for a closed pipe,
// the write fails.
func CatchClosedPipe() {}
