// Package sampler suggests parameters for trials.
package sampler

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/foldlog/foldlog/study"
)

// Random draws every parameter independently and uniformly: floats and
// integers within their bounds, in the logarithm where the distribution asks
// for it, on the grid where it has a step.
type Random struct {
	// Seed, with the number of the trial, decides what is drawn: the same seed
	// gives the same suggestions, whichever process asks.
	Seed uint64
}

// Suggest draws the parameters of a space that fixed does not give, and returns
// them with the fixed ones in the order of the space. Fixed names that the space
// lacks follow with the distribution of that one value. The error, of a
// distribution that cannot be drawn from or a value outside of its
// distribution, names the parameter.
func (r Random) Suggest(space *study.Space, number uint64, fixed []study.FixedParam) ([]study.Param, error) {
	rng := rand.New(rand.NewPCG(r.Seed, number))
	given := make(map[string]study.Value, len(fixed))
	for _, f := range fixed {
		given[f.Name] = f.Value
	}
	var params []study.Param
	if space != nil {
		for _, p := range space.Params {
			// A draw is made even for a fixed parameter, so that fixing one
			// does not change the others.
			v, err := Draw(rng, p.Dist)
			if err != nil {
				return nil, fmt.Errorf("parameter %q: %w", p.Name, err)
			}
			if f, ok := given[p.Name]; ok {
				v = f
				delete(given, p.Name)
			}
			params = append(params, study.Param{Name: p.Name, Dist: p.Dist, Value: v})
		}
	}
	for _, f := range fixed {
		if v, ok := given[f.Name]; ok {
			delete(given, f.Name)
			dist, err := single(v)
			if err != nil {
				return nil, fmt.Errorf("parameter %q: %w", f.Name, err)
			}
			params = append(params, study.Param{Name: f.Name, Dist: dist, Value: v})
		}
	}
	return params, nil
}

// Draw draws one value from a distribution.
func Draw(rng *rand.Rand, dist study.Distribution) (study.Value, error) {
	switch d := dist.(type) {
	case study.FloatDist:
		return study.F64(drawFloat(rng, d)), nil
	case study.IntDist:
		return study.I64(drawInt(rng, d)), nil
	case study.BoolDist:
		return study.Bool(rng.IntN(2) == 1), nil
	case *study.CatDist:
		if len(d.Choices) > 0 {
			return study.Cat(rng.Uint64N(uint64(len(d.Choices)))), nil
		}
	}
	return study.Value{}, fmt.Errorf("%w: cannot draw from this distribution", study.ErrInvalid)
}

func drawFloat(rng *rand.Rand, d study.FloatDist) float64 {
	if d.Step > 0 {
		cells := math.Floor((d.High-d.Low)/d.Step+1e-9) + 1
		return min(d.Low+d.Step*math.Floor(rng.Float64()*cells), d.High)
	}
	u := rng.Float64()
	if d.Log {
		return clamp(math.Exp(math.Log(d.Low)+u*(math.Log(d.High)-math.Log(d.Low))), d.Low, d.High)
	}
	// Halves keep the width of the widest ranges finite.
	return clamp(2*(d.Low/2+u*(d.High/2-d.Low/2)), d.Low, d.High)
}

func drawInt(rng *rand.Rand, d study.IntDist) int64 {
	if d.Log {
		low, high := math.Log(float64(d.Low)-0.5), math.Log(float64(d.High)+0.5)
		x := math.Round(math.Exp(low + rng.Float64()*(high-low)))
		return min(max(int64(clamp(x, math.MinInt64, math.MaxInt64-1024)), d.Low), d.High)
	}
	step := uint64(max(d.Step, 1))
	cells := (uint64(d.High)-uint64(d.Low))/step + 1
	if cells == 0 { // the whole range of 64 bits
		return int64(rng.Uint64())
	}
	return int64(uint64(d.Low) + step*rng.Uint64N(cells))
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
