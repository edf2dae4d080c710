package projection

import "slices"

// chunkPoints is how many points one summary stands for at most, on disk.
const chunkPoints = 64

// mostSummaries is how many summaries of a stream are in memory, some 14 MB: those of
// four million points. Of more points each stands for twice, four times ... as many.
const mostSummaries = 1 << 16

// mixed is the series of a chunk or entry whose points have several.
const mixed = -1

// Point is one point of a curve.
type Point struct {
	Step, Time int64 // Time in milliseconds of the Unix epoch
	Value      float64
	// Segment and Series are indices into those of the stream.
	Segment, Series int32
}

func (p *Point) finite() bool { return p.Value-p.Value == 0 }

// columns are the points of one curve in one block.
type columns struct {
	steps, times []int64
	values       []float64
	series       []int32 // nil if all have the entry's series
}

func (c *columns) point(i int, segment, series int32) Point {
	if c.series != nil {
		series = c.series[i]
	}
	return Point{c.steps[i], c.times[i], c.values[i], segment, series}
}

// chunk sums up neighbouring points of one segment.
type chunk struct {
	start, n        int32 // index of the first point in its entry, and how many
	segment, series int32 // series may be mixed
	minStep         int64
	maxStep         int64
	minTime         int64
	maxTime         int64
	first, last     extreme
	low, high, odd  extreme // where at is not negative
}

// extreme is one of the points that a sample keeps: an end, the lowest or highest
// finite value, or the first that is not finite.
type extreme struct {
	at         int32 // within the chunk, -1 if there is none
	series     int32
	step, time int64
	value      float64
}

func (x *extreme) point(segment int32) Point {
	return Point{x.step, x.time, x.value, segment, x.series}
}

// add takes the next point of a chunk. The chunk has been begun by begin.
func (c *chunk) add(p *Point) {
	x := extreme{c.n, p.Series, p.Step, p.Time, p.Value}
	c.n++
	c.last = x
	if p.Series != c.series {
		c.series = mixed
	}
	c.minStep, c.maxStep = min(c.minStep, p.Step), max(c.maxStep, p.Step)
	c.minTime, c.maxTime = min(c.minTime, p.Time), max(c.maxTime, p.Time)
	if !p.finite() {
		if c.odd.at < 0 {
			c.odd = x
		}
		return
	}
	if c.low.at < 0 || p.Value < c.low.value {
		c.low = x
	}
	if c.high.at < 0 || p.Value > c.high.value {
		c.high = x
	}
}

// join takes in the chunk that follows.
func (c *chunk) join(next *chunk) {
	moved := func(x extreme) extreme {
		if x.at >= 0 {
			x.at += c.n
		}
		return x
	}
	if low := moved(next.low); c.low.at < 0 || low.at >= 0 && low.value < c.low.value {
		c.low = low
	}
	if high := moved(next.high); c.high.at < 0 || high.at >= 0 && high.value > c.high.value {
		c.high = high
	}
	if c.odd.at < 0 {
		c.odd = moved(next.odd)
	}
	c.last = moved(next.last)
	if next.series != c.series {
		c.series = mixed
	}
	c.minStep, c.maxStep = min(c.minStep, next.minStep), max(c.maxStep, next.maxStep)
	c.minTime, c.maxTime = min(c.minTime, next.minTime), max(c.maxTime, next.maxTime)
	c.n += next.n
}

// joined are chunks of up to so many points in place of smaller ones, which stay as they
// are: others may be reading them.
func joined(chunks []chunk, points int32) []chunk {
	if points <= chunkPoints {
		return slices.Clone(chunks)
	}
	var out []chunk
	for i := range chunks {
		c := &chunks[i]
		if last := len(out) - 1; last >= 0 && out[last].segment == c.segment && out[last].n+c.n <= points {
			out[last].join(c)
		} else {
			out = append(out, *c)
		}
	}
	return slices.Clip(out)
}

// begin makes the chunk that starts with a point, without adding it.
func begin(start int32, p *Point) chunk {
	none := extreme{at: -1}
	first := extreme{0, p.Series, p.Step, p.Time, p.Value}
	return chunk{start: start, segment: p.Segment, series: p.Series, first: first, last: first,
		minStep: p.Step, maxStep: p.Step, minTime: p.Time, maxTime: p.Time, low: none, high: none, odd: none}
}

// growing is the points of one curve that have no block yet.
type growing struct {
	columns
	chunks []chunk
}

func (g *growing) add(p *Point) {
	n := int32(len(g.steps))
	last := len(g.chunks) - 1
	if last < 0 || g.chunks[last].n == chunkPoints || g.chunks[last].segment != p.Segment {
		g.chunks = append(g.chunks, begin(n, p))
		last++
	}
	g.chunks[last].add(p)
	g.steps, g.times = append(g.steps, p.Step), append(g.times, p.Time)
	g.values, g.series = append(g.values, p.Value), append(g.series, p.Series)
}
