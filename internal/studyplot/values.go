package studyplot

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/foldlog/foldlog/internal/chart"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/studyview"
	"github.com/foldlog/foldlog/study"
	"github.com/foldlog/foldlog/study/analysis"
)

// Colours of what series mean throughout the plots.
const (
	colourTrials = 0
	colourBest   = 1
	colourLive   = 2
	colourFailed = 3
	colourPruned = 5
)

// dotSize is the diameter of n dots in pixels: a few must be seen, many must not
// cover one another.
func dotSize(n int) float64 {
	switch {
	case n <= 20:
		return 8
	case n <= 100:
		return 6
	case n <= 500:
		return 5
	}
	return 4
}

// history draws the values by number, and the best so far as stairs.
func (p *Plot) history() error {
	objectives, err := p.chosen()
	if err != nil {
		return err
	}
	for _, objective := range objectives {
		points := analysis.BestSoFar(p.snap, p.st, objective)
		if len(points) == 0 {
			return p.none("no completed trial has a value that is not NaN")
		}
		c := p.add(&chart.Chart{Title: p.title(objective), X: chart.Axis{Fine: true, Whole: true, Label: "trial"}, Y: chart.Axis{Fine: true, Log: p.opts.Log, Label: p.st.ObjectiveNames()[objective]}})
		c.note(p.results(c, objective, points))
		c.add(stairs(points))
	}
	return nil
}

// results adds the values of the completed trials, those that are NaN too, which the
// best so far does not know.
func (p *Plot) results(c *studyChart, objective int, points []analysis.HistoryPoint) (note string) {
	improved := map[uint64]bool{}
	for _, h := range points {
		improved[h.Trial.Number] = h.Improved
	}
	var all []*study.Trial
	for t := range p.snap.Trials(p.st.ID, study.TrialFilter{States: []study.State{study.Complete}}) {
		if objective < len(t.Values) {
			all = append(all, t)
		}
	}
	drawn, note := p.sample(len(all), func(i int) bool { return improved[all[i].Number] })
	dots := chart.Series{Style: chart.Dots, Legend: "completed trials", Colour: colourTrials, Faint: true, Size: dotSize(len(drawn))}
	var trials []uint64
	for _, i := range drawn {
		dots.X, dots.Y = append(dots.X, float64(all[i].Number)), append(dots.Y, all[i].Values[objective])
		trials = append(trials, all[i].Number)
	}
	c.add(dots, trials)
	return note
}

// stairs are the corners of the best so far, infinite ones left out.
func stairs(points []analysis.HistoryPoint) (s chart.Series, trials []uint64) {
	var best analysis.HistoryPoint
	step := func(x, y float64, t *study.Trial) {
		if y-y == 0 {
			s.X, s.Y, trials = append(s.X, x), append(s.Y, y), append(trials, t.Number)
		}
	}
	for _, h := range points {
		if !h.Improved {
			continue
		}
		x := float64(h.Trial.Number)
		if best.Trial != nil {
			step(x, best.Best, best.Trial)
		}
		step(x, h.Best, h.Trial)
		best = h
	}
	step(float64(points[len(points)-1].Trial.Number), best.Best, best.Trial)
	s.Legend = fmt.Sprintf("best so far: %s by trial %d", studyview.Significant(best.Best), best.Trial.Number)
	s.Colour = colourBest
	return s, trials
}

// slices are those of the parameters that are wanted.
func (p *Plot) slices(objective int) ([]analysis.ParamSlice, error) {
	all := analysis.Slice(p.snap, p.st, objective)
	if len(p.opts.Params) == 0 {
		if len(all) == 0 {
			return nil, p.none("no completed trial has parameters and a finite value")
		}
		return all, nil
	}
	var list []analysis.ParamSlice
	for _, name := range p.opts.Params {
		i := slices.IndexFunc(all, func(s analysis.ParamSlice) bool { return s.Param == name })
		if i < 0 {
			var names []string
			for _, s := range all {
				names = append(names, s.Param)
			}
			return nil, cli.WithHint(fmt.Errorf("parameter %q %w", name, study.ErrNotFound), fmt.Sprintf("the completed trials have %q", names))
		}
		list = append(list, all[i])
	}
	return list, nil
}

