package metrics

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// InterruptedError is the cause of a context that a signal cancelled.
type InterruptedError struct {
	Signal string // for example "SIGTERM"
	// Err is why the interruption could not be written, nil if it was.
	Err error
}

// Error implements error.
func (e *InterruptedError) Error() string { return "interrupted by " + e.Signal }

// Unwrap returns Err.
func (e *InterruptedError) Unwrap() error { return e.Err }

// OnSignal derives a context that the first of the signals cancels, SIGINT and
// SIGTERM if none are named, with an [InterruptedError] as its cause. Before
// that the interruption is written at the step of the latest metric, and the
// end of the stream will have no done. A second signal ends the process as if
// nothing had caught it. The caller must call stop, and still ends the stream.
func (rt *Runtime) OnSignal(parent context.Context, signals ...os.Signal) (ctx context.Context, stop func()) {
	if len(signals) == 0 {
		signals = []os.Signal{os.Interrupt, syscall.SIGTERM}
	}
	ctx, cancel := context.WithCancelCause(parent)
	c := make(chan os.Signal, 1)
	ended := make(chan struct{})
	signal.Notify(c, signals...)
	go func() {
		defer close(ended)
		select {
		case sig := <-c:
			signal.Stop(c)
			name := signalName(sig)
			cancel(&InterruptedError{name, rt.Interrupt(rt.Step(), name)})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(c)
		cancel(context.Canceled)
		<-ended
	}
}

func signalName(sig os.Signal) string {
	switch sig {
	case os.Interrupt:
		return "SIGINT"
	case syscall.SIGTERM:
		return "SIGTERM"
	case syscall.SIGHUP:
		return "SIGHUP"
	case syscall.SIGQUIT:
		return "SIGQUIT"
	}
	return sig.String()
}
