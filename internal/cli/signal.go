package cli

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// signalEcho is for how long a SIGTERM is no second one: timeout(1) and others send it to
// a process and to its group, which is to the process twice.
const signalEcho = 250 * time.Millisecond

// Interruptible derives a context that the first SIGINT or SIGTERM cancels,
// with a SignalError as its cause. A second signal ends the process as if
// nothing had caught it, but for an echo (see signalEcho). The caller must call stop.
func Interruptible(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, os.Interrupt, syscall.SIGTERM)
	stopped := make(chan struct{})
	go func() {
		select {
		case sig := <-ch:
			first(sig, ch, stopped, cancel, func() { signal.Stop(ch) })
		case <-ctx.Done():
		}
	}()
	return ctx, sync.OnceFunc(func() {
		signal.Stop(ch)
		close(stopped)
		cancel(context.Canceled)
	})
}

// SecondInterrupt tells what an interrupt, which ends first, does, and returns a context
// that a second one ends; a third ends the process. The caller must call stop.
func SecondInterrupt(first context.Context, bar *Progress, finishing, stopping string) (second context.Context, stop func()) {
	second, cancel := context.WithCancel(context.Background())
	go func() {
		select {
		case <-second.Done():
			return
		case <-first.Done():
		}
		again := make(chan os.Signal, 1)
		signal.Notify(again, os.Interrupt, syscall.SIGTERM)
		bar.Notef("%s", finishing)
		defer cancel()
		defer signal.Stop(again)
		for begun := time.Now(); ; {
			select {
			case <-second.Done():
				return
			case sig := <-again:
				if sig == syscall.SIGTERM && time.Since(begun) < signalEcho {
					continue
				}
				bar.Notef("%s", stopping)
				return
			}
		}
	}()
	return second, cancel
}

// first cancels for a signal, and lets go of those that follow: of the echoes of a SIGTERM
// only once they have come, or none comes any more.
func first(sig os.Signal, ch <-chan os.Signal, stopped <-chan struct{}, cancel context.CancelCauseFunc, letGo func()) {
	if sig == syscall.SIGTERM {
		defer letGo()
		cancel(signalError(sig))
		takeEchoes(ch, stopped)
		return
	}
	letGo() // first: whoever sees the end may send the second at once
	cancel(signalError(sig))
}

// takeEchoes keeps the same signal again from ending the process.
func takeEchoes(ch <-chan os.Signal, stopped <-chan struct{}) {
	for end := time.After(signalEcho); ; {
		select {
		case sig := <-ch:
			if sig != syscall.SIGTERM {
				return
			}
		case <-end:
			return
		case <-stopped:
			return
		}
	}
}

func signalError(sig os.Signal) *SignalError {
	if sig == os.Interrupt {
		return &SignalError{Name: "SIGINT", Number: int(syscall.SIGINT)}
	}
	return &SignalError{Name: "SIGTERM", Number: int(syscall.SIGTERM)}
}
