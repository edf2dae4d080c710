package analysis

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

const (
	// maxEffort is how many comparisons of points an exact computation may
	// take, some tenths of a second; fronts of some hundred points in five
	// dimensions are below it.
	maxEffort = 50_000_000
	// samples is how many places are tried where a volume is estimated.
	samples = 200_000
)

// Volume is a hypervolume.
type Volume struct {
	// Value is the volume.
	Value float64
	// Error is the standard error of an estimate, 0 if it is exact.
	Error float64
	// Points is how many points it is made of: those of the front that are
	// better than the reference everywhere.
	Points int
}

// Hypervolume is the volume of what some points, less being better, dominate up
// to a reference point. Points that are not better than the reference in every
// number add nothing, nor do those with a NaN or an infinity.
//
// It is exact: by sweeps in time n log n for two numbers and about n² at worst
// for three, for more by the algorithm of the Walking Fish Group (While, Bradstreet
// and Barone 2012), as long as that takes no more than some tenths of a second.
// Beyond, it is estimated from 200,000 random places, the same ones each time. The
// error wraps [ErrShape].
func Hypervolume(points [][]float64, reference []float64) (Volume, error) {
	return hypervolume(points, reference, maxEffort)
}

func hypervolume(points [][]float64, reference []float64, effort int) (Volume, error) {
	var inside [][]float64
	for i, p := range points {
		if len(p) != len(reference) || len(p) == 0 {
			return Volume{}, fmt.Errorf("point %d: %w: %d numbers where the reference has %d", i, ErrShape, len(p), len(reference))
		}
		better := true
		for k, v := range p {
			better = better && finite(v) && v < reference[k]
		}
		if better {
			inside = append(inside, p)
		}
	}
	front := unique(inside)
	v := Volume{Points: len(front)}
	if len(front) == 0 {
		return v, nil
	}
	w := wfg{reference: reference, effort: effort}
	if v.Value = w.volume(front); w.effort < 0 {
		v.Value, v.Error = estimate(front, reference)
	}
	return v, nil
}

// unique is the front of some points, equal ones once, sorted with the greatest
// first number first.
func unique(points [][]float64) [][]float64 {
	indices, _ := Front(points) // they have the same shape
	front := make([][]float64, len(indices))
	for i, k := range indices {
		front[i] = points[k]
	}
	slices.SortFunc(front, func(a, b []float64) int { return slices.Compare(b, a) })
	return slices.CompactFunc(front, func(a, b []float64) bool { return slices.Equal(a, b) })
}

// wfg computes volumes as long as its effort lasts.
type wfg struct {
	reference []float64
	effort    int // comparisons left; below zero the result is void
}

// volume is that of a front.
func (w *wfg) volume(front [][]float64) (sum float64) {
	switch {
	case w.effort < 0:
		return 0
	case len(front) == 1:
		return w.box(front[0])
	case len(w.reference) == 1:
		return w.reference[0] - front[len(front)-1][0]
	case len(w.reference) == 2:
		return w.area(front)
	case len(w.reference) == 3:
		return w.space(front)
	}
	for i, p := range front {
		sum += w.box(p) - w.volume(w.limited(front[i+1:], p))
	}
	return sum
}

// box is the volume of one point.
func (w *wfg) box(p []float64) float64 {
	v := 1.0
	for i, x := range p {
		v *= w.reference[i] - x
	}
	return v
}

// area sums the strips of a front of two numbers, from the right.
func (w *wfg) area(front [][]float64) (sum float64) {
	right := w.reference[0]
	for _, p := range front {
		sum += (right - p[0]) * (w.reference[1] - p[1])
		right = p[0]
	}
	return sum
}

// space sums the slices of a front of three numbers: with each point, by the
// last number, the area that is dominated grows.
func (w *wfg) space(front [][]float64) (sum float64) {
	order := slices.Clone(front)
	slices.SortFunc(order, func(a, b []float64) int { return cmp.Compare(a[2], b[2]) })
	var stairs [][]float64 // sorted by the first number, the second falling
	area := 0.0
	for i, p := range order {
		var grown float64
		stairs, grown = w.grown(stairs, p)
		area += grown
		end := w.reference[2]
		if i+1 < len(order) {
			end = order[i+1][2]
		}
		sum += area * (end - p[2])
	}
	return sum
}

// grown adds a point to stairs, and says by how much the area under them grows.
func (w *wfg) grown(stairs [][]float64, p []float64) (more [][]float64, area float64) {
	from, _ := slices.BinarySearchFunc(stairs, p[0], func(s []float64, x float64) int { return cmp.Compare(s[0], x) })
	height := w.reference[1]
	if from > 0 {
		height = stairs[from-1][1]
	}
	if from < len(stairs) && stairs[from][0] == p[0] {
		height = min(height, stairs[from][1])
	}
	if height <= p[1] {
		return stairs, 0
	}
	x, to := p[0], from
	for ; to < len(stairs) && stairs[to][1] >= p[1]; to++ {
		area += (stairs[to][0] - x) * (height - p[1])
		x, height = stairs[to][0], stairs[to][1]
	}
	end := w.reference[0]
	if to < len(stairs) {
		end = stairs[to][0]
	}
	area += (end - x) * (height - p[1])
	return slices.Replace(stairs, from, to, p), area
}

// limited is the front of points moved into the box of another one.
func (w *wfg) limited(points [][]float64, by []float64) [][]float64 {
	w.effort -= len(points) * (1 + len(points)/4)
	if w.effort < 0 {
		return nil
	}
	moved := make([][]float64, len(points))
	flat := make([]float64, len(points)*len(by))
	for i, p := range points {
		moved[i], flat = flat[:len(by)], flat[len(by):]
		for k, v := range p {
			moved[i][k] = max(v, by[k])
		}
	}
	return unique(moved)
}

// estimate tries places in the box that holds all points.
func estimate(front [][]float64, reference []float64) (value, sigma float64) {
	low := slices.Clone(front[0])
	for _, p := range front {
		for k, v := range p {
			low[k] = min(low[k], v)
		}
	}
	whole := 1.0
	for k, v := range low {
		whole *= reference[k] - v
	}
	r := rand.New(rand.NewPCG(1, uint64(len(front))))
	at, hits := make([]float64, len(low)), 0
	for range samples {
		for k, v := range low {
			at[k] = v + r.Float64()*(reference[k]-v)
		}
		if slices.ContainsFunc(front, func(p []float64) bool { return noGreater(p, at) }) {
			hits++
		}
	}
	part := float64(hits) / samples
	return part * whole, whole * math.Sqrt(part*(1-part)/samples)
}

// Reference is a reference point for some sets of points, so that their volumes
// can be compared: in each number beyond the worst of all by a tenth of the
// range, or by 1 if all are the same. Nil without points.
func Reference(sets ...[][]float64) []float64 {
	var low, high []float64
	for _, points := range sets {
		for _, p := range points {
			if low == nil {
				low, high = slices.Clone(p), slices.Clone(p)
			}
			for k, v := range p[:min(len(p), len(low))] {
				low[k], high[k] = min(low[k], v), max(high[k], v)
			}
		}
	}
	for k := range high {
		if low[k] == high[k] {
			high[k]++
		} else {
			high[k] = min(high[k]+halfRange(low[k], high[k])/5, math.MaxFloat64)
		}
	}
	return high
}
