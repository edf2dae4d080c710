package metricscmd

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/cmd/foldlog/internal/cmdline"
	"github.com/foldlog/foldlog/internal/chart"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/logkind"
	"github.com/foldlog/foldlog/internal/metricsview"
	"github.com/foldlog/foldlog/metrics"
)

// plotFlags is the command line of plot.
type plotFlags struct {
	names, where []string
	by, x        string
	follow, log  bool
	points       int
	cmdline.Picture
}

// plottedMetrics is how many charts there are without --metric.
const plottedMetrics = 4

func (a *app) plotCmd() *cobra.Command {
	var flags plotFlags
	c := &cobra.Command{
		Use:   "plot FILE|ROOT... [--metric NAME]... [-f] [--log] [--x step|time] [--out FILE.png|FILE.svg]",
		Short: "Draw curves in the terminal, live with -f, or as a PNG or SVG picture",
		Long: `Draw a chart for each metric, with the curves of all files in it, of a directory
those of every stream under it. Beneath the axis are marks: S where the stage
changed, C for a checkpoint, R for a resume, I for an interruption, F for a failure. Values that are not finite are × at the
lower edge. Where a run was killed and repeated steps, the older copy is dim.

Without --metric the first four metrics are drawn. --by splits a curve by the
values of a metadata key. --x time is the time since the run began. With -f the
picture follows the files until interrupted. A long curve is drawn from a sample
that keeps first, last, minimum and maximum of each stretch.`,
		Example: "  foldlog metrics plot run.jsonl --metric train/loss --log\n  foldlog metrics plot -f run.jsonl --metric '*/loss'\n  foldlog metrics plot a.jsonl b.jsonl --metric loss --out loss.png",
		Args:    cmdline.Operands("FILE..."),
	}
	f := c.Flags()
	f.StringArrayVar(&flags.names, "metric", nil, "draw metrics of this `NAME`, in which * stands for any text")
	f.StringArrayVar(&flags.where, "where", nil, "draw points with this `K=V` in their metadata only")
	f.StringVar(&flags.by, "by", "", "a curve for each value of this metadata `KEY`")
	f.StringVar(&flags.x, "x", "step", "the horizontal `AXIS`, step or time")
	f.BoolVar(&flags.log, "log", false, "a logarithmic vertical axis")
	f.BoolVarP(&flags.follow, "follow", "f", false, "draw anew whenever something comes")
	flags.Picture.Flags(f)
	f.IntVar(&flags.points, "points", 2000, "draw `N` points of a curve at most (0: no limit)")
	c.RegisterFlagCompletionFunc("x", cobra.FixedCompletions([]string{"step", "time"}, cobra.ShellCompDirectiveNoFileComp))
	c.RunE = func(c *cobra.Command, args []string) error {
		p, err := a.newPlotter(flags, args)
		if err != nil {
			return err
		}
		if p.paths, err = a.resolved(c.Context(), "metrics plot", args); err != nil {
			return err
		}
		if flags.follow {
			return advise(p.follow(c.Context()))
		}
		return advise(p.once(c.Context()))
	}
	return c
}

// plotter draws some files.
type plotter struct {
	*app
	flags plotFlags
	paths []string
	want  func(string) bool
	where map[string]string
}

func (a *app) newPlotter(flags plotFlags, args []string) (*plotter, error) {
	p := &plotter{app: a, flags: flags, paths: args, want: nameFilter(flags.names)}
	var err error
	if p.where, err = keyValues("where", flags.where); err != nil {
		return nil, err
	}
	switch {
	case flags.x != "step" && flags.x != "time":
		return nil, cli.Usagef("--x %q: step or time", flags.x)
	case flags.follow && flags.Out != "":
		return nil, cli.Usagef("-f and --out exclude each other")
	case flags.points < 0:
		return nil, cli.Usagef("--points must not be negative")
	}
	return p, flags.Check()
}

// once draws what the files hold.
func (p *plotter) once(ctx context.Context) error {
	var runs []*metricsview.Run
	for _, path := range p.paths {
		run, err := p.readRunNoting(ctx, path)
		if err != nil {
			return cli.Failed("metrics plot", path, err)
		}
		runs = append(runs, run)
	}
	charts, left := p.charts(runs)
	if len(charts) == 0 {
		return cli.WithHint(fmt.Errorf("metrics plot: no points of %s", p.wanted()), "foldlog metrics show lists the metrics")
	}
	if left > 0 {
		p.Notef("%s not drawn; --metric names them, foldlog metrics show lists them", cli.Plural(int64(left), "more metric"))
	}
	return p.flags.Draw(p.Env, charts, chart.Layout{Width: 960, Height: 400}, fitOf(charts))
}

func (p *plotter) wanted() string {
	if len(p.flags.names) == 0 {
		return "any metric"
	}
	return strings.Join(p.flags.names, ", ")
}

// fitOf has all charts on a terminal at once.
func fitOf(charts []*chart.Chart) func(width, height int) (int, int) {
	return func(width, height int) (int, int) {
		if width == 0 {
			return 80, 16
		}
		return width, min(16, height/len(charts)-chart.Extra-1)
	}
}