// eachSlices hands out the trials by parameter, for each objective that is drawn.
func (p *Plot) eachSlices(do func(objective int, list []analysis.ParamSlice)) error {
	objectives, err := p.chosen()
	if err != nil {
		return err
	}
	for _, objective := range objectives {
		list, err := p.slices(objective)
		if err != nil {
			return err
		}
		do(objective, list)
	}
	return nil
}

// shades is how many shades the trials of a slice have.
const shades = 4

// slice draws a chart per parameter and objective.
func (p *Plot) slice() error {
	err := p.eachSlices(func(objective int, list []analysis.ParamSlice) {
		for _, s := range list {
			p.oneSlice(s, objective)
		}
	})
	if err != nil {
		return err
	}
	p.Columns = min(3, len(p.charts))
	if len(p.charts) == 4 {
		p.Columns = 2
	}
	return nil
}

func (p *Plot) oneSlice(s analysis.ParamSlice, objective int) {
	if len(s.Points) == 0 {
		return
	}
	axis := chart.Axis{Fine: true, Log: s.Log, Categories: s.Categories, Label: s.Param}
	axis.Whole = !slices.ContainsFunc(s.Points, func(q analysis.SlicePoint) bool { return q.X != math.Trunc(q.X) })
	name := p.st.ObjectiveNames()[objective]
	c := p.add(&chart.Chart{Title: name + " by " + s.Param, X: axis, Y: chart.Axis{Fine: true, Log: p.opts.Log, Label: name}})
	dir := p.st.Config.Directions[objective]
	best := slices.MinFunc(s.Points, func(a, b analysis.SlicePoint) int { return study.CompareValues(dir, a.Value, b.Value) })
	drawn, note := p.sample(len(s.Points), func(i int) bool { return s.Points[i].Trial == best.Trial })
	for shade := range shades {
		dots := chart.Series{Style: chart.Dots, Shade: float64(shade+1) / shades, Size: dotSize(len(drawn))}
		var trials []uint64
		for _, i := range drawn[len(drawn)*shade/shades : len(drawn)*(shade+1)/shades] {
			q := s.Points[i]
			dots.X, dots.Y, trials = append(dots.X, q.X), append(dots.Y, q.Value), append(trials, q.Trial.Number)
		}
		c.add(dots, trials)
	}
	if s.Missing > 0 {
		c.note(cli.Plural(int64(s.Missing), "trial") + " without it")
	}
	c.note(note)
}

// importance draws a bar per parameter.
func (p *Plot) importance() error {
	v, err := p.opts.Compute(p.snap, p.st)
	if err != nil {
		return err
	}
	if len(v.Params) == 0 {
		return p.none("the completed trials have no parameters")
	}
	bars := chart.Series{Style: chart.Spans, Colour: colourTrials}
	c := p.add(&chart.Chart{Title: "importance for " + v.Metric, X: chart.Axis{Label: "share of what parameters make by themselves"}})
	const most = 40
	for i, param := range v.Params[:min(len(v.Params), most)] {
		c.Y.Categories = append(c.Y.Categories, param.Param)
		bars.X, bars.End, bars.Y = append(bars.X, 0), append(bars.End, param.Share), append(bars.Y, float64(i))
		bars.Texts = append(bars.Texts, studyview.Percent(param.Share))
	}
	c.X.Fix = &[2]float64{0, max(v.Params[0].Share, 0.01) * 1.15}
	c.add(bars, nil)
	if left := len(v.Params) - most; left > 0 {
		c.note(cli.Plural(int64(left), "parameter") + " that matter less not drawn")
	}
	c.note(v.Notes()...)
	p.rows = len(c.Y.Categories)
	return nil
}

