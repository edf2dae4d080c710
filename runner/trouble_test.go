package runner

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/study"
)

var errDiskFull = errors.New("no space left on device")

// flaky is a storage whose disk refuses some transactions. Refuse sees the state
// that a transaction would lead to.
type flaky struct {
	study.Storage
	mu     sync.Mutex
	refuse func(after *study.Snapshot) error
}

func (f *flaky) Update(ctx context.Context, fn func(*study.Tx) error) error {
	return f.Storage.Update(ctx, func(tx *study.Tx) error {
		if err := fn(tx); err != nil {
			return err
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.refuse(tx.Snapshot())
	})
}

// newFlaky is one study of one objective in memory.
func newFlaky(t *testing.T, refuse func(*study.Snapshot) error) (*flaky, Config) {
	t.Helper()
	st := study.NewMemory(study.MemoryOptions{})
	if _, _, err := study.OpenOrCreate(t.Context(), st, study.Config{
		Name: "s", Directions: []study.Direction{study.Minimize}, MetricNames: []string{"loss"},
	}); err != nil {
		t.Fatal(err)
	}
	return &flaky{Storage: st, refuse: refuse}, Config{
		Command: []string{"sh", "-c", `echo '{{"loss":1}'`}, Trials: 2, Grace: MinGrace, Journal: filepath.Join(t.TempDir(), "s.atj"),
	}
}

// running is a worker that runs one trial, whose command is left out: so it all
// happens in the time of a bubble.
func running(t *testing.T, st study.Storage, c Config) *attempt {
	t.Helper()
	p, err := c.prepare(st.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	l := &loop{worker: &worker{prepared: p, st: st, retry: &study.RetryPolicy{}}}
	claimed, err := l.claim(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return &attempt{loop: l, t: claimed.t, fence: claimed.fence, objs: newObjectives(p.Metrics), kill: func(error) {}}
}

// TestFullDiskMakesNobodyStale has a disk that takes no heartbeat for much longer
// than the grace, but would take that a trial has failed: neither the worker itself
// nor another one that cannot write takes the silence for death.
func TestFullDiskMakesNobodyStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var full atomic.Bool
		st, c := newFlaky(t, func(after *study.Snapshot) error {
			for range after.LiveTrials(0, study.Running) {
				if full.Load() {
					return errDiskFull
				}
			}
			return nil
		})
		c.Trials = 2
		var all sync.WaitGroup
		done := make(chan struct{})
		ctx, end := context.WithCancel(t.Context())
		attempts := []*attempt{running(t, st, c), running(t, st, c)}
		for _, a := range attempts {
			all.Go(func() { a.renew(done) })
			all.Go(func() { a.watch(ctx) })
		}
		full.Store(true)
		time.Sleep(20 * c.Grace)
		full.Store(false)
		time.Sleep(2 * c.Grace)
		close(done)
		for _, a := range attempts {
			if err := a.finish(ctx, study.Completed(1)); err != nil {
				t.Error(err)
			}
		}
		end()
		all.Wait()
		for _, a := range attempts {
			if a.report != (Report{Complete: 1}) {
				t.Errorf("report %+v, want 1 complete and none stale", a.report)
			}
		}
	})
}

// TestTheSilentAreFailedWhileOthersLive is the other side: the same worker is
// failed as stale once it is silent and others write.
func TestTheSilentAreFailedWhileOthersLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, c := newFlaky(t, func(*study.Snapshot) error { return nil })
		c.Trials = 2
		silent, living := running(t, st, c), running(t, st, c)
		done := make(chan struct{})
		ctx, end := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { living.renew(done) })
		all.Go(func() { living.watch(ctx) })
		time.Sleep(20 * c.Grace)
		close(done)
		end()
		all.Wait()
		if tr, err := st.Snapshot().Trial(silent.t.ID); err != nil || tr.State != study.Failed || living.report.Stale != 1 {
			t.Errorf("the silent one's trial is %v (%v), report %+v; want it stale alone", tr.State, err, living.report)
		}
	})
}

