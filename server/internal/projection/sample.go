package projection

import (
	"math"
	"sort"

	"github.com/foldlog/foldlog/metrics"
)

// selection answers a query over the parts of a curve. What a chunk's summary
// cannot answer is read from the columns: chunks at the ends of a range, and those
// whose points have several series of which not all are wanted.
type selection struct {
	query Query
	want  []bool // by series of the run, nil for all
	parts []*part
	cuts  []cut // by segment of the run
	units []unit
	cache struct {
		entry *entry
		*columns
	}
}

// cut is the step from which later segments have a segment's points anew.
type cut struct {
	step  int64
	valid bool
}

func (c cut) covers(step int64) bool { return c.valid && step >= c.step }

// unit is one point, or what is wanted of a chunk.
type unit struct {
	part  *part
	entry *entry
	from  *chunk // nil for a point
	chunk *chunk // sums up what is wanted of from
	point Point
}

func (u *unit) count() int64 {
	if u.chunk != nil {
		return int64(u.chunk.n)
	}
	return 1
}

func (s *selection) close() {
	for _, p := range s.parts {
		if p.file != nil {
			p.file.Close()
		}
	}
}

func (s *selection) run(r *Reading) error {
	if err := s.findCuts(); err != nil {
		return err
	}
	if err := s.gather(); err != nil {
		return err
	}
	for i := range s.units {
		r.Total += s.units[i].count()
	}
	if err := s.sample(r); err != nil {
		return err
	}
	r.Sampled = int64(len(r.Points)) < r.Total
	r.Older = make([]bool, len(r.Points))
	for i := range r.Points {
		r.Older[i] = s.cutOf(r.Points[i].Segment).covers(r.Points[i].Step)
	}
	return nil
}

