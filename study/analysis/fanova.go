package analysis

import (
	"math"
	"slices"
)

// lookedAt is how many trials stand for those that have a parameter which others
// lack.
const lookedAt = 128

// surface is a tree as a function over the whole space: the variance, and how
// much of it each parameter makes by itself.
type surface struct {
	forest   *forest
	tree     *tree
	cuts     [][]float64 // of each numeric column, with 0 and 1 at the ends
	lo, hi   []int32     // the box of the node that is being visited: between which cuts
	set      []uint64    // and of which categories
	narrowed []int32     // how often the box has been narrowed in a column
	used     []int32     // the columns in which it has
	steps    [][]float64 // of each column: the marginal, by differences (numbers) or by category
	mean     float64
	square   float64
}

func newSurface(f *forest) *surface {
	n := len(f.columns)
	return &surface{forest: f, cuts: make([][]float64, n), lo: make([]int32, n), hi: make([]int32, n),
		set: make([]uint64, n), narrowed: make([]int32, n), steps: make([][]float64, n)}
}

// variances computes the variance of a tree over the space, every point as
// likely as any other, and of the marginal of each column.
func (s *surface) variances(t *tree, parts []float64) (whole float64) {
	s.tree, s.mean, s.square = t, 0, 0
	s.begin()
	s.visit(0, 1)
	whole = s.square - s.mean*s.mean
	for i, c := range s.forest.columns {
		parts[i] = 0
		switch {
		case !c.varies:
		case c.absent > 0:
			parts[i] = s.conditional(int32(i))
		case c.numeric:
			parts[i] = s.ofNumbers(i, 0)
		default:
			parts[i] = s.ofCategories(i, len(c.mass))
		}
	}
	return whole
}

// begin collects the cuts, and begins with the whole space as the box.
func (s *surface) begin() {
	for i, c := range s.forest.columns {
		s.cuts[i] = append(s.cuts[i][:0], 0)
		s.narrowed[i], s.set[i] = 0, math.MaxUint64
		s.steps[i] = s.steps[i][:0]
		if !c.numeric {
			s.steps[i] = append(s.steps[i], make([]float64, len(c.mass))...)
		}
	}
	for i := range s.tree.nodes {
		if n := &s.tree.nodes[i]; n.column >= 0 && s.forest.columns[n.column].numeric {
			s.cuts[n.column] = append(s.cuts[n.column], n.cut)
		}
	}
	for i, c := range s.forest.columns {
		if c.numeric {
			s.cuts[i] = append(s.cuts[i], c.absent, 1)
			slices.Sort(s.cuts[i])
			s.cuts[i] = slices.Compact(s.cuts[i])
			s.lo[i], s.hi[i] = 0, int32(len(s.cuts[i])-1)
			s.steps[i] = append(s.steps[i], make([]float64, len(s.cuts[i]))...)
		}
	}
	s.used = s.used[:0]
}

// mass is the part of a column that is in the box.
func (s *surface) mass(column int32) float64 {
	c := s.forest.columns[column]
	if c.numeric {
		return s.cuts[column][s.hi[column]] - s.cuts[column][s.lo[column]]
	}
	m := 0.0
	for i, part := range c.mass {
		if s.set[column]&(1<<i) != 0 {
			m += part
		}
	}
	return m
}

// visit goes through the leaves below a node. Weight is the mass of the box.
func (s *surface) visit(at int32, weight float64) {
	n := &s.tree.nodes[at]
	if n.column < 0 {
		s.leaf(n.value, weight)
		return
	}
	i := n.column
	lo, hi, set := s.lo[i], s.hi[i], s.set[i]
	s.present(n)
	from, of := s.lo[i], s.set[i]
	before := s.mass(i)
	if s.narrowed[i]++; s.narrowed[i] == 1 {
		s.used = append(s.used, i)
	}
	s.enter(n, true)
	if m := s.mass(i); m > 0 {
		s.visit(n.left, weight*m/before)
	}
	s.lo[i], s.hi[i], s.set[i] = from, hi, of
	s.enter(n, false)
	if m := s.mass(i); m > 0 {
		s.visit(n.right, weight*m/before)
	}
	s.lo[i], s.hi[i], s.set[i] = lo, hi, set
	if s.narrowed[i]--; s.narrowed[i] == 0 {
		s.used = s.used[:len(s.used)-1]
	}
}