// pareto draws each pair of objectives, and the front of all of them.
func (p *Plot) pareto() error {
	n := len(p.st.Config.Directions)
	if n < 2 {
		return cli.WithHint(cli.Usagef("plot pareto needs a study of several objectives; %q has one", p.st.Config.Name), "foldlog study plot history draws it")
	}
	trials, points, left := analysis.Losses(p.snap, p.st)
	if len(trials) == 0 {
		return p.none("no completed trial has finite values")
	}
	front, err := analysis.Front(points)
	if err != nil {
		return err
	}
	on := make([]bool, len(trials))
	for _, i := range front {
		on[i] = true
	}
	first, err := studyview.PickObjective(p.st, p.opts.Objective)
	if err != nil {
		return err
	}
	for a := range n {
		for b := a + 1; b < n; b++ {
			if p.opts.Objective == "" || a == first || b == first {
				p.pair(a, b, trials, on)
			}
		}
	}
	p.Columns = min(2, len(p.charts))
	c := p.charts[0]
	corner := analysis.Reference(points)
	volume, err := analysis.Hypervolume(points, corner)
	if err != nil {
		return err
	}
	c.note("hypervolume " + studyview.Significant(volume.Value) + " up to " + studyview.Results(p.st, rounded(studyview.Turned(p.st.Config.Directions, corner))))
	if left > 0 {
		c.note(cli.Plural(int64(left), "trial") + " without finite values left out")
	}
	return nil
}

// rounded are values to six digits, for people.
func rounded(values []float64) []float64 {
	for i, v := range values {
		fmt.Sscan(studyview.Significant(v), &values[i])
	}
	return values
}

func (p *Plot) pair(a, b int, trials []*study.Trial, on []bool) {
	names := p.st.ObjectiveNames()
	c := p.add(&chart.Chart{Title: p.title(b) + " over " + p.title(a), X: chart.Axis{Fine: true, Label: names[a]}, Y: chart.Axis{Fine: true, Log: p.opts.Log, Label: names[b]}})
	drawn, note := p.sample(len(trials), func(i int) bool { return on[i] })
	for _, front := range []bool{false, true} {
		dots := chart.Series{Style: chart.Dots, Legend: "dominated", Colour: colourTrials, Faint: true, Size: dotSize(len(drawn))}
		if front {
			dots = chart.Series{Style: chart.Dots, Colour: colourBest, Size: max(7, dotSize(len(drawn))), Glyph: '●'}
		}
		var numbers []uint64
		for _, i := range drawn {
			if t := trials[i]; on[i] == front {
				dots.X, dots.Y, numbers = append(dots.X, t.Values[a]), append(dots.Y, t.Values[b]), append(numbers, t.Number)
			}
		}
		if front {
			dots.Legend = "front: " + cli.Plural(int64(len(numbers)), "trial")
		}
		c.add(dots, numbers)
	}
	c.note(note)
}

// byRank are the trials of slices from worst to best, with the part of the others
// that each is better than.
func byRank(list []analysis.ParamSlice, dir study.Direction, objective int) (trials []*study.Trial, rank map[uint64]float64) {
	rank = map[uint64]float64{}
	for _, s := range list {
		for _, q := range s.Points {
			if _, ok := rank[q.Trial.Number]; !ok {
				rank[q.Trial.Number] = 0
				trials = append(trials, q.Trial)
			}
		}
	}
	slices.SortStableFunc(trials, func(a, b *study.Trial) int {
		return cmp.Or(study.CompareValues(dir, b.Values[objective], a.Values[objective]), cmp.Compare(b.Number, a.Number))
	})
	for i, t := range trials {
		rank[t.Number] = float64(i+1) / float64(len(trials))
	}
	return trials, rank
}
