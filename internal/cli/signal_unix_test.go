//go:build !windows

package cli

import (
	"context"
	"errors"
	"syscall"
	"testing"
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

func TestATermToTheProcessAndItsGroupIsOne(t *testing.T) {
	ctx, stop := Interruptible(t.Context())
	defer stop()
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGTERM); err != nil { // which would end the test
		t.Fatal(err)
	}
	time.Sleep(signalEcho / 5) // the signal is delivered at some time
}
