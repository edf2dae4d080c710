package objstore

import (
	"context"
	"testing"
	"time"
)

// skewed is a store whose clock is off.
type skewed struct {
	Store
	by time.Duration
}

// Stat implements Store.
func (s skewed) Stat(ctx context.Context, key string) (Info, error) {
	info, err := s.Store.Stat(ctx, key)
	info.Modified = info.Modified.Add(s.by)
	return info, err
}

func TestTheEarlierOfTwoClocksCounts(t *testing.T) {
	for by, want := range map[time.Duration]time.Duration{0: 0, -time.Hour: -time.Hour, time.Hour: 0} {
		s := NewMemory()
		now, err := Now(t.Context(), skewed{s, by}, "dir/")
		if err != nil {
			t.Fatal(err)
		}
		if off := time.Until(now) - want; off < -time.Minute || off > time.Minute {
			t.Errorf("a store's clock that is off by %v: the time is off by %v", by, off)
		}
		for info, err := range s.List(t.Context(), ListOptions{}) {
			t.Errorf("%s is left: %v", info.Key, err)
		}
	}
}
