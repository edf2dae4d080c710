package journal

import (
	"syscall"
	"time"
)

// nap sleeps for a short time. The runtime's own timers end at the next
// millisecond, which is long against the hand-over of a lease.
func nap(d time.Duration) {
	t := syscall.NsecToTimespec(int64(d))
	syscall.Nanosleep(&t, nil)
}
