package analysis

import "math/rand/v2"

// exchanged is how many trials of a tree are looked at, at most.
const exchanged = 1000

// exchange computes how much a tree's error on rows that it was not grown from
// grows when the values of a column are exchanged among those that have it, and
// the variance of these rows.
func (f *forest) exchange(t *tree, r *rand.Rand, parts []float64) (whole float64) {
	rows := t.out
	if len(rows) > exchanged {
		rows = make([]int32, exchanged)
		for i, k := range r.Perm(len(t.out))[:exchanged] {
			rows[i] = t.out[k]
		}
	}
	var y moments
	wrong := make([]float64, len(rows))
	for i, row := range rows {
		y.add(f.y[row], 1)
		d := f.y[row] - f.predict(t, row, -1, 0)
		wrong[i] = d * d
	}
	uses := make([]bool, len(f.columns))
	for _, n := range t.nodes {
		if n.column >= 0 {
			uses[n.column] = true
		}
	}
	for column, c := range f.columns {
		if uses[column] {
			parts[column] = f.worse(t, r, int32(column), c, rows, wrong) / max(float64(len(rows)), 1)
		}
	}
	// The squares grow by twice the variance that goes with the column, because
	// both the old value and the new one are drawn.
	return 2 * y.variance()
}

// worse is by how much the squares of the errors grow.
func (f *forest) worse(t *tree, r *rand.Rand, column int32, c *column, rows []int32, wrong []float64) (sum float64) {
	var with []int
	for i, row := range rows {
		if c.has[row] {
			with = append(with, i)
		}
	}
	for i, k := range r.Perm(len(with)) {
		row := rows[with[i]]
		d := f.y[row] - f.predict(t, row, column, c.x[rows[with[k]]])
		sum += d*d - wrong[with[i]]
	}
	return sum
}
