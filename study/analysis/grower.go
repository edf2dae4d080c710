package analysis

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// better is by how much a split has to be better than that of an earlier column.
// Columns that split the same trials differ by rounding alone: a parameter and
// the condition that it depends on, which is declared before it.
const better = 1 + 1e-9

// grower grows trees over the same rows, one after another. The rows of a node
// are one stretch of every list, sorted by the column's values in the lists of
// numeric columns, so that nothing is sorted after the beginning.
type grower struct {
	columns []*column
	y       []float64
	leaf    float64 // the least weight of a leaf

	sample []drawn // of each row
	rows   []int32
	orders [][]int32 // nil for a column that the trees cannot use
	left   []uint8   // 1 for a row that goes left
	spare  []int32
	tally  [maxCategories + 1]category
	nodes  []node
}

// drawn is how often a row is in the sample, and that times its value.
type drawn struct{ w, wy float64 }

// category is what a node's rows of one category sum up to.
type category struct {
	set   uint64 // the category, or those that count as one here
	w, wy float64
}

// split is a way to split a node.
type split struct {
	column int32
	cut    float64
	set    uint64
	score  float64
}

func newGrower(columns []*column, y []float64, leaf int) *grower {
	n := len(y)
	g := &grower{
		columns: columns, y: y, leaf: float64(leaf), sample: make([]drawn, n),
		rows: make([]int32, 0, n), orders: make([][]int32, len(columns)), left: make([]uint8, n), spare: make([]int32, n),
	}
	for i, c := range columns {
		if c.varies && c.numeric {
			g.orders[i] = make([]int32, 0, n)
		}
	}
	return g
}

// tree grows a tree from as many draws as there are rows.
func (g *grower) tree(r *rand.Rand) *tree {
	clear(g.sample)
	for range g.y {
		g.sample[r.IntN(len(g.y))].w++
	}
	t := new(tree)
	g.rows = g.rows[:0]
	for i, y := range g.y {
		g.sample[i].wy = g.sample[i].w * y
		if g.sample[i].w > 0 {
			g.rows = append(g.rows, int32(i))
		} else {
			t.out = append(t.out, int32(i))
		}
	}
	for i, order := range g.orders {
		if order == nil {
			continue
		}
		order = order[:0]
		for _, row := range g.columns[i].order {
			if g.sample[row].w > 0 {
				order = append(order, row)
			}
		}
		g.orders[i] = order
	}
	g.nodes = g.nodes[:0]
	g.grow(0, len(g.rows), 0)
	t.nodes = slices.Clone(g.nodes)
	return t
}

// grow makes the node of a stretch of rows and those below it, and returns its
// index.
func (g *grower) grow(lo, hi, depth int) int32 {
	w, wy, same := 0.0, 0.0, true
	for _, row := range g.rows[lo:hi] {
		w += g.sample[row].w
		wy += g.sample[row].wy
		same = same && g.y[row] == g.y[g.rows[lo]]
	}
	at := int32(len(g.nodes))
	g.nodes = append(g.nodes, node{column: -1, value: wy / w, weight: w})
	if same || depth == maxDepth || w < 2*g.leaf {
		return at
	}
	s := g.best(lo, hi, w, wy)
	if s.column < 0 {
		return at
	}
	mid := g.divide(lo, hi, s)
	left := g.grow(lo, mid, depth+1)
	right := g.grow(mid, hi, depth+1)
	n := &g.nodes[at]
	n.column, n.cut, n.set, n.left, n.right = s.column, s.cut, s.set, left, right
	return at
}

// best is the split that explains most, with column -1 if none does.
func (g *grower) best(lo, hi int, w, wy float64) split {
	s := split{column: -1, score: wy * wy / w}
	for i, c := range g.columns {
		switch {
		case !c.varies:
		case c.numeric:
			g.bestCut(&s, int32(i), lo, hi, w, wy)
		default:
			g.bestSet(&s, int32(i), lo, hi, w, wy)
		}
	}
	return s
}

