package sampler

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/foldlog/foldlog/study"
)

// DefaultPopulation is how many parents [NSGA2] keeps.
const DefaultPopulation = 20

// NSGA2 is the non-dominated sorting genetic algorithm II in its steady-state
// form: the parents are the best of all completed trials, by front and crowding
// distance, and every suggestion is a child of two of them. So its population
// follows from the trials and is not stored, and no worker waits for the end of
// a generation. It takes one objective or several.
//
// Failed and pruned trials and those with a NaN among their values are no
// parents. Until there are enough parents it draws as [Random] does.
type NSGA2 struct {
	// Population is the number of parents, less than 1 for [DefaultPopulation].
	Population int
	// Crossover is the probability that a child has two parents rather than
	// one, 0 for 0.9.
	Crossover float64
	// Mutation is the probability that a parameter is changed, 0 for one of
	// them on average.
	Mutation float64
}

var _ Sampler = NSGA2{}

const nsgaStream = 0x8cb92ba72f3d8dd7

// Sample implements [Sampler].
func (s NSGA2) Sample(h *History, space []study.SpaceParam) ([]study.Value, error) {
	if len(space) == 0 {
		return nil, nil
	}
	size, cross, mutate := s.Population, s.Crossover, s.Mutation
	if size < 1 {
		size = DefaultPopulation
	}
	if !(cross > 0) {
		cross = 0.9
	}
	if !(mutate > 0) {
		mutate = 1 / float64(len(space))
	}
	axes := newAxes(space)
	pool := newPool(h, space, axes, size)
	if len(pool.rows) < size {
		return Random{}.Sample(h, space)
	}
	rng := h.rng(nsgaStream)
	child := pool.child(rng, axes, cross)
	for i := range axes {
		if rng.Float64() < mutate {
			child[i] = mutateAxis(rng, &axes[i], child[i])
		}
	}
	return valuesAt(axes, child), nil
}

// pool are the parents: their places, fronts and room.
type pool struct {
	rows [][]float64
	rank []int
	room []float64
}

func newPool(h *History, space []study.SpaceParam, axes []axis, size int) *pool {
	var rows, losses [][]float64
	r := newReader(space, axes)
	for _, t := range h.Trials {
		if !h.usable(t) || slices.ContainsFunc(t.Values, math.IsNaN) {
			continue
		}
		row := make([]float64, len(axes))
		if r.read(t, row) {
			rows, losses = append(rows, row), append(losses, h.losses(t))
		}
	}
	p := new(pool)
	_, fronts := bestOf(losses, size, roomiest)
	for rank, front := range fronts {
		room := crowding(losses, front)
		for i, k := range front {
			p.rows = append(p.rows, rows[k])
			p.rank = append(p.rank, rank)
			p.room = append(p.room, room[i])
		}
	}
	return p
}

// parent is the better of two parents drawn at random.
func (p *pool) parent(rng *rand.Rand) []float64 {
	a, b := rng.IntN(len(p.rows)), rng.IntN(len(p.rows))
	if p.rank[b] < p.rank[a] || p.rank[b] == p.rank[a] && p.room[b] > p.room[a] {
		a = b
	}
	return p.rows[a]
}

// child mixes two parents: numbers by simulated binary crossover, choices by a
// coin.
func (p *pool) child(rng *rand.Rand, axes []axis, cross float64) []float64 {
	a, b := p.parent(rng), p.parent(rng)
	child := make([]float64, len(axes))
	copy(child, a)
	if rng.Float64() >= cross {
		return child
	}
	for i := range axes {
		switch swap := rng.IntN(2) == 1; {
		case axes[i].choices > 0:
			if swap {
				child[i] = b[i]
			}
		case axes[i].numeric():
			child[i] = blend(rng, a[i], b[i], swap)
		}
	}
	return child
}

// spreadIndex says how close children stay to their parents.
const spreadIndex = 15

// blend is simulated binary crossover, after K. Deb and R. B. Agrawal (1995).
func blend(rng *rand.Rand, a, b float64, swap bool) float64 {
	u := rng.Float64()
	var beta float64
	if u < 0.5 {
		beta = math.Pow(2*u, 1.0/(spreadIndex+1))
	} else {
		beta = math.Pow(1/(2*(1-u)), 1.0/(spreadIndex+1))
	}
	if swap {
		a, b = b, a
	}
	return clamp(0.5*((1+beta)*a+(1-beta)*b), 0, 1)
}

// mutateAxis is polynomial mutation of a number; a choice is drawn anew.
func mutateAxis(rng *rand.Rand, a *axis, x float64) float64 {
	switch {
	case a.choices > 0:
		return float64(rng.IntN(a.choices))
	case !a.numeric():
		return x
	}
	u := rng.Float64()
	const power = 1.0 / (spreadIndex + 1)
	if u < 0.5 {
		x += (math.Pow(2*u+(1-2*u)*math.Pow(1-x, spreadIndex+1), power) - 1)
	} else {
		x += (1 - math.Pow(2*(1-u)+(2*u-1)*math.Pow(x, spreadIndex+1), power))
	}
	return clamp(x, 0, 1)
}
