package sampler

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/study"
)

var equalValues = cmp.Comparer(func(a, b study.Value) bool { return a.Equal(b) })

// all are the samplers that work on one objective.
func all() map[string]Sampler {
	return map[string]Sampler{
		"random": Random{}, "grid": Grid{}, "qmc": QMC{}, "tpe": TPE{}, "tpe univariate": TPE{Univariate: true},
		"tpe multivariate": TPE{Multivariate: true}, "cmaes": CMAES{}, "nsga2": NSGA2{},
	}
}

// lab is a study in memory that a test asks and tells.
type lab struct {
	t     testing.TB
	st    study.Storage
	id    study.StudyID
	space *study.Space
}

func newLab(t testing.TB, objectives int, seed uint64, space ...study.SpaceParam) *lab {
	t.Helper()
	l := &lab{t: t, st: study.NewMemory(study.MemoryOptions{}), space: &study.Space{Params: space}}
	t.Cleanup(func() { l.st.Close() })
	config := study.Config{Name: "s", Directions: make([]study.Direction, objectives), Seed: &seed, Space: l.space}
	var err error
	if l.id, _, err = study.OpenOrCreate(context.Background(), l.st, config); err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *lab) update(fn func(tx *study.Tx) error) {
	l.t.Helper()
	if err := l.st.Update(context.Background(), fn); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) history(number uint64) *History {
	l.t.Helper()
	snap := l.st.Snapshot()
	st, err := snap.Study(l.id)
	if err != nil {
		l.t.Fatal(err)
	}
	return NewHistory(snap, st, number)
}

// ask starts a trial.
func (l *lab) ask(s Sampler) *study.Trial {
	l.t.Helper()
	var ref study.TrialRef
	l.update(func(tx *study.Tx) (err error) {
		ref, err = tx.CreateTrial(l.id, nil)
		return err
	})
	params, err := Suggest(s, l.history(ref.Number), l.space, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	return l.start(ref.ID, params)
}

func (l *lab) start(id study.TrialID, params []study.Param) *study.Trial {
	l.t.Helper()
	l.update(func(tx *study.Tx) error {
		if err := tx.Transition(id, study.Waiting, study.Running); err != nil {
			return err
		}
		return tx.ParamsBatch(id, params)
	})
	t, err := l.st.Snapshot().Trial(id)
	if err != nil {
		l.t.Fatal(err)
	}
	return t
}

// end ends a trial, with values if there are some.
func (l *lab) end(t *study.Trial, state study.State, values ...float64) {
	l.t.Helper()
	l.update(func(tx *study.Tx) error {
		if len(values) > 0 {
			if err := tx.SetValues(t.ID, values...); err != nil {
				return err
			}
		}
		return tx.Transition(t.ID, study.Running, state)
	})
}

// minimize runs n trials of a function.
func (l *lab) minimize(s Sampler, n int, f func(x []float64) []float64) {
	l.t.Helper()
	for range n {
		t := l.ask(s)
		l.end(t, study.Complete, f(floats(t))...)
	}
}

// floats are the parameters of a trial as numbers.
func floats(t *study.Trial) []float64 {
	x := make([]float64, len(t.Params))
	for i, p := range t.Params {
		switch p.Value.Kind() {
		case study.ValueF64:
			x[i] = p.Value.F64()
		case study.ValueI64:
			x[i] = float64(p.Value.I64())
		case study.ValueCat:
			x[i] = float64(p.Value.Cat())
		case study.ValueBool:
			if p.Value.Bool() {
				x[i] = 1
			}
		}
	}
	return x
}

func (l *lab) best() float64 {
	l.t.Helper()
	best, err := l.st.Snapshot().Best(l.id)
	if err != nil || len(best) == 0 {
		l.t.Fatalf("best %v, error %v", best, err)
	}
	return best[0].Values[0]
}

func (l *lab) trials() []*study.Trial {
	var ts []*study.Trial
	for t := range l.st.Snapshot().Trials(l.id, study.TrialFilter{}) {
		ts = append(ts, t)
	}
	return ts
}

func floatParams(n int, low, high float64) []study.SpaceParam {
	space := make([]study.SpaceParam, n)
	for i := range space {
		space[i] = study.SpaceParam{Name: string(rune('a' + i)), Dist: study.FloatDist{Low: low, High: high}}
	}
	return space
}

var mixed = []study.SpaceParam{
	{Name: "lr", Dist: study.FloatDist{Low: 1e-5, High: 0.1, Log: true}},
	{Name: "layers", Dist: study.IntDist{Low: 1, High: 8, Step: 1}},
	{Name: "opt", Dist: &study.CatDist{Version: 1, Choices: []study.Choice{study.StringChoice("a"), study.StringChoice("b"), study.StringChoice("c")}}},
	{Name: "bn", Dist: study.BoolDist{}},
	{Name: "drop", Dist: study.FloatDist{Low: 0, High: 0.5, Step: 0.05}},
	{Name: "width", Dist: study.IntDist{Low: 16, High: 512, Log: true}},
	{Name: "fixed", Dist: study.FloatDist{Low: 3, High: 3}},
}

func sphere(x []float64) []float64 {
	sum := 0.0
	for i, v := range x {
		d := v - 0.3*float64(i%3)
		sum += d * d
	}
	return []float64{sum}
}
