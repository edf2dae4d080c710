package sampler

import (
	"math"
	"slices"

	"github.com/foldlog/foldlog/study/analysis"
)

// exactObjectives is with how many objectives hypervolumes are computed: the
// work grows with the power of their number.
const exactObjectives = 3

// contributions says for each of a few loss vectors how much hypervolume the
// others leave to it: nothing if another one dominates it. The corner that
// volumes are measured from is a little beyond the worst. With more than three
// objectives, or losses that are not finite, all are alike.
func contributions(losses [][]float64) []float64 {
	out := make([]float64, len(losses))
	corner := beyond(losses)
	if corner == nil || len(corner) > exactObjectives {
		for i := range out {
			out[i] = 1
		}
		return out
	}
	whole := hypervolume(losses, corner)
	for i := range losses {
		rest := slices.Delete(slices.Clone(losses), i, i+1)
		out[i] = max(0, whole-hypervolume(rest, corner))
	}
	return out
}

// largest keeps n members of a front, one after another the one that adds the most
// hypervolume to those before it. Of a front that is far larger only the roomiest are
// looked at, and those are kept if there is no hypervolume.
func largest(losses [][]float64, front []int, n int) []int {
	const crowd = 8
	if len(front) > crowd*n {
		front = roomiest(losses, front, crowd*n)
	}
	points := make([][]float64, len(front))
	for i, k := range front {
		points[i] = losses[k]
	}
	corner := beyond(points)
	if corner == nil || len(corner) > exactObjectives {
		return roomiest(losses, front, n)
	}
	// What a point adds only falls as others are kept, so that an old gain is a
	// bound: only those that look best are worked out anew.
	gains, when := make([]float64, len(front)), make([]int, len(front))
	for i := range points {
		gains[i] = hypervolume(points[i:i+1], corner)
	}
	var kept [][]float64
	var chosen []int
	for volume := 0.0; len(chosen) < n; {
		top := 0
		for i := range gains {
			if gains[i] > gains[top] {
				top = i
			}
		}
		if when[top] < len(kept) {
			gains[top] = hypervolume(append(kept[:len(kept):len(kept)], points[top]), corner) - volume
			when[top] = len(kept)
			continue
		}
		kept, chosen = append(kept, points[top]), append(chosen, front[top])
		volume += gains[top]
		gains[top] = math.Inf(-1)
	}
	return chosen
}

// beyond is the corner for some losses, nil if there is none.
func beyond(losses [][]float64) []float64 {
	if len(losses) == 0 {
		return nil
	}
	corner := make([]float64, len(losses[0]))
	for m := range corner {
		low, high := math.Inf(1), math.Inf(-1)
		for _, l := range losses {
			low, high = min(low, l[m]), max(high, l[m])
		}
		corner[m] = high + 0.1*max(high-low, 1e-12*math.Abs(high))
		if !(math.Abs(low) < 1e100 && math.Abs(corner[m]) < 1e100) { // the product of three is finite
			return nil
		}
	}
	return corner
}

// hypervolume is the volume that some points dominate up to a corner.
func hypervolume(points [][]float64, corner []float64) float64 {
	v, _ := analysis.Hypervolume(points, corner) // losses have one shape
	return v.Value
}
