package runner

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/study"
	"github.com/foldlog/foldlog/study/sampler"
)

// reserved is a study in memory in which worker 7 has reserved a trial, and a
// storage that speaks for another worker.
func reserved(t *testing.T, trials uint64) (*other, Config) {
	t.Helper()
	st, c := newFlaky(t, func(*study.Snapshot) error { return nil })
	c.Trials = trials
	if err := st.Update(t.Context(), func(tx *study.Tx) error {
		_, err := tx.LifecycleReserve(0, nil, 0)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return &other{st}, c
}

// other is a storage of another worker than the one whose reservation is there.
type other struct{ study.Storage }

func (o *other) Worker() uint64 { return o.Storage.Worker() + 1 }

func TestAReservationIsLeftToItsWorker(t *testing.T) {
	st, c := reserved(t, 2)
	c.Grace = time.Minute
	ctx, stop := context.WithCancel(t.Context())
	finished := 0
	_, err := Work(ctx, nil, st, c, func(e Event) {
		if e.Kind == Finished {
			finished++
			stop()
		}
	})
	if err != nil || finished != 1 {
		t.Fatalf("%d finished, error %v; want 1", finished, err)
	}
	if first, _ := st.Snapshot().Trial(0); first.State != study.Waiting {
		t.Errorf("the trial that another worker has reserved is %v", first.State)
	}
}

func TestAReservationWhoseWorkerDiedIsTakenOver(t *testing.T) {
	st, c := reserved(t, 2)
	report, err := Work(t.Context(), nil, st, c, nil)
	if err != nil || report.Complete != 2 {
		t.Errorf("report %+v, error %v; want 2 complete", report, err)
	}
	if s, _ := st.Snapshot().Study(0); s.NumTrials() != 2 {
		t.Errorf("%d trials, want 2", s.NumTrials())
	}
}

// slow is a storage whose worker is slow between reservation and claim: somebody
// else claims its trial meanwhile.
type slow struct {
	study.Storage
	stolen int
}

func (s *slow) Update(ctx context.Context, fn func(*study.Tx) error) error {
	err := s.Storage.Update(ctx, fn)
	for t := range s.Snapshot().LiveTrials(0, study.Waiting) {
		if s.stolen > 0 {
			break
		}
		s.stolen++
		stealErr := s.Storage.Update(ctx, func(tx *study.Tx) error {
			fence, err := tx.LifecycleClaim(t.ID, study.Claim{From: study.Waiting, Worker: 99, HeartbeatMillis: 1})
			if err != nil {
				return err
			}
			return tx.LifecycleTerminal(fence, study.Completed(3), nil)
		})
		if stealErr != nil {
			return stealErr
		}
	}
	return err
}

func TestAClaimThatComesTooLateCostsNothing(t *testing.T) {
	st, c := newFlaky(t, func(*study.Snapshot) error { return nil })
	c.Trials = 3
	report, err := Work(t.Context(), nil, &slow{Storage: st}, c, nil)
	if err != nil || report.Complete != 2 || report.Failed != 0 {
		t.Errorf("report %+v, error %v; want 2 complete", report, err)
	}
	if s, _ := st.Snapshot().Study(0); s.Counts()[study.Complete] != 3 || s.NumTrials() != 3 {
		t.Errorf("states %v, want 3 complete", s.Counts())
	}
}

// TestOneWorkerDrawsWhatTheSamplerSays holds every trial against what the sampler
// suggests for the trials before it.
func TestOneWorkerDrawsWhatTheSamplerSays(t *testing.T) {
	space := &study.Space{Params: []study.SpaceParam{
		{Name: "opt", Dist: study.BoolDist{}},
		{Name: "m", Dist: study.FloatDist{Low: 0, High: 1}, When: []study.Condition{{Param: "opt", Values: []study.Value{study.Bool(true)}}}},
		{Name: "x", Dist: study.FloatDist{Low: -1, High: 1}},
	}}
	for _, name := range sampler.Names() {
		t.Run(name, func(t *testing.T) {
			st, c := newFlaky(t, func(*study.Snapshot) error { return nil })
			if err := st.Update(t.Context(), func(tx *study.Tx) error { return tx.SetStudySystemAttr(0, sampler.Attribute, []byte(`"`+name+`"`)) }); err != nil {
				t.Fatal(err)
			}
			c.Space, c.Trials, c.Grace = space, 16, time.Minute
			c.Command = []string{"sh", "-c", `echo "{{\"loss\":$1}"`, "sh", "{x}"}
			if _, err := Work(t.Context(), nil, st, c, nil); err != nil {
				t.Fatal(err)
			}
			s, err := sampler.Parse(name)
			if err != nil {
				t.Fatal(err)
			}
			stored, _ := st.Snapshot().Study(0)
			h := sampler.NewHistory(st.Snapshot(), stored, 1<<60)
			with, without := 0, 0
			for i, tr := range h.Trials {
				before := *h
				before.Number, before.Trials = tr.Number, h.Trials[:i]
				want, err := sampler.Suggest(s, &before, space, nil)
				if err != nil {
					t.Fatal(err)
				}
				equal := cmp.Comparer(func(a, b study.Value) bool { return a.Equal(b) })
				if diff := cmp.Diff(want, tr.Params, equal); diff != "" {
					t.Errorf("trial %d:\n%s", tr.Number, diff)
				}
				opt, _ := tr.Param("opt")
				if _, has := tr.Param("m"); has != opt.Value.Bool() {
					t.Errorf("trial %d has m: %v, opt %v", tr.Number, has, opt.Value)
				} else if has {
					with++
				} else {
					without++
				}
			}
			if with == 0 || without == 0 {
				t.Errorf("%d trials with m, %d without", with, without)
			}
		})
	}
}

// counted is a storage that counts its transactions.
type counted struct {
	study.Storage
	n atomic.Int64
}

func (c *counted) Update(ctx context.Context, fn func(*study.Tx) error) error {
	c.n.Add(1)
	return c.Storage.Update(ctx, fn)
}

// TestATrialCostsFourTransactions: the reservation, the claim, the reports, and
// the end with what follows from it, be it another attempt.
func TestATrialCostsFourTransactions(t *testing.T) {
	for name, c := range map[string]struct {
		command string
		report  Report
		trials  int64
	}{
		"complete": {`echo '{{"loss":1}'`, Report{Complete: 3}, 3},
		"retried":  {`echo '{{"loss":1}'; exit 1`, Report{Failed: 6, Retried: 3}, 6},
	} {
		t.Run(name, func(t *testing.T) {
			st, config := newFlaky(t, func(*study.Snapshot) error { return nil })
			config.Trials, config.Retries, config.Grace = 3, 1, time.Hour
			config.Command = []string{"sh", "-c", c.command}
			all := &counted{Storage: st}
			report, err := Work(t.Context(), nil, all, config, nil)
			if err != nil || report != c.report {
				t.Errorf("report %+v, error %v; want %+v", report, err, c.report)
			}
			if n := all.n.Load(); n > 4*c.trials || st.Snapshot().NumPending() != 0 {
				t.Errorf("%d transactions for %d trials, %d outbox entries left", n, c.trials, st.Snapshot().NumPending())
			}
		})
	}
}
