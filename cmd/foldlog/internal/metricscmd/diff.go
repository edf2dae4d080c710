package metricscmd

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/cmd/foldlog/internal/cmdline"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/metricsview"
	"github.com/foldlog/foldlog/metrics"
)

// Diff is the output of `foldlog metrics diff --json`. Fields are added and
// never renamed or removed.
type Diff struct {
	A       DiffSide             `json:"a"`
	B       DiffSide             `json:"b"`
	Changes []metricsview.Change `json:"changes"` // of slug, description and the open's metadata
	Values  []ValueDiff          `json:"values"`  // one per metric name, those of a first
}

// DiffSide is one of the two runs.
type DiffSide struct {
	Path   string         `json:"path"`
	Slug   string         `json:"slug"`
	Status metrics.Status `json:"status"`
	Points int64          `json:"points"`
}

// ValueDiff is how a metric ended in the two runs.
type ValueDiff struct {
	Name  string          `json:"name"`
	A     *metrics.Number `json:"a"` // the last value, null if the run has none
	AStep int64           `json:"a_step"`
	B     *metrics.Number `json:"b"`
	BStep int64           `json:"b_step"`
	// Change is b - a, null if one is missing or not finite.
	Change *float64 `json:"change"`
}

func (a *app) diffCmd() *cobra.Command {
	var names []string
	c := &cobra.Command{
		Use:        "diff A B [--metric NAME]... [--json]",
		SuggestFor: []string{"compare"},
		Short:      "Compare two runs: identity, knobs, sources and final values",
		Long: `Compare two metrics streams: what differs in the identity of the runs (slug,
description, knobs, settings, sources by their hashes), and the last value of
every metric. The exit status is 0 whether or not they differ.`,
		Example: "  foldlog metrics diff base.jsonl tuned.jsonl",
		Args:    cmdline.Operands("A", "B"),
	}
	c.Flags().StringArrayVar(&names, "metric", nil, "compare metrics of this `NAME` only, in which * stands for any text")
	asJSON := cmdline.JSONFlag(c, "print one JSON object")
	c.RunE = func(c *cobra.Command, args []string) error {
		var runs [2]*metricsview.Run
		for i, arg := range args {
			paths, err := a.resolved(c.Context(), "metrics diff", []string{arg})
			if err == nil && len(paths) > 1 {
				err = fmt.Errorf("metrics diff: %s has %s, and not one", arg, cli.Plural(int64(len(paths)), "stream"))
			}
			if err != nil {
				return err
			}
			path := paths[0]
			if runs[i], err = a.readRunNoting(c.Context(), path); err != nil {
				return advise(cli.Failed("metrics diff", path, err))
			}
		}
		v := diffRuns(runs[0], runs[1], nameFilter(names))
		if *asJSON {
			return cli.WriteJSON(a.Out(), v)
		}
		return cli.Buffered(a.Out(), func(w io.Writer) error { return a.printDiff(w, v) })
	}
	return c
}

func diffRuns(a, b *metricsview.Run, want func(string) bool) Diff {
	v := Diff{A: sideOf(a), B: sideOf(b), Values: []ValueDiff{}}
	var changes []metrics.Change
	for _, c := range []metrics.Change{{Path: "slug", From: a.Fold.Slug, To: b.Fold.Slug},
		{Path: "description", From: a.Fold.Description, To: b.Fold.Description}} {
		if c.From != c.To {
			changes = append(changes, c)
		}
	}
	v.Changes = metricsview.ChangesOf(append(changes, metrics.DiffMetadata(a.Fold.Metadata, b.Fold.Metadata)...))
	for _, c := range a.Fold.Curves() {
		if want(c.Name) {
			v.Values = append(v.Values, diffValue(c, b.Fold.Curve(c.Name)))
		}
	}
	for _, c := range b.Fold.Curves() {
		if want(c.Name) && a.Fold.Curve(c.Name) == nil {
			v.Values = append(v.Values, diffValue(nil, c))
		}
	}
	return v
}

func sideOf(run *metricsview.Run) DiffSide {
	return DiffSide{run.Path, run.Fold.Slug, run.Fold.Status, run.Fold.Metrics}
}

func diffValue(a, b *metrics.Curve) ValueDiff {
	var v ValueDiff
	if a != nil {
		v.Name, v.A, v.AStep = a.Name, &a.Stats.Last, a.Stats.LastStep
	}
	if b != nil {
		v.Name, v.B, v.BStep = b.Name, &b.Stats.Last, b.Stats.LastStep
	}
	if a != nil && b != nil {
		if d := v.B.Float64() - v.A.Float64(); d-d == 0 {
			v.Change = &d
		}
	}
	return v
}

func (a *app) printDiff(w io.Writer, v Diff) error {
	if len(v.Changes) == 0 {
		fmt.Fprintln(w, "same identity")
	} else {
		t := cli.NewTable(cli.Column{Title: "WHAT"}, cli.Column{Title: cli.Safe(v.A.Path)}, cli.Column{Title: cli.Safe(v.B.Path)})
		t.Bold = a.Color()
		for _, c := range v.Changes {
			t.Row(c.Path, shortText(c.From), shortText(c.To))
		}
		if err := t.Write(w); err != nil {
			return err
		}
	}
	if len(v.Values) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	t := cli.NewTable(cli.Column{Title: "METRIC"}, cli.Column{Title: "STEP", Align: cli.Right}, cli.Column{Title: cli.Safe(v.A.Path), Align: cli.Right},
		cli.Column{Title: "STEP", Align: cli.Right}, cli.Column{Title: cli.Safe(v.B.Path), Align: cli.Right}, cli.Column{Title: "CHANGE", Align: cli.Right})
	t.Bold = a.Color()
	for _, d := range v.Values {
		aStep, aLast := lastCells(d.A, d.AStep)
		bStep, bLast := lastCells(d.B, d.BStep)
		t.Row(d.Name, aStep, aLast, bStep, bLast, changeCell(d))
	}
	return t.Write(w)
}

func lastCells(n *metrics.Number, step int64) (string, string) {
	if n == nil {
		return "", ""
	}
	return fmt.Sprint(step), metricsview.NumberText(*n)
}

// changeCell is the change with its sign, and as a share of a where it is one.
func changeCell(d ValueDiff) string {
	if d.Change == nil {
		return ""
	}
	text := metricsview.FloatText(*d.Change)
	if *d.Change > 0 {
		text = "+" + text
	}
	if base := d.A.Float64(); base != 0 {
		text += fmt.Sprintf(" (%+.1f%%)", *d.Change/base*100)
	}
	return text
}

// shortText keeps a long value, as a hash, from widening a table.
func shortText(text string) string {
	const most = 40
	text = strings.TrimSpace(text)
	if r := []rune(text); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return text
}
