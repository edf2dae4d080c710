// Package sampler suggests parameters for trials: at random ([Random]), on a
// grid ([Grid]), evenly ([QMC]), from a model of what was good ([TPE],
// [CMAES]), or by evolution ([NSGA2]).
package sampler

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/foldlog/foldlog/study"
)

// Random draws every parameter independently and uniformly: floats and
// integers within their bounds, in the logarithm where the distribution asks
// for it, on the grid where it has a step. The study's seed and the number of
// the trial decide what is drawn.
type Random struct{}

var _ Sampler = Random{}

// Sample draws one value after the other. The history's trials do not matter.
func (Random) Sample(h *History, space []study.SpaceParam) ([]study.Value, error) {
	rng := h.rng(0)
	values := make([]study.Value, len(space))
	for i, p := range space {
		v, err := draw(rng, p.Dist)
		if err != nil {
			return nil, fmt.Errorf("parameter %q: %w", p.Name, err)
		}
		values[i] = v
	}
	return values, nil
}

// draw draws one value from a distribution. The error wraps [study.ErrInvalid].
func draw(rng *rand.Rand, dist study.Distribution) (study.Value, error) {
	if err := checkDist(dist); err != nil {
		return study.Value{}, err
	}
	switch d := dist.(type) {
	case study.FloatDist:
		return study.F64(drawFloat(rng, d)), nil
	case study.IntDist:
		return study.I64(drawInt(rng, d)), nil
	case study.BoolDist:
		return study.Bool(rng.IntN(2) == 1), nil
	}
	return study.Cat(rng.Uint64N(uint64(len(dist.(*study.CatDist).Choices)))), nil
}

// checkDist refuses a distribution that nothing can be drawn from.
func checkDist(dist study.Distribution) error {
	ok := false
	switch d := dist.(type) {
	case study.FloatDist:
		finite := !math.IsInf(d.Low, 0) && !math.IsInf(d.High, 0) && !math.IsInf(d.Step, 0)
		ok = finite && d.Low <= d.High && d.Step >= 0 && !(d.Log && (d.Low <= 0 || d.Step > 0))
	case study.IntDist:
		ok = d.Low <= d.High && d.Step >= 0 && !(d.Log && (d.Low <= 0 || d.Step > 1))
	case study.BoolDist:
		ok = true
	case *study.CatDist:
		ok = d != nil && len(d.Choices) > 0
	}
	if !ok {
		return fmt.Errorf("%w: cannot draw from this distribution", study.ErrInvalid)
	}
	return nil
}

func drawFloat(rng *rand.Rand, d study.FloatDist) float64 {
	d = countable(d)
	u := rng.Float64()
	if d.Step > 0 {
		return stepped(d, math.Floor(u*floatCells(d)))
	}
	return floatAt(d, u)
}

// floatCells is the number of points on a grid of floats. Halves keep the width
// of the widest ranges finite. A last point that rounding alone has put beyond the
// end belongs to it.
func floatCells(d study.FloatDist) float64 {
	rounding := min(1e-9+0x1p-52*max(math.Abs(d.Low), math.Abs(d.High))/d.Step, 0.5)
	return math.Floor(2*((d.High/2-d.Low/2)/d.Step)+rounding) + 1
}

// countable takes away a step that is so fine that floats cannot count the points.
func countable(d study.FloatDist) study.FloatDist {
	if d.Step > 0 && !(floatCells(d) < 1<<53) {
		d.Step = 0
	}
	return d
}

// stepped is point k of a grid of floats: of the floats that close to it, the
// one that people would write. 3 steps of 0.1 are 0.3, not 0.30000000000000004.
func stepped(d study.FloatDist, k float64) float64 {
	k = min(k, floatCells(d)-1)
	x := d.Low + d.Step*k
	if math.IsInf(x, 0) { // a range that is wider than the largest float
		x = 2 * (d.Low/2 + d.Step/2*k)
	}
	if digits := max(decimals(d.Low), decimals(d.Step)); digits <= maxDecimals {
		if r, err := strconv.ParseFloat(strconv.FormatFloat(x, 'f', digits, 64), 64); err == nil && math.Abs(r-x) <= 1e-9*d.Step {
			x = r
		}
	}
	return clamp(x, d.Low, d.High)
}

// maxDecimals is how many decimals a float has that somebody wrote.
const maxDecimals = 17

// decimals is how many decimals the shortest spelling of a float has.
func decimals(x float64) int {
	var buf [64]byte
	text := strconv.AppendFloat(buf[:0], x, 'e', -1, 64)
	mantissa, exponent, _ := strings.Cut(string(text), "e")
	_, fraction, _ := strings.Cut(mantissa, ".")
	e, err := strconv.Atoi(exponent)
	if err != nil {
		return maxDecimals + 1
	}
	return max(0, len(fraction)-e)
}

// floatAt is the float at u, from 0 to 1, of a range without a step.
func floatAt(d study.FloatDist, u float64) float64 {
	if d.Log {
		return clamp(math.Exp(logOf(d.Low)+u*(logOf(d.High)-logOf(d.Low))), d.Low, d.High)
	}
	return clamp(2*(d.Low/2+u*(d.High/2-d.Low/2)), d.Low, d.High)
}

func drawInt(rng *rand.Rand, d study.IntDist) int64 {
	if d.Log {
		return logIntAt(d, rng.Float64())
	}
	step := uint64(max(d.Step, 1))
	cells := (uint64(d.High)-uint64(d.Low))/step + 1
	if cells == 0 { // the whole range of 64 bits
		return int64(rng.Uint64())
	}
	return int64(uint64(d.Low) + step*rng.Uint64N(cells))
}

// logIntAt is the integer at u, from 0 to 1, of a logarithmic range.
func logIntAt(d study.IntDist, u float64) int64 {
	low, high := math.Log(float64(d.Low)-0.5), math.Log(float64(d.High)+0.5)
	x := math.Round(math.Exp(low + u*(high-low)))
	return min(max(int64(clamp(x, math.MinInt64, math.MaxInt64-1024)), d.Low), d.High)
}

func clamp(x, low, high float64) float64 { return min(max(x, low), high) }

// single is the distribution that holds one value.
func single(v study.Value) (study.Distribution, error) {
	switch v.Kind() {
	case study.ValueF64:
		return study.FloatDist{Low: v.F64(), High: v.F64()}, nil
	case study.ValueI64:
		return study.IntDist{Low: v.I64(), High: v.I64(), Step: 1}, nil
	case study.ValueBool:
		return study.BoolDist{}, nil
	}
	return nil, fmt.Errorf("%w: the space does not have it", study.ErrInvalid)
}

// sameDist tells whether two distributions are the same.
func sameDist(a, b study.Distribution) bool {
	x, isCat := a.(*study.CatDist)
	y, both := b.(*study.CatDist)
	if !isCat && !both {
		return a == b
	}
	return isCat && both && (x == y || slices.Equal(x.Choices, y.Choices))
}
