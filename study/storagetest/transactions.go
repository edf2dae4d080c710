package storagetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/study"
)

func testTransactions(t *testing.T, open Factory) {
	t.Run("all or nothing", func(t *testing.T) {
		s := open(t)
		id := newStudy(t, s, config("a"))
		before := s.Snapshot()
		boom := errors.New("boom")
		err := s.Update(context.Background(), func(tx *study.Tx) error {
			if _, err := tx.CreateTrial(id, nil); err != nil {
				return err
			}
			if got := tx.Snapshot().NumTrials(); got != 1 {
				t.Errorf("the transaction sees %d trials of its own", got)
			}
			if got := s.Snapshot().NumTrials(); got != 0 {
				t.Errorf("others see %d trials before they are published", got)
			}
			return boom
		})
		if !errors.Is(err, boom) || s.Snapshot().Seq() != before.Seq() {
			t.Errorf("%v, seq %d after %d", err, s.Snapshot().Seq(), before.Seq())
		}
		update(t, s, func(tx *study.Tx) error {
			ref, err := tx.CreateTrial(id, nil)
			if ref.ID != 0 || ref.Number != 0 {
				t.Errorf("ids went on to %+v after a failure", ref)
			}
			return err
		})
	})
	t.Run("a refused operation may be left out", func(t *testing.T) {
		s := open(t)
		id := newStudy(t, s, config("a"))
		update(t, s, func(tx *study.Tx) error {
			if err := tx.Report(5, 1, 1); !errors.Is(err, study.ErrNotFound) {
				t.Errorf("got %v", err)
			}
			_, err := tx.CreateTrial(id, nil)
			return err
		})
		if s.Snapshot().NumTrials() != 1 {
			t.Error("the rest was not published")
		}
	})
	t.Run("too large breaks the transaction", func(t *testing.T) {
		s := open(t)
		id := newStudy(t, s, config("a"))
		err := s.Update(context.Background(), func(tx *study.Tx) error {
			_ = tx.SetStudyUserAttr(id, "x", slices.Concat([]byte{'"'}, slices.Repeat([]byte("x"), 17<<20), []byte{'"'}))
			_, _ = tx.CreateTrial(id, nil)
			return nil
		})
		if !errors.Is(err, study.ErrTooLarge) || s.Snapshot().Seq() != 1 {
			t.Errorf("%v, seq %d", err, s.Snapshot().Seq())
		}
	})
	t.Run("snapshots do not change", func(t *testing.T) {
		s := open(t)
		id := newStudy(t, s, config("a"))
		f := claimed(t, s, id, 1)
		old := s.Snapshot()
		oldTrial := trial(t, s, f.Trial)
		for i := range 100 {
			update(t, s, func(tx *study.Tx) error {
				_, err := tx.CreateTrial(id, nil)
				return errors.Join(err, tx.LifecycleFenced(f, &study.MutateReport{Step: uint64(i), Values: []float64{1}}),
					tx.LifecycleFenced(f, &study.MutateUserAttr{Key: fmt.Sprint(i), Value: []byte("1")}))
			})
		}
		if old.NumTrials() != 1 || oldTrial.NumReports() != 0 || oldTrial.NumAttrs() != 0 {
			t.Error("an old snapshot has changed")
		}
		if now := trial(t, s, f.Trial); now.NumReports() != 100 || now.NumAttrs() != 100 || s.Snapshot().NumTrials() != 101 {
			t.Error("the new one has not")
		}
	})
	t.Run("a cancelled context publishes nothing", func(t *testing.T) {
		s := open(t)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		err := s.Update(ctx, func(tx *study.Tx) error { _, err := tx.CreateStudy(config("a")); return err })
		if !errors.Is(err, context.Canceled) || s.Snapshot().Seq() != 0 {
			t.Errorf("%v, seq %d", err, s.Snapshot().Seq())
		}
	})
	t.Run("closed is closed", func(t *testing.T) {
		s := open(t)
		newStudy(t, s, config("a"))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		err := s.Update(context.Background(), func(*study.Tx) error { return nil })
		if !errors.Is(err, study.ErrClosed) || !errors.Is(s.Refresh(context.Background()), study.ErrClosed) {
			t.Errorf("got %v", err)
		}
		if s.Snapshot().NumStudies() != 1 {
			t.Error("snapshots must outlive the storage")
		}
	})
}

