package main

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/metrics"
)

// chart is one metric as it is drawn: lines and marks over two axes.
type chart struct {
	title   string
	log     bool // the vertical axis is logarithmic
	time    bool // the horizontal axis is seconds since the run began, not steps
	lines   []chartLine
	marks   []chartMark
	xs, ys  axisRange
	skipped int // points at or below zero that a logarithmic axis cannot show
}

// chartLine is the points of one line in stream order, by column.
type chartLine struct {
	label string
	x, y  []float64
	older []bool // the copies that a resume has repeated
	total int    // points of which these are a sample
	last  float64
}

// chartMark is where something happened.
type chartMark struct {
	x      float64
	letter byte
}

// markLetters are the annotations that charts show. In a column of characters
// that has several the last of them stands.
var markLetters = []struct {
	class  metrics.NoteClass
	letter byte
	word   string
}{
	{metrics.NoteCheckpoint, 'C', "checkpoint"},
	{metrics.NoteStage, 'S', "stage"},
	{metrics.NoteInterrupted, 'I', "interruption"},
	{metrics.NoteResumed, 'R', "resume"},
	{metrics.NoteFailed, 'F', "failure"},
}

func (c *chart) add(label string, r metrics.Reading, firstMS int64) {
	l := chartLine{label: label, y: r.Values, older: r.Older, total: r.Total, last: r.Values[r.Len()-1]}
	l.x = make([]float64, r.Len())
	for i := range l.x {
		l.x[i] = c.at(r.Steps[i], r.Times[i], firstMS)
	}
	c.lines = append(c.lines, l)
}

func (c *chart) at(step, ms, firstMS int64) float64 {
	if c.time {
		return float64(ms-firstMS) / 1000
	}
	return float64(step)
}

func (c *chart) mark(run *foldedRun) {
	for _, m := range run.fold.Marks {
		for _, k := range markLetters {
			if m.Class == k.class {
				c.marks = append(c.marks, chartMark{c.at(m.Step, m.TSMS, run.fold.FirstTSMS), k.letter})
			}
		}
	}
}

// scale finds the ranges of the axes. It is false if there are no points.
func (c *chart) scale() bool {
	c.ys.log, c.xs.whole = c.log, !c.time
	for _, l := range c.lines {
		for i := range l.x {
			c.xs.cover(l.x[i])
			if finite(l.y[i]) && !c.ys.cover(l.y[i]) {
				c.skipped++
			}
		}
	}
	c.xs.widen()
	c.ys.widen()
	return len(c.lines) > 0
}

func finite(f float64) bool { return f-f == 0 }

// axisRange is the range of an axis.
type axisRange struct {
	lo, hi float64
	log    bool
	whole  bool // ticks are integers
	some   bool
}

// cover widens the range to a value. It is false if the axis cannot show it.
func (s *axisRange) cover(v float64) bool {
	switch {
	case s.log && v <= 0:
		return false
	case !s.some:
		s.lo, s.hi, s.some = v, v, true
	default:
		s.lo, s.hi = min(s.lo, v), max(s.hi, v)
	}
	return true
}

// widen gives a range of one value some room.
func (s *axisRange) widen() {
	switch {
	case !s.some && s.log:
		s.lo, s.hi = 0.1, 1
	case !s.some:
		s.lo, s.hi = 0, 1
	case s.lo < s.hi:
	case s.log:
		s.lo, s.hi = max(s.lo/2, math.SmallestNonzeroFloat64), min(s.hi*2, math.MaxFloat64)
	case s.lo == 0, s.whole:
		s.lo, s.hi = s.lo-1, s.hi+1
	default:
		room := math.Abs(s.lo) / 10
		s.lo, s.hi = max(s.lo-room, -math.MaxFloat64), min(s.hi+room, math.MaxFloat64)
	}
}

// share is where a value lies between 0 and 1. Halves keep a range as wide as
// all numbers finite.
func (s *axisRange) share(v float64) float64 {
	if s.log {
		lo, hi := math.Log10(s.lo), math.Log10(s.hi)
		return (math.Log10(v) - lo) / (hi - lo)
	}
	return (v/2 - s.lo/2) / (s.hi/2 - s.lo/2)
}

// ticks are about n round numbers in the range.
func (s *axisRange) ticks(n int) []float64 {
	if s.log {
		if t := s.logTicks(n); len(t) >= 2 {
			return t
		}
		return []float64{s.lo, s.hi}
	}
	half := s.hi/2 - s.lo/2
	step := 2 * roundStep(half/float64(max(n, 1)))
	if s.whole {
		step = max(step, 1)
	}
	if !finite(step) || step <= 0 {
		return []float64{s.lo, s.hi}
	}
	var ticks []float64
	for i := math.Ceil(s.lo / step); len(ticks) <= 2*n+2; i++ {
		v := i * step
		if !(v <= s.hi) {
			break
		}
		ticks = append(ticks, v)
	}
	if len(ticks) < 2 {
		return []float64{s.lo, s.hi}
	}
	return ticks
}

// logTicks are powers of ten, or of a power of ten if they are too many.
func (s *axisRange) logTicks(n int) (ticks []float64) {
	first, last := math.Ceil(math.Log10(s.lo)), math.Floor(math.Log10(s.hi))
	step := max(1, math.Ceil((last-first)/float64(max(n, 1))))
	for e := first; e <= last; e += step {
		ticks = append(ticks, math.Pow(10, e))
	}
	return ticks
}

// roundStep is the next of 1, 2 and 5 times a power of ten.
func roundStep(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, f := range []float64{1, 2, 5, 10} {
		if v <= f*power {
			return f * power
		}
	}
	return 10 * power
}

// tickText is a number at an axis.
func tickText(v float64) string {
	if v == 0 {
		return "0"
	}
	return strconv.FormatFloat(v, 'g', 5, 64)
}

// xText is a number at the horizontal axis.
func (c *chart) xText(v float64) string {
	if c.time {
		return cli.Duration(time.Duration(v * float64(time.Second)))
	}
	if math.Abs(v) < 1<<53 {
		return strconv.FormatInt(int64(v), 10)
	}
	return tickText(v)
}

// legend is what a line is called, and how it ended.
func (l *chartLine) legend() string {
	text := "last " + floatText(l.last)
	if l.label != "" {
		text = l.label + "  " + text
	}
	if l.total > len(l.x) {
		text += fmt.Sprintf("  (%s of %s sampled)", plural(int64(len(l.x)), "point"), cli.Count(int64(l.total)))
	}
	return text
}

// notes are the words beneath a chart.
func (c *chart) notes() (notes []string) {
	words := ""
	for _, k := range markLetters {
		for _, m := range c.marks {
			if m.letter == k.letter {
				words += fmt.Sprintf("  %c %s", k.letter, k.word)
				break
			}
		}
	}
	if words != "" {
		notes = append(notes, words[2:])
	}
	older, odd := 0, 0
	for _, l := range c.lines {
		for i := range l.y {
			if l.older[i] {
				older++
			}
			if !finite(l.y[i]) {
				odd++
			}
		}
	}
	for _, n := range []struct {
		n    int
		what string
	}{{odd, "not finite (×)"}, {c.skipped, "at or below zero, not on a logarithmic axis"}, {older, "repeated after a resume (dim)"}} {
		if n.n > 0 {
			notes = append(notes, fmt.Sprintf("%s %s", plural(int64(n.n), "point"), n.what))
		}
	}
	return notes
}
