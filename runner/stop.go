package runner

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Why a command is stopped before its end. The trial's worker being stopped is
// none of these: then it is given back.

// errPruned means that the pruner sees no use in going on.
var errPruned = errors.New("pruned")

// errOnHold means that somebody has put the trial on hold.
var errOnHold = errors.New("on hold")

// lostError means that the trial was taken away.
type lostError struct{ error }

func (e *lostError) Unwrap() error { return e.error }

// TimeoutError is the reason of a trial that took too long.
type TimeoutError struct {
	// After is how long it had.
	After time.Duration
}

// Error implements error.
func (e *TimeoutError) Error() string { return fmt.Sprintf("timeout after %v", e.After) }

// stopReason is why a command that ran under ctx was stopped, nil if it was not
// or with its worker.
func stopReason(ctx context.Context) error {
	cause := context.Cause(ctx)
	var lost *lostError
	var timeout *TimeoutError
	if errors.Is(cause, errPruned) || errors.Is(cause, errOnHold) || errors.As(cause, &lost) || errors.As(cause, &timeout) {
		return cause
	}
	return nil
}

// forever is longer than any command runs.
const forever = 1<<63 - 1

// limitTime begins the time that the command has. It is to be stopped at the
// command's end: what its output takes after that does not count.
func (a *attempt) limitTime() *time.Timer {
	d := a.TrialTimeout
	if d == 0 {
		d = forever
	}
	return time.AfterFunc(d, func() { a.kill(&TimeoutError{d}) })
}
