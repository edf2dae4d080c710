package studyplot

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/foldlog/foldlog/internal/chart"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/studyview"
	"github.com/foldlog/foldlog/study"
	"github.com/foldlog/foldlog/study/analysis"
)

// parallelParams is how many parameters parallel coordinates have at most, unless
// --param names more.
const parallelParams = 12

// parallel draws a line per trial through its parameters and its value.
func (p *Plot) parallel() error {
	return p.eachSlices(func(objective int, list []analysis.ParamSlice) {
		left := 0
		if len(p.opts.Params) == 0 && len(list) > parallelParams {
			left = len(list) - parallelParams
			list = list[:parallelParams]
		}
		p.oneParallel(list, objective)
		if left > 0 {
			p.charts[len(p.charts)-1].note(cli.Plural(int64(left), "parameter") + " not drawn; --param names them")
		}
	})
}

// axisOf is a parameter, or the value, as a column of parallel coordinates.
type axisOf struct {
	at     map[uint64]float64 // places from 0 to 1 by trial number
	column chart.Column
}

func (p *Plot) oneParallel(list []analysis.ParamSlice, objective int) {
	c := p.add(&chart.Chart{Title: p.title(objective), Y: chart.Axis{Label: "part of the range"}})
	trials, rank := byRank(list, p.st.Config.Directions[objective], objective)
	value := analysis.ParamSlice{Param: p.st.ObjectiveNames()[objective], Log: p.opts.Log}
	for _, t := range trials {
		if v := t.Values[objective]; !p.opts.Log || v > 0 {
			value.Points = append(value.Points, analysis.SlicePoint{Trial: t, X: v})
		}
	}
	var axes []axisOf
	for _, s := range append(slices.Clone(list), value) {
		axis := newAxisOf(s, trials)
		axes = append(axes, axis)
		c.Columns = append(c.Columns, axis.column)
	}
	drawn, note := p.sample(len(trials), func(i int) bool { return i >= len(trials)-10 })
	for _, i := range drawn {
		c.thread(trials[i], axes, rank[trials[i].Number])
	}
	c.note("darker is better", note)
}

// thread adds the line of a trial, in pieces where it has no place.
func (c *studyChart) thread(t *study.Trial, axes []axisOf, rank float64) {
	var s chart.Series
	end := func() {
		s.Shade = max(math.Pow(rank, 4), 0.02)
		c.add(s, slices.Repeat([]uint64{t.Number}, len(s.X)))
		s = chart.Series{}
	}
	for k, axis := range axes {
		y, ok := axis.at[t.Number]
		if !ok {
			end()
			continue
		}
		s.X, s.Y = append(s.X, float64(k)), append(s.Y, y)
	}
	end()
}

// lackRoom is the part of an axis beneath the others where the trials go through
// that lack its parameter.
const lackRoom = 0.12

func newAxisOf(s analysis.ParamSlice, trials []*study.Trial) axisOf {
	a := axisOf{map[uint64]float64{}, chart.Column{Label: s.Param}}
	if len(s.Points) == 0 {
		return a
	}
	lo, hi, floor := math.Inf(1), math.Inf(-1), 0.0
	for _, q := range s.Points {
		lo, hi = min(lo, q.X), max(hi, q.X)
	}
	if s.Missing > 0 {
		floor = lackRoom
		a.column.Ticks = append(a.column.Ticks, chart.Tick{At: 0, Text: "none"})
		for _, t := range trials {
			a.at[t.Number] = 0
		}
	}
	if s.Categories != nil {
		lo, hi = 0, float64(len(s.Categories)-1)
	}
	at := func(v float64) float64 { return floor + (1-floor)*chart.Share(v, lo, hi, s.Log) }
	for _, t := range axisTicks(s, lo, hi) {
		a.column.Ticks = append(a.column.Ticks, chart.Tick{At: at(t.At), Text: t.Text})
	}
	for _, q := range s.Points {
		a.at[q.Trial.Number] = at(q.X)
	}
	return a
}

// axisTicks are the values at an axis: both ends, and round ones between them.
func axisTicks(s analysis.ParamSlice, lo, hi float64) (ticks []chart.Tick) {
	tick := func(v float64, text string) { ticks = append(ticks, chart.Tick{At: v, Text: text}) }
	if s.Categories != nil {
		for i, name := range s.Categories {
			tick(float64(i), name)
		}
		return ticks
	}
	tick(lo, chart.Text(lo))
	if lo == hi {
		return ticks
	}
	for _, v := range chart.Ticks(lo, hi, s.Log, 4) {
		if at := chart.Share(v, lo, hi, s.Log); at > 0.08 && at < 0.92 {
			tick(v, chart.Text(v))
		}
	}
	tick(hi, chart.Text(hi))
	return ticks
}

// curveClass is what becomes of the curves of trials in some states.
type curveClass struct {
	name   string
	colour int
	states []study.State
}

