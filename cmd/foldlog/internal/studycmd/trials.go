package studycmd

import (
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/cmd/foldlog/internal/cmdline"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/studyview"
	"github.com/foldlog/foldlog/study"
)

// trialsOptions are the flags of study trials.
type trialsOptions struct {
	states []study.State
	from   uint64
	limit  int
	sort   string
	asJSON bool
}

func (a *app) trialsCmd() *cobra.Command {
	var o trialsOptions
	var states []string
	c := &cobra.Command{
		Use:   "trials PATH [--state STATE]... [--from N] [--limit N] [--sort number|value] [--json]",
		Short: "List the trials of a study",
		Long: `List the trials of a study by number, or with --sort value from the best to the
worst: completed trials by their first value, NaN last, and then the others by
number. The table rounds to six digits; --json has all of them.`,
		Example: "  foldlog study trials search.atj --state failed\n  foldlog study trials search.atj --sort value --limit 10",
		Args:    cmdline.Operands("PATH"),
	}
	name := studyFlag(c)
	f := c.Flags()
	f.StringArrayVar(&states, "state", nil, "list trials of this `STATE` only; again for each further one")
	f.Uint64Var(&o.from, "from", 0, "list trials from number `N` on")
	f.IntVar(&o.limit, "limit", 0, "list `N` trials at most (0: no limit)")
	f.StringVar(&o.sort, "sort", "number", "the `ORDER`, number or value")
	f.BoolVar(&o.asJSON, "json", false, "print one line of JSON for each trial")
	c.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(
		[]string{"waiting", "running", "paused", "complete", "pruned", "failed"}, cobra.ShellCompDirectiveNoFileComp))
	c.RegisterFlagCompletionFunc("sort", cobra.FixedCompletions([]string{"number", "value"}, cobra.ShellCompDirectiveNoFileComp))
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := o.parse(states); err != nil {
			return err
		}
		return cli.Failed("study trials", args[0], a.readStudy(c.Context(), args[0], *name, func(snap *study.Snapshot, st *study.Study) error {
			return a.listTrials(snap, st, &o)
		}))
	}
	return c
}

func (o *trialsOptions) parse(states []string) error {
	for _, name := range states {
		s, err := study.ParseState(name)
		if err != nil {
			return cli.Usagef("--state %q: waiting, running, paused, complete, pruned or failed", name)
		}
		o.states = append(o.states, s)
	}
	switch {
	case o.sort != "number" && o.sort != "value":
		return cli.Usagef("--sort %q: number or value", o.sort)
	case o.limit < 0:
		return cli.Usagef("--limit %d: must not be negative", o.limit)
	}
	return nil
}

// choose hands the trials that are asked for to emit, in order.
func (o *trialsOptions) choose(snap *study.Snapshot, st *study.Study, emit func(*study.Trial) error) error {
	if o.sort == "number" {
		for t := range snap.Trials(st.ID, study.TrialFilter{States: o.states, From: o.from, Limit: o.limit}) {
			if err := emit(t); err != nil {
				return err
			}
		}
		return nil
	}
	list, err := snap.Ranked(st.ID, 0)
	if err != nil {
		return err
	}
	for t := range snap.Trials(st.ID, study.TrialFilter{}) {
		if t.State != study.Complete {
			list = append(list, t)
		}
	}
	n := 0
	for _, t := range list {
		if t.Number < o.from || len(o.states) > 0 && !slices.Contains(o.states, t.State) {
			continue
		}
		if err := emit(t); err != nil {
			return err
		}
		if n++; n == o.limit {
			return nil
		}
	}
	return nil
}

func (a *app) listTrials(snap *study.Snapshot, st *study.Study, o *trialsOptions) error {
	if o.asJSON {
		return cli.Buffered(a.Out(), func(w io.Writer) error {
			return o.choose(snap, st, func(t *study.Trial) error { return cli.WriteJSONLine(w, studyview.TrialOf(snap, st, t)) })
		})
	}
	var list []*study.Trial
	if err := o.choose(snap, st, func(t *study.Trial) error { list = append(list, t); return nil }); err != nil {
		return err
	}
	if len(list) == 0 {
		a.Notef("no trials")
		return nil
	}
	return a.printTrials(st, list)
}

// printTrials lists trials for people: results and parameters, those that only
// the trials have after the declared ones.
func (a *app) printTrials(st *study.Study, list []*study.Trial) error {
	columns := []cli.Column{{Title: "TRIAL", Align: cli.Right}, {Title: "STATE"}}
	for _, name := range st.ObjectiveNames() {
		columns = append(columns, cli.Column{Title: strings.ToUpper(name), Align: cli.Right})
	}
	objectives, params := len(st.Config.Directions), paramColumns(st, list)
	var names []string
	for _, c := range params {
		names = append(names, c.Title)
	}
	columns = append(append(columns, params...), cli.Column{Title: "TOOK"}, cli.Column{Title: "NOTE"})
	table := cli.NewTable(columns...)
	table.Bold = a.Color()
	for _, t := range list {
		row := []string{strconv.FormatUint(t.Number, 10), t.State.Name()}
		row = append(row, studyview.RoundCells(t, objectives, names)...)
		table.Row(append(row, span(t, a.Time()), trialNote(t))...)
	}
	return table.Write(a.Out())
}

// paramColumns are the declared parameters, and then those that a program has
// asked for, in the order of the trials.
func paramColumns(st *study.Study, list []*study.Trial) (columns []cli.Column) {
	known := map[string]bool{}
	add := func(name string, dist study.Distribution) {
		if known[name] {
			return
		}
		known[name] = true
		column := cli.Column{Title: name}
		switch dist.(type) {
		case study.FloatDist, study.IntDist:
			column.Align = cli.Right
		}
		columns = append(columns, column)
	}
	if st.Config.Space != nil {
		for _, p := range st.Config.Space.Params {
			add(p.Name, p.Dist)
		}
	}
	for _, t := range list {
		for _, p := range t.Params {
			add(p.Name, p.Dist)
		}
	}
	return columns
}

// trialNote says what is special about a trial.
func trialNote(t *study.Trial) string {
	var notes []string
	if t.Attempt > 1 {
		notes = append(notes, "attempt "+attemptText(t))
	}
	if t.Abandoned {
		notes = append(notes, "given up")
	}
	if t.Error != "" {
		notes = append(notes, reasonLine(t.Error))
	}
	return strings.Join(notes, "; ")
}

// span is how long a trial took, or has been running; "" if it never started.
func span(t *study.Trial, now time.Time) string {
	end := t.EndedMillis
	switch {
	case t.StartedMillis == 0:
		return ""
	case end == 0:
		end = uint64(now.UnixMilli())
	}
	if end < t.StartedMillis {
		return "" // the clocks of two writers differ
	}
	return cli.Duration(time.Duration(end-t.StartedMillis) * time.Millisecond)
}
