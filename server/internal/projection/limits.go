package projection

import (
	"cmp"
	"slices"

	"github.com/foldlog/foldlog/internal/serde"
	"github.com/foldlog/foldlog/metrics"
)

// Whoever may write to a run can write anything into its streams, so that what is kept
// of a stream is bounded. What goes beyond stays in the stream, which nobody changes,
// and is counted in [LeftOut].
const (
	// MostNames is how many metric names are kept of one stream.
	MostNames = 10_000
	// MostRootNames is how many different metric names are kept of a root.
	MostRootNames = 250_000
	// MostSeries is how many metadata of one metric name are told apart.
	MostSeries = 1000
	// MostSegments is how many processes of one stream are told apart.
	MostSegments = 10_000
	// MostMarks is how many annotations are kept of one stream, the newest always
	// among them.
	MostMarks = 100_000
	// MostText is how many bytes of metadata and annotations are kept of one stream.
	MostText = 16 << 20
	// MostMetadata is how many bytes of a run's metadata lists and filters know, and
	// MostDescription how many of its description (UTF-16 units). The run itself has
	// all of it.
	MostMetadata    = 64 << 10
	MostDescription = 4 << 10
)

// LeftOut counts what a projection has not kept since it would take too much.
type LeftOut struct {
	// Points are of metric names beyond [MostNames] or [MostRootNames].
	Points int64
	// Metadata is of points that are kept without theirs.
	Metadata int64
	// Marks are annotations, Segments processes that count as one with those before.
	Marks, Segments int64
}

func (l *LeftOut) add(o LeftOut) {
	l.Points += o.Points
	l.Metadata += o.Metadata
	l.Marks += o.Marks
	l.Segments += o.Segments
}

func (l *LeftOut) fields() [4]*int64 {
	return [...]*int64{&l.Points, &l.Metadata, &l.Marks, &l.Segments}
}

// outlined takes the next event into the outline, of which bytes of a line are spelled.
func (s *state) outlined(e *metrics.Event, bytes int) {
	o := &s.outline
	segments, marks := len(o.Segments), len(o.Marks)
	o.Apply(e)
	if len(o.Segments) > segments {
		s.boundSegments(bytes)
	}
	if len(o.Marks) > marks {
		s.boundMarks(bytes)
	}
}

func (s *state) boundSegments(bytes int) {
	o := &s.outline
	n := len(o.Segments)
	if n > MostSegments {
		o.Segments = o.Segments[:n-1]
		last := &o.Segments[n-2]
		last.Done, last.Failed, last.Interrupted = false, false, ""
		s.left.Segments++
		return
	}
	if seg := &o.Segments[n-1]; len(seg.Changes) > 0 && !s.takeText(bytes) {
		seg.Changes = nil
	}
}

// boundMarks keeps the newest mark in the place of the one before once there are too
// many.
func (s *state) boundMarks(bytes int) {
	o := &s.outline
	n := len(o.Marks)
	last := &o.Marks[n-1]
	last.Segment = len(o.Segments) - 1
	if n <= MostMarks && s.takeText(bytes) {
		return
	}
	if n > 1 {
		o.Marks[n-2] = *last
		o.Marks = o.Marks[:n-1]
		s.left.Marks++
	}
}

// takeText tells whether so many bytes of text may be kept.
func (s *state) takeText(n int) bool {
	if s.text+int64(n) > MostText {
		return false
	}
	s.text += int64(n)
	return true
}

// listed is the part of metadata that lists know: without the sources, which can be
// long, and without its longest values if it is.
func listed(m metrics.Metadata) metrics.Metadata {
	if _, ok := m.Get("sources"); !ok && len(m) <= MostMetadata {
		return m
	}
	type value struct {
		key, raw string
		drop     bool
	}
	var values []value
	size := 2
	for key, raw := range m.All() {
		if key != "sources" {
			values = append(values, value{key: key, raw: raw})
			size += len(key) + len(raw) + 4
		}
	}
	longest := make([]*value, len(values))
	for i := range values {
		longest[i] = &values[i]
	}
	slices.SortStableFunc(longest, func(a, b *value) int { return cmp.Compare(len(b.raw), len(a.raw)) })
	for _, v := range longest {
		if size <= MostMetadata {
			break
		}
		v.drop = true
		size -= len(v.key) + len(v.raw) + 4
	}
	b := []byte{'{'}
	for _, v := range values {
		if v.drop {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(serde.AppendString(b, v.key), ':'), v.raw...)
	}
	return metrics.Metadata(append(b, '}'))
}
