package sampler

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/foldlog/foldlog/study"
)

// CMAES is the covariance matrix adaptation evolution strategy, for studies
// with one objective and mostly numbers. It starts in the middle of the space.
//
// Its state is not stored: it follows from the completed trials, which make up
// the generations in the order of their numbers. Trials that come out of order,
// were enqueued, or drawn before the last generation was complete, are taken in
// as points from outside; failed and pruned ones are left out; NaN is the worst
// value. When the steps have become too small it starts again elsewhere with
// twice the population.
//
// The space has at most 500 numbers. Parameters that are choices, and those that not every completed trial has,
// come from [TPE], one by one.
type CMAES struct {
	// Population is the size of a generation, less than 2 for 4+3 ln(d) with d numeric
	// parameters.
	Population int
	// Sigma is the first step size in parts of the range, above 0; else it is
	// [DefaultSigma].
	Sigma float64
}

// maxEvolved is how many numeric parameters there may be: the work for each
// generation grows with the cube of their number.
const maxEvolved = 500

// DefaultSigma is the first step size of [CMAES], in parts of the range.
const DefaultSigma = 0.1

var _ Sampler = CMAES{}

const cmaStream = 0xd1b54a32d192ed03

// Sample implements [Sampler]. The error, of a study with several objectives or
// too many numbers, wraps [study.ErrInvalid].
func (s CMAES) Sample(h *History, space []study.SpaceParam) ([]study.Value, error) {
	if err := oneObjective("cmaes", h); err != nil {
		return nil, err
	}
	values, err := TPE{Univariate: true}.Sample(h, space)
	if err != nil {
		return nil, err
	}
	var numbers []study.SpaceParam
	var where []int
	for i, p := range space {
		if a := newAxis(p.Dist); a.numeric() {
			numbers, where = append(numbers, p), append(where, i)
		}
	}
	if len(numbers) == 0 {
		return values, nil
	}
	if len(numbers) > maxEvolved {
		return nil, fmt.Errorf("%w: sampler cmaes works on at most %d numbers, the space has %d", study.ErrInvalid, maxEvolved, len(numbers))
	}
	axes := newAxes(numbers)
	e := s.replay(h, numbers, axes)
	row := e.draw(h.rng(cmaStream), axes)
	for i, at := range where {
		values[at] = axes[i].value(row[i])
	}
	return values, nil
}

// replay derives the state from the trials.
func (s CMAES) replay(h *History, space []study.SpaceParam, axes []axis) *evolution {
	d := len(axes)
	lambda, sigma := s.Population, s.Sigma
	if lambda < 2 {
		lambda = populationSize(d)
	}
	if !(sigma > 0) {
		sigma = DefaultSigma
	}
	mean := make([]float64, d)
	for i := range mean {
		mean[i] = 0.5
	}
	e := newEvolution(d, lambda, mean, sigma)
	restarts := rand.New(rand.NewPCG(h.Seed^cmaStream, math.MaxUint64))
	var generation []point
	r := newReader(space, axes)
	for _, t := range h.Trials {
		if !h.usable(t) {
			continue
		}
		x := make([]float64, d)
		if !r.read(t, x) {
			continue
		}
		generation = append(generation, point{x, loss(h.Directions[0], t.Values[0])})
		if len(generation) < e.lambda {
			continue
		}
		if !e.tell(generation) {
			mean := make([]float64, d)
			for i := range mean {
				mean[i] = restarts.Float64()
			}
			e = newEvolution(d, min(2*e.lambda, 1<<16), mean, sigma)
		}
		generation = generation[:0]
	}
	return e
}

// draw draws a point: within the cube if some tries find one, else on its edge.
// On a grid the steps do not get so small that no neighbour is ever tried.
func (e *evolution) draw(rng *rand.Rand, axes []axis) []float64 {
	x, z := make([]float64, e.d), make([]float64, e.d)
	for range 100 {
		for i := range z {
			z[i] = rng.NormFloat64()
		}
		inside := true
		for i, y := range e.stretch(z) {
			x[i] = e.mean[i] + e.sigma*y
			if c := axes[i].cells; c > 0 {
				own, least := e.sigma*math.Sqrt(e.cov.At(i, i)), 0.4/c
				x[i] += rng.NormFloat64() * math.Sqrt(max(0, least*least-own*own))
			}
			inside = inside && x[i] >= 0 && x[i] <= 1
		}
		if inside {
			return x
		}
	}
	for i := range x {
		x[i] = clamp(x[i], 0, 1)
	}
	return x
}
