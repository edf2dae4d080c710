// Package studyplot draws studies: which charts a kind of plot has, what is in them,
// and what is left out where there is too much. Package chart draws the charts.
package studyplot

import (
	"fmt"
	"strings"

	"github.com/foldlog/foldlog/internal/chart"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/serde"
	"github.com/foldlog/foldlog/internal/studyview"
	"github.com/foldlog/foldlog/study"
)

// Options say what is drawn, and how much of it.
type Options struct {
	studyview.ImportanceOptions
	Params   []string // only these parameters, in slice and parallel
	Log      bool     // a logarithmic axis for the values
	Most     int      // trials that are drawn; 0 is what a picture of the kind can show
	Terminal bool     // 0 is what a terminal can show
}

// Kind is a kind of plot.
type Kind struct {
	Name, Short string
	most        int // trials that are drawn without --most
	term        int // and in a terminal
	make        func(*Plot) error
}

// Kinds are the kinds of plots.
func Kinds() []Kind {
	return []Kind{
		{"history", "values by trial, and the best so far", 5000, 5000, (*Plot).history},
		{"slice", "values over each parameter", 2000, 2000, (*Plot).slice},
		{"parallel", "all parameters of each trial as one line", 400, 80, (*Plot).parallel},
		{"importance", "how much each parameter matters", 0, 0, (*Plot).importance},
		{"pareto", "two objectives against each other, and the front", 5000, 5000, (*Plot).pareto},
		{"intermediate", "what trials reported, step by step", 150, 40, (*Plot).intermediate},
		{"timeline", "when trials ran", 2000, 160, (*Plot).timeline},
	}
}

// KindOf finds a kind by its name.
func KindOf(name string) (Kind, error) {
	var names []string
	for _, k := range Kinds() {
		if k.Name == name {
			return k, nil
		}
		names = append(names, k.Name)
	}
	return Kind{}, cli.Usagef("study plot: KIND %q: %s", name, strings.Join(names, ", "))
}

// Plot is a plot that is being made.
type Plot struct {
	opts    Options
	kind    Kind
	snap    *study.Snapshot
	st      *study.Study
	charts  []*studyChart
	Columns int // of charts in a picture
	rows    int // of categories, where they decide the height
}

// studyChart is a chart and the trials that its points are of.
type studyChart struct {
	*chart.Chart
	trials [][]uint64 // by series
}

// New draws a study. Nothing to draw is study.ErrNotFound.
func New(kind Kind, snap *study.Snapshot, st *study.Study, opts Options) (*Plot, error) {
	switch {
	case opts.Most > 0:
		kind.most = opts.Most
	case opts.Terminal:
		kind.most = kind.term
	}
	p := &Plot{opts: opts, kind: kind, snap: snap, st: st, Columns: 1}
	return p, kind.make(p)
}

func (p *Plot) add(c *chart.Chart) *studyChart {
	sc := &studyChart{Chart: c}
	p.charts = append(p.charts, sc)
	return sc
}

// add adds a series, unless it is empty.
func (c *studyChart) add(s chart.Series, trials []uint64) {
	if len(s.X) > 0 {
		c.Series, c.trials = append(c.Series, s), append(c.trials, trials)
	}
}

// Pixels is the height of a chart in a picture.
func (p *Plot) Pixels() int {
	switch {
	case p.rows > 0:
		return max(160+26*p.rows, 240)
	case p.Columns > 1:
		return 320
	}
	return 440
}

// Scaled are the charts with their axes, those without points left out.
func (p *Plot) Scaled() (charts []*chart.Chart) {
	for _, c := range p.charts {
		p.spread(c)
		if c.Scale() {
			charts = append(charts, c.Chart)
		}
	}
	return charts
}

