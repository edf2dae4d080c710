package analysis

import (
	"iter"
	"math"
	"slices"

	"github.com/foldlog/foldlog/study"
)

// HistoryPoint is one result in the course of a study.
type HistoryPoint struct {
	// Trial is the trial.
	Trial *study.Trial
	// Value is its value, which may be infinite.
	Value float64
	// Best is the best value so far, its own included.
	Best float64
	// Improved tells that it is better than all before, or the first.
	Improved bool
}

// BestSoFar is the course of one objective: the completed trials of a study by
// number, except those whose value is NaN. The infinities are ordinary values,
// as for [study.Snapshot.Best].
func BestSoFar(snap *study.Snapshot, st *study.Study, objective int) []HistoryPoint {
	var points []HistoryPoint
	if objective < 0 || objective >= len(st.Config.Directions) {
		return nil
	}
	dir := st.Config.Directions[objective]
	best := math.NaN()
	for t := range snap.Trials(st.ID, study.TrialFilter{States: []study.State{study.Complete}}) {
		if objective >= len(t.Values) || math.IsNaN(t.Values[objective]) {
			continue
		}
		v := t.Values[objective]
		improved := study.CompareValues(dir, v, best) < 0
		if improved {
			best = v
		}
		points = append(points, HistoryPoint{t, v, best, improved})
	}
	return points
}

// SlicePoint is the value of one parameter, and what became of it.
type SlicePoint struct {
	// Trial is the trial.
	Trial *study.Trial
	// X is the parameter as a number, or the index of its category.
	X float64
	// Value is the finite final value.
	Value float64
}

// ParamSlice are the results over one parameter.
type ParamSlice struct {
	// Param is the parameter's name.
	Param string
	// Categories name the values of a parameter that is not a number, those of
	// its distributions in their order first; nil for a number.
	Categories []string
	// Log tells that all values were drawn in the logarithm.
	Log bool
	// Points are the results by number.
	Points []SlicePoint
	// Missing is how many of the trials do not have the parameter, or have one
	// that is not finite.
	Missing int
}

// Slice sorts the results of a study by parameter, the declared ones first.
func Slice(snap *study.Snapshot, st *study.Study, objective int) []ParamSlice {
	var trials []*study.Trial
	for t := range snap.Trials(st.ID, study.TrialFilter{States: []study.State{study.Complete}}) {
		if _, ok := result(t, objective); ok {
			trials = append(trials, t)
		}
	}
	var slices []ParamSlice
	for _, p := range readParams(st, trials) {
		slices = append(slices, p.slice(trials, objective))
	}
	return slices
}

func (p *param) slice(trials []*study.Trial, objective int) ParamSlice {
	s := ParamSlice{Param: p.name, Log: p.numeric && p.log && p.lo > 0}
	index := map[string]int{}
	category := func(text string) float64 {
		if _, ok := index[text]; !ok {
			index[text] = len(s.Categories)
			s.Categories = append(s.Categories, text)
		}
		return float64(index[text])
	}
	for i, t := range trials {
		v := p.of[i]
		x := math.NaN()
		switch {
		case v == nil:
		case p.numeric:
			x, _ = numberOf(v.Value)
		default:
			for text := range labels(v.Dist) {
				category(text)
			}
			x = category(v.Text())
		}
		if !finite(x) {
			s.Missing++
			continue
		}
		s.Points = append(s.Points, SlicePoint{t, x, t.Values[objective]})
	}
	return s
}

// labels are the values of a distribution without numbers, in order.
func labels(dist study.Distribution) iter.Seq[string] {
	return func(yield func(string) bool) {
		switch d := dist.(type) {
		case study.BoolDist:
			_ = yield("false") && yield("true")
		case *study.CatDist:
			for i := range d.Choices {
				if !yield((study.Param{Dist: d, Value: study.Cat(uint64(i))}).Text()) {
					return
				}
			}
		}
	}
}

