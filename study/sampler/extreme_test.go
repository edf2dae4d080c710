package sampler

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"testing"

	"github.com/foldlog/foldlog/study"
)

// extremes are distributions at the ends of what can be told.
func extremes() map[string]study.Distribution {
	const exact = 1 << 53 // from here on a float cannot tell neighbours apart
	return map[string]study.Distribution{
		"one float":            study.FloatDist{Low: 0.1, High: 0.1},
		"one log float":        study.FloatDist{Low: 1e-300, High: 1e-300, Log: true},
		"one stepped float":    study.FloatDist{Low: 0.3, High: 0.3, Step: 0.1},
		"a step that is wide":  study.FloatDist{Low: 0, High: 1, Step: 5},
		"neighbouring floats":  study.FloatDist{Low: 1, High: math.Nextafter(1, 2)},
		"all floats":           study.FloatDist{Low: -math.MaxFloat64, High: math.MaxFloat64},
		"300 decades":          study.FloatDist{Low: 1e-150, High: 1e150, Log: true},
		"all decades":          study.FloatDist{Low: 5e-324, High: math.MaxFloat64, Log: true},
		"tiny log floats":      study.FloatDist{Low: 5e-324, High: 1e-323, Log: true},
		"tenths":               study.FloatDist{Low: 0, High: 1, Step: 0.1},
		"thirds":               study.FloatDist{Low: -1, High: 1, Step: 1.0 / 3},
		"many steps":           study.FloatDist{Low: -1e15, High: 1e15, Step: 0.25},
		"tiny steps":           study.FloatDist{Low: 0, High: 1e-300, Step: 1e-301},
		"one integer":          study.IntDist{Low: -7, High: -7, Step: 1},
		"the least integer":    study.IntDist{Low: math.MinInt64, High: math.MinInt64, Step: 1},
		"the largest integer":  study.IntDist{Low: math.MaxInt64, High: math.MaxInt64, Log: true, Step: 1},
		"all integers":         study.IntDist{Low: math.MinInt64, High: math.MaxInt64, Step: 1},
		"all odd integers":     study.IntDist{Low: math.MinInt64 + 1, High: math.MaxInt64, Step: 2},
		"huge steps":           study.IntDist{Low: math.MinInt64, High: math.MaxInt64, Step: math.MaxInt64},
		"the largest integers": study.IntDist{Low: math.MaxInt64 - 3, High: math.MaxInt64, Step: 1},
		"large log integers":   study.IntDist{Low: math.MaxInt64 - 3, High: math.MaxInt64, Log: true, Step: 1},
		"all log integers":     study.IntDist{Low: 1, High: math.MaxInt64, Log: true, Step: 1},
		"where floats end":     study.IntDist{Low: exact - 2, High: exact + 3, Step: 1},
		"where floats end odd": study.IntDist{Low: exact + 1, High: exact + 9, Step: 2},
		"one choice":           &study.CatDist{Version: 1, Choices: []study.Choice{study.NullChoice()}},
		"truth":                study.BoolDist{},
	}
}

// result is a function with its least value at one end of everything.
func result(params []study.Param) float64 {
	sum := 0.0
	for _, x := range floats(&study.Trial{Params: params}) {
		sum += math.Atan(x)
	}
	return sum
}

func TestExtremeDistributionsHaveTheirSuggestions(t *testing.T) {
	var space []study.SpaceParam
	for name, dist := range extremes() {
		space = append(space, study.SpaceParam{Name: name, Dist: dist})
	}
	samplers := all()
	samplers["grid"] = Grid{Points: 2}
	for name, s := range samplers {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 1, 3, space...)
			for range 40 {
				trial := l.ask(s)
				checkInside(t, trial.Params)
				l.end(trial, study.Complete, result(trial.Params))
			}
		})
	}
}

// A trial has some of the parameters, which others it had decides.
func TestConditionalSpacesHaveTheirSuggestions(t *testing.T) {
	for name, s := range all() {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 1, 3)
			for n := range uint64(60) {
				var ref study.TrialRef
				l.update(func(tx *study.Tx) (err error) {
					ref, err = tx.CreateTrial(l.id, nil)
					return err
				})
				asker := NewAsker(s, l.history(n))
				var params []study.Param
				for name, dist := range extremes() {
					if p := (study.Param{Name: name, Dist: dist}); mix(uint64(len(name)))%3 == 0 || mix(n^uint64(len(name)))%2 == 0 {
						v, err := asker.Suggest(name, dist)
						if err != nil {
							t.Fatal(err)
						}
						p.Value = v
						params = append(params, p)
					}
				}
				checkInside(t, params)
				l.end(l.start(ref.ID, params), study.Complete, result(params))
			}
		})
	}
}

func checkInside(t *testing.T, params []study.Param) {
	t.Helper()
	for _, p := range params {
		if !inside(p.Dist, p.Value) {
			t.Fatalf("%s: %v of %#v", p.Name, p.Value, p.Dist)
		}
	}
}

