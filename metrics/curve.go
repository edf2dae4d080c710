package metrics

// Curve is all points of one metric name in stream order, whatever their
// metadata. It only grows.
type Curve struct {
	// Name is the metric's.
	Name string
	// Series are the metadata that the name came with, in order of arrival.
	Series []*Series
	// Stats are over all points, older copies included.
	Stats Stats

	points []point
	byMeta map[Metadata]int32
}

// point is one number: 32 bytes.
type point struct {
	step, time int64
	value      float64
	segment    int32 // index into Fold.Segments
	series     int32 // index into Curve.Series
}

// Series is the points of one name with one metadata.
type Series struct {
	// Metadata has its keys in order.
	Metadata Metadata
	Stats    Stats
}

// Stats sums up points.
type Stats struct {
	// Count is the number of points, NonFinite that of NaN and infinities.
	Count, NonFinite int64
	// Last is the point that came last.
	Last             Number
	LastStep, LastMS int64
	// Min and Max are over the finite points, if there are any: Count is
	// greater than NonFinite. The steps are where each came first.
	Min, Max         float64
	MinStep, MaxStep int64
}

func (s *Stats) add(e *Event, v float64) {
	s.Count++
	s.Last, s.LastStep, s.LastMS = e.Value, e.Step, e.TSMS
	if v-v != 0 {
		s.NonFinite++
		return
	}
	first := s.Count-s.NonFinite == 1
	if first || v < s.Min {
		s.Min, s.MinStep = v, e.Step
	}
	if first || v > s.Max {
		s.Max, s.MaxStep = v, e.Step
	}
}

// Len is the number of points.
func (c *Curve) Len() int { return len(c.points) }

func (c *Curve) add(e *Event, segment, series int32) {
	v := e.Value.Float64()
	c.points = append(c.points, point{e.Step, e.TSMS, v, segment, series})
	c.Stats.add(e, v)
	c.Series[series].Stats.add(e, v)
}

// seriesOf finds or makes the series of a metadata in any spelling.
func (c *Curve) seriesOf(m Metadata) int32 {
	m = m.Canonical()
	i, ok := c.byMeta[m]
	if !ok {
		i = int32(len(c.Series))
		c.Series = append(c.Series, &Series{Metadata: m})
		c.byMeta[m] = i
	}
	return i
}
