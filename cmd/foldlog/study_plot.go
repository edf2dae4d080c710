package main

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/foldlog/foldlog/internal/chart"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/study"
)

// studyPlotFlags is the command line of study plot.
type studyPlotFlags struct {
	importanceFlags
	params        []string
	log, asJSON   bool
	most          int
	out           string
	width, height int
}

// plotKind is a kind of plot.
type plotKind struct {
	name, short string
	most        int // trials that are drawn without --most
	term        int // and in a terminal
	make        func(*studyPlot) error
}

// plotKinds are the kinds of plots.
func plotKinds() []plotKind {
	return []plotKind{
		{"history", "values by trial, and the best so far", 5000, 5000, (*studyPlot).history},
		{"slice", "values over each parameter", 2000, 2000, (*studyPlot).slice},
		{"parallel", "all parameters of each trial as one line", 400, 80, (*studyPlot).parallel},
		{"importance", "how much each parameter matters", 0, 0, (*studyPlot).importance},
		{"pareto", "two objectives against each other, and the front", 5000, 5000, (*studyPlot).pareto},
		{"intermediate", "what trials reported, step by step", 150, 40, (*studyPlot).intermediate},
		{"timeline", "when trials ran", 2000, 2000, (*studyPlot).timeline},
	}
}

func (a *app) studyPlotCmd() *cobra.Command {
	var flags studyPlotFlags
	c := &cobra.Command{
		Use:   "plot KIND PATH [--param NAME]... [--objective NAME] [--log] [--out FILE.png|FILE.svg] [--json]",
		Short: "Draw a study in the terminal, or as a PNG or SVG picture",
		Long:  "Draw a study. KIND is one of\n\n" + kindList() + studyPlotLong,
		Example: "  foldlog study plot history search.atj\n  foldlog study plot slice search.atj --param lr --param layers\n" +
			"  foldlog study plot parallel search.atj --out search.svg",
		Args: operands("KIND", "PATH"),
	}
	var name string
	c.Flags().StringVar(&name, "study", "", "the `NAME` of the study, where the journal holds several")
	c.RegisterFlagCompletionFunc("study", func(c *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
		return completeStudies(c, args[min(1, len(args)):], text)
	})
	objectiveFlag(c, &flags.objective, 1)
	flags.add(c)
	f := c.Flags()
	f.StringArrayVar(&flags.params, "param", nil, "draw the parameter of this `NAME`; again for each further one (slice, parallel)")
	f.BoolVar(&flags.log, "log", false, "a logarithmic axis for the values")
	f.IntVar(&flags.most, "most", 0, "draw `N` trials at most (0: thousands of dots, hundreds of lines)")
	f.StringVar(&flags.out, "out", "", "write a picture to this `FILE`, .png or .svg")
	f.IntVar(&flags.width, "width", 0, "width in characters, of a picture in pixels")
	f.IntVar(&flags.height, "height", 0, "height of each chart in lines, of a picture in pixels")
	f.BoolVar(&flags.asJSON, "json", false, "print what would be drawn as one JSON object")
	c.ValidArgsFunction = completePlot
	c.RunE = func(c *cobra.Command, args []string) error {
		kind, image, err := flags.check(args[0])
		if err != nil {
			return err
		}
		return failed("study plot", args[1], a.readStudy(args[1], name, func(snap *study.Snapshot, st *study.Study) error {
			return a.plotStudy(&studyPlot{flags: &flags, kind: kind, snap: snap, st: st, columns: 1}, image)
		}))
	}
	return c
}

const studyPlotLong = `
Completed trials have values; pruned, failed and running ones are in intermediate
and timeline alone. Where there are more trials than a picture can show, a sample
is drawn that has the best of them, and a note says so. Each objective has a
chart of its own, unless --objective names one. The colours of slice are darker
for later trials, those of parallel for better ones.`

func kindList() string {
	var b strings.Builder
	for _, k := range plotKinds() {
		fmt.Fprintf(&b, "  %-13s %s\n", k.name, k.short)
	}
	return b.String()
}