func testReads(t *testing.T, open Factory) {
	s := open(t)
	id := newStudy(t, s, config("a"))
	values := []float64{3, math.NaN(), 1, math.Inf(1), 1, 2}
	update(t, s, func(tx *study.Tx) error {
		for i := range 100 {
			ref, err := tx.CreateTrial(id, nil)
			if err != nil {
				return err
			}
			if i < len(values) {
				err = errors.Join(tx.Transition(ref.ID, study.Waiting, study.Running), tx.SetValues(ref.ID, values[i]),
					tx.Transition(ref.ID, study.Running, study.Complete))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	snap := s.Snapshot()
	t.Run("paging and filters", func(t *testing.T) {
		filter := study.TrialFilter{States: []study.State{study.Waiting}, From: 4, Limit: 3}
		var got []uint64
		for tr := range snap.Trials(id, filter) {
			got = append(got, tr.Number)
		}
		if diff := cmp.Diff([]uint64{6, 7, 8}, got); diff != "" {
			t.Error(diff)
		}
		n := 0
		for range snap.Trials(id, study.TrialFilter{}) {
			n++
		}
		if n != 100 {
			t.Errorf("%d trials in all", n)
		}
	})
	t.Run("counts", func(t *testing.T) {
		st, ok := snap.StudyByName("a")
		if want := (study.Counts{study.Waiting: 94, study.Complete: 6}); !ok || st.Counts() != want || st.Counts().Total() != 100 {
			t.Errorf("counts %v", st.Counts())
		}
		if first, ok := st.FirstLive(study.Waiting); !ok || first != 6 {
			t.Errorf("first waiting trial is %d", first)
		}
	})
	// A13
	t.Run("NaN is never best and ranks last", func(t *testing.T) {
		best, err := snap.Best(id)
		if err != nil || len(best) != 1 || best[0].Number != 2 {
			t.Errorf("best %v, %v", best, err)
		}
		ranked, err := snap.Ranked(id, 0)
		var got []uint64
		for _, tr := range ranked {
			got = append(got, tr.Number)
		}
		if diff := cmp.Diff([]uint64{2, 4, 5, 0, 3, 1}, got); diff != "" || err != nil {
			t.Errorf("%v %s", err, diff)
		}
	})
	t.Run("not found", func(t *testing.T) {
		_, err := snap.Study(1)
		_, err2 := snap.Trial(100)
		_, err3 := snap.TrialByNumber(id, 100)
		_, err4 := snap.Best(1)
		for _, err := range []error{err, err2, err3, err4} {
			if !errors.Is(err, study.ErrNotFound) {
				t.Errorf("got %v", err)
			}
		}
	})
}

func testConcurrency(t *testing.T, open Factory) {
	// A15
	t.Run("opening or creating at once makes one study", func(t *testing.T) {
		s := open(t)
		var wg sync.WaitGroup
		var mu sync.Mutex
		created := 0
		for range 20 {
			wg.Go(func() {
				for range 5 {
					_, c, err := study.OpenOrCreate(context.Background(), s, config("a"))
					mu.Lock()
					if err != nil {
						t.Error(err)
					}
					if c {
						created++
					}
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		if created != 1 || s.Snapshot().Seq() != 1 {
			t.Errorf("created %d times, %d operations", created, s.Snapshot().Seq())
		}
	})
	// A5
	t.Run("numbers of parallel creates are dense", func(t *testing.T) {
		s := open(t)
		id := newStudy(t, s, config("a"))
		const workers, each = 16, 50
		refs := make([][]study.TrialRef, workers)
		var wg sync.WaitGroup
		for w := range workers {
			wg.Go(func() {
				for range each {
					var ref study.TrialRef
					err := s.Update(context.Background(), func(tx *study.Tx) (err error) {
						ref, err = tx.CreateTrial(id, nil)
						return err
					})
					if err != nil {
						t.Error(err)
					}
					refs[w] = append(refs[w], ref)
				}
			})
		}
		wg.Wait()
		all := slices.Concat(refs...)
		slices.SortFunc(all, func(a, b study.TrialRef) int { return int(a.Number) - int(b.Number) })
		for i, ref := range all {
			if ref.Number != uint64(i) || trial(t, s, ref.ID).Number != uint64(i) {
				t.Fatalf("number %d where %d is due", ref.Number, i)
			}
		}
		if len(all) != workers*each || s.Snapshot().NumTrials() != workers*each {
			t.Errorf("%d trials", len(all))
		}
	})
	t.Run("a budget is never exceeded", func(t *testing.T) {
		s := open(t)
		id := newStudy(t, s, config("a"))
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				for range 5 {
					err := s.Update(context.Background(), func(tx *study.Tx) error {
						_, err := tx.LifecycleReserve(id, nil, 30)
						return err
					})
					if err != nil && !errors.Is(err, study.ErrBudget) {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		st, err := s.Snapshot().Study(id)
		if err != nil || st.NumTrials() != 30 || st.Reserved() != 30 {
			t.Errorf("%d trials, %d reserved, %v", st.NumTrials(), st.Reserved(), err)
		}
	})
	// A16
	t.Run("readers see whole transactions and disturb nobody", func(t *testing.T) {
		s := open(t)
		id := newStudy(t, s, config("a"))
		stop := make(chan struct{})
		var readers, writers sync.WaitGroup
		for range 4 {
			readers.Go(func() { readUntil(t, s, id, stop) })
		}
		for range 4 {
			writers.Go(func() {
				for range 50 {
					err := s.Update(context.Background(), func(tx *study.Tx) error {
						ref, err := tx.CreateTrial(id, nil)
						return errors.Join(err, tx.Transition(ref.ID, study.Waiting, study.Running), tx.Report(ref.ID, 1, 1),
							tx.SetTrialUserAttr(ref.ID, "k", []byte("1")), tx.SetValues(ref.ID, 1), tx.Transition(ref.ID, study.Running, study.Complete))
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		writers.Wait()
		close(stop)
		readers.Wait()
	})
	// A8
	t.Run("workers that are fenced out get an error and the rest goes on", func(t *testing.T) {
		s := open(t)
		id := newStudy(t, s, config("a"))
		var wg sync.WaitGroup
		for w := range uint64(20) {
			wg.Go(func() { fencedWorker(t, s, id, w) })
		}
		wg.Wait()
		st, err := s.Snapshot().Study(id)
		if err != nil || st.Counts()[study.Complete]+st.Counts()[study.Failed] != 20*3 || st.Counts()[study.Running] != 0 {
			t.Errorf("counts %v, %v", st.Counts(), err)
		}
	})
}

// readUntil reads every trial again and again.
func readUntil(t *testing.T, s study.Storage, id study.StudyID, stop <-chan struct{}) {
	for {
		snap := s.Snapshot()
		n := 0
		for tr := range snap.Trials(id, study.TrialFilter{}) {
			n++
			if tr.State != study.Complete || tr.NumReports() != 1 || tr.NumAttrs() != 1 || len(tr.Values) != 1 {
				t.Errorf("half a transaction: trial %d is %v", tr.ID, tr.State)
				return
			}
		}
		if st, err := snap.Study(id); err != nil || st.NumTrials() != n {
			t.Errorf("%d trials, %v", n, err)
		}
		select {
		case <-stop:
			return
		default:
			runtime.Gosched()
		}
	}
}

// fencedWorker runs three trials, each of which somebody else may fail as stale
// while it reports.
func fencedWorker(t *testing.T, s study.Storage, id study.StudyID, worker uint64) {
	ctx := context.Background()
	for i := range 3 {
		f := claimed(t, s, id, worker)
		if (int(worker)+i)%2 == 0 {
			o := observation(trial(t, s, f.Trial))
			if err := s.Update(ctx, func(tx *study.Tx) error { return tx.LifecycleFailStale(o, "stale", nil) }); err != nil {
				t.Error(err)
			}
		}
		err := s.Update(ctx, func(tx *study.Tx) error { return tx.LifecycleTerminal(f, study.Completed(1), nil) })
		var fenced *study.FencedError
		if failed := (int(worker)+i)%2 == 0; failed != errors.As(err, &fenced) {
			t.Errorf("failed %v, got %v", failed, err)
		}
	}
}

// observation is what a sweeper would have seen at the end of the grace.
func observation(tr *study.Trial) study.Observation {
	return study.Observation{Trial: tr.ID, State: tr.State, Owner: tr.Owner, Epoch: tr.Epoch,
		HeartbeatMillis: tr.HeartbeatMillis, HeartbeatSeq: tr.HeartbeatSeq, ElapsedMillis: 10, GraceMillis: 10}
}