// Curve is what one trial reported.
type Curve struct {
	// Trial is the trial.
	Trial *study.Trial
	// Points are the current values by step. They may be NaN or infinite.
	Points []study.Point
}

// Curves are the intermediate values of one objective of all trials that
// reported any, in any state, by number.
func Curves(snap *study.Snapshot, st *study.Study, objective int) iter.Seq[Curve] {
	return func(yield func(Curve) bool) {
		for t := range snap.Trials(st.ID, study.TrialFilter{}) {
			if t.NumReports() == 0 {
				continue
			}
			if points := t.Curve(objective); len(points) > 0 && !yield(Curve{t, points}) {
				return
			}
		}
	}
}

// Span is the time in which a trial ran.
type Span struct {
	// Trial is the trial.
	Trial *study.Trial
	// From and To are Unix milliseconds. To is the last sign of life of a trial
	// that has not ended; it is never before From.
	From, To uint64
	// Lane is which of the trials at the same time it is, from 0: the lowest
	// that is free.
	Lane int
}

// Timeline is when the trials of a study ran, by start: each trial that has been
// started, from its last start to its end. Times are those of the wall clocks of
// whoever wrote them.
func Timeline(snap *study.Snapshot, st *study.Study) []Span {
	var spans []Span
	last := uint64(0)
	for t := range snap.Trials(st.ID, study.TrialFilter{}) {
		last = max(last, t.StartedMillis, t.EndedMillis, t.HeartbeatMillis)
		if t.StartedMillis > 0 {
			spans = append(spans, Span{Trial: t, From: t.StartedMillis, To: t.EndedMillis})
		}
	}
	slices.SortStableFunc(spans, func(a, b Span) int {
		switch {
		case a.From < b.From:
			return -1
		case a.From > b.From:
			return 1
		}
		return 0
	})
	var free lanes
	for i := range spans {
		s := &spans[i]
		if !s.Trial.State.Terminal() {
			s.To = last
			if s.Trial.Managed {
				s.To = s.Trial.HeartbeatMillis
			}
		}
		s.To = max(s.To, s.From)
		s.Lane = free.take(s.From, s.To)
	}
	return spans
}

// lanes hands out the lowest lane that is free: a heap of free ones, and one of
// those in use by their end.
type lanes struct {
	free heap[int]
	busy heap[busyLane]
	n    int
}

type busyLane struct {
	end  uint64
	lane int
}

func (l *lanes) take(from, to uint64) int {
	for len(l.busy.items) > 0 && l.busy.items[0].end <= from {
		l.free.push(l.busy.pop(laterEnd).lane, laterInt)
	}
	lane := l.n
	if len(l.free.items) > 0 {
		lane = l.free.pop(laterInt)
	} else {
		l.n++
	}
	l.busy.push(busyLane{to, lane}, laterEnd)
	return lane
}

func laterInt(a, b int) bool { return a > b }

func laterEnd(a, b busyLane) bool { return a.end > b.end || a.end == b.end && a.lane > b.lane }

// heap is a binary heap.
type heap[T any] struct{ items []T }

func (h *heap[T]) push(v T, later func(a, b T) bool) {
	h.items = append(h.items, v)
	for i := len(h.items) - 1; i > 0 && later(h.items[(i-1)/2], h.items[i]); i = (i - 1) / 2 {
		h.items[i], h.items[(i-1)/2] = h.items[(i-1)/2], h.items[i]
	}
}

func (h *heap[T]) pop(later func(a, b T) bool) T {
	top, last := h.items[0], len(h.items)-1
	h.items[0] = h.items[last]
	h.items = h.items[:last]
	for i := 0; ; {
		child := 2*i + 1
		if child+1 < last && later(h.items[child], h.items[child+1]) {
			child++
		}
		if child >= last || !later(h.items[i], h.items[child]) {
			return top
		}
		h.items[i], h.items[child] = h.items[child], h.items[i]
		i = child
	}
}