// TestEndIsTriedSeveralTimesWithinTheGrace has a disk that is full when the
// command has ended: another worker sees no heartbeat meanwhile, and would fail the
// trial after the grace.
func TestEndIsTriedSeveralTimesWithinTheGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := 0
		st, c := newFlaky(t, func(after *study.Snapshot) error {
			if tr, err := after.Trial(0); err == nil && tr.State == study.Complete && refused < 4 {
				refused++
				return errDiskFull
			}
			return nil
		})
		c.Trials, c.Grace = 1, 8*time.Second
		a := running(t, st, c)
		watcher := &worker{prepared: a.prepared, st: st, retry: &study.RetryPolicy{}}
		ctx, end := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { watcher.watch(ctx) })
		if err := a.finish(ctx, study.Completed(1)); err != nil || a.report.Complete != 1 || refused != 4 {
			t.Errorf("report %+v, refused %d times, error %v; want 1 complete", a.report, refused, err)
		}
		end()
		all.Wait()
		if watcher.report.Stale != 0 {
			t.Errorf("the other worker: %+v", watcher.report)
		}
	})
}

// TestClaimIsTriedAgainOnceThereIsSpace refuses the second trial a few times.
func TestClaimIsTriedAgainOnceThereIsSpace(t *testing.T) {
	refused := 0
	st, c := newFlaky(t, func(after *study.Snapshot) error {
		if _, err := after.Trial(1); err == nil && refused < 3 {
			refused++
			return errDiskFull
		}
		return nil
	})
	troubles := 0
	tell := func(e Event) {
		if e.Kind == Trouble {
			troubles++
		}
	}
	c.Grace = time.Minute
	report, err := Work(t.Context(), nil, st, c, tell)
	if err != nil || report.Complete != 2 || troubles != 3 {
		t.Errorf("report %+v, %d troubles, error %v; want 2 complete after 3 troubles", report, troubles, err)
	}
}

// TestFirstClaimThatFailsIsAnError: who never could write is told at once.
func TestFirstClaimThatFailsIsAnError(t *testing.T) {
	st, c := newFlaky(t, func(*study.Snapshot) error { return errDiskFull })
	if _, err := Work(t.Context(), nil, st, c, nil); !errors.Is(err, errDiskFull) {
		t.Errorf("error %v, want %v", err, errDiskFull)
	}
}

// uncertain is a storage that does not know what became of one claim, which was
// published.
type uncertain struct {
	study.Storage
	claims int
}

func (u *uncertain) Update(ctx context.Context, fn func(*study.Tx) error) error {
	claim := false
	err := u.Storage.Update(ctx, func(tx *study.Tx) error {
		before, _ := tx.Snapshot().Study(0)
		n := before.NumTrials()
		err := fn(tx)
		after, _ := tx.Snapshot().Study(0)
		claim = after.NumTrials() > n
		return err
	})
	if err == nil && claim {
		if u.claims++; u.claims == 2 {
			return &journal.UncertainError{Err: errDiskFull}
		}
	}
	return err
}

func TestClaimThatMayBePublishedIsNotForgotten(t *testing.T) {
	st, c := newFlaky(t, nil)
	c.Grace = time.Minute
	report, err := Work(t.Context(), nil, &uncertain{Storage: st.Storage}, c, nil)
	if err != nil || report.Complete != 2 {
		t.Errorf("report %+v, error %v; want 2 complete", report, err)
	}
	if s, _ := st.Snapshot().Study(0); s.NumTrials() != 2 {
		t.Errorf("%d trials, want 2", s.NumTrials())
	}
}

// TestNoReportIsLostWhenTheEndIsTriedAgain has a disk that takes neither the
// reports nor the end of a trial at first.
func TestNoReportIsLostWhenTheEndIsTriedAgain(t *testing.T) {
	refused := 0
	st, c := newFlaky(t, func(after *study.Snapshot) error {
		if tr, err := after.Trial(0); err == nil && (tr.NumReports() > 0 || tr.State == study.Complete) && refused < 4 {
			refused++
			return errDiskFull
		}
		return nil
	})
	c.Trials, c.Grace = 1, 2*time.Second
	c.Command = []string{"sh", "-c", `for i in 1 2 3; do echo '{{"loss":'$i'}'; done`}
	report, err := Work(t.Context(), nil, st, c, nil)
	tr, findErr := st.Snapshot().Trial(0)
	if err != nil || findErr != nil || report.Complete != 1 || refused != 4 || tr.NumReports() != 3 {
		t.Errorf("report %+v, error %v, refused %d times, %d reports; want all three", report, err, refused, tr.NumReports())
	}
}