var curveClasses = []curveClass{
	{"complete", colourTrials, []study.State{study.Complete}},
	{"pruned", colourPruned, []study.State{study.Pruned}},
	{"failed", colourFailed, []study.State{study.Failed}},
	{"running", colourLive, []study.State{study.Running, study.Paused, study.Waiting}},
}

// curvePoints is how many points of a curve are drawn at most.
const curvePoints = 500

// intermediate draws a curve per trial, the best one over the others.
func (p *Plot) intermediate() error {
	objective, err := studyview.PickObjective(p.st, p.opts.Objective)
	if err != nil {
		return err
	}
	best, _ := p.snap.Best(p.st.ID)
	isBest := func(t *study.Trial) bool { return len(best) == 1 && t.Number == best[0].Number }
	curves := slices.Collect(analysis.Curves(p.snap, p.st, objective))
	if len(curves) == 0 {
		return p.none("no trial has reported anything")
	}
	c := p.add(&chart.Chart{Title: p.title(objective), X: chart.Axis{Fine: true, Whole: true, Label: "step"}, Y: chart.Axis{Fine: true, Log: p.opts.Log, Label: p.st.ObjectiveNames()[objective]}})
	drawn, note := p.sample(len(curves), func(i int) bool { return isBest(curves[i].Trial) })
	for _, class := range curveClasses {
		c.curves(class, curves, drawn, isBest)
	}
	for _, i := range drawn {
		if t := curves[i].Trial; isBest(t) {
			s, trials := curveOf(curves[i])
			s.Colour, s.Legend = colourBest, fmt.Sprintf("best: trial %d", t.Number)
			c.add(s, trials)
		}
	}
	c.note(note)
	return nil
}

// curves adds those of a class; the first of them has the legend.
func (c *studyChart) curves(class curveClass, curves []analysis.Curve, drawn []int, isBest func(*study.Trial) bool) {
	first, n := len(c.Series), 0
	for _, i := range drawn {
		if t := curves[i].Trial; slices.Contains(class.states, t.State) && !isBest(t) {
			s, trials := curveOf(curves[i])
			s.Colour, s.Faint = class.colour, true
			c.add(s, trials)
			n++
		}
	}
	if n > 0 {
		c.Series[first].Legend = fmt.Sprintf("%s: %s", class.name, cli.Plural(int64(n), "trial"))
	}
}

// curveOf is a curve as a series, from a sample of its points that has the last.
func curveOf(curve analysis.Curve) (s chart.Series, trials []uint64) {
	step := max((len(curve.Points)+curvePoints-1)/curvePoints, 1)
	for i, q := range curve.Points {
		if i%step == 0 || i == len(curve.Points)-1 {
			s.X, s.Y = append(s.X, float64(q.Step)), append(s.Y, q.Value)
			trials = append(trials, curve.Trial.Number)
		}
	}
	return s, trials
}

// spanClasses are the states of trials in a timeline.
var spanClasses = []struct {
	name   string
	colour int
	glyph  rune
	states []study.State
}{
	{"complete", colourTrials, '█', []study.State{study.Complete}},
	{"pruned", colourPruned, '▒', []study.State{study.Pruned}},
	{"failed", colourFailed, '×', []study.State{study.Failed}},
	{"running", colourLive, '░', []study.State{study.Running, study.Paused, study.Waiting}},
}

// timelineLanes is how many trials at a time a timeline shows.
const timelineLanes = 64

// timeline draws when trials ran, those at the same time beneath one another.
func (p *Plot) timeline() error {
	spans := analysis.Timeline(p.snap, p.st)
	if len(spans) == 0 {
		return p.none("no trial has been started")
	}
	lanes, hidden, last := 0, 0, spans[0].From
	for _, s := range spans {
		last = max(last, s.To)
		if s.Lane >= timelineLanes {
			hidden++
		}
		lanes = max(lanes, min(s.Lane+1, timelineLanes))
	}
	c := p.add(&chart.Chart{Title: p.st.Config.Name + ": " + cli.Plural(int64(len(spans)), "trial") + " at " + cli.Plural(int64(lanes), "place"),
		X: chart.Axis{Time: true, Label: "since the first start"}})
	for i := range lanes {
		c.Y.Categories = append(c.Y.Categories, strconv.Itoa(i+1))
	}
	tl := &timeline{spans: spans}
	if len(spans)/lanes > p.kind.most/4 {
		tl.piece = max((last-spans[0].From)/uint64(max(p.kind.most/20, 1)), 1)
		tl.sum()
		c.note("summed up in pieces of " + studyview.MillisText(tl.piece) + ": in each, how much of it went into which trials; --most N draws more")
	}
	for class, k := range spanClasses {
		s, trials := tl.bars(class)
		s.Style, s.Legend, s.Colour, s.Glyph = chart.Spans, k.name, k.colour, k.glyph
		c.add(s, trials)
	}
	if hidden > 0 {
		c.note(cli.Plural(int64(hidden), "trial") + " at further places not drawn")
	}
	p.rows = lanes
	return nil
}