// completePlot offers the kinds, and then a path.
func completePlot(_ *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	for _, k := range plotKinds() {
		names = append(names, k.name+"\t"+k.short)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// imageWriter draws charts as a picture.
type imageWriter func(io.Writer, []*chart.Chart, chart.Layout) error

func (f *studyPlotFlags) check(name string) (kind plotKind, image imageWriter, err error) {
	kinds := plotKinds()
	i := slices.IndexFunc(kinds, func(k plotKind) bool { return k.name == name })
	if i < 0 {
		var names []string
		for _, k := range kinds {
			names = append(names, k.name)
		}
		return kind, nil, cli.Usagef("study plot: KIND %q: %s", name, strings.Join(names, ", "))
	}
	kind = kinds[i]
	switch {
	case f.most > 0:
		kind.most = f.most
	case f.out == "" && !f.asJSON:
		kind.most = kind.term
	}
	switch {
	case f.width < 0 || f.height < 0 || f.most < 0:
		return kind, nil, cli.Usagef("--width, --height and --most must not be negative")
	case max(f.width, f.height) > 20_000:
		return kind, nil, cli.Usagef("--width and --height go up to 20000")
	case f.asJSON && f.out != "":
		return kind, nil, cli.Usagef("--json and --out exclude each other")
	}
	image, err = imageOf(f.out)
	return kind, image, err
}

// imageOf is the writer for a name of a picture, nil for "".
func imageOf(out string) (imageWriter, error) {
	switch strings.ToLower(filepath.Ext(out)) {
	case ".png":
		return chart.PNG, nil
	case ".svg":
		return chart.SVG, nil
	}
	if out != "" {
		return nil, cli.Usagef("--out %q: its name must end in .png or .svg", out)
	}
	return nil, nil
}

// plotStudy makes the charts of a kind, and shows them as asked.
func (a *app) plotStudy(p *studyPlot, image imageWriter) error {
	if err := p.kind.make(p); err != nil {
		return err
	}
	if p.flags.asJSON {
		return cli.WriteJSON(a.Out(), p.view())
	}
	var charts []*chart.Chart
	for _, c := range p.charts {
		p.spread(c)
		if c.Scale() {
			charts = append(charts, c.Chart)
		}
	}
	if image != nil {
		layout := chart.Layout{Width: orElse(p.flags.width, 960), Height: orElse(p.flags.height, p.pixels()), Columns: p.columns}
		return a.outTo(p.flags.out, func(w io.Writer) error { return image(w, charts, layout) })
	}
	width, height := 80, 14
	if f, ok := a.Stdout.(interface{ Fd() uintptr }); ok && a.IsTerminal(a.Stdout) {
		if w, h, err := term.GetSize(int(f.Fd())); err == nil && w > 0 && h > 0 {
			width, height = w, max(min(2*height, h/min(len(charts), 2)-chart.Extra-1), 5)
		}
	}
	width, height = max(orElse(p.flags.width, width), 20), max(orElse(p.flags.height, height), 3)
	return cli.Buffered(a.Out(), func(w io.Writer) error {
		var b bytes.Buffer
		for i, c := range charts {
			if i > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(c.Terminal(width, height, a.Color()))
		}
		_, err := w.Write(b.Bytes())
		return err
	})
}

// studyPlot is a plot that is being made.
type studyPlot struct {
	flags   *studyPlotFlags
	kind    plotKind
	snap    *study.Snapshot
	st      *study.Study
	charts  []*studyChart
	columns int // of charts in a picture
	rows    int // of categories, where they decide the height
}

// studyChart is a chart and the trials that its points are of.
type studyChart struct {
	*chart.Chart
	trials [][]uint64 // by series
}

func (p *studyPlot) add(c *chart.Chart) *studyChart {
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

// pixels is the height of a chart in a picture.
func (p *studyPlot) pixels() int {
	switch {
	case p.rows > 0:
		return max(160+26*p.rows, 240)
	case p.columns > 1:
		return 320
	}
	return 440
}

// spread sets the dots of categories beside one another, which would lie on one
// another, by their numbers.
func (p *studyPlot) spread(c *studyChart) {
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
func (p *studyPlot) chosen() (list []int, err error) {
	if p.flags.objective != "" {
		i, err := pickObjective(p.st, p.flags.objective)
		return []int{i}, err
	}
	for i := range p.st.Config.Directions {
		list = append(list, i)
	}
	return list, nil
}

// title names an objective and its direction.
func (p *studyPlot) title(objective int) string {
	return metricNames(p.st)[objective] + " (" + directionNames(p.st)[objective] + ")"
}

// none is the error of a plot without anything in it.
func (p *studyPlot) none(what string) error {
	return cli.WithHint(fmt.Errorf("plot %s: %w: %s", p.kind.name, study.ErrNotFound, what), "foldlog study show counts the trials")
}

// sample are indices of n things, most at most: evenly spread, and those that
// must be there.
func (p *studyPlot) sample(n int, must func(int) bool) (indices []int, note string) {
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
	return indices, fmt.Sprintf("%s of %s drawn; --most N draws more", plural(int64(len(indices)), "trial"), cli.Count(int64(n)))
}

func (c *studyChart) note(notes ...string) {
	for _, n := range notes {
		if n != "" {
			c.Notes = append(c.Notes, n)
		}
	}
}

// plotView is a plot in JSON.
type plotView struct {
	Kind   string      `json:"kind"`
	Study  string      `json:"study"`
	Charts []chartView `json:"charts"`
}

// chartView is one of its charts.
type chartView struct {
	Title  string       `json:"title"`
	X      plotAxis     `json:"x"`
	Y      plotAxis     `json:"y"`
	Series []plotSeries `json:"series"`
	Notes  []string     `json:"notes"` // what has been left out, and why
}

// plotAxis is one of a chart's axes.
type plotAxis struct {
	Label      string   `json:"label"`
	Log        bool     `json:"log"`        // logarithmic
	Categories []string `json:"categories"` // names of the places 0, 1 and so on; empty for numbers
}

// plotSeries is some points that belong together.
type plotSeries struct {
	Name   string   `json:"name"`  // in the legend, "" if it has none
	Style  string   `json:"style"` // line, dots or spans
	X      []number `json:"x"`     // of spans their beginnings
	Y      []number `json:"y"`
	End    []number `json:"end"`    // of spans, else empty
	Trials []uint64 `json:"trials"` // their numbers; empty if the points are of no trial
}

func (p *studyPlot) view() plotView {
	v := plotView{Kind: p.kind.name, Study: p.st.Config.Name, Charts: []chartView{}}
	for _, c := range p.charts {
		cv := chartView{Title: c.Title, Notes: notNil(c.Notes), Series: []plotSeries{},
			X: plotAxis{c.X.Label, c.X.Log, notNil(c.X.Categories)}, Y: plotAxis{c.Y.Label, c.Y.Log, notNil(c.Y.Categories)}}
		for _, column := range c.Columns {
			cv.X.Categories = append(cv.X.Categories, column.Label)
		}
		for i, s := range c.Series {
			cv.Series = append(cv.Series, plotSeries{s.Legend, []string{"line", "dots", "spans"}[s.Style],
				numbers(s.X), numbers(s.Y), numbers(s.End), notNil(c.trials[i])})
		}
		v.Charts = append(v.Charts, cv)
	}
	return v
}
