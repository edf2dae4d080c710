package parallel

import (
	"fmt"
	"sync/atomic"
	"testing"
)

func TestEachCallsEveryOneAndReturnsTheLowestError(t *testing.T) {
	for _, workers := range []int{1, 4, 100} {
		for _, n := range []int{0, 1, 2, 50} {
			var calls atomic.Int64
			if err := Each(n, workers, func(int) error { calls.Add(1); return nil }); err != nil || calls.Load() != int64(n) {
				t.Errorf("%d calls with %d workers: %d were made, %v", n, workers, calls.Load(), err)
			}
			err := Each(n, workers, func(i int) error {
				if i == 0 {
					return nil
				}
				return fmt.Errorf("call %d", i)
			})
			if n > 1 && (err == nil || err.Error() != "call 1") {
				t.Errorf("%d calls with %d workers: error %v", n, workers, err)
			}
		}
	}
}
