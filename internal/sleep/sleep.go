// Package sleep waits for a time that a context can cut short, and tells how long ago a
// moment was for a machine that may have slept.
package sleep

import (
	"context"
	"time"
)

// For waits for d, or returns the error of ctx once that ends.
func For(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// Since is how long ago t was by the wall clock or the monotonic one, whichever went
// further: the monotonic one of many systems stands still while the machine sleeps.
func Since(t time.Time) time.Duration {
	now := time.Now()
	return max(now.Sub(t), now.Round(0).Sub(t.Round(0)))
}
