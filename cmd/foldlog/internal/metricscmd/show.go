package metricscmd

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/cmd/foldlog/internal/cmdline"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/metricsview"
	"github.com/foldlog/foldlog/metrics"
)

// shownMetrics is how many metrics of a run the table has.
const shownMetrics = 20

func (a *app) showCmd() *cobra.Command {
	var names []string
	var all, wide bool
	var order string
	c := &cobra.Command{
		Use:        "show [FILE|ROOT]... [--metric NAME]... [--all] [--wide] [--sort NAME] [--json]",
		SuggestFor: []string{"list", "ls", "status"},
		Short:      "Show runs: status, age, and every metric's last, minimum and maximum",
		Long: `Show the runs of metrics streams: status, the age of the last event, and for
every metric the last value, the minimum and the maximum. Of a directory all
streams under it are shown; without operands those of FOLDLOG_ROOT, or else of
the current directory. A run is running until its stream says done; how old its
last event is, is for you to judge.

In the names of --metric a * stands for any text. The table has the first 20
metrics of a run; --all has every one.

With --wide there is a row for each run: the knobs that tell the runs apart, and the last
value of each metric. --sort orders these rows by a metric or a knob, --sort=-NAME from
the largest.`,
		Example: "  foldlog metrics show run.jsonl\n  foldlog metrics show runs/ --metric '*/loss' --json | jq .curves[0].last\n  foldlog metrics show runs/ --sort=-accuracy",
		Args:    cmdline.Operands("[FILE]..."),
	}
	c.Flags().StringArrayVar(&names, "metric", nil, "show metrics of this `NAME` only; may be given more than once")
	c.Flags().BoolVar(&all, "all", false, "show every metric")
	c.Flags().BoolVar(&wide, "wide", false, "show a row for each run")
	c.Flags().StringVar(&order, "sort", "", "show a row for each run, ordered by the metric or knob of this `NAME`; -NAME from the largest")
	asJSON := cmdline.JSONFlag(c, "print one line of JSON for each run")
	c.RunE = func(c *cobra.Command, args []string) error {
		if wide = wide || order != ""; wide && *asJSON {
			return cli.Usagef("--json has every metric of every run, and excludes --wide and --sort")
		}
		paths, err := a.streams(c.Context(), "metrics show", args)
		if err != nil {
			return err
		}
		want := nameFilter(names)
		if *asJSON {
			return a.eachStream("metrics show", paths, func(path string) error {
				run, err := a.readRunNoting(c.Context(), path)
				if err != nil {
					return err
				}
				return cli.WriteJSONLine(a.Out(), metricsview.ViewOf(run, want))
			})
		}
		if wide {
			return a.showWide(c.Context(), paths, want, all, order)
		}
		return a.showRuns(c.Context(), paths, want, all)
	}
	return c
}

// readRunNoting reads a run and says what in its file is no event.
func (a *app) readRunNoting(ctx context.Context, path string) (*metricsview.Run, error) {
	w, at, err := a.StreamAt(ctx, path)
	if err != nil {
		return nil, err
	}
	run, err := w.ReadRun(ctx, at)
	if err != nil {
		return nil, err
	}
	if run.Bad > 0 {
		a.Notef("%s: %s passed over: %v", path, cli.Plural(run.Bad, "bad line"), run.FirstBad)
	}
	if run.Torn > 0 {
		a.Notef("%s: the last line is torn: %s without a newline", path, cli.Size(run.Torn))
	}
	if run.Fold.Events == 0 {
		return nil, errNoEvents
	}
	return run, nil
}

// errNoEvents is the error of a file in which there is no event of a stream.
var errNoEvents = cli.WithHint(errors.New("no events in it"), "foldlog inspect says what a log is; foldlog metrics import reads other training logs")

func (a *app) showRuns(ctx context.Context, paths []string, want func(string) bool, all bool) error {
	t := cli.NewTable(cli.Column{Title: "RUN"}, cli.Column{Title: "STATUS"}, cli.Column{Title: "LAST EVENT"}, cli.Column{Title: "METRIC"},
		cli.Column{Title: "STEP", Align: cli.Right}, cli.Column{Title: "LAST", Align: cli.Right}, cli.Column{Title: "MIN", Align: cli.Right},
		cli.Column{Title: "MAX", Align: cli.Right}, cli.Column{Title: "POINTS", Align: cli.Right})
	t.Bold = a.Color()
	err := a.eachStream("metrics show", paths, func(path string) error {
		run, err := a.readRunNoting(ctx, path)
		if err != nil {
			return err
		}
		a.addRun(t, run, want, all)
		return nil
	})
	if t.Len() == 0 {
		return err
	}
	return errors.Join(t.Write(a.Out()), err)
}

// addRun has the run in its first row only.
func (a *app) addRun(t *cli.Table, run *metricsview.Run, want func(string) bool, all bool) {
	f := &run.Fold
	head := []string{run.Name(), metricsview.StatusText(f), a.Ago(f.LastTSMS)}
	rows, more := 0, 0
	for _, c := range f.Curves() {
		if !want(c.Name) {
			continue
		}
		if rows == shownMetrics && !all {
			more++
			continue
		}
		t.Row(append(head, statCells(c.Name, &c.Stats)...)...)
		head = []string{"", "", ""}
		rows++
	}
	switch {
	case more > 0:
		t.Row("", "", "", fmt.Sprintf("%s more, see --all", cli.Plural(int64(more), "metric")))
	case rows == 0:
		t.Row(append(head, "no metrics")...)
	}
}

func statCells(name string, s *metrics.Stats) []string {
	least, most := "", ""
	if s.Count > s.NonFinite {
		least, most = metricsview.FloatText(s.Min), metricsview.FloatText(s.Max)
	}
	points := cli.Count(s.Count)
	if s.NonFinite > 0 {
		points += fmt.Sprintf(" (%s not finite)", cli.Count(s.NonFinite))
	}
	return []string{name, strconv.FormatInt(s.LastStep, 10), metricsview.NumberText(s.Last), least, most, points}
}

// isCancelled tells an error that a signal caused.
func isCancelled(err error) bool {
	return errors.Is(err, context.Canceled) || cli.As[*cli.SignalError](err)
}
