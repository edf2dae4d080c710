package storagetest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/study"
)

func testLifecycle(t *testing.T, open Factory) {
	t.Run("claim, pause, resume, complete", func(t *testing.T) {
		s := open(t)
		id := newStudy(t, s, config("a"))
		f := claimed(t, s, id, 7)
		update(t, s, func(tx *study.Tx) error {
			return errors.Join(
				tx.LifecycleRenew(f, 2000),
				tx.LifecycleFenced(f, &study.MutateReport{Step: 1, Values: []float64{0.5}}),
				tx.LifecycleFenced(f, &study.MutateUserAttr{Key: "k", Value: []byte(` "v" `)}),
				tx.LifecycleFenced(f, &study.MutateParams{Params: []study.Param{{Name: "late", Dist: lr, Value: study.F64(1)}}}),
				tx.LifecycleFenced(f, &study.MutateState{Blob: study.Blob{Kind: "ckpt", Version: 2, Data: []byte(`{"b":1,"a":2}`)}}),
				tx.LifecycleFenced(f, &study.MutatePause{}))
		})
		tr := trial(t, s, f.Trial)
		if tr.State != study.Paused || tr.Epoch != 1 || tr.HeartbeatSeq != 2 || tr.HeartbeatMillis != 2000 || len(tr.Params) != 5 {
			t.Errorf("trial %+v", tr)
		}
		if tr.Blob == nil || string(tr.Blob.Data) != `{"a":2,"b":1}` {
			t.Errorf("state %v", tr.Blob)
		}
		var g study.Fence
		update(t, s, func(tx *study.Tx) (err error) {
			g, err = tx.LifecycleClaim(f.Trial, study.Claim{From: study.Paused, Worker: 8})
			return errors.Join(err, tx.LifecycleTerminal(g, study.Completed(0.25), nil))
		})
		tr = trial(t, s, f.Trial)
		if g.Epoch != 2 || tr.State != study.Complete || tr.Owner != 8 || tr.Values[0] != 0.25 || tr.Outbox != nil {
			t.Errorf("trial %+v", tr)
		}
		update(t, s, func(tx *study.Tx) error {
			return tx.LifecycleFinalizedState(f.Trial, study.Blob{Kind: "ckpt", Version: 3, Data: []byte("3")})
		})
		if tr = trial(t, s, f.Trial); tr.Blob.Version != 3 {
			t.Errorf("state %v", tr.Blob)
		}
	})
	t.Run("abandoned reservations do not count", func(t *testing.T) {
		s := open(t)
		id := newStudy(t, s, config("a"))
		update(t, s, func(tx *study.Tx) error {
			ref, err := tx.LifecycleReserve(id, nil, 1)
			if _, over := tx.LifecycleReserve(id, nil, 1); !errors.Is(over, study.ErrBudget) {
				t.Errorf("got %v", over)
			}
			err = errors.Join(err, tx.LifecycleAbandon(ref.ID, "no room"))
			_, again := tx.LifecycleReserve(id, nil, 1)
			return errors.Join(err, again)
		})
		if tr := trial(t, s, 0); tr.State != study.Failed || tr.Error != "no room" || !tr.Abandoned {
			t.Errorf("trial %+v", tr)
		}
	})
	// A9
	t.Run("a write from an old epoch names both owners", func(t *testing.T) {
		s := open(t)
		id := newStudy(t, s, config("a"))
		old := claimed(t, s, id, 7)
		update(t, s, func(tx *study.Tx) error {
			err := tx.LifecycleFenced(old, &study.MutatePause{})
			_, err2 := tx.LifecycleClaim(old.Trial, study.Claim{From: study.Paused, Worker: 9})
			return errors.Join(err, err2)
		})
		late := study.Completed(0.125)
		for name, do := range map[string]func(tx *study.Tx) error{
			"renew":  func(tx *study.Tx) error { return tx.LifecycleRenew(old, 1) },
			"report": func(tx *study.Tx) error { return tx.LifecycleFenced(old, &study.MutateReport{Values: late.Values}) },
			"attr": func(tx *study.Tx) error {
				return tx.LifecycleFenced(old, &study.MutateUserAttr{Key: "k", Value: []byte("1")})
			},
			"terminal": func(tx *study.Tx) error { return tx.LifecycleTerminal(old, late, &study.RetryPolicy{}) },
		} {
			err := s.Update(context.Background(), do)
			var fenced *study.FencedError
			if !errors.As(err, &fenced) || fenced.Owner != 9 || fenced.Epoch != 2 || fenced.Fence != old {
				t.Errorf("%s: got %v", name, err)
				continue
			}
			for _, part := range []string{"worker 7 at epoch 1", "worker 9 at epoch 2"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%s: %q does not say %q", name, err, part)
				}
			}
		}
		if late.Values[0] != 0.125 || trial(t, s, old.Trial).State != study.Running {
			t.Error("the late result is gone, or the trial was touched")
		}
	})
}

