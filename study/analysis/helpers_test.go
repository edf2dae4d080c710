package analysis

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/foldlog/foldlog/study"
)

// trialSpec is a trial to make.
type trialSpec struct {
	params  []study.Param
	values  []float64
	state   study.State
	reports []study.Point
}

func complete(values ...float64) trialSpec { return trialSpec{values: values} }

func (s trialSpec) make(tx *study.Tx, id study.StudyID) error {
	ref, err := tx.CreateTrial(id, nil)
	if err != nil || s.state == study.Waiting && s.values == nil {
		return err
	}
	if err := tx.Transition(ref.ID, study.Waiting, study.Running); err != nil {
		return err
	}
	if len(s.params) > 0 {
		if err := tx.ParamsBatch(ref.ID, s.params); err != nil {
			return err
		}
	}
	for _, p := range s.reports {
		if err := tx.Report(ref.ID, p.Step, p.Value); err != nil {
			return err
		}
	}
	if s.values != nil {
		if err := tx.SetValues(ref.ID, s.values...); err != nil {
			return err
		}
		return tx.Transition(ref.ID, study.Running, study.Complete)
	}
	if s.state == study.Running {
		return nil
	}
	return tx.Transition(ref.ID, study.Running, s.state)
}

// studyOf makes a study in memory. Every trial is told at another millisecond.
func studyOf(tb testing.TB, config study.Config, trials ...trialSpec) (*study.Snapshot, *study.Study) {
	tb.Helper()
	ctx := context.Background()
	m := study.NewMemory(study.MemoryOptions{})
	defer m.Close()
	if config.Name == "" {
		config.Name = "s"
	}
	if config.Directions == nil {
		config.Directions = []study.Direction{study.Minimize}
	}
	id, _, err := study.OpenOrCreate(ctx, m, config)
	if err != nil {
		tb.Fatal(err)
	}
	err = m.Update(ctx, func(tx *study.Tx) error {
		for _, s := range trials {
			if err := s.make(tx, id); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	snap := m.Snapshot()
	st, err := snap.Study(id)
	if err != nil {
		tb.Fatal(err)
	}
	return snap, st
}

var unit = study.FloatDist{Low: 0, High: 1}

func number(name string, dist study.Distribution, x float64) study.Param {
	return study.Param{Name: name, Dist: dist, Value: study.F64(x)}
}

func choice(name string, index uint64, labels ...string) study.Param {
	d := &study.CatDist{Version: 1}
	for _, l := range labels {
		d.Choices = append(d.Choices, study.StringChoice(l))
	}
	return study.Param{Name: name, Dist: d, Value: study.Cat(index)}
}

// uniform draws n trials of some numbers from 0 to 1, and computes a value.
func uniform(n int, seed uint64, names []string, f func(x []float64) float64) []trialSpec {
	r := rand.New(rand.NewPCG(seed, 7))
	trials := make([]trialSpec, n)
	for i := range trials {
		x := make([]float64, len(names))
		for k := range x {
			x[k] = r.Float64()
			trials[i].params = append(trials[i].params, number(names[k], unit, x[k]))
		}
		trials[i].values = []float64{f(x)}
	}
	return trials
}

func near(tb testing.TB, what string, got, want, room float64) {
	tb.Helper()
	if !(math.Abs(got-want) <= room) {
		tb.Errorf("%s is %.4f, want %.4f ± %.2g", what, got, want, room)
	}
}
