package sampler

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/foldlog/foldlog/study"
)

// DefaultGridPoints is how many points [Grid] gives a range without a step.
const DefaultGridPoints = 10

// Grid tries every combination of the parameters' values once, in an order that
// the study's seed decides, and then all of them again. A range of numbers
// without a step, or with more steps than that, has Points points from end to
// end, evenly spaced in the logarithm where the distribution asks for it.
//
// Which points have been tried follows from the trials; failed ones do not
// count, nor do values that are not on the grid.
type Grid struct {
	// Points is how many points a range gets, less than 1 for [DefaultGridPoints].
	Points int
}

var _ Sampler = Grid{}

const gridStream = 0xaf251af3b0f025b5

// Sample implements [Sampler]. The error, of more than 2^62 points, wraps
// [study.ErrInvalid].
func (s Grid) Sample(h *History, space []study.SpaceParam) ([]study.Value, error) {
	points := s.Points
	if points < 1 {
		points = DefaultGridPoints
	}
	g, err := newGrid(space, points)
	if err != nil {
		return nil, err
	}
	return g.values(g.next(h, g.tried(h, space))), nil
}

// grid numbers the combinations of the values of some axes.
type grid struct {
	axes  []axis
	sizes []uint64
	// points are the values of every axis, places where they are, ascending.
	points [][]study.Value
	places [][]float64
	size   uint64
}

func newGrid(space []study.SpaceParam, points int) (*grid, error) {
	g := &grid{axes: newAxes(space), size: 1}
	for i := range g.axes {
		list := g.axes[i].points(points)
		g.points = append(g.points, list)
		places := make([]float64, len(list))
		for k, v := range list {
			places[k], _ = g.axes[i].place(v)
		}
		g.places = append(g.places, places)
		g.sizes = append(g.sizes, uint64(len(list)))
		hi, lo := bits.Mul64(g.size, uint64(len(list)))
		if hi != 0 || lo > 1<<62 {
			return nil, fmt.Errorf("%w: the grid has more than 2^62 points", study.ErrInvalid)
		}
		g.size = lo
	}
	return g, nil
}

// points are the values of an axis on a grid, each once.
func (a *axis) points(n int) []study.Value {
	var list []study.Value
	switch {
	case a.choices > 0:
		for i := range a.choices {
			list = append(list, a.value(float64(i)))
		}
		return list
	case a.cells == 1:
		return []study.Value{a.value(0.5)}
	case a.cells > 0 && a.cells <= float64(n):
		for i := range int(a.cells) {
			list = append(list, a.value((float64(i)+0.5)/a.cells))
		}
		return list
	case n == 1:
		return []study.Value{a.value(0.5)}
	}
	for i := range n {
		v := a.value(float64(i) / float64(n-1))
		if k := len(list); k == 0 || !list[k-1].Equal(v) {
			list = append(list, v)
		}
	}
	return list
}

// tried counts how often each point was tried.
func (g *grid) tried(h *History, space []study.SpaceParam) map[uint64]int {
	tried := map[uint64]int{}
	row, r := make([]float64, len(g.axes)), newReader(space, g.axes)
	for _, t := range h.Trials {
		if t.State == study.Failed || !r.read(t, row) {
			continue
		}
		if n, ok := g.number(row); ok {
			tried[n]++
		}
	}
	return tried
}

// number is the number of the point at a place, if there is one.
func (g *grid) number(row []float64) (n uint64, ok bool) {
	const rounding = 1e-9 // logarithms differ between processors
	for i, u := range row {
		k, _ := slices.BinarySearch(g.places[i], u-rounding)
		if k == len(g.places[i]) || g.places[i][k] > u+rounding {
			return 0, false
		}
		n = n*g.sizes[i] + uint64(k)
	}
	return n, true
}

// next is the first point in the seed's order that was tried least. The order
// is an arithmetic sequence modulo the size, whose step has no factor in common
// with it.
func (g *grid) next(h *History, tried map[uint64]int) uint64 {
	least := 0
	if uint64(len(tried)) >= g.size {
		least = math.MaxInt
		for _, n := range tried {
			least = min(least, n)
		}
	}
	rng := rand.New(rand.NewPCG(h.Seed^gridStream, 0))
	at, step := rng.Uint64N(g.size), 1+rng.Uint64N(g.size)
	for gcd(step, g.size) != 1 {
		step++
	}
	for tried[at] > least {
		at = (at + step) % g.size // both below 2^63
	}
	return at
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func (g *grid) values(n uint64) []study.Value {
	values := make([]study.Value, len(g.axes))
	for i := len(g.axes) - 1; i >= 0; i-- {
		values[i] = g.points[i][n%g.sizes[i]]
		n /= g.sizes[i]
	}
	return values
}