// charts makes a chart per metric, and says how many metrics were left out.
func (p *plotter) charts(runs []*metricsview.Run) (charts []*chart.Chart, left int) {
	byName := map[string]*chart.Chart{}
	for _, run := range runs {
		for _, curve := range run.Fold.Curves() {
			if !p.want(curve.Name) {
				continue
			}
			c := byName[curve.Name]
			if c == nil {
				if len(p.flags.names) == 0 && len(charts) == plottedMetrics {
					byName[curve.Name] = &chart.Chart{}
					left++
					continue
				}
				c = metricsview.NewChart(curve.Name, p.flags.log, p.flags.x == "time")
				byName[curve.Name] = c
				charts = append(charts, c)
			}
			if c.Title != "" {
				p.addCurve(c, run, curve, len(runs) > 1)
			}
		}
	}
	kept := charts[:0]
	for _, c := range charts {
		if c.Scale() {
			kept = append(kept, c)
		}
	}
	return kept, left
}

// addCurve adds the lines of a run's curve, and its marks.
func (p *plotter) addCurve(c *chart.Chart, run *metricsview.Run, curve *metrics.Curve, named bool) {
	added := false
	for _, group := range p.groups(curve) {
		r := curve.Read(metrics.Query{Where: p.where, Series: group.series, Points: p.flags.points})
		if r.Len() == 0 {
			continue
		}
		label := group.label
		if named {
			label = strings.TrimSpace(run.Name() + " " + label)
		}
		metricsview.AddReading(c, label, r, run.Fold.FirstTSMS)
		added = true
	}
	if added {
		metricsview.AddMarks(c, run)
	}
}

// curveGroup is the series that are one line.
type curveGroup struct {
	label  string
	series []int
}

// groups splits a curve by --by; without it there is one line of all series.
func (p *plotter) groups(curve *metrics.Curve) []curveGroup {
	if p.flags.by == "" {
		return []curveGroup{{}}
	}
	var groups []curveGroup
	index := map[string]int{}
	for i, s := range curve.Series {
		value := s.Metadata.Text(p.flags.by)
		at, ok := index[value]
		if !ok {
			at = len(groups)
			index[value] = at
			groups = append(groups, curveGroup{label: p.flags.by + "=" + value})
		}
		groups[at].series = append(groups[at].series, i)
	}
	return groups
}

// redrawEvery is how often a live picture changes at most.
const redrawEvery = 250 * time.Millisecond

// follow draws anew when something comes, until ctx ends, which is no error.
func (p *plotter) follow(ctx context.Context) error {
	runs := make([]*liveRun, len(p.paths))
	every := redrawEvery
	for i, path := range p.paths {
		w, at, err := p.StreamAt(ctx, path)
		if err != nil {
			return err
		}
		if w.Server != nil {
			w.Server.Patience, every = logkind.Endless, logkind.RemotePoll
		}
		runs[i] = newLiveRun(w, at)
		defer runs[i].close()
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	screen := screen{w: p.Out(), terminal: p.IsTerminal(p.Stdout)}
	for {
		changed := false
		var folds []*metricsview.Run
		for _, r := range runs {
			more, err := r.poll()
			if ctx.Err() != nil {
				return nil
			}
			if err != nil {
				return cli.Failed("metrics plot", r.run.Path, err)
			}
			changed = changed || more
			folds = append(folds, r.run)
		}
		if charts, _ := p.charts(folds); changed && len(charts) > 0 {
			if err := screen.show([]byte(p.flags.Text(p.Env, charts, fitOf(charts)))); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// liveRun is a run that grows.
type liveRun struct {
	logkind.World
	path     string
	follower *metrics.Follower
	run      *metricsview.Run
}

func newLiveRun(w logkind.World, path string) *liveRun {
	return &liveRun{w, path, w.Follower(path), &metricsview.Run{Path: w.NameOf(path)}}
}

func (l *liveRun) close() { l.follower.Close() }

// poll applies what has come. A file that was rewritten is read from its
// beginning: what it lost is no longer part of the run.
func (l *liveRun) poll() (changed bool, err error) {
	rewritten := false
	err = l.follower.Poll(func(it *metrics.Item) {
		changed = true
		rewritten = rewritten || it.Kind == metrics.ItemRewritten
		if !rewritten {
			l.run.Take(it)
		}
	})
	if err != nil || !rewritten {
		return changed, err
	}
	l.close()
	*l = *newLiveRun(l.World, l.path)
	_, err = l.poll()
	return true, err
}

// screen shows one frame in the place of the last.
type screen struct {
	w        io.Writer
	terminal bool
	lines    int // of the frame that is shown
}

func (s *screen) show(frame []byte) error {
	var b bytes.Buffer
	switch {
	case s.lines > 0 && s.terminal:
		fmt.Fprintf(&b, "\x1b[%dA\x1b[J", s.lines)
	case s.lines > 0:
		b.WriteByte('\n')
	}
	b.Write(frame)
	s.lines = bytes.Count(frame, []byte{'\n'})
	_, err := s.w.Write(b.Bytes())
	return err
}
