package sampler

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/foldlog/foldlog/study"
)

func TestSameSeedAndNumberGiveTheSameSuggestion(t *testing.T) {
	suggest := func(seed, number uint64) []study.Param {
		p, err := Suggest(Random{}, &History{Seed: seed, Number: number}, &study.Space{Params: mixed}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if diff := cmp.Diff(suggest(7, 3), suggest(7, 3), equalValues); diff != "" {
		t.Errorf("two draws differ:\n%s", diff)
	}
	for _, other := range [][2]uint64{{7, 4}, {8, 3}} {
		if cmp.Equal(suggest(7, 3), suggest(other[0], other[1]), equalValues) {
			t.Errorf("seed %d, trial %d draws the same", other[0], other[1])
		}
	}
}

func TestFixedParametersAreTakenAndChangeNoOthers(t *testing.T) {
	for name, s := range all() {
		l := newLab(t, 1, 1, mixed...)
		l.minimize(s, 30, sphere)
		free, err := Suggest(s, l.history(30), l.space, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Suggest(s, l.history(30), l.space, []study.FixedParam{{Name: "layers", Value: study.I64(3)}, {Name: "extra", Value: study.F64(2)}})
		if err != nil {
			t.Fatal(err)
		}
		last := len(mixed)
		if len(got) != last+1 || got[1].Value != study.I64(3) || got[last].Name != "extra" || got[last].Value != study.F64(2) {
			t.Errorf("%s: parameters %v", name, got)
		}
		for _, i := range []int{0, 2, 3} {
			if got[i].Value != free[i].Value {
				t.Errorf("%s: %s changed from %v to %v", name, got[i].Name, free[i].Value, got[i].Value)
			}
		}
	}
}

func TestWhatCannotBeDrawnIsRefusedByName(t *testing.T) {
	for name, dist := range map[string]study.Distribution{
		"unknown":         study.OtherDist(`{"Beta":1}`),
		"reversed":        study.IntDist{Low: 2, High: 1, Step: 1},
		"log of zero":     study.FloatDist{Low: 0, High: 1, Log: true},
		"endless":         study.FloatDist{Low: 0, High: math.Inf(1)},
		"not a number":    study.FloatDist{Low: math.NaN(), High: 1},
		"no choices":      &study.CatDist{},
		"negative step":   study.IntDist{Low: 0, High: 9, Step: -1},
		"steps in a log":  study.FloatDist{Low: 1, High: 9, Log: true, Step: 1},
		"no distribution": nil,
	} {
		for kind, s := range all() {
			_, err := Suggest(s, &History{Directions: make([]study.Direction, 1)}, &study.Space{Params: []study.SpaceParam{{Name: "odd one", Dist: dist}}}, nil)
			if !errors.Is(err, study.ErrInvalid) || !strings.Contains(err.Error(), `"odd one"`) {
				t.Errorf("%s, %s: error %v", kind, name, err)
			}
		}
	}
	fixed := []study.FixedParam{{Name: "z", Value: study.Cat(1)}}
	if _, err := Suggest(Random{}, new(History), nil, fixed); !errors.Is(err, study.ErrInvalid) {
		t.Errorf("a category without choices: error %v", err)
	}
}

func TestDrawsStayWithinTheirDistribution(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		low := rapid.Float64Range(-1e300, 1e300).Draw(t, "low")
		high := rapid.Float64Range(low, math.MaxFloat64).Draw(t, "high")
		f, err := draw(rng, study.FloatDist{Low: low, High: high})
		if err != nil || !(f.F64() >= low && f.F64() <= high) {
			t.Fatalf("%v of [%v, %v]: %v", f, low, high, err)
		}
		a := rapid.Int64().Draw(t, "a")
		b := rapid.Int64Min(a).Draw(t, "b")
		step := rapid.Int64Range(1, 100).Draw(t, "step")
		i, err := draw(rng, study.IntDist{Low: a, High: b, Step: step})
		if err != nil || i.I64() < a || i.I64() > b || (uint64(i.I64())-uint64(a))%uint64(step) != 0 {
			t.Fatalf("%v of [%d, %d] by %d: %v", i, a, b, step, err)
		}
		low = rapid.Float64Range(1e-300, 1e300).Draw(t, "loglow")
		high = rapid.Float64Range(low, 1e300).Draw(t, "loghigh")
		if f, _ = draw(rng, study.FloatDist{Low: low, High: high, Log: true}); !(f.F64() >= low && f.F64() <= high) {
			t.Fatalf("%v of log [%v, %v]", f, low, high)
		}
		a = rapid.Int64Min(1).Draw(t, "loga")
		b = rapid.Int64Min(a).Draw(t, "logb")
		if i, _ = draw(rng, study.IntDist{Low: a, High: b, Log: true, Step: 1}); i.I64() < a || i.I64() > b {
			t.Fatalf("%v of log [%d, %d]", i, a, b)
		}
	})
}

// Every cell of a grid and both ends of a range must come up about as often.
func TestDrawsAreEven(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const n = 40_000
	for name, c := range map[string]struct {
		dist  study.Distribution
		cells int
		cell  func(study.Value) int
	}{
		"integers":      {study.IntDist{Low: -2, High: 5, Step: 1}, 8, func(v study.Value) int { return int(v.I64()) + 2 }},
		"float grid":    {study.FloatDist{Low: 0, High: 1, Step: 0.25}, 5, func(v study.Value) int { return int(v.F64()*4 + 0.5) }},
		"floats":        {study.FloatDist{Low: -1, High: 1}, 4, func(v study.Value) int { return int((v.F64() + 1) * 2) }},
		"log floats":    {study.FloatDist{Low: 1, High: 10_000, Log: true}, 4, func(v study.Value) int { return int(math.Log10(v.F64())) }},
		"truth values":  {study.BoolDist{}, 2, func(v study.Value) int { return map[bool]int{true: 1}[v.Bool()] }},
		"three choices": {&study.CatDist{Choices: make([]study.Choice, 3)}, 3, func(v study.Value) int { return int(v.Cat()) }},
	} {
		t.Run(name, func(t *testing.T) {
			counts := make([]int, c.cells)
			for range n {
				v, err := draw(rng, c.dist)
				if err != nil {
					t.Fatal(err)
				}
				counts[c.cell(v)]++
			}
			for i, k := range counts {
				if want := n / c.cells; k < want*9/10 || k > want*11/10 {
					t.Errorf("cell %d came up %d times, want about %d", i, k, want)
				}
			}
		})
	}
}
