package study

import (
	"cmp"
	"math"
	"slices"
)

// Best returns the best completed trials of a study.
//
// With one objective that is one trial: the one whose value is lowest
// (Minimize) or highest (Maximize); of equal values the lower number wins; the
// infinities are ordinary values; NaN is never best. With several objectives
// it is the Pareto front by number: every trial that no other one dominates. A
// trial dominates another if it is at least as good in every objective and
// better in one; trials that have a NaN among their values are left out. Equal
// value vectors are all on the front. Nothing is returned if no trial
// qualifies. The error wraps [ErrNotFound].
func (s *Snapshot) Best(study StudyID) ([]*Trial, error) {
	st, err := s.st.study(study)
	if err != nil {
		return nil, err
	}
	dirs := st.Config.Directions
	var fit []*Trial
	var best *Trial
	for t := range s.Trials(study, TrialFilter{States: []State{Complete}}) {
		switch {
		case len(t.Values) != len(dirs) || slices.ContainsFunc(t.Values, math.IsNaN):
		case len(dirs) > 1:
			fit = append(fit, t)
		case len(dirs) == 1 && (best == nil || CompareValues(dirs[0], t.Values[0], best.Values[0]) < 0):
			best = t
		}
	}
	if best != nil {
		return []*Trial{best}, nil
	}
	return front(fit, dirs), nil
}

// Ranked returns the completed trials of a study from best to worst by one
// objective, ties by number; trials whose value is NaN or missing come last.
// The error wraps [ErrNotFound].
func (s *Snapshot) Ranked(study StudyID, objective int) ([]*Trial, error) {
	st, err := s.st.study(study)
	if err != nil {
		return nil, err
	}
	dir := Minimize
	if objective < len(st.Config.Directions) {
		dir = st.Config.Directions[objective]
	}
	ts := slices.Collect(s.Trials(study, TrialFilter{States: []State{Complete}}))
	value := func(t *Trial) float64 {
		if objective >= len(t.Values) {
			return math.NaN()
		}
		return t.Values[objective]
	}
	slices.SortStableFunc(ts, func(a, b *Trial) int { return CompareValues(dir, value(a), value(b)) })
	return ts, nil
}

// CompareValues is negative if a is better than b, positive if worse. NaN is
// worse than everything and equal to itself; -0 equals 0.
func CompareValues(dir Direction, a, b float64) int {
	switch an, bn := math.IsNaN(a), math.IsNaN(b); {
	case an && bn:
		return 0
	case an:
		return 1
	case bn:
		return -1
	}
	if dir == Maximize {
		a, b = b, a
	}
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// front keeps the trials that no other one dominates. Sorted by value vector,
// a trial can be dominated only by one before it, and then by one that is
// itself on the front.
func front(ts []*Trial, dirs []Direction) []*Trial {
	slices.SortStableFunc(ts, func(a, b *Trial) int {
		for i, d := range dirs {
			if c := CompareValues(d, a.Values[i], b.Values[i]); c != 0 {
				return c
			}
		}
		return 0
	})
	var out []*Trial
	for _, t := range ts {
		rivals := out
		if len(dirs) == 2 && len(out) > 0 {
			rivals = out[len(out)-1:] // the best so far in the second objective
		}
		dominated := slices.ContainsFunc(rivals, func(o *Trial) bool { return dominates(o.Values, t.Values, dirs) })
		if !dominated {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b *Trial) int { return cmp.Compare(a.Number, b.Number) })
	return out
}

func dominates(a, b []float64, dirs []Direction) bool {
	better := false
	for i, d := range dirs {
		switch c := CompareValues(d, a[i], b[i]); {
		case c > 0:
			return false
		case c < 0:
			better = true
		}
	}
	return better
}
