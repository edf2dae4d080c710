//go:build !linux

package journal

import "time"

// nap sleeps for a short time.
func nap(d time.Duration) { time.Sleep(d) }