func testStaleness(t *testing.T, open Factory) {
	const grace = 100 * time.Millisecond
	ctx := context.Background()
	sweep := func(t *testing.T, w *study.Sweeper, s study.Storage) []study.TrialID {
		t.Helper()
		failed, err := w.Sweep(ctx, s)
		if err != nil {
			t.Fatal(err)
		}
		return failed
	}
	newSweeper := func(c *clock) *study.Sweeper {
		return study.NewSweeper(study.SweeperOptions{Elapsed: c.elapsed, Grace: grace, Retry: &study.RetryPolicy{MaxRetries: 1}})
	}
	// A7, A28: the heartbeat is ten minutes ahead of everybody's clock, or behind.
	for name, heartbeat := range map[string]uint64{"ahead": 1 << 50, "behind": 0} {
		t.Run("a trial is failed after the grace with clocks "+name, func(t *testing.T) {
			s := open(t)
			id := newStudy(t, s, config("a"))
			f := claimed(t, s, id, 7)
			update(t, s, func(tx *study.Tx) error { return tx.LifecycleRenew(f, heartbeat) })
			c := &clock{}
			w := newSweeper(c)
			for _, at := range []time.Duration{0, grace - 1, grace - time.Millisecond} {
				c.now = at
				if failed := sweep(t, w, s); failed != nil {
					t.Fatalf("failed %v after %v", failed, at)
				}
			}
			c.now = grace
			if diff := cmp.Diff([]study.TrialID{f.Trial}, sweep(t, w, s)); diff != "" {
				t.Fatal(diff)
			}
			tr := trial(t, s, f.Trial)
			if tr.State != study.Failed || !strings.Contains(tr.Error, "worker 7 at epoch 1") || tr.Outbox == nil {
				t.Errorf("trial %+v", tr)
			}
			err := s.Update(ctx, func(tx *study.Tx) error { return tx.LifecycleTerminal(f, study.Completed(1), nil) })
			if !errors.Is(err, study.ErrFenced) {
				t.Errorf("the late finisher got %v", err)
			}
		})
	}
	t.Run("a heartbeat starts the grace again", func(t *testing.T) {
		s := open(t)
		id := newStudy(t, s, config("a"))
		f := claimed(t, s, id, 7)
		c := &clock{}
		w := newSweeper(c)
		for i := range 10 {
			c.now = time.Duration(i) * (grace - time.Millisecond)
			if failed := sweep(t, w, s); failed != nil {
				t.Fatalf("failed %v at heartbeat %d", failed, i)
			}
			// the owner's clock steps back
			update(t, s, func(tx *study.Tx) error { return tx.LifecycleRenew(f, uint64(1000-i)) })
		}
	})
	t.Run("an owner that asked for a longer lease has it", func(t *testing.T) {
		s := open(t)
		f := claimed(t, s, newStudy(t, s, config("a")), 7)
		update(t, s, func(tx *study.Tx) error { return tx.SetLease(f, 10*grace) })
		if got := trial(t, s, f.Trial).Lease(); got != 10*grace {
			t.Errorf("lease is %v", got)
		}
		c := &clock{}
		w := newSweeper(c)
		for _, at := range []time.Duration{0, grace, 10*grace - time.Millisecond} {
			c.now = at
			if failed := sweep(t, w, s); failed != nil {
				t.Fatalf("failed %v after %v", failed, at)
			}
		}
		c.now = 10 * grace
		if failed := sweep(t, w, s); len(failed) != 1 {
			t.Errorf("failed %v after the lease", failed)
		}
	})
	t.Run("an observer does not look at trials of its own", func(t *testing.T) {
		s := open(t)
		id := newStudy(t, s, config("a"))
		mine, others := claimed(t, s, id, 7), claimed(t, s, id, 8)
		c := &clock{}
		w := study.NewSweeper(study.SweeperOptions{Elapsed: c.elapsed, Grace: grace, Own: func(id study.TrialID) bool { return id == mine.Trial }})
		sweep(t, w, s)
		c.now = time.Hour
		if diff := cmp.Diff([]study.TrialID{others.Trial}, sweep(t, w, s)); diff != "" {
			t.Errorf("failed (-want +got):\n%s", diff)
		}
	})
	t.Run("system attributes need their prefix and the fence", func(t *testing.T) {
		s := open(t)
		f := claimed(t, s, newStudy(t, s, config("a")), 7)
		old := f
		old.Worker++
		for name, c := range map[string]struct {
			f   study.Fence
			key string
			err error
		}{
			"a user's key": {f, "mine", study.ErrInvalid}, "another owner": {old, "foldlog:x", study.ErrFenced}, "ours": {f, "foldlog:x", nil},
		} {
			err := s.Update(ctx, func(tx *study.Tx) error { return tx.LifecycleSystemAttr(c.f, c.key, []byte("1")) })
			if !errors.Is(err, c.err) {
				t.Errorf("%s: got %v", name, err)
			}
		}
	})
	t.Run("a fresh sweeper fails nothing at once", func(t *testing.T) {
		s := open(t)
		claimed(t, s, newStudy(t, s, config("a")), 7)
		c := &clock{now: time.Hour}
		if failed := sweep(t, newSweeper(c), s); failed != nil {
			t.Errorf("failed %v", failed)
		}
	})
	t.Run("an observation that is not current is a conflict", func(t *testing.T) {
		s := open(t)
		f := claimed(t, s, newStudy(t, s, config("a")), 7)
		o := observation(trial(t, s, f.Trial))
		for name, change := range map[string]func(o *study.Observation){
			"owner": func(o *study.Observation) { o.Owner++ }, "epoch": func(o *study.Observation) { o.Epoch++ },
			"heartbeat": func(o *study.Observation) { o.HeartbeatMillis++ }, "sequence": func(o *study.Observation) { o.HeartbeatSeq++ },
			"state": func(o *study.Observation) { o.State = study.Paused }, "grace": func(o *study.Observation) { o.GraceMillis++ },
		} {
			o := o
			change(&o)
			err := s.Update(ctx, func(tx *study.Tx) error { return tx.LifecycleFailStale(o, "x", nil) })
			if !errors.Is(err, study.ErrConflict) {
				t.Errorf("%s: got %v", name, err)
			}
		}
	})
	// A24
	t.Run("a worker that exits without values leaves a failed trial with a reason", func(t *testing.T) {
		s := open(t)
		f := claimed(t, s, newStudy(t, s, config("a")), 7)
		c := &clock{}
		w := newSweeper(c)
		sweep(t, w, s)
		c.now = time.Hour
		sweep(t, w, s)
		if tr := trial(t, s, f.Trial); tr.State != study.Failed || tr.Error == "" {
			t.Errorf("trial %+v", tr)
		}
	})
}
