package sampler

import (
	"cmp"
	"math"
	"slices"

	"github.com/foldlog/foldlog/study"
)

// usable tells whether a trial has a result to learn from: as many values as
// there are objectives. NaN is a result, the worst.
func (h *History) usable(t *study.Trial) bool {
	return t.State == study.Complete && len(t.Values) == len(h.Directions)
}

// losses are the values of a trial turned so that less is better, NaN as
// +Inf: whoever sorts them needs no other rule.
func (h *History) losses(t *study.Trial) []float64 {
	out := make([]float64, len(t.Values))
	for i, v := range t.Values {
		out[i] = loss(h.Directions[i], v)
	}
	return out
}

func loss(dir study.Direction, v float64) float64 {
	switch {
	case math.IsNaN(v):
		return math.Inf(1)
	case dir == study.Maximize:
		return -v
	}
	return v
}

// dominates tells whether a is at least as good as b in everything and better
// in something. Less is better.
func dominates(a, b []float64) bool {
	better := false
	for i := range a {
		if a[i] > b[i] {
			return false
		}
		better = better || a[i] < b[i]
	}
	return better
}

// thinning chooses n members of a front, fewer than it has.
type thinning func(losses [][]float64, front []int, n int) []int

// bestOf returns the indices of the n best loss vectors: front after front of
// those that nothing dominates, and those that thin chooses of the front that does
// not fit whole. Equal ones keep their order.
func bestOf(losses [][]float64, n int, thin thinning) (chosen []int, fronts [][]int) {
	left := make([]int, len(losses))
	for i := range left {
		left[i] = i
	}
	slices.SortStableFunc(left, func(a, b int) int { return slices.Compare(losses[a], losses[b]) })
	for len(chosen) < n && len(left) > 0 {
		front, rest := peel(losses, left)
		left = rest
		if len(chosen)+len(front) > n {
			front = thin(losses, front, n-len(chosen))
		}
		chosen = append(chosen, front...)
		fronts = append(fronts, front)
	}
	return chosen, fronts
}

// peel splits off the front. Sorted by vector, one can be dominated only by one
// before it, and then by one on the front.
func peel(losses [][]float64, sorted []int) (front, rest []int) {
	for _, i := range sorted {
		rivals := front
		if len(losses[i]) <= 2 && len(front) > 0 {
			rivals = front[len(front)-1:] // the best in the last objective so far
		}
		if slices.ContainsFunc(rivals, func(k int) bool { return dominates(losses[k], losses[i]) }) {
			rest = append(rest, i)
		} else {
			front = append(front, i)
		}
	}
	return front, rest
}

// roomiest keeps the n members of a front with the largest crowding distance,
// taking the most crowded away one after another.
func roomiest(losses [][]float64, front []int, n int) []int {
	front = slices.Clone(front)
	for len(front) > n {
		room := crowding(losses, front)
		worst := 0
		for i := range room {
			if room[i] <= room[worst] {
				worst = i
			}
		}
		drop := 1
		if len(front) > 4*n+64 { // far too many: half of the excess at once
			drop = (len(front) - n) / 2
		}
		if drop == 1 {
			front = slices.Delete(front, worst, worst+1)
			continue
		}
		order := make([]int, len(front))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(room[b], room[a]) })
		kept := order[:len(order)-drop]
		slices.Sort(kept)
		for i, k := range kept {
			front[i] = front[k]
		}
		front = front[:len(kept)]
	}
	return front
}

// crowding is the crowding distance of every member of a front: the sum over
// the objectives of the gap between its neighbours, in units of the front's
// width. The ends have +Inf.
func crowding(losses [][]float64, front []int) []float64 {
	room := make([]float64, len(front))
	order := make([]int, len(front))
	for m := range losses[front[0]] {
		for i := range order {
			order[i] = i
		}
		at := func(i int) float64 { return losses[front[order[i]]][m] }
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(losses[front[a]][m], losses[front[b]][m]) })
		last := len(order) - 1
		width := at(last) - at(0)
		room[order[0]], room[order[last]] = math.Inf(1), math.Inf(1)
		if !(width > 0) || math.IsInf(width, 0) {
			continue
		}
		for i := 1; i < last; i++ {
			room[order[i]] += (at(i+1) - at(i-1)) / width
		}
	}
	return room
}
