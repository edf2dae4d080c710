package study

import (
	"math"
	"strconv"
	"time"
)

// leaseAttr is the attribute that says how long a managed trial's owner may be
// silent, in milliseconds, where that is longer than a sweeper's grace.
const leaseAttr = SystemPrefix + "lease_millis"

// SetLease says how long the owner of a managed trial may be silent, rounded up
// to milliseconds. Every [Sweeper] respects it.
func (tx *Tx) SetLease(f Fence, lease time.Duration) error {
	millis := (lease + time.Millisecond - 1) / time.Millisecond
	return tx.LifecycleSystemAttr(f, leaseAttr, strconv.AppendInt(nil, int64(millis), 10))
}

// Lease is how long the owner said it may be silent, 0 if it said nothing.
func (t *Trial) Lease() time.Duration {
	a, ok := t.Attr(leaseAttr)
	if !ok {
		return 0
	}
	millis, err := strconv.ParseInt(string(a.Value), 10, 64)
	if err != nil || millis < 0 || millis > math.MaxInt64/int64(time.Millisecond) {
		return 0
	}
	return time.Duration(millis) * time.Millisecond
}