// present takes those that lack a parameter out of the box of a node that asks
// for its value: all that came here have it, as nothing else is asked where some
// do not.
func (s *surface) present(n *node) {
	i := n.column
	c := s.forest.columns[i]
	switch {
	case c.absent == 0:
	case c.numeric:
		if n.cut != c.absent {
			at, _ := slices.BinarySearch(s.cuts[i], c.absent)
			s.lo[i] = max(s.lo[i], int32(at))
		}
	default:
		lacking := uint64(1) << (len(c.mass) - 1)
		if n.set&s.set[i] != lacking && ^n.set&s.set[i]&(2*lacking-1) != lacking {
			s.set[i] &^= lacking
		}
	}
}

// enter narrows the box to one side of a node.
func (s *surface) enter(n *node, left bool) {
	i := n.column
	if !s.forest.columns[i].numeric {
		set := n.set
		if !left {
			set = ^set
		}
		s.set[i] &= set
		return
	}
	at, _ := slices.BinarySearch(s.cuts[i], n.cut)
	if left {
		s.hi[i] = min(s.hi[i], int32(at))
	} else {
		s.lo[i] = max(s.lo[i], int32(at))
	}
}

// leaf adds a leaf to the marginals of the columns that its box is narrowed in:
// to all others it adds the same everywhere, which is no variance.
func (s *surface) leaf(value, weight float64) {
	s.mean += weight * value
	s.square += weight * value * value
	for _, i := range s.used {
		s.add(i, value*weight/s.mass(i))
	}
}

// add adds to a marginal where the box is.
func (s *surface) add(column int32, v float64) {
	steps := s.steps[column]
	if s.forest.columns[column].numeric {
		steps[s.lo[column]] += v
		steps[s.hi[column]] -= v
		return
	}
	for i := range steps {
		if s.set[column]&(1<<i) != 0 {
			steps[i] += v
		}
	}
}

// ofNumbers is the variance of a marginal from a place on.
func (s *surface) ofNumbers(column int, from float64) float64 {
	var m moments
	cuts, height := s.cuts[column], 0.0
	for i := range len(cuts) - 1 {
		height += s.steps[column][i]
		m.add(height, cuts[i+1]-max(cuts[i], from))
	}
	return m.variance()
}

// ofCategories is the variance of a marginal over the first n categories.
func (s *surface) ofCategories(column, n int) float64 {
	var m moments
	for i, v := range s.steps[column][:n] {
		m.add(v, s.forest.columns[column].mass[i])
	}
	return m.variance()
}

// conditional is the variance that a parameter makes where it is there. That it
// is there at all counts for what decides so; and the average is over trials
// that have it, as the rest of the space has nothing to do with it.
func (s *surface) conditional(column int32) float64 {
	c := s.forest.columns[column]
	clear(s.steps[column])
	s.lo[column], s.hi[column], s.set[column] = 0, int32(len(s.cuts[column])-1), math.MaxUint64
	step := max(c.trials/lookedAt, 1)
	seen, looked := 0, 0
	for row, has := range c.has {
		if !has {
			continue
		}
		if seen%step == 0 {
			looked++
			s.follow(0, int32(row), column)
		}
		seen++
	}
	part := 0.0
	if c.numeric {
		part = s.ofNumbers(int(column), c.absent)
	} else {
		part = s.ofCategories(int(column), len(c.mass)-1)
	}
	return part / float64(looked*looked) * (1 - c.absent)
}

// follow adds the leaves that a trial reaches whatever its value in a column.
func (s *surface) follow(at, row, column int32) {
	n := &s.tree.nodes[at]
	switch {
	case n.column < 0:
		s.add(column, n.value)
	case n.column != column:
		c := s.forest.columns[n.column]
		if n.goesLeft(c, c.x[row]) {
			s.follow(n.left, row, column)
		} else {
			s.follow(n.right, row, column)
		}
	default:
		lo, hi, set := s.lo[column], s.hi[column], s.set[column]
		s.enter(n, true)
		if s.mass(column) > 0 {
			s.follow(n.left, row, column)
		}
		s.lo[column], s.hi[column], s.set[column] = lo, hi, set
		s.enter(n, false)
		if s.mass(column) > 0 {
			s.follow(n.right, row, column)
		}
		s.lo[column], s.hi[column], s.set[column] = lo, hi, set
	}
}

// moments are the weighted moments of some numbers.
type moments struct{ w, mean, sum float64 }

func (m *moments) add(v, w float64) {
	if w <= 0 {
		return
	}
	m.w += w
	d := v - m.mean
	m.mean += d * w / m.w
	m.sum += w * d * (v - m.mean)
}

func (m *moments) variance() float64 {
	if m.w == 0 {
		return 0
	}
	return m.sum / m.w
}
