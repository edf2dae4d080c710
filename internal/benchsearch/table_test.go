package main

import (
	"math"
	"testing"

	"github.com/foldlog/foldlog/study/sampler"
)

// The problems must have the optimum that scores are counted from, and give the
// same values again: Optuna's scores are kept by them.
func TestProblemsAreWhatTheyAre(t *testing.T) {
	for name, x := range map[string][]float64{
		"branin": {(math.Pi + 5) / 15, 2.275 / 15}, "hartmann6": {0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573},
		"rosenbrock10": {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, "rastrigin10": {1.3, -1.3, 1.3, -1.3, 1.3, -1.3, 1.3, -1.3, 1.3, -1.3},
	} {
		f := map[string]func([]float64) float64{
			"branin":    func(x []float64) float64 { return branin(15*x[0]-5, 15*x[1]) },
			"hartmann6": hartmann6, "rosenbrock10": rosenbrock, "rastrigin10": rastrigin,
		}[name]
		for _, p := range problems() {
			if p.name == name && math.Abs(f(x)-p.optimum) > 1e-4 {
				t.Errorf("%s: %v at the optimum, %v by the table", name, f(x), p.optimum)
			}
		}
	}
	for _, p := range problems() {
		_, get, failed := asker(&sampler.History{Seed: 1}, p, sampler.Random{})
		a, b := p.eval(get), p.eval(get)
		if *failed != nil || len(a) != p.objectives || a[0] != b[0] || math.IsNaN(a[0]) || a[0] == worstLoss {
			t.Errorf("%s: %v and %v, error %v", p.name, a, b, *failed)
		}
	}
}
