package objstore

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func election(t *testing.T, s Store, holder string) *Election {
	t.Helper()
	e, err := NewElection(s, "leases/maintenance", LeaseOptions{Holder: holder, Term: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestALeaseIsTakenWhenItStoodStillForItsTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewMemory()
		a, b := election(t, s, "a"), election(t, s, "b")
		first, err := a.Try(t.Context())
		ok(t, err)
		for range 5 {
			_, err = b.Try(t.Context())
			want(t, err, ErrLeaseHeld)
			time.Sleep(4 * time.Second)
			ok(t, first.Renew(t.Context()))
		}
		if !first.Held() {
			t.Error("renewed and not held")
		}
		_, err = b.Try(t.Context())
		want(t, err, ErrLeaseHeld)
		time.Sleep(11 * time.Second)
		if first.Held() {
			t.Error("held beyond its term")
		}
		second, err := b.Try(t.Context())
		ok(t, err)
		want(t, first.Renew(t.Context()), ErrLeaseLost)
		ok(t, second.Renew(t.Context()))
	})
}

// TestALeaseWhoseAnswersGetLostIsKept: some renewals took effect, some did not.
func TestALeaseWhoseAnswersGetLostIsKept(t *testing.T) {
	for name, done := range map[string][]bool{"done": {true}, "not done": {false}, "in turn": {true, false, true, true, false, false}} {
		t.Run(name, func(t *testing.T) {
			var fates []bool
			s := NewFault(NewMemory(), func(c Call) Fate {
				if len(fates) == 0 || c.Op != "put if absent" {
					return Fate{}
				}
				fate := Fate{Err: ErrAmbiguous, Done: fates[0]}
				fates = fates[1:]
				return fate
			})
			a, b := election(t, s, "a"), election(t, s, "b")
			l, err := a.Try(t.Context())
			ok(t, err)
			fates = done
			for range done {
				want(t, l.Renew(t.Context()), ErrAmbiguous)
			}
			ok(t, l.Renew(t.Context()))
			ok(t, l.Renew(t.Context()))
			_, err = b.Try(t.Context())
			want(t, err, ErrLeaseHeld)
			fates = done[:1]
			want(t, l.Release(t.Context()), ErrAmbiguous)
			want(t, l.Renew(t.Context()), ErrLeaseLost)
		})
	}
}

func TestAnObserverWhoJustCameWaitsAWholeTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewMemory()
		_, err := election(t, s, "a").Try(t.Context())
		ok(t, err)
		time.Sleep(time.Hour)
		start := time.Now()
		_, err = election(t, s, "b").Wait(t.Context())
		ok(t, err)
		if waited := time.Since(start); waited <= 10*time.Second || waited > 13*time.Second {
			t.Errorf("waited %v", waited)
		}
	})
}

func TestAReleasedLeaseIsFreeAtOnce(t *testing.T) {
	s := NewMemory()
	l, err := election(t, s, "a").Try(t.Context())
	ok(t, err)
	ok(t, l.Release(t.Context()))
	if l.Held() {
		t.Error("held after its release")
	}
	_, err = election(t, s, "b").Try(t.Context())
	ok(t, err)
}

func TestALeaseIsWonByOne(t *testing.T) {
	for name, b := range backends(t) {
		t.Run(name, func(t *testing.T) {
			s, _ := b.open(t)
			var mu sync.Mutex
			won := 0
			var wg sync.WaitGroup
			for range 8 {
				e := election(t, s, "one of many")
				wg.Go(func() {
					_, err := e.Try(t.Context())
					if err == nil {
						mu.Lock()
						won++
						mu.Unlock()
					} else if !errors.Is(err, ErrLeaseHeld) {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if won != 1 {
				t.Errorf("%d won", won)
			}
		})
	}
}

// TestASleeperCannotWinATidiedNumber: the holder sleeps until its next number has
// been used, succeeded and deleted.
func TestASleeperCannotWinATidiedNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewMemory()
		sleeper, err := election(t, s, "a").Try(t.Context())
		ok(t, err)
		e := election(t, s, "b")
		l, err := e.Wait(t.Context())
		ok(t, err)
		for range 20 {
			ok(t, l.Renew(t.Context()))
		}
		want(t, sleeper.Renew(t.Context()), ErrLeaseLost)
		ok(t, l.Renew(t.Context()))
		if n := len(list(t, s, ListOptions{})); n > keepLeases+1 {
			t.Errorf("%d lease objects are kept", n)
		}
	})
}

func TestKeepRenewsThroughPassingFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var down atomic.Bool
		s := NewFault(NewMemory(), func(Call) Fate {
			if down.Load() {
				return Fate{Err: errors.New("store is away")}
			}
			return Fate{}
		})
		l, err := election(t, s, "a").Try(t.Context())
		ok(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		kept := make(chan error, 1)
		go func() { kept <- l.Keep(ctx) }()
		time.Sleep(time.Minute)
		down.Store(true)
		time.Sleep(5 * time.Second)
		down.Store(false)
		time.Sleep(time.Minute)
		if !l.Held() {
			t.Error("lost over a passing failure")
		}
		cancel()
		ok(t, <-kept)
		_, err = election(t, s, "b").Try(t.Context())
		ok(t, err) // it was released
	})
}

func TestKeepEndsWhenTheLeaseCannotBeRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := false
		s := NewFault(NewMemory(), func(Call) Fate {
			if down {
				return Fate{Err: errors.New("store is away")}
			}
			return Fate{}
		})
		l, err := election(t, s, "a").Try(t.Context())
		ok(t, err)
		down = true
		want(t, l.Keep(t.Context()), ErrLeaseLost)
	})
}

// TestOneElectionMayAskForSeveral: renewals go on while the same election asks in the
// name of others, and each lease keeps its holder's name.
func TestOneElectionMayAskForSeveral(t *testing.T) {
	s := NewMemory()
	e := election(t, s, "a")
	l, err := e.Try(t.Context())
	ok(t, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		for range 100 {
			_, err := e.TryAs(t.Context(), "b")
			want(t, err, ErrLeaseHeld)
		}
	})
	for range 100 {
		ok(t, l.Renew(t.Context()))
	}
	wg.Wait()
	ok(t, l.Renew(t.Context()))
	info, err := election(t, s, "c").Look(t.Context())
	ok(t, err)
	if info.Holder != "a" {
		t.Errorf("the lease of a is held by %s", info.Holder)
	}
}
