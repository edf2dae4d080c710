package analysis

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/foldlog/foldlog/study"
)

// Front returns the indices, ascending, of the points that no other one
// dominates, where less is better everywhere: a point dominates another if it is
// nowhere greater and somewhere less. Points that are equal are on the front
// together, points with a NaN never. It takes time n log n for two and three
// numbers, and n times the size of the front for more. The error wraps
// [ErrShape].
func Front(points [][]float64) ([]int, error) {
	if err := checkShape(points); err != nil {
		return nil, err
	}
	order := make([]int, 0, len(points))
	for i, p := range points {
		if !slices.ContainsFunc(p, func(v float64) bool { return v != v }) {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(slices.Compare(points[a], points[b]), cmp.Compare(a, b)) })
	// In this order a point can be dominated only by one before it.
	var front []int
	stairs := newStairs(points)
	for i, k := range order {
		if i > 0 && slices.Equal(points[k], points[order[i-1]]) {
			if len(front) > 0 && slices.Equal(points[k], points[front[len(front)-1]]) {
				front = append(front, k)
			}
			continue
		}
		if !stairs.cover(points[k]) {
			front = append(front, k)
			stairs.add(points[k])
		}
	}
	slices.Sort(front)
	return front, nil
}

func checkShape(points [][]float64) error {
	for i, p := range points {
		if len(p) != len(points[0]) || len(p) == 0 {
			return fmt.Errorf("point %d: %w: %d numbers where the first has %d", i, ErrShape, len(p), len(points[0]))
		}
	}
	return nil
}

// stairs are points without their first number, of which none covers another;
// those of two numbers are sorted.
type stairs struct {
	dims  int
	steps [][]float64
}

func newStairs(points [][]float64) *stairs {
	if len(points) == 0 {
		return &stairs{}
	}
	return &stairs{dims: len(points[0]) - 1}
}

// cover tells whether a point is nowhere less than one of the steps, apart from
// its first number.
func (s *stairs) cover(p []float64) bool {
	switch s.dims {
	case 0:
		return len(s.steps) > 0
	case 1, 2:
		// The last step that is no farther in the first number is the lowest.
		i := s.after(p[1])
		return i > 0 && s.steps[i-1][s.dims-1] <= p[s.dims]
	}
	return slices.ContainsFunc(s.steps, func(step []float64) bool { return noGreater(step, p[1:]) })
}

// after is the number of steps that are no farther than x.
func (s *stairs) after(x float64) int {
	i, _ := slices.BinarySearchFunc(s.steps, x, func(step []float64, x float64) int {
		if step[0] <= x {
			return -1
		}
		return 1
	})
	return i
}

// add adds a point that no step covers.
func (s *stairs) add(p []float64) {
	p = p[1:]
	if s.dims > 2 {
		s.steps = append(s.steps, p)
		return
	}
	if s.dims == 0 {
		s.steps = [][]float64{p}
		return
	}
	from, _ := slices.BinarySearchFunc(s.steps, p[0], func(step []float64, x float64) int { return cmp.Compare(step[0], x) })
	to := from
	for to < len(s.steps) && s.steps[to][s.dims-1] >= p[s.dims-1] {
		to++
	}
	s.steps = slices.Replace(s.steps, from, to, p)
}

// noGreater tells whether a is nowhere greater than b.
func noGreater(a, b []float64) bool {
	for i := range a {
		if a[i] > b[i] {
			return false
		}
	}
	return true
}

// Losses are the values of the completed trials of a study as points that are
// better where they are less: values to maximize have their sign turned. Trials
// with a NaN or an infinity are left out; how many these are is returned too.
func Losses(snap *study.Snapshot, st *study.Study) (trials []*study.Trial, points [][]float64, left int) {
	dirs := st.Config.Directions
	for t := range snap.Trials(st.ID, study.TrialFilter{States: []study.State{study.Complete}}) {
		point := make([]float64, len(dirs))
		ok := len(t.Values) == len(dirs)
		for i, dir := range dirs {
			v, is := result(t, i)
			ok = ok && is
			point[i] = loss(dir, v)
		}
		if !ok {
			left++
			continue
		}
		trials, points = append(trials, t), append(points, point)
	}
	return trials, points, left
}
