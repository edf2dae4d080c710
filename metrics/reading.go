package metrics

import (
	"math"
	"slices"
)

// Axis is what a range is measured along.
type Axis uint8

// The axes of a reading.
const (
	ByStep Axis = iota
	ByTime      // milliseconds of the Unix epoch
)

// Query says which points of a curve are wanted. The zero value is all.
type Query struct {
	// Where is what the metadata must have, by [Metadata.Matches].
	Where map[string]string
	// Series limits the points to those of some of [Curve.Series], by index;
	// nil is all.
	Series []int
	// Ranged limits the points to those with From <= step (or time) <= To.
	Ranged   bool
	Axis     Axis
	From, To int64
	// Points is how many points there may be, 0 any number. Less than
	// [MinPoints] counts as that.
	Points int
	// NewestOnly leaves the older copies of repeated steps out.
	NewestOnly bool
}

// MinPoints is the fewest points that a reading is sampled down to: first,
// last, minimum, maximum and a non-finite mark need as many.
const MinPoints = 5

// Reading is the points of a query in stream order, by column.
type Reading struct {
	Steps, Times []int64 // Times in milliseconds of the Unix epoch
	Values       []float64
	Segments     []int32 // index into [Fold.Segments]
	// Older marks the copies that a newer segment has repeated: a run that
	// was killed and resumed. Of each segment the steps from where a later one
	// begins are older.
	Older []bool
	// Total is how many points the query has; Sampled tells that there are
	// fewer here.
	Total   int
	Sampled bool
}

// Len is the number of points in the reading.
func (r Reading) Len() int { return len(r.Steps) }

// Read returns the points of a query. Sampling keeps the first and the last
// point, and of each stretch of the stream the minimum, the maximum and the
// first non-finite value.
func (c *Curve) Read(q Query) Reading {
	picked := c.pick(q)
	r := Reading{Total: len(picked)}
	if q.Points > 0 {
		kept := c.sample(picked, max(q.Points, MinPoints))
		r.Sampled = len(kept) < len(picked)
		picked = kept
	}
	n := len(picked)
	r.Steps, r.Times, r.Values = make([]int64, n), make([]int64, n), make([]float64, n)
	r.Segments, r.Older = make([]int32, n), make([]bool, n)
	for i, p := range picked {
		at := &c.points[p.at]
		r.Steps[i], r.Times[i], r.Values[i] = at.step, at.time, at.value
		r.Segments[i], r.Older[i] = at.segment, p.older
	}
	return r
}

// picked is one point of a query: its index, and whether it is an older copy.
type picked struct {
	at    int32
	older bool
}

func (c *Curve) pick(q Query) []picked {
	want := c.wanted(q)
	cut := c.cuts(want)
	out := make([]picked, 0, len(c.points))
	for i := range c.points {
		p := &c.points[i]
		if want != nil && !want[p.series] {
			continue
		}
		older := cut != nil && cut[p.segment-c.points[0].segment].covers(p.step)
		if older && q.NewestOnly || q.Ranged && !q.within(p) {
			continue
		}
		out = append(out, picked{int32(i), older})
	}
	return out
}

func (q *Query) within(p *point) bool {
	x := p.step
	if q.Axis == ByTime {
		x = p.time
	}
	return q.From <= x && x <= q.To
}

// wanted tells which series match, nil if all do.
func (c *Curve) wanted(q Query) []bool {
	if len(q.Where) == 0 && q.Series == nil {
		return nil
	}
	want := make([]bool, len(c.Series))
	for i, s := range c.Series {
		want[i] = (q.Series == nil || slices.Contains(q.Series, i)) && s.Metadata.Matches(q.Where)
	}
	return want
}

// segmentCut is the step from which later segments have a segment's points
// anew.
type segmentCut struct {
	step       int64
	superseded bool
}

func (s segmentCut) covers(step int64) bool { return s.superseded && step >= s.step }

// cuts finds for every segment of the curve where a later one begins: at its
// first point, wherever its steps go afterwards. Nil means one segment.
func (c *Curve) cuts(want []bool) []segmentCut {
	n := len(c.points)
	if n == 0 || c.points[0].segment == c.points[n-1].segment {
		return nil
	}
	base := c.points[0].segment
	starts := make([]segmentCut, c.points[n-1].segment-base+1)
	for i := range c.points {
		p := &c.points[i]
		s := &starts[p.segment-base]
		if !s.superseded && (want == nil || want[p.series]) {
			*s = segmentCut{p.step, true}
		}
	}
	later := segmentCut{step: math.MaxInt64}
	for i := len(starts) - 1; i >= 0; i-- {
		own := starts[i]
		starts[i] = later
		if own.superseded && (!later.superseded || own.step < later.step) {
			later = own
		}
	}
	return starts
}

// sample keeps at most n of the points: the ends, and three of each bucket of
// neighbours in the stream.
func (c *Curve) sample(points []picked, n int) []picked {
	if len(points) <= n {
		return points
	}
	first, last := points[0], points[len(points)-1]
	inner := points[1 : len(points)-1]
	buckets := (n - 2) / 3
	out := append(make([]picked, 0, n), first)
	for b := range buckets {
		lo, hi := b*len(inner)/buckets, (b+1)*len(inner)/buckets
		out = c.keep(out, inner[lo:hi])
	}
	return append(out, last)
}

// keep appends the minimum, the maximum and the first non-finite point of a
// bucket, in stream order.
func (c *Curve) keep(out, bucket []picked) []picked {
	least, most, odd := -1, -1, -1
	for i, p := range bucket {
		v := c.points[p.at].value
		switch {
		case v-v != 0:
			if odd < 0 {
				odd = i
			}
		case least < 0:
			least, most = i, i
		case v < c.points[bucket[least].at].value:
			least = i
		case v > c.points[bucket[most].at].value:
			most = i
		}
	}
	a, b, d := sort3(least, most, odd)
	before := -1
	for _, i := range [...]int{a, b, d} {
		if i > before {
			out = append(out, bucket[i])
			before = i
		}
	}
	return out
}

func sort3(a, b, c int) (int, int, int) {
	a, b = min(a, b), max(a, b)
	b, c = min(b, c), max(b, c)
	return min(a, b), max(a, b), c
}
