// Package storagetest is the conformance suite of [study.Storage]: what every
// implementation must do, whatever it keeps its log in.
package storagetest

import (
	"context"
	"testing"
	"time"

	"github.com/foldlog/foldlog/study"
)

// Factory makes an empty storage for one test. It closes it by t.Cleanup.
type Factory func(t *testing.T) study.Storage

// Run runs the whole suite.
func Run(t *testing.T, open Factory) {
	t.Run("raw", func(t *testing.T) { testRaw(t, open) })
	t.Run("refusals", func(t *testing.T) { testRefusals(t, open) })
	t.Run("transactions", func(t *testing.T) { testTransactions(t, open) })
	t.Run("lifecycle", func(t *testing.T) { testLifecycle(t, open) })
	t.Run("staleness", func(t *testing.T) { testStaleness(t, open) })
	t.Run("outbox", func(t *testing.T) { testOutbox(t, open) })
	t.Run("reads", func(t *testing.T) { testReads(t, open) })
	t.Run("concurrency", func(t *testing.T) { testConcurrency(t, open) })
}

var (
	lr     = study.FloatDist{Low: 1e-5, High: 0.1, Log: true}
	layers = study.IntDist{Low: 1, High: 8, Step: 1}
	opt    = &study.CatDist{Version: 1, Choices: []study.Choice{study.StringChoice("adam"), study.StringChoice("sgd")}}
)

// params is a batch with one parameter of every kind.
func params() []study.Param {
	return []study.Param{
		{Name: "lr", Dist: lr, Value: study.F64(0.01)},
		{Name: "opt", Dist: opt, Value: study.Cat(1)},
		{Name: "layers", Dist: layers, Value: study.I64(4)},
		{Name: "use_bn", Dist: study.BoolDist{}, Value: study.Bool(true)},
	}
}

// config is a study of one objective.
func config(name string) study.Config {
	return study.Config{Name: name, Directions: []study.Direction{study.Minimize}, ResourceUnit: "Steps"}
}

func update(t *testing.T, s study.Storage, fn func(tx *study.Tx) error) {
	t.Helper()
	if err := s.Update(context.Background(), fn); err != nil {
		t.Fatal(err)
	}
}

func newStudy(t *testing.T, s study.Storage, c study.Config) (id study.StudyID) {
	t.Helper()
	update(t, s, func(tx *study.Tx) (err error) {
		id, err = tx.CreateStudy(c)
		return err
	})
	return id
}

// claimed reserves and claims one managed trial.
func claimed(t *testing.T, s study.Storage, id study.StudyID, worker uint64) (f study.Fence) {
	t.Helper()
	update(t, s, func(tx *study.Tx) error {
		ref, err := tx.LifecycleReserve(id, nil, 0)
		if err != nil {
			return err
		}
		f, err = tx.LifecycleClaim(ref.ID, study.Claim{Worker: worker, HeartbeatMillis: 1000, Params: params()})
		return err
	})
	return f
}

func trial(t *testing.T, s study.Storage, id study.TrialID) *study.Trial {
	t.Helper()
	tr, err := s.Snapshot().Trial(id)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// clock is a monotonic clock that only a test moves.
type clock struct{ now time.Duration }

func (c *clock) elapsed() time.Duration { return c.now }
