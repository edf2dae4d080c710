package sampler

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/foldlog/foldlog/study"
)

// drawDist makes any distribution that can be drawn from, odd ones included.
func drawDist(t *rapid.T, label string) study.Distribution {
	switch rapid.IntRange(0, 6).Draw(t, label) {
	case 0:
		low := rapid.Float64Range(-1e300, 1e300).Draw(t, "low")
		return study.FloatDist{Low: low, High: rapid.Float64Range(low, math.MaxFloat64).Draw(t, "high")}
	case 1:
		low := rapid.Float64Range(1e-300, 1e300).Draw(t, "low")
		return study.FloatDist{Low: low, High: rapid.Float64Range(low, 1e300).Draw(t, "high"), Log: true}
	case 2:
		low := rapid.Float64Range(-1e6, 1e6).Draw(t, "low")
		step := rapid.Float64Range(1e-3, 10).Draw(t, "step")
		return study.FloatDist{Low: low, High: low + step*rapid.Float64Range(0, 1000).Draw(t, "width"), Step: step}
	case 3:
		low := rapid.Int64().Draw(t, "low")
		return study.IntDist{Low: low, High: rapid.Int64Min(low).Draw(t, "high"), Step: rapid.Int64Range(0, 100).Draw(t, "step")}
	case 4:
		low := rapid.Int64Min(1).Draw(t, "low")
		return study.IntDist{Low: low, High: rapid.Int64Min(low).Draw(t, "high"), Log: true}
	case 5:
		return study.BoolDist{}
	}
	cat := new(study.CatDist)
	for i := range rapid.IntRange(1, 20).Draw(t, "choices") {
		cat.Choices = append(cat.Choices, study.IntChoice(int64(i)))
	}
	return cat
}

// inside tells whether a value is one that its distribution has.
func inside(dist study.Distribution, v study.Value) bool {
	switch d := dist.(type) {
	case study.FloatDist:
		x := v.F64()
		k := (x - d.Low) / d.Step
		onStep := d.Step == 0 || math.Abs(k-math.Round(k)) < 1e-6*math.Max(1, math.Abs(k)) || x == d.High
		return v.Kind() == study.ValueF64 && x >= d.Low && x <= d.High && onStep
	case study.IntDist:
		i := v.I64()
		return v.Kind() == study.ValueI64 && i >= d.Low && i <= d.High && (uint64(i)-uint64(d.Low))%uint64(max(d.Step, 1)) == 0
	case study.BoolDist:
		return v.Kind() == study.ValueBool
	case *study.CatDist:
		return v.Kind() == study.ValueCat && v.Cat() < uint64(len(d.Choices))
	}
	return false
}

// Whatever the space and the results, suggestions stay in range and on the step.
func TestSuggestionsStayWithinTheirDistributions(t *testing.T) {
	for name, s := range map[string]Sampler{
		"random": Random{}, "qmc": QMC{}, "grid": Grid{Points: 3}, "tpe": TPE{Startup: 2}, "tpe univariate": TPE{Startup: 2, Univariate: true},
		"cmaes": CMAES{Population: 3}, "nsga2": NSGA2{Population: 3},
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				space := []study.SpaceParam{{Name: "a", Dist: drawDist(rt, "a")}, {Name: "b", Dist: drawDist(rt, "b")}}
				l := newLab(t, 1, rapid.Uint64().Draw(rt, "seed"), space...)
				for range 12 {
					trial := l.ask(s)
					for _, p := range trial.Params {
						if !inside(p.Dist, p.Value) {
							rt.Fatalf("%v of %#v", p.Value, p.Dist)
						}
					}
					switch result := rapid.SampledFrom([]float64{1, 2, 3, math.NaN(), math.Inf(1), math.Inf(-1)}).Draw(rt, "result"); rapid.IntRange(0, 5).Draw(rt, "end") {
					case 0:
						l.end(trial, study.Failed)
					case 1:
						l.end(trial, study.Pruned)
					case 2: // keeps running
					default:
						l.end(trial, study.Complete, result)
					}
				}
			})
		})
	}
}

func TestPlacesAndValuesAreInverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := newAxis(drawDist(t, "dist"))
		u := rapid.Float64Range(0, 1).Draw(t, "u")
		if a.choices > 0 {
			u = math.Floor(u * float64(a.choices-1))
		}
		v := a.value(u)
		at, ok := a.place(v)
		if !ok || !inside(a.dist, v) {
			t.Fatalf("%v of %#v is not on the axis", v, a.dist)
		}
		again := a.value(at)
		if d, isInt := a.dist.(study.IntDist); isInt && (d.Log || uint64(d.High)-uint64(d.Low) > 1<<50) {
			return // a float cannot tell neighbours apart
		}
		if _, isFloat := a.dist.(study.FloatDist); isFloat {
			back, _ := a.place(again)
			if math.Abs(back-at) > 1e-9 {
				t.Fatalf("%v became %v: %v and %v", v, again, at, back)
			}
			return
		}
		if !again.Equal(v) {
			t.Fatalf("%v became %v", v, again)
		}
	})
}

// A study that is stopped and read anew after every trial suggests what one that
// was never stopped does, and the same seed repeats.
func TestAResumedStudyGoesOnAsIfNeverStopped(t *testing.T) {
	for name, s := range all() {
		t.Run(name, func(t *testing.T) {
			one, other := newLab(t, 1, 5, mixed...), newLab(t, 1, 5, mixed...)
			one.minimize(s, 40, sphere)
			for range 4 {
				fresh, err := Parse(text(s))
				if err != nil {
					t.Fatal(err)
				}
				other.minimize(fresh, 10, sphere)
			}
			for i, got := range other.trials() {
				if diff := cmp.Diff(one.trials()[i].Params, got.Params, equalValues); diff != "" {
					t.Fatalf("trial %d:\n%s", i, diff)
				}
			}
		})
	}
}

func text(s Sampler) string {
	switch s := s.(type) {
	case Random:
		return "random"
	case Grid:
		return "grid"
	case QMC:
		return "qmc"
	case CMAES:
		return "cmaes"
	case NSGA2:
		return "nsga2"
	case TPE:
		return map[TPE]string{{}: "tpe", {Univariate: true}: "tpe:univariate", {Multivariate: true}: "tpe:multivariate"}[s]
	}
	return ""
}

