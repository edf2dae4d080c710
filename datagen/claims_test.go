package datagen

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/foldlog/foldlog/objstore"
)

// failing takes items and has each fail, until there is none left, and closes nothing.
func failing(ctx context.Context, c *Claims, taken *sync.Map) error {
	for {
		s, err := c.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		taken.Store(s.ID(), true)
		if err := s.Fail(ctx, nil, Failure{Type: "ValueError"}); err != nil {
			return err
		}
		if err := s.Close(ctx); err != nil {
			return err
		}
	}
}

func TestWorkersDoNotWaitForWhatFailedAtEachOther(t *testing.T) {
	store := objstore.NewMemory()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	var taken sync.Map
	var workers sync.WaitGroup
	claims, errs := make([]*Claims, 2), make([]error, 2)
	for i := range claims {
		w := newWriter(t, newLog(t, store))
		c, err := w.Claims(ctx, []string{"a", "b", "c", "d"}, ClaimsOptions{Poll: time.Millisecond})
		check(t, err)
		c.patience = 20 * time.Millisecond
		first, err := c.Next(ctx) // so that each has one
		check(t, err)
		check(t, first.Fail(ctx, nil, Failure{Type: "ValueError"}))
		check(t, first.Close(ctx))
		taken.Store(first.ID(), true)
		claims[i] = c
	}
	for i, c := range claims {
		workers.Go(func() { errs[i] = failing(ctx, c, &taken) })
	}
	workers.Wait()
	check(t, errors.Join(errs...))
	for _, key := range []string{"a", "b", "c", "d"} {
		if _, ok := taken.Load(key); !ok {
			t.Errorf("nobody took %s", key)
		}
	}
}

func TestAnItemThatIsTriedAgainElsewhereIsWaitedFor(t *testing.T) {
	store := objstore.NewMemory()
	one, two := newWriter(t, newLog(t, store)), newWriter(t, newLog(t, store))
	s, err := one.Open(t.Context(), "a", CreateOptions{})
	check(t, err)
	c, err := two.Claims(t.Context(), nil, ClaimsOptions{})
	check(t, err)
	fails := func() { check(t, s.Fail(t.Context(), nil, Failure{Type: "ValueError"})) }
	works := func() { check(t, s.Checkpoint(t.Context(), step(0), []Change{set("x", 1)})) }
	rests := func() {}
	keys := []pendingKey{{key: "a"}}
	for i, tc := range []struct {
		then   func()
		waited time.Duration
		want   int
	}{
		{fails, 0, 1},
		{rests, c.patience / 2, 1},
		{fails, 2 * c.patience, 1},
		{works, 2 * c.patience, 1},
		{rests, 2 * c.patience, 1},
		{fails, 2 * c.patience, 1},
		{rests, 2 * c.patience, 0},
	} {
		tc.then()
		if !keys[0].since.IsZero() {
			keys[0].since = keys[0].since.Add(-tc.waited)
		}
		left, err := c.unsettled(t.Context(), keys)
		check(t, err)
		if len(left) != tc.want {
			t.Fatalf("%d items are waited for at %d, want %d", len(left), i, tc.want)
		}
		keys = left
	}
}
