package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Interruptible derives a context that the first SIGINT or SIGTERM cancels,
// with a SignalError as its cause. A second signal ends the process as if
// nothing had caught it. The caller must call stop.
func Interruptible(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case sig := <-ch:
			signal.Stop(ch)
			cancel(signalError(sig))
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(ch)
		cancel(context.Canceled)
	}
}

func signalError(sig os.Signal) *SignalError {
	if sig == os.Interrupt {
		return &SignalError{Name: "SIGINT", Number: int(syscall.SIGINT)}
	}
	return &SignalError{Name: "SIGTERM", Number: int(syscall.SIGTERM)}
}