// The history is ordered by number: when trials ended does not matter.
func TestTheOrderOfEndsDoesNotMatter(t *testing.T) {
	for name, s := range all() {
		a, b := newLab(t, 1, 2, mixed...), newLab(t, 1, 2, mixed...)
		for _, l := range []*lab{a, b} {
			var running []*study.Trial
			for range 30 {
				running = append(running, l.ask(Random{}))
			}
			for i := range running {
				trial := running[i]
				if l == b {
					trial = running[len(running)-1-i]
				}
				l.end(trial, study.Complete, sphere(floats(trial))...)
			}
		}
		x, y := a.ask(s), b.ask(s)
		if diff := cmp.Diff(x.Params, y.Params, equalValues); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

// Over some seeds the median of the best must beat the random search's by far.
func TestModelsFindBetterPointsThanRandom(t *testing.T) {
	median := func(s Sampler) float64 {
		var bests []float64
		for seed := range uint64(5) {
			l := newLab(t, 1, seed, floatParams(4, -2, 2)...)
			l.minimize(s, 80, sphere)
			bests = append(bests, l.best())
		}
		slices.Sort(bests)
		return bests[2]
	}
	random := median(Random{})
	for name, s := range map[string]Sampler{
		"tpe": TPE{}, "tpe univariate": TPE{Univariate: true}, "tpe multivariate": TPE{Multivariate: true}, "cmaes": CMAES{}, "nsga2": NSGA2{},
	} {
		if got := median(s); got > random/2 {
			t.Errorf("%s: %v, random search %v", name, got, random)
		}
	}
}

func TestChoicesAndStepsAreLearned(t *testing.T) {
	for name, s := range map[string]Sampler{"tpe": TPE{}, "tpe univariate": TPE{Univariate: true}, "nsga2": NSGA2{}} {
		var bests []float64
		for seed := range uint64(5) {
			l := newLab(t, 1, seed, mixed...)
			l.minimize(s, 120, func(x []float64) []float64 {
				loss := math.Abs(x[1]-6) + 3*math.Abs(x[4]-0.2) + math.Abs(math.Log10(x[0])+3)
				if x[2] != 1 {
					loss += 2
				}
				if x[3] != 1 {
					loss++
				}
				return []float64{loss}
			})
			bests = append(bests, l.best())
		}
		if slices.Sort(bests); bests[2] > 0.9 {
			t.Errorf("%s: bests %v", name, bests)
		}
	}
}

func TestMaximizingIsMinimizingTheOpposite(t *testing.T) {
	for name, s := range all() {
		down, up := newLab(t, 1, 9, mixed...), newLab(t, 1, 9, mixed...)
		down.minimize(s, 40, sphere)
		up.minimize(s, 40, func(x []float64) []float64 { return []float64{-sphere(x)[0]} })
		h := up.history(40)
		h.Directions = []study.Direction{study.Maximize}
		want, err := Suggest(s, down.history(40), down.space, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range h.Trials { // those of down, turned
			trial := *down.history(40).Trials[i]
			trial.Values = []float64{-trial.Values[0]}
			h.Trials[i] = &trial
		}
		got, err := Suggest(s, h, up.space, nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, equalValues); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

func TestFrontsAreFound(t *testing.T) {
	f := func(x []float64) []float64 {
		a, b := x[0]-0.2, x[0]-0.8
		rest := 0.0
		for _, v := range x[1:] {
			rest += (v - 0.5) * (v - 0.5)
		}
		return []float64{a*a + rest, b*b + rest}
	}
	missing := func(s Sampler) float64 { // distance of the front from the best possible, on average
		l := newLab(t, 2, 1, floatParams(5, 0, 1)...)
		l.minimize(s, 150, f)
		front, err := l.st.Snapshot().Best(l.id)
		if err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for _, trial := range front {
			rest := 0.0
			for _, v := range floats(trial)[1:] {
				rest += (v - 0.5) * (v - 0.5)
			}
			sum += rest / float64(len(front))
		}
		return sum
	}
	random := missing(Random{})
	for name, s := range map[string]Sampler{"tpe": TPE{}, "nsga2": NSGA2{}} {
		if got := missing(s); got > random/2 {
			t.Errorf("%s: %v off the front, random search %v", name, got, random)
		}
	}
	h := newLab(t, 2, 1, floatParams(2, 0, 1)...).history(0)
	if _, err := Suggest(CMAES{}, h, &study.Space{Params: floatParams(2, 0, 1)}, nil); !errors.Is(err, study.ErrInvalid) {
		t.Errorf("cmaes on two objectives: error %v", err)
	}
}

// Programs that ask one by one get what those get that ask for all at once.
func TestOneByOneIsAllAtOnceWhereAllTrialsHaveIt(t *testing.T) {
	for name, s := range all() {
		l := newLab(t, 1, 4, mixed...)
		l.minimize(s, 30, sphere)
		h := l.history(30)
		want, err := Suggest(s, h, l.space, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if got, err := SuggestOne(s, h, w.Name, w.Dist); err != nil || !got.Equal(w.Value) {
				t.Errorf("%s: %s is %v alone, %v together: %v", name, w.Name, got, w.Value, err)
			}
		}
	}
}

// Of two branches with a parameter each, the better one must be taken mostly,
// and its parameter be learned.
func TestConditionalParametersAreLearned(t *testing.T) {
	branch := &study.CatDist{Choices: []study.Choice{study.StringChoice("x"), study.StringChoice("y")}}
	l := newLab(t, 1, 6)
	late := 0
	for n := range uint64(80) {
		var ref study.TrialRef
		l.update(func(tx *study.Tx) (err error) {
			ref, err = tx.CreateTrial(l.id, nil)
			return err
		})
		h := l.history(n)
		get := func(name string, dist study.Distribution) study.Param {
			v, err := SuggestOne(TPE{}, h, name, dist)
			if err != nil {
				t.Fatal(err)
			}
			return study.Param{Name: name, Dist: dist, Value: v}
		}
		kind := get("branch", branch)
		name, offset := "x", 1.0
		if kind.Value.Cat() == 1 {
			name, offset = "y", 0
		}
		p := get(name, study.FloatDist{Low: -1, High: 1})
		d := p.Value.F64() - 0.25
		l.end(l.start(ref.ID, []study.Param{kind, p}), study.Complete, d*d+offset)
		if n >= 40 && kind.Value.Cat() == 1 {
			late++
		}
	}
	if late < 30 || l.best() > 1e-3 {
		t.Errorf("%d of the last 40 trials in the better branch, best %v", late, l.best())
	}
}

func TestAskersInParallelGetDifferentPoints(t *testing.T) {
	l := newLab(t, 1, 8, floatParams(2, 0, 1)...)
	l.minimize(TPE{}, 30, sphere)
	var running []*study.Trial
	for range 8 {
		running = append(running, l.ask(TPE{}))
	}
	for i, a := range running {
		for _, b := range running[:i] {
			if cmp.Equal(a.Params, b.Params, equalValues) {
				t.Errorf("trials %d and %d are the same", a.Number, b.Number)
			}
		}
	}
}

// Results that say nothing must not stop the search.
func TestUselessResultsDoNotStopTheSearch(t *testing.T) {
	for name, s := range all() {
		for result, v := range map[string]float64{"nan": math.NaN(), "inf": math.Inf(1), "-inf": math.Inf(-1), "the same": 1} {
			l := newLab(t, 1, 1, mixed...)
			l.minimize(s, 30, func([]float64) []float64 { return []float64{v} })
			if n := len(l.trials()); n != 30 {
				t.Errorf("%s, %s: %d trials", name, result, n)
			}
		}
	}
}

// Foreign journals have studies without an objective, and reports without values.
func TestWhatOtherWritersLeaveOutIsNoPanic(t *testing.T) {
	params := []study.Param{{Name: "x", Dist: study.FloatDist{High: 1}, Value: study.F64(0.5)}}
	for _, objectives := range []int{0, 1} {
		f := study.NewFold()
		seq := uint64(1)
		apply := func(op study.Op) {
			t.Helper()
			if err := f.Apply(seq, 1, 1, op); err != nil {
				t.Fatal(err)
			}
			seq++
		}
		apply(&study.CreateStudy{Config: study.Config{Name: "s", Directions: make([]study.Direction, objectives)}})
		for n := range uint64(20) {
			id := study.TrialID(n)
			apply(&study.CreateTrial{Trial: id, Number: n})
			apply(&study.Transition{Trial: id, From: study.Waiting, To: study.Running})
			apply(&study.ParamsBatch{Trial: id, Params: params})
			apply(&study.Report{Trial: id, Step: 1})
			apply(&study.Transition{Trial: id, From: study.Running, To: study.Pruned})
		}
		st, err := f.Snapshot().Study(0)
		if err != nil {
			t.Fatal(err)
		}
		h := NewHistory(f.Snapshot(), st, 20)
		for name, s := range all() {
			if _, err := s.Sample(h, floatParams(1, 0, 1)); err != nil && !errors.Is(err, study.ErrInvalid) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