// each calls visit for every chunk in stream order.
func (s *selection) each(visit func(p *part, e *entry, c *chunk) error) error {
	for _, p := range s.parts {
		for i := range p.entries {
			e := &p.entries[i]
			for j := range e.chunks {
				if err := visit(p, e, &e.chunks[j]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// findCuts finds for every segment where a later one begins: at its first wanted
// point, wherever its steps go afterwards.
func (s *selection) findCuts() error {
	var starts []cut
	err := s.each(func(p *part, e *entry, c *chunk) error {
		seg := int(p.segments + c.segment)
		for len(starts) <= seg {
			starts = append(starts, cut{})
		}
		if starts[seg].valid {
			return nil
		}
		if s.all(p, c) {
			starts[seg] = cut{c.first.step, true}
			return nil
		}
		if s.none(p, c) {
			return nil
		}
		return s.points(p, e, c, func(pt Point) {
			if !starts[seg].valid && s.want[pt.Series] {
				starts[seg] = cut{pt.Step, true}
			}
		})
	})
	later := cut{step: math.MaxInt64}
	for i := len(starts) - 1; i >= 0; i-- {
		own := starts[i]
		starts[i] = later
		if own.valid && (!later.valid || own.step < later.step) {
			later = own
		}
	}
	s.cuts = starts
	return err
}

func (s *selection) cutOf(segment int32) cut {
	if int(segment) < len(s.cuts) && segment >= 0 {
		return s.cuts[segment]
	}
	return cut{}
}

// all and none tell whether every point of a chunk has a wanted series, or none
// has; of a mixed one under a filter neither is known.
func (s *selection) all(p *part, c *chunk) bool {
	return s.want == nil || c.series != mixed && s.want[p.series+c.series]
}

func (s *selection) none(p *part, c *chunk) bool {
	return s.want != nil && c.series != mixed && !s.want[p.series+c.series]
}

func (s *selection) gather() (err error) {
	err = s.each(func(p *part, e *entry, c *chunk) error {
		inside, outside := s.within(p, c)
		switch {
		case outside || s.none(p, c):
			return nil
		case inside && s.all(p, c):
			s.units = append(s.units, unit{part: p, entry: e, from: c, chunk: c})
			return nil
		}
		s.units, err = s.split(s.units, p, e, c, max(c.n, chunkPoints))
		return err
	})
	return err
}

// split appends what is wanted of a chunk as chunks of up to so many points, or as points
// if they are not more than are summed up on disk.
func (s *selection) split(units []unit, p *part, e *entry, c *chunk, points int32) ([]unit, error) {
	var sum *chunk
	err := s.points(p, e, c, func(pt Point) {
		if !s.takes(&pt) {
			return
		}
		if c.n <= chunkPoints {
			units = append(units, unit{point: pt})
			return
		}
		pt.Segment, pt.Series = pt.Segment-p.segments, pt.Series-p.series
		if sum == nil || sum.n == points {
			sum = new(begin(0, &pt))
			units = append(units, unit{part: p, entry: e, from: c, chunk: sum})
		}
		sum.add(&pt)
	})
	return units, err
}

// within tells whether all points of a chunk are in the range, or none is.
func (s *selection) within(p *part, c *chunk) (inside, outside bool) {
	inside = true
	if q := &s.query; q.Ranged {
		low, high := c.minStep, c.maxStep
		if q.Axis == metrics.ByTime {
			low, high = c.minTime, c.maxTime
		}
		inside, outside = q.From <= low && high <= q.To, high < q.From || low > q.To
	}
	if s.query.NewestOnly {
		cut := s.cutOf(p.segments + c.segment)
		inside = inside && !cut.covers(c.maxStep)
		outside = outside || cut.covers(c.minStep)
	}
	return inside, outside
}

func (s *selection) takes(pt *Point) bool {
	q := &s.query
	if q.Ranged {
		x := pt.Step
		if q.Axis == metrics.ByTime {
			x = pt.Time
		}
		if x < q.From || x > q.To {
			return false
		}
	}
	if q.NewestOnly && s.cutOf(pt.Segment).covers(pt.Step) {
		return false
	}
	return s.want == nil || s.want[pt.Series]
}

// points calls visit for every point of a chunk.
func (s *selection) points(p *part, e *entry, c *chunk, visit func(Point)) error {
	if s.cache.entry != e {
		columns, err := p.columns(e)
		if err != nil {
			return err
		}
		s.cache.entry, s.cache.columns = e, columns
	}
	for i := c.start; i < c.start+c.n; i++ {
		pt := s.cache.point(int(i), p.segments+c.segment, e.series)
		pt.Series += p.series
		visit(pt)
	}
	return nil
}

// spread replaces the chunks among units by their points.
func (s *selection) spread(units []unit) ([]unit, error) {
	out := make([]unit, 0, len(units))
	for i := range units {
		u := &units[i]
		if u.chunk == nil {
			out = append(out, *u)
			continue
		}
		err := s.points(u.part, u.entry, u.from, func(pt Point) {
			if s.takes(&pt) {
				out = append(out, unit{point: pt})
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// refine replaces the chunks among units by those that they were joined from.
func (s *selection) refine(units []unit) (out []unit, err error) {
	for i := range units {
		u := &units[i]
		if u.chunk == nil || u.chunk.n <= chunkPoints {
			out = append(out, *u)
			continue
		}
		if out, err = s.split(out, u.part, u.entry, u.from, chunkPoints); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// sample keeps at most the wanted number of points: the ends, and three of each
// bucket of neighbours in the stream. Buckets end between chunks where there are
// enough of those.
func (s *selection) sample(r *Reading) (err error) {
	want := s.query.Points
	if want > 0 {
		want = max(want, metrics.MinPoints)
	}
	buckets := (want - 2) / 3
	enough := 2*buckets + 2
	switch few := len(s.units) < enough; {
	case want == 0 || r.Total <= int64(want) || few && r.Total < int64(enough)*chunkPoints:
		s.units, err = s.spread(s.units)
	case few:
		s.units, err = s.refine(s.units)
	}
	if err != nil {
		return err
	}
	if want == 0 || r.Total <= int64(want) {
		r.Points = make([]Point, len(s.units))
		for i := range s.units {
			r.Points[i] = s.units[i].point
		}
		return nil
	}
	first, last := s.units[0].end(true), s.units[len(s.units)-1].end(false)
	r.Points = append(make([]Point, 0, want), first)
	for b := range buckets {
		lo, hi := b*len(s.units)/buckets, (b+1)*len(s.units)/buckets
		r.Points = keep(r.Points, s.units[lo:hi], b == 0, b == buckets-1)
	}
	r.Points = append(r.Points, last)
	return nil
}

// end is the first or the last point of a unit.
func (u *unit) end(first bool) Point {
	switch {
	case u.chunk == nil:
		return u.point
	case first:
		return u.kept(0, &u.chunk.first).point
	}
	return u.kept(0, &u.chunk.last).point
}

// kept is a point with its place among those of a bucket.
type kept struct {
	at    int64
	point Point
	ok    bool
}

// keep appends the minimum, the maximum and the first non-finite point of a
// bucket, in stream order. The ends of all points, which are in the first and last
// bucket, are kept anyway.
func keep(out []Point, bucket []unit, first, last bool) []Point {
	var low, high, odd kept
	for i := range bucket {
		u := &bucket[i]
		if u.chunk == nil {
			at := int64(i) << 32
			if !u.point.finite() {
				if !odd.ok {
					odd = kept{at, u.point, true}
				}
				continue
			}
			if !low.ok || u.point.Value < low.point.Value {
				low = kept{at, u.point, true}
			}
			if !high.ok || u.point.Value > high.point.Value {
				high = kept{at, u.point, true}
			}
			continue
		}
		c := u.chunk
		if !odd.ok && c.odd.at >= 0 {
			odd = u.kept(i, &c.odd)
		}
		if c.low.at >= 0 && (!low.ok || c.low.value < low.point.Value) {
			low = u.kept(i, &c.low)
		}
		if c.high.at >= 0 && (!high.ok || c.high.value > high.point.Value) {
			high = u.kept(i, &c.high)
		}
	}
	list := [...]kept{low, high, odd}
	sort.Slice(list[:], func(i, j int) bool { return list[i].at < list[j].at })
	before, end := int64(-1), int64(math.MaxInt64)
	if first {
		before = 0
	}
	if n := len(bucket) - 1; last && n >= 0 {
		end = int64(n) << 32
		if c := bucket[n].chunk; c != nil {
			end += int64(c.last.at)
		}
	}
	for _, k := range list {
		if k.ok && k.at != before && k.at != end {
			out = append(out, k.point)
			before = k.at
		}
	}
	return out
}

func (u *unit) kept(i int, x *extreme) kept {
	pt := x.point(u.part.segments + u.chunk.segment)
	pt.Series += u.part.series
	return kept{int64(i)<<32 + int64(x.at), pt, true}
}
