package studyplot

import (
	"slices"

	"github.com/foldlog/foldlog/internal/chart"
	"github.com/foldlog/foldlog/study/analysis"
)

// timeline makes bars of spans. Where there are more than can be seen, the time of
// each lane is summed up in pieces: bars that are joined because they are near each
// other would hide what is between them.
type timeline struct {
	spans  []analysis.Span
	piece  uint64 // in milliseconds
	pieces map[pieceOf]*busy
	order  []pieceOf // as they begin
}

// pieceOf is a piece of a lane.
type pieceOf struct {
	lane int
	n    uint64
}

// busy is what a piece of a lane was used for, by class.
type busy struct {
	millis []uint64
	first  []uint64 // number of the first trial
}

// class is that of a span, -1 if it has none or is not drawn.
func (t *timeline) class(s *analysis.Span) int {
	if s.Lane >= timelineLanes {
		return -1
	}
	for i, c := range spanClasses {
		if slices.Contains(c.states, s.Trial.State) {
			return i
		}
	}
	return -1
}

// bars are those of a class.
func (t *timeline) bars(class int) (s chart.Series, trials []uint64) {
	if t.piece > 0 {
		return t.summed(class)
	}
	return t.whole(class)
}

// add adds a bar, in seconds since the first start.
func (t *timeline) add(s *chart.Series, lane int, from, to uint64) {
	seconds := func(ms uint64) float64 { return float64(ms-t.spans[0].From) / 1000 }
	s.X, s.End, s.Y = append(s.X, seconds(from)), append(s.End, seconds(to)), append(s.Y, float64(lane))
}

// whole are the spans of a class as they are.
func (t *timeline) whole(class int) (s chart.Series, trials []uint64) {
	for i := range t.spans {
		if span := &t.spans[i]; t.class(span) == class {
			t.add(&s, span.Lane, span.From, span.To)
			trials = append(trials, span.Trial.Number)
		}
	}
	return s, trials
}

// sum sums the spans up.
func (t *timeline) sum() {
	t.pieces = map[pieceOf]*busy{}
	for i := range t.spans {
		span := &t.spans[i]
		class := t.class(span)
		if class < 0 || span.From == span.To { // it took no time
			continue
		}
		begin, end := span.From-t.spans[0].From, span.To-t.spans[0].From
		for n := begin / t.piece; n <= (end-1)/t.piece; n++ {
			from := max(begin, n*t.piece)
			to := from + min(end-from, t.piece-from%t.piece)
			b := t.at(pieceOf{span.Lane, n})
			if b.millis[class] == 0 {
				b.first[class] = span.Trial.Number
			}
			b.millis[class] += to - from
		}
	}
}

func (t *timeline) at(k pieceOf) *busy {
	b := t.pieces[k]
	if b == nil {
		b = &busy{make([]uint64, len(spanClasses)), make([]uint64, len(spanClasses))}
		t.pieces[k] = b
		t.order = append(t.order, k)
	}
	return b
}

// summed are the parts of a class in the pieces, each behind those of the classes
// before it.
func (t *timeline) summed(class int) (s chart.Series, trials []uint64) {
	for _, k := range t.order {
		b := t.pieces[k]
		from := t.spans[0].From + k.n*t.piece
		for _, before := range b.millis[:class] {
			from += before
		}
		if b.millis[class] > 0 {
			t.add(&s, k.lane, from, from+b.millis[class])
			trials = append(trials, b.first[class])
		}
	}
	return s, trials
}
