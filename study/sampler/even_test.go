package sampler

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/study"
)

// The first 2^k points must put one into each of 2^k equal cells of every
// dimension, scrambled or not, tabled or not.
func TestSobolPointsAreEvenInEveryDimension(t *testing.T) {
	const n = 256
	polys := primitivePolynomials(60)
	for dim := range 60 {
		v := sobolDirections(dim, polys)
		for name, seed := range map[string]uint32{"plain": 0, "scrambled": 77} {
			var seen [n]bool
			for i := range uint32(n) {
				x := sobol(&v, i)
				if seed != 0 {
					x = scramble(x, seed)
				}
				seen[x>>24] = true
			}
			for cell, ok := range seen {
				if !ok {
					t.Fatalf("dimension %d, %s: cell %d is empty", dim, name, cell)
				}
			}
		}
	}
}

// In the first dimensions every pair must be even too: 256 points in 16 by 16
// cells, with few empty ones. At random 94 would be.
func TestSobolPairsAreEven(t *testing.T) {
	polys := primitivePolynomials(20)
	for a := range 8 {
		for b := range a {
			va, vb := sobolDirections(a, polys), sobolDirections(b, polys)
			seen := map[[2]uint32]bool{}
			for i := range uint32(256) {
				seen[[2]uint32{sobol(&va, i) >> 28, sobol(&vb, i) >> 28}] = true
			}
			if empty := 256 - len(seen); empty > 130 {
				t.Errorf("dimensions %d and %d: %d cells are empty", b, a, empty)
			}
		}
	}
}

func TestPolynomialsAreThePrimitiveOnes(t *testing.T) {
	// x+1, x²+x+1, x³+x+1, x³+x²+1, x⁴+x+1, x⁴+x³+1, x⁵+x²+1
	want := []uint32{0b11, 0b111, 0b1011, 0b1101, 0b10011, 0b11001, 0b100101}
	if diff := cmp.Diff(want, primitivePolynomials(7)); diff != "" {
		t.Error(diff)
	}
	for i, p := range primitivePolynomials(20) {
		if degree := bits.Len32(p) - 1; degree != len(sobolInitial[i]) {
			t.Errorf("polynomial %d has degree %d, its initial numbers are %d", i, degree, len(sobolInitial[i]))
		}
		for k, m := range sobolInitial[i] {
			if m%2 == 0 || m >= 1<<(k+1) {
				t.Errorf("initial number %d of polynomial %d is %d", k, i, m)
			}
		}
	}
}

func TestSeedsScrambleAndPlainIsPlain(t *testing.T) {
	at := func(s QMC, seed uint64) float64 {
		v, err := s.Sample(&History{Seed: seed, Number: 3}, floatParams(2, 0, 1))
		if err != nil {
			t.Fatal(err)
		}
		return v[1].F64()
	}
	if at(QMC{}, 1) == at(QMC{}, 2) {
		t.Error("two seeds give the same point")
	}
	if at(QMC{Plain: true}, 1) != at(QMC{Plain: true}, 2) {
		t.Error("the seed changes a plain sequence")
	}
}

func TestGridTriesEveryPointOnceThenAgain(t *testing.T) {
	space := []study.SpaceParam{
		{Name: "a", Dist: study.FloatDist{Low: 1e-4, High: 1, Log: true}},
		{Name: "b", Dist: study.IntDist{Low: 0, High: 2, Step: 1}},
		{Name: "c", Dist: study.BoolDist{}},
		{Name: "d", Dist: study.FloatDist{Low: 0, High: 100, Step: 0.5}},
	}
	const size = 3 * 3 * 2 * 3
	l := newLab(t, 1, 3, space...)
	for round := 1; round <= 2; round++ {
		counts := map[string]int{}
		for range size {
			l.end(l.ask(Grid{Points: 3}), study.Complete, 1)
		}
		for _, trial := range l.trials() {
			counts[fmt.Sprint(floats(trial))]++
		}
		for point, n := range counts {
			if n != round {
				t.Errorf("round %d: point %s was tried %d times", round, point, n)
			}
		}
		if len(counts) != size {
			t.Errorf("round %d: %d points, want %d", round, len(counts), size)
		}
	}
	for _, x := range []float64{1e-4, 1e-2, 1} {
		found := false
		for _, trial := range l.trials() {
			found = found || math.Abs(floats(trial)[0]/x-1) < 1e-9
		}
		if !found {
			t.Errorf("%g was not tried", x)
		}
	}
}

func TestGridDoesNotCountWhatIsNotOnIt(t *testing.T) {
	l := newLab(t, 1, 3, study.SpaceParam{Name: "a", Dist: study.FloatDist{Low: 0, High: 1}})
	var ref study.TrialRef
	l.update(func(tx *study.Tx) (err error) {
		ref, err = tx.CreateTrial(l.id, nil)
		return err
	})
	between := study.Param{Name: "a", Dist: l.space.Params[0].Dist, Value: study.F64(0.45)}
	l.end(l.start(ref.ID, []study.Param{between}), study.Complete, 1)
	seen := map[float64]bool{}
	for range 3 {
		trial := l.ask(Grid{Points: 3})
		seen[floats(trial)[0]] = true
		l.end(trial, study.Complete, 1)
	}
	if diff := cmp.Diff(map[float64]bool{0: true, 0.5: true, 1: true}, seen); diff != "" {
		t.Error(diff)
	}
}