// bestCut looks at every cut of a numeric column.
func (g *grower) bestCut(s *split, index int32, lo, hi int, w, wy float64) {
	order, x := g.orders[index][lo:hi], g.columns[index].x
	if x[order[0]] == x[order[len(order)-1]] {
		return
	}
	first, last := 0, len(order)-1
	if x[order[0]] < 0 { // some lack it: what can be said is which
		last, _ = slices.BinarySearchFunc(order, 0.0, func(row int32, at float64) int { return cmp.Compare(x[row], at) })
		first = last - 1
	}
	need, place := s.score*better, -1
	lw, lwy := 0.0, 0.0
	for i, row := range order[:last] {
		lw += g.sample[row].w
		lwy += g.sample[row].wy
		if i < first {
			continue
		}
		rw, rwy := w-lw, wy-lwy
		score := (lwy*lwy*rw + rwy*rwy*lw) / (lw * rw)
		if score > need && x[row] != x[order[i+1]] && lw >= g.leaf && rw >= g.leaf {
			need, place = score, i
		}
	}
	if place >= 0 {
		cut := g.columns[index].cut(x[order[place]], x[order[place+1]])
		*s = split{column: index, cut: cut, score: need}
	}
}

// bestSet looks at the sets of categories with the least means: one of them is
// the best of all sets.
func (g *grower) bestSet(s *split, index int32, lo, hi int, w, wy float64) {
	tally := g.tallied(index, lo, hi)
	slices.SortFunc(tally, func(a, b category) int {
		return cmp.Or(cmp.Compare(a.wy/a.w, b.wy/b.w), cmp.Compare(a.set, b.set))
	})
	need, set := s.score*better, uint64(0)
	lw, lwy := 0.0, 0.0
	for _, t := range tally[:len(tally)-1] {
		lw += t.w
		lwy += t.wy
		set |= t.set
		rw, rwy := w-lw, wy-lwy
		score := (lwy*lwy*rw + rwy*rwy*lw) / (lw * rw)
		if score > need && lw >= g.leaf && rw >= g.leaf {
			need = score
			*s = split{column: index, set: set, score: score}
		}
	}
}

// tallied sums a stretch of rows up by category. Where some rows lack the
// parameter, all others are one category: what can be said is which have it.
func (g *grower) tallied(index int32, lo, hi int) []category {
	c := g.columns[index]
	tally := g.tally[:len(c.mass)]
	for i := range tally {
		tally[i] = category{set: 1 << i}
	}
	for _, row := range g.rows[lo:hi] {
		t := &tally[int(c.x[row])]
		t.w += g.sample[row].w
		t.wy += g.sample[row].wy
	}
	if last := len(tally) - 1; c.absent > 0 && tally[last].w > 0 {
		for _, t := range tally[1:last] {
			tally[0] = category{tally[0].set | t.set, tally[0].w + t.w, tally[0].wy + t.wy}
		}
		clear(tally[1:last])
	}
	return slices.DeleteFunc(tally, func(t category) bool { return t.w == 0 })
}

// divide parts the stretch in every list, in order, and returns where the right
// side begins.
func (g *grower) divide(lo, hi int, s split) int {
	c, n := g.columns[s.column], node{cut: s.cut, set: s.set}
	for _, row := range g.rows[lo:hi] {
		g.left[row] = 0
		if n.goesLeft(c, c.x[row]) {
			g.left[row] = 1
		}
	}
	mid := lo + g.part(g.rows[lo:hi])
	for _, order := range g.orders {
		if order != nil {
			g.part(order[lo:hi])
		}
	}
	return mid
}

// part moves the rows that go left to the front, and returns how many they are.
// Both sides keep their order.
func (g *grower) part(list []int32) int {
	n, m := 0, 0
	for _, row := range list {
		list[n], g.spare[m] = row, row
		left := int(g.left[row]) // no branch: nobody could predict it
		n += left
		m += 1 - left
	}
	copy(list[n:], g.spare[:m])
	return n
}
