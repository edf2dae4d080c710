package analysis

import (
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
)

// maxDepth bounds a tree's depth, as of the reference implementation.
const maxDepth = 64

// node is a node of a regression tree. Numbers below cut go left, and
// categories in set.
type node struct {
	column      int32 // -1 is a leaf
	left, right int32
	cut         float64
	set         uint64
	value       float64 // of a leaf
	weight      float64 // of the sample that came here
}

// tree is a regression tree, the root first, and the rows that it was not grown
// from.
type tree struct {
	nodes []node
	out   []int32
}

// forest is some trees over the same rows.
type forest struct {
	columns []*column
	y       []float64
	trees   []*tree
}

// grow makes a forest, a tree per bootstrap sample. The seed decides everything:
// every tree has a generator of its own, so that it does not matter who grows it.
func grow(columns []*column, y []float64, trees, leaf int, seed uint64) *forest {
	f := &forest{columns, y, make([]*tree, trees)}
	parallel(trees, func() func(int) {
		g := newGrower(columns, y, leaf)
		return func(i int) { f.trees[i] = g.tree(rand.New(rand.NewPCG(seed, uint64(i)))) }
	})
	return f
}

// parallel does n things on all processors; every worker makes its own tools.
func parallel(n int, worker func() func(int)) {
	var wg sync.WaitGroup
	next := make(chan int)
	for range min(n, runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			do := worker()
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}

// goesLeft tells where a value goes at a node.
func (n *node) goesLeft(c *column, x float64) bool {
	if c.numeric {
		return x < n.cut
	}
	return n.set&(1<<uint(x)) != 0
}

// asksLacking tells whether a node asks for a value that a row lacks, which none
// of the rows lacked that it was made for.
func (f *forest) asksLacking(n *node, row int32) bool {
	c := f.columns[n.column]
	switch {
	case c.has[row]:
		return false
	case c.numeric:
		return n.cut != c.absent
	}
	lacking := uint64(1) << (len(c.mass) - 1)
	return n.set != lacking && n.set != lacking-1
}

// predict is the tree's value for a row, in which one column, unless it is -1,
// has another value.
func (f *forest) predict(t *tree, row int32, column int32, x float64) float64 {
	return f.predictFrom(t, 0, row, column, x)
}

func (f *forest) predictFrom(t *tree, at, row, column int32, x float64) float64 {
	for {
		n := &t.nodes[at]
		if n.column < 0 {
			return n.value
		}
		c := f.columns[n.column]
		v := c.x[row]
		if n.column == column {
			v = x
		} else if f.asksLacking(n, row) {
			left, right := t.nodes[n.left].weight, t.nodes[n.right].weight
			return (left*f.predictFrom(t, n.left, row, column, x) + right*f.predictFrom(t, n.right, row, column, x)) / (left + right)
		}
		if n.goesLeft(c, v) {
			at = n.left
		} else {
			at = n.right
		}
	}
}

// explained is the part of the variance that trees predict for rows they were
// not grown from (R²); NaN if there are no such rows.
func (f *forest) explained() float64 {
	sum, n := make([]float64, len(f.y)), make([]float64, len(f.y))
	for _, t := range f.trees {
		for _, row := range t.out {
			sum[row] += f.predict(t, row, -1, 0)
			n[row]++
		}
	}
	var rows, mean, wrong, all float64
	for i, y := range f.y {
		if n[i] > 0 {
			rows++
			mean += (y - mean) / rows
		}
	}
	for i, y := range f.y {
		if n[i] > 0 {
			wrong += (y - sum[i]/n[i]) * (y - sum[i]/n[i])
			all += (y - mean) * (y - mean)
		}
	}
	if all == 0 {
		return math.NaN()
	}
	return 1 - wrong/all
}
