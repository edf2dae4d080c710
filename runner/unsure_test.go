package runner

import (
	"context"
	"errors"
	"testing"

	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/study"
)

var errCut = errors.New("the answer is cut")

// endCut is a storage that does not know what became of the first end of a trial, and
// cannot look once after that. Instead, if not nil, is published in its place.
type endCut struct {
	study.Storage
	instead func(tx *study.Tx) error
	ends    int
	blind   bool
}

func (e *endCut) Update(ctx context.Context, fn func(*study.Tx) error) error {
	isEnd, first := false, e.ends == 0
	err := e.Storage.Update(ctx, func(tx *study.Tx) error {
		if err := fn(tx); err != nil {
			return err
		}
		tr, err := tx.Snapshot().Trial(0)
		if isEnd = err == nil && tr.State != study.Waiting && tr.State != study.Running; isEnd && first && e.instead != nil {
			return errCut // none of it
		}
		return nil
	})
	if !isEnd || !first {
		return err
	}
	e.ends++
	if e.instead != nil {
		err = e.Storage.Update(ctx, e.instead)
	}
	if err != nil {
		return err
	}
	e.blind = e.instead == nil
	return &journal.UncertainError{Err: errCut}
}

func (e *endCut) Refresh(ctx context.Context) error {
	if e.blind {
		e.blind = false
		return errCut
	}
	return e.Storage.Refresh(ctx)
}

// ended runs a trial on a storage that loses sight at its end, and returns what was
// told of it.
func ended(t *testing.T, instead func(*study.Tx) error, finish func(*attempt) error) (Report, *study.Trial) {
	t.Helper()
	st, c := newFlaky(t, nil)
	a := running(t, st.Storage, c)
	cut := &endCut{Storage: st.Storage, instead: instead}
	a.st = cut
	if err := finish(a); err != nil {
		t.Error(err)
	}
	tr, err := st.Snapshot().Trial(0)
	if err != nil || cut.ends != 1 {
		t.Fatal(err, cut.ends)
	}
	return a.report, tr
}

// TestEndThatMayBePublishedIsFinishedOnce refuses the second try, since the first was
// published after all: the trial is finished, and its result is not late.
func TestEndThatMayBePublishedIsFinishedOnce(t *testing.T) {
	report, tr := ended(t, nil, func(a *attempt) error { return a.finish(t.Context(), study.Completed(1)) })
	if report != (Report{Complete: 1}) || tr.State != study.Complete {
		t.Errorf("%+v, trial is %v", report, tr.State)
	}
}

// TestPauseThatMayBePublishedIsGivenBackOnce is the same for a trial that is given back.
func TestPauseThatMayBePublishedIsGivenBackOnce(t *testing.T) {
	report, tr := ended(t, nil, func(a *attempt) error { return a.giveBack(t.Context(), false) })
	if report != (Report{GivenBack: 1}) || tr.State != study.Paused {
		t.Errorf("%+v, trial is %v", report, tr.State)
	}
}

// TestEndOfSomebodyElseIsNotOurs has a trial failed by somebody else while it is not
// known what became of its result: that is late, and not finished.
func TestEndOfSomebodyElseIsNotOurs(t *testing.T) {
	stale := func(tx *study.Tx) error {
		tr, err := tx.Snapshot().Trial(0)
		if err != nil {
			return err
		}
		return tx.LifecycleFailStale(study.Observation{Trial: 0, State: tr.State, Owner: tr.Owner, Epoch: tr.Epoch,
			HeartbeatMillis: tr.HeartbeatMillis, HeartbeatSeq: tr.HeartbeatSeq, ElapsedMillis: 10, GraceMillis: 10}, "silent", nil)
	}
	report, tr := ended(t, stale, func(a *attempt) error { return a.finish(t.Context(), study.Completed(1)) })
	if report != (Report{Late: 1}) || tr.State != study.Failed {
		t.Errorf("%+v, trial is %v", report, tr.State)
	}
}

// refusedOnce is a storage that runs the second reservation on a state that is old, in
// which the budget is used up, and then cannot look for a newer one.
type refusedOnce struct {
	study.Storage
	reservations int
}

func (s *refusedOnce) Update(ctx context.Context, fn func(*study.Tx) error) error {
	reserves := false
	err := s.Storage.Update(ctx, func(tx *study.Tx) error {
		for tr := range tx.Snapshot().Trials(0, study.TrialFilter{}) {
			if !tr.State.Terminal() {
				return fn(tx) // no reservation: it is about this one
			}
		}
		if s.reservations == 1 {
			if _, err := tx.LifecycleReserve(0, nil, 0); err != nil {
				return err
			}
		}
		reserves = true
		if err := fn(tx); s.reservations != 1 || !errors.Is(err, study.ErrBudget) {
			return err
		}
		return errCut
	})
	if reserves {
		s.reservations++
	}
	return err
}

// TestRefusalOfAnOlderStateIsNoneOfTheStudy tries again what could not be published,
// whatever its transaction has said of a state that was not the newest.
func TestRefusalOfAnOlderStateIsNoneOfTheStudy(t *testing.T) {
	st, c := newFlaky(t, nil)
	s := &refusedOnce{Storage: st.Storage}
	report, err := Work(t.Context(), nil, s, c, nil)
	if err != nil || report.Complete != 2 || s.reservations < 3 {
		t.Errorf("report %+v, error %v, %d reservations; want 2 complete", report, err, s.reservations)
	}
}
