package studyplot

import (
	"math"
	"testing"

	"github.com/foldlog/foldlog/study"
	"github.com/foldlog/foldlog/study/analysis"
)

// TestATimelineThatIsSummedUpHidesNothing has one failed trial in fifty: the bars of
// each class are as long together as its trials, and no two lie on one another.
func TestATimelineThatIsSummedUpHidesNothing(t *testing.T) {
	tl := &timeline{piece: 500}
	want := make([]float64, len(spanClasses))
	at := uint64(1000)
	for i := range uint64(1000) {
		state := study.Complete
		if i%50 == 0 {
			state = study.Failed
		}
		long := 7 + i%13
		span := analysis.Span{Trial: &study.Trial{Number: i, State: state}, From: at, To: at + long}
		tl.spans = append(tl.spans, span)
		want[tl.class(&span)] += float64(long) / 1000
		at += long + i%3
	}
	tl.sum()
	bars := 0
	taken := map[int]bool{} // milliseconds
	for class := range spanClasses {
		s, trials := tl.bars(class)
		sum := 0.0
		for i := range s.X {
			sum += s.End[i] - s.X[i]
			for ms := math.Round(s.X[i] * 1000); ms < math.Round(s.End[i]*1000); ms++ {
				if taken[int(ms)] {
					t.Fatalf("two bars at %v ms", ms)
				}
				taken[int(ms)] = true
			}
		}
		if math.Abs(sum-want[class]) > 1e-6 || len(trials) != len(s.X) {
			t.Errorf("%s: %v s in %d bars of %d trials, want %v s", spanClasses[class].name, sum, len(s.X), len(trials), want[class])
		}
		bars += len(s.X)
	}
	if bars > 2*(int(at)/500+1) {
		t.Errorf("%d bars", bars)
	}
}

// Clocks may say anything.
func TestATimelineEndsWithTime(t *testing.T) {
	tl := &timeline{piece: math.MaxUint64 / 3}
	for n, from := range []uint64{1, math.MaxUint64 - 5} {
		tl.spans = append(tl.spans, analysis.Span{Trial: &study.Trial{Number: uint64(n), State: study.Complete}, From: from, To: math.MaxUint64, Lane: n})
	}
	tl.sum()
	if s, _ := tl.bars(0); len(s.X) != 4 {
		t.Errorf("%d bars, want 4: %v", len(s.X), tl.order)
	}
}

// TestATrialThatLacksAParameterIsSeen: its line passes the axis apart from all values.
func TestATrialThatLacksAParameterIsSeen(t *testing.T) {
	all := []*study.Trial{{Number: 0}, {Number: 1}, {Number: 2}}
	a := newAxisOf(analysis.ParamSlice{
		Param: "momentum", Missing: 1,
		Points: []analysis.SlicePoint{{Trial: all[0], X: 0.1}, {Trial: all[2], X: 0.9}},
	}, all)
	if a.at[1] != 0 || a.at[0] < lackRoom || a.at[2] != 1 || a.column.Ticks[0].Text != "none" {
		t.Errorf("places %v, ticks %v", a.at, a.column.Ticks)
	}
}
