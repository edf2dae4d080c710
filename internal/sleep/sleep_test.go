package sleep

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"
)

func TestForWaitsUnlessTheContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if err := For(t.Context(), time.Hour); err != nil || time.Since(began) != time.Hour {
			t.Errorf("waited %v: %v", time.Since(began), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began = time.Now()
		if err := For(ctx, time.Hour); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Minute {
			t.Errorf("waited %v: %v", time.Since(began), err)
		}
	})
}

// TestTheTimeThatAMachineSleptCounts moves a time's wall clock back an hour, and leaves its
// monotonic one.
func TestTheTimeThatAMachineSleptCounts(t *testing.T) {
	start := time.Now()
	*(*uint64)(unsafe.Pointer(&start)) -= 3600 << 30 // see type time.Time
	if time.Since(start) > time.Minute {
		t.Fatal("the monotonic clock was moved")
	}
	if got := Since(start); got < time.Hour {
		t.Errorf("%v since", got)
	}
	if got := Since(time.Now().Add(-time.Minute)); got < time.Minute || got > time.Hour {
		t.Errorf("%v since", got)
	}
}
