package sampler

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

func TestHypervolumes(t *testing.T) {
	for name, c := range map[string]struct {
		points [][]float64
		corner []float64
		want   float64
	}{
		"nothing":            {nil, []float64{1, 1}, 0},
		"one axis":           {[][]float64{{3}, {1}, {2}}, []float64{4}, 3},
		"a square":           {[][]float64{{0, 0}}, []float64{2, 2}, 4},
		"stairs":             {[][]float64{{0, 2}, {1, 1}, {2, 0}}, []float64{3, 3}, 6},
		"one that dominates": {[][]float64{{0, 0}, {1, 1}}, []float64{2, 2}, 4},
		"the same twice":     {[][]float64{{1, 1}, {1, 1}}, []float64{2, 2}, 1},
		"a cube and a slab":  {[][]float64{{1, 1, 1}, {0, 0, 2}}, []float64{3, 3, 3}, 8 + 5},
	} {
		if got := hypervolume(c.points, c.corner); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestContributions(t *testing.T) {
	inf := math.Inf(1)
	for name, c := range map[string]struct{ losses, want [][]float64 }{
		"a front and one behind it": {[][]float64{{0, 10}, {5, 5}, {10, 0}, {10, 10}}, [][]float64{{5, 25, 5, 0}}},
		"not finite":                {[][]float64{{0, inf}, {1, 1}}, [][]float64{{1, 1}}},
		"four objectives":           {[][]float64{{0, 1, 2, 3}, {1, 2, 3, 4}}, [][]float64{{1, 1}}},
		"nothing":                   {nil, [][]float64{{}}},
	} {
		if diff := cmp.Diff(c.want[0], contributions(c.losses), cmpopts.EquateApprox(0, 1e-9)); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

// What single points add cannot be more than there is, and one that is dominated
// adds nothing.
func TestContributionsAddUpToNoMoreThanTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		axes := rapid.IntRange(1, 3).Draw(t, "axes")
		losses := rapid.SliceOfN(rapid.SliceOfN(rapid.Float64Range(-10, 10), axes, axes), 1, 12).Draw(t, "losses")
		whole, sum := hypervolume(losses, beyond(losses)), 0.0
		for i, c := range contributions(losses) {
			sum += c
			for _, other := range losses {
				if dominates(other, losses[i]) && c > 1e-9*whole {
					t.Fatalf("%v adds %v, and %v dominates it", losses[i], c, other)
				}
			}
		}
		if sum > whole*(1+1e-9) {
			t.Fatalf("%v add %v to %v", losses, sum, whole)
		}
	})
}

// A gain that is out of date must not change what is kept.
func TestTheLargestAreKeptOneAfterAnother(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		axes := rapid.IntRange(2, 3).Draw(t, "axes")
		losses := rapid.SliceOfN(rapid.SliceOfN(rapid.Float64Range(-10, 10), axes, axes), 1, 12).Draw(t, "losses")
		front := make([]int, len(losses))
		for i := range front {
			front[i] = i
		}
		n := rapid.IntRange(min(2, len(losses)), len(losses)).Draw(t, "n") // of a crowd not all are looked at
		corner := beyond(losses)
		var kept [][]float64
		for _, k := range largest(losses, front, n) {
			most := 0.0
			for _, l := range losses {
				most = max(most, hypervolume(append(slices.Clone(kept), l), corner))
			}
			kept = append(kept, losses[k])
			if got := hypervolume(kept, corner); got < most*(1-1e-9) {
				t.Fatalf("%v as the last: %v, and another one would give %v", losses[k], got, most)
			}
		}
		if len(kept) != n {
			t.Fatalf("%d kept, want %d", len(kept), n)
		}
	})
}

func TestTheGoodTrialsAreFromTheWholeFront(t *testing.T) {
	l := newLab(t, 2, 1, floatParams(1, 0, 1)...)
	l.minimize(Random{}, 100, func(x []float64) []float64 {
		if x[0] < 0.2 { // the front
			return []float64{5 * x[0], 1 - 5*x[0]}
		}
		return []float64{2, 2}
	})
	good, _ := l.history(100).split()
	low, high := 1.0, 0.0
	for _, trial := range good {
		low, high = min(low, trial.Values[0]), max(high, trial.Values[0])
	}
	if len(good) != 10 || low > 0.2 || high < 0.8 {
		t.Errorf("%d good trials, from %.2f to %.2f of the front", len(good), low, high)
	}
}

func TestHugeLossesAreAllAlike(t *testing.T) {
	const huge = 1e120 // three of them multiplied are no float
	losses := [][]float64{{0, huge, 0}, {huge, 0, 0}, {0, 0, huge}}
	if diff := cmp.Diff([]float64{1, 1, 1}, contributions(losses)); diff != "" {
		t.Error(diff)
	}
	chosen := largest(losses, []int{0, 1, 2}, 2)
	if len(chosen) != 2 || chosen[0] == chosen[1] {
		t.Errorf("chosen are %v", chosen)
	}
}
