package analysis

import (
	"cmp"
	"math"
	"slices"
)

// Difference is the Mann-Whitney test of two sets of numbers: lower is the
// chance that a number of a is less than one of b, equal ones counting half, and
// p is how often chance alone makes it so far from one half (two-sided, normal
// approximation with ties). NaNs are left out. Both are NaN if a set is empty; p
// means little below about eight numbers each.
func Difference(a, b []float64) (lower, p float64) {
	type entry struct {
		v float64
		a bool
	}
	var all []entry
	na, nb := 0.0, 0.0
	for _, v := range a {
		if v == v {
			all, na = append(all, entry{v, true}), na+1
		}
	}
	for _, v := range b {
		if v == v {
			all, nb = append(all, entry{v, false}), nb+1
		}
	}
	if na == 0 || nb == 0 {
		return math.NaN(), math.NaN()
	}
	slices.SortFunc(all, func(x, y entry) int { return cmp.Compare(x.v, y.v) })
	ranks, ties, n := 0.0, 0.0, na+nb
	for i := 0; i < len(all); {
		j := i + 1
		for j < len(all) && all[j].v == all[i].v {
			j++
		}
		for _, e := range all[i:j] {
			if e.a {
				ranks += float64(i+j+1) / 2
			}
		}
		t := float64(j - i)
		ties += t*t*t - t
		i = j
	}
	u := ranks - na*(na+1)/2 // pairs in which the number of a is the greater one
	sigma := math.Sqrt(na * nb / 12 * (n + 1 - ties/(n*(n-1))))
	if sigma == 0 || sigma != sigma {
		return 1 - u/(na*nb), 1
	}
	return 1 - u/(na*nb), math.Erfc(max(math.Abs(u-na*nb/2)-0.5, 0) / sigma / math.Sqrt2)
}