// The groups of a conditional space are grids of their own.
func TestGridsOfBranchesAreCheckedOneByOne(t *testing.T) {
	space := []study.SpaceParam{{Name: "which", Dist: study.BoolDist{}}}
	for i, p := range floatParams(20, 0, 1) {
		p.When = []study.Condition{{Param: "which", Values: []study.Value{study.Bool(i%2 == 0)}}}
		space = append(space, p)
	}
	if err := Check(Grid{}, study.Config{Directions: make([]study.Direction, 1), Space: &study.Space{Params: space}}); err != nil {
		t.Error(err)
	}
}

func TestGridDoesNotCountFailuresAndRefusesTooMuch(t *testing.T) {
	l := newLab(t, 1, 3, study.SpaceParam{Name: "a", Dist: study.BoolDist{}})
	first := l.ask(Grid{})
	l.end(first, study.Failed)
	second := l.ask(Grid{})
	third := l.ask(Grid{})
	if !first.Params[0].Value.Equal(second.Params[0].Value) || second.Params[0].Value.Equal(third.Params[0].Value) {
		t.Errorf("after a failure of %v came %v and %v", first.Params[0].Value, second.Params[0].Value, third.Params[0].Value)
	}
	h := &History{Directions: make([]study.Direction, 1)}
	if _, err := (Grid{Points: 1000}).Sample(h, floatParams(7, 0, 1)); !errors.Is(err, study.ErrInvalid) {
		t.Errorf("10^21 points: error %v", err)
	}
}

func TestEvolutionFindsANarrowValley(t *testing.T) {
	rosenbrock := func(x []float64) []float64 {
		sum := 0.0
		for i := range len(x) - 1 {
			a, b := x[i+1]-x[i]*x[i], 1-x[i]
			sum += 100*a*a + b*b
		}
		return []float64{sum}
	}
	l := newLab(t, 1, 2, floatParams(3, -2, 2)...)
	l.minimize(CMAES{}, 900, rosenbrock)
	if got := l.best(); got > 1e-6 {
		t.Errorf("best %v", got)
	}
}

func TestEvolutionStartsAgainWhenItCannotGoOn(t *testing.T) {
	space := floatParams(2, 0, 1)
	l := newLab(t, 1, 2, space...)
	l.minimize(CMAES{}, 600, func([]float64) []float64 { return []float64{1} })
	e := CMAES{}.replay(l.history(600), space, newAxes(space))
	if e.lambda <= populationSize(2) {
		t.Errorf("population %d after a long time without any change", e.lambda)
	}
}

func TestTexts(t *testing.T) {
	for text, want := range map[string]Sampler{
		"tpe":                              TPE{},
		"tpe:univariate,startup=20":        TPE{Univariate: true, Startup: 20},
		"tpe:multivariate,candidates=64":   TPE{Multivariate: true, Candidates: 64},
		"random":                           Random{},
		"grid:points=5":                    Grid{Points: 5},
		"qmc:plain=true":                   QMC{Plain: true},
		"cmaes:population=8,sigma=0.3":     CMAES{Population: 8, Sigma: 0.3},
		"nsga2:crossover=0.5,mutation=0.1": NSGA2{Crossover: 0.5, Mutation: 0.1},
	} {
		got, err := Parse(text)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: error %v\n%s", text, err, diff)
		}
	}
	for _, text := range []string{"", "tp", "tpe:", "tpe:x=1", "random:seed=1", "grid:points=0", "grid:points=a", "cmaes:sigma=nan", "tpe:startup=1,startup=2",
		"tpe:univariate=perhaps", "tpe:univariate,multivariate", "nsga2:=1"} {
		if s, err := Parse(text); !errors.Is(err, study.ErrInvalid) {
			t.Errorf("%q: %v, error %v", text, s, err)
		}
	}
}

// What a branch has must not depend on which branch it is: all combinations come
// up.
func TestQMCCoversBranches(t *testing.T) {
	branch := &study.CatDist{Version: 1, Choices: []study.Choice{study.IntChoice(0), study.IntChoice(1), study.IntChoice(2)}}
	l := newLab(t, 1, 6)
	seen := map[[3]int]int{}
	for n := range uint64(240) {
		var ref study.TrialRef
		l.update(func(tx *study.Tx) (err error) {
			ref, err = tx.CreateTrial(l.id, nil)
			return err
		})
		asker := NewAsker(QMC{}, l.history(n))
		var params []study.Param
		get := func(name string, dist study.Distribution) study.Value {
			v, err := asker.Suggest(name, dist)
			if err != nil {
				t.Fatal(err)
			}
			params = append(params, study.Param{Name: name, Dist: dist, Value: v})
			return v
		}
		kind := int(get("branch", branch).Cat())
		prefix := string(rune('a' + kind))
		x := get(prefix+"x", study.FloatDist{High: 1}).F64()
		y := get(prefix+"y", study.FloatDist{High: 1}).F64()
		seen[[3]int{kind, int(2 * x), int(2 * y)}]++
		l.end(l.start(ref.ID, params), study.Complete, 0)
	}
	for kind := range 3 {
		for corner := range 4 {
			if got := seen[[3]int{kind, corner / 2, corner % 2}]; got < 8 || got > 35 {
				t.Errorf("branch %d, corner %d: %d trials of 240, want about 20", kind, corner, got)
			}
		}
	}
}
