//go:build !windows

package cli

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestFirstSignalCancels(t *testing.T) {
	for _, tc := range []struct {
		signal syscall.Signal
		want   SignalError
	}{
		{syscall.SIGINT, SignalError{"SIGINT", 2}},
		{syscall.SIGTERM, SignalError{"SIGTERM", 15}},
	} {
		t.Run(tc.want.Name, func(t *testing.T) {
			ctx, stop := Interruptible(t.Context())
			defer stop()
			if err := syscall.Kill(syscall.Getpid(), tc.signal); err != nil {
				t.Fatal(err)
			}
			<-ctx.Done()
			var got *SignalError
			if !errors.As(context.Cause(ctx), &got) || *got != tc.want {
				t.Errorf("cause %v, want %v", context.Cause(ctx), &tc.want)
			}
		})
	}
}

func TestStopEndsWithoutASignal(t *testing.T) {
	ctx, stop := Interruptible(t.Context())
	stop()
	<-ctx.Done()
	if err := context.Cause(ctx); err != context.Canceled {
		t.Errorf("cause %v, want %v", err, context.Canceled)
	}
}

// TestATermToTheProcessAndItsGroupIsOne has signals come as the system would deliver them,
// in a time that no busy machine stretches.
func TestATermToTheProcessAndItsGroupIsOne(t *testing.T) {
	for name, c := range map[string]struct {
		later []os.Signal // each a fifth of signalEcho after the one before
		after time.Duration
	}{
		"alone":                  {nil, signalEcho},
		"to its group too":       {[]os.Signal{syscall.SIGTERM}, signalEcho},
		"to its group and twice": {[]os.Signal{syscall.SIGTERM, syscall.SIGTERM}, signalEcho},
		"and a Ctrl-C":           {[]os.Signal{syscall.SIGTERM, syscall.SIGINT}, 2 * signalEcho / 5},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				ch, began := make(chan os.Signal), time.Now()
				go func() {
					for _, sig := range c.later {
						time.Sleep(signalEcho / 5)
						ch <- sig
					}
				}()
				first(syscall.SIGTERM, ch, nil, cancel, func() {
					if got := time.Since(began); got != c.after {
						t.Errorf("a signal ends the process after %v, want %v", got, c.after)
					}
				})
				if got := context.Cause(ctx); !errors.As(got, new(*SignalError)) {
					t.Errorf("cause %v", got)
				}
			})
		})
	}
}