// spread sets the dots of categories beside one another, which would lie on one
// another, by their numbers.
func (p *Plot) spread(c *studyChart) {
	if c.X.Categories == nil {
		return
	}
	for i, s := range c.Series {
		for k := range s.X {
			s.X[k] += 0.6 * (float64(c.trials[i][k]*61%100)/100 - 0.5)
		}
	}
}

// chosen are the objectives to draw.
func (p *Plot) chosen() (list []int, err error) {
	if p.opts.Objective != "" {
		i, err := studyview.PickObjective(p.st, p.opts.Objective)
		return []int{i}, err
	}
	for i := range p.st.Config.Directions {
		list = append(list, i)
	}
	return list, nil
}

// title names an objective and its direction.
func (p *Plot) title(objective int) string {
	return p.st.ObjectiveNames()[objective] + " (" + p.st.DirectionNames()[objective] + ")"
}

// none is the error of a plot without anything in it.
func (p *Plot) none(what string) error {
	return cli.WithHint(fmt.Errorf("plot %s: %w: %s", p.kind.Name, study.ErrNotFound, what), "foldlog study show counts the trials")
}

// sample are indices of n things, most at most: evenly spread, and those that
// must be there.
func (p *Plot) sample(n int, must func(int) bool) (indices []int, note string) {
	if n <= p.kind.most {
		for i := range n {
			indices = append(indices, i)
		}
		return indices, ""
	}
	last := -1
	for i := range n {
		if slot := i * p.kind.most / n; slot != last || must(i) {
			indices, last = append(indices, i), slot
		}
	}
	return indices, fmt.Sprintf("%s of %s drawn; --most N draws more", cli.Plural(int64(len(indices)), "trial"), cli.Count(int64(n)))
}

func (c *studyChart) note(notes ...string) {
	for _, n := range notes {
		if n != "" {
			c.Notes = append(c.Notes, n)
		}
	}
}

// View is a plot in JSON.
type View struct {
	Kind   string      `json:"kind"`
	Study  string      `json:"study"`
	Charts []ChartView `json:"charts"`
}

// ChartView is one of its charts.
type ChartView struct {
	Title  string   `json:"title"`
	X      Axis     `json:"x"`
	Y      Axis     `json:"y"`
	Series []Series `json:"series"`
	Notes  []string `json:"notes"` // what has been left out, and why
}

// Axis is one of a chart's axes.
type Axis struct {
	Label      string   `json:"label"`
	Log        bool     `json:"log"`        // logarithmic
	Categories []string `json:"categories"` // names of the places 0, 1 and so on; empty for numbers
}

// Series is some points that belong together.
type Series struct {
	Name   string             `json:"name"`  // in the legend, "" if it has none
	Style  string             `json:"style"` // line, dots or spans
	X      []studyview.Number `json:"x"`     // of spans their beginnings
	Y      []studyview.Number `json:"y"`
	End    []studyview.Number `json:"end"`    // of spans, else empty
	Trials []uint64           `json:"trials"` // their numbers; empty if the points are of no trial
}

// View is the plot in JSON.
func (p *Plot) View() View {
	v := View{Kind: p.kind.Name, Study: p.st.Config.Name, Charts: []ChartView{}}
	for _, c := range p.charts {
		cv := ChartView{Title: c.Title, Notes: serde.NotNil(c.Notes), Series: []Series{},
			X: Axis{c.X.Label, c.X.Log, serde.NotNil(c.X.Categories)}, Y: Axis{c.Y.Label, c.Y.Log, serde.NotNil(c.Y.Categories)}}
		for _, column := range c.Columns {
			cv.X.Categories = append(cv.X.Categories, column.Label)
		}
		for i, s := range c.Series {
			cv.Series = append(cv.Series, Series{s.Legend, []string{"line", "dots", "spans"}[s.Style],
				studyview.Numbers(s.X), studyview.Numbers(s.Y), studyview.Numbers(s.End), serde.NotNil(c.trials[i])})
		}
		v.Charts = append(v.Charts, cv)
	}
	return v
}