// Small ranges where floats are coarse must be covered whole.
func TestEveryValueOfASmallRangeComesUp(t *testing.T) {
	for name, dist := range extremes() {
		d, ok := dist.(study.IntDist)
		count := (uint64(d.High) - uint64(d.Low)) / uint64(max(d.Step, 1))
		if !ok || count > 10 || d.Log {
			continue
		}
		for kind, s := range map[string]Sampler{"random": Random{}, "qmc": QMC{}, "grid": Grid{}} {
			l := newLab(t, 1, 1, study.SpaceParam{Name: "x", Dist: dist})
			seen := map[int64]bool{}
			for range 100 {
				trial := l.ask(s)
				seen[trial.Params[0].Value.I64()] = true
				l.end(trial, study.Complete, 0)
			}
			if uint64(len(seen)) != count+1 {
				t.Errorf("%s of %s: %d of %d values", kind, name, len(seen), count+1)
			}
		}
	}
}

func TestSteppedFloatsAreTheShortestOnTheirStep(t *testing.T) {
	for _, d := range []study.FloatDist{
		{Low: 0, High: 1, Step: 0.1}, {Low: 0.05, High: 0.95, Step: 0.05}, {Low: -1.5, High: 3, Step: 0.7},
		{Low: 1e-5, High: 1e-3, Step: 1e-5}, {Low: 1e10, High: 1e10 + 1, Step: 0.01}, {Low: 0, High: 1e6, Step: 0.3},
	} {
		digits := max(decimals(d.Low), decimals(d.Step))
		for k := range min(int(floatCells(d)), 1000) {
			x := stepped(d, float64(k))
			if want := fmt.Sprintf("%.*f", digits, d.Low+float64(k)*d.Step); parse(t, want) != x {
				t.Errorf("step %d of %+v is %v, want %s", k, d, x, want)
			}
		}
	}
	if x := stepped(study.FloatDist{High: 1, Step: 0.1}, 3); x != 0.3 {
		t.Errorf("three tenths are %v", x)
	}
}

func parse(t *testing.T, text string) float64 {
	t.Helper()
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func TestStepsThatFloatsCannotCount(t *testing.T) {
	for name, d := range map[string]study.FloatDist{
		"finer than floats are": {Low: -1e308, High: 1e308, Step: 1e-10},
		"tiny":                  {Low: 0, High: 1, Step: 1e-320},
	} {
		for kind, s := range all() {
			l := newLab(t, 1, 3, study.SpaceParam{Name: "x", Dist: d})
			seen := map[float64]bool{}
			for range 20 {
				trial := l.ask(s)
				x := trial.Params[0].Value.F64()
				if !(x >= d.Low && x <= d.High) {
					t.Fatalf("%s, steps that are %s: %v", kind, name, x)
				}
				seen[x] = true
				l.end(trial, study.Complete, math.Atan(x))
			}
			if len(seen) < 10 {
				t.Errorf("%s, steps that are %s: %d different values of 20", kind, name, len(seen))
			}
		}
	}
}

func TestGridsOfFloatsReachTheirEnd(t *testing.T) {
	for _, c := range []struct {
		low, high, step, cells float64
	}{
		{0, 1, 0.1, 11},
		{0, 0.35, 0.1, 4},
		{7.8179426635e+06, 7.8179429542e+06, 0.0019, 154},
		{1e16, 1e16 + 4, 2, 3},
		{-math.MaxFloat64, math.MaxFloat64, math.MaxFloat64 / 2, 5},
	} {
		d := study.FloatDist{Low: c.low, High: c.high, Step: c.step}
		if got := floatCells(d); got != c.cells {
			t.Errorf("%v to %v by %v has %v points, want %v", c.low, c.high, c.step, got, c.cells)
		}
		if got := stepped(d, c.cells-2); got == c.high {
			t.Errorf("%v to %v by %v: the last but one is the end", c.low, c.high, c.step)
		}
	}
}

// Options that a program sets out of range are the defaults.
func TestOptionsOutOfRange(t *testing.T) {
	for kind, s := range map[string]Sampler{
		"grid": Grid{Points: -1}, "tpe": TPE{Startup: -1, Candidates: -1}, "nsga2": NSGA2{Population: -1, Crossover: -1, Mutation: math.NaN()},
		"cmaes": CMAES{Population: 1, Sigma: math.NaN()},
	} {
		l := newLab(t, 1, 3, floatParams(2, 0, 1)...)
		for range 40 {
			trial := l.ask(s)
			if x := floats(trial); !(x[0] >= 0 && x[0] <= 1 && x[1] >= 0 && x[1] <= 1) {
				t.Fatalf("%s suggests %v", kind, x)
			}
			l.end(trial, study.Complete, floats(trial)[0])
		}
	}
}

func TestEvolutionRefusesTooManyNumbers(t *testing.T) {
	config := study.Config{Directions: make([]study.Direction, 1), Space: &study.Space{Params: floatParams(maxEvolved+1, 0, 1)}}
	if err := Check(CMAES{}, config); !errors.Is(err, study.ErrInvalid) {
		t.Errorf("error %v", err)
	}
}
