package metricscmd

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/cmd/foldlog/internal/cmdline"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/metricsview"
	"github.com/foldlog/foldlog/metrics"
)

// Check is one line of `foldlog metrics check --json`. Fields are added and
// never renamed or removed.
type Check struct {
	Path        string    `json:"path"`
	OK          bool      `json:"ok"`   // there are no faults
	Slug        string    `json:"slug"` // of the first open
	Lines       int64     `json:"lines"`
	Bytes       int64     `json:"bytes"`
	Events      int64     `json:"events"`
	Opens       int64     `json:"opens"`
	Points      int64     `json:"points"` // metric events
	Annotations int64     `json:"annotations"`
	Other       int64     `json:"other"` // lines of a mixed output that are no events
	Ended       bool      `json:"ended"` // the last event is done
	Faults      int64     `json:"faults"`
	Warnings    int64     `json:"warnings"`
	Findings    []Finding `json:"findings"` // the first of both, as many as --limit says
}

// Finding is one fault or warning.
type Finding struct {
	Line    int64  `json:"line"`   // from 1
	Column  int    `json:"column"` // in bytes, from 1
	Offset  int64  `json:"offset"` // where the line begins, in bytes
	Warning bool   `json:"warning"`
	What    string `json:"what"`
}

// checkLimit is how many findings of a file are shown.
const checkLimit = 100

func (a *app) checkCmd() *cobra.Command {
	var opts metrics.CheckOptions
	limit := int64(checkLimit)
	c := &cobra.Command{
		Use:   "check FILE|ROOT... [--mixed] [--limit N] [--json]",
		Short: "Check metrics streams strictly, every fault with line and column",
		Long: `Check metrics streams strictly, and print every fault with its line and column.
The exit status is 1 if there is any; warnings are spellings that readers take
and writers should not write, and the torn end of a process that was killed and
resumed. Of a directory every stream under it is checked. A file of "-" is standard
input.

With --mixed a file is the captured output of a training run: other lines and
the summary of run --json may stand between the events.`,
		Example: "  foldlog metrics check run.jsonl\n  sexpgpu run --metrics stdout | foldlog metrics check --mixed -",
		Args:    cmdline.Operands("FILE..."),
	}
	c.Flags().BoolVar(&opts.Mixed, "mixed", false, "take other lines between the events")
	c.Flags().Int64Var(&limit, "limit", checkLimit, "show the first `N` findings of a file, 0 for all")
	asJSON := cmdline.JSONFlag(c, "print one line of JSON for each file")
	c.RunE = func(c *cobra.Command, args []string) error {
		if limit < 0 {
			return cli.Usagef("--limit %d: must not be negative", limit)
		}
		paths, err := a.resolved(c.Context(), "metrics check", args)
		if err != nil {
			return err
		}
		faulty := 0
		for _, path := range paths {
			v, err := a.checkStream(c.Context(), path, opts, limit, *asJSON)
			if err != nil {
				return advise(cli.Failed("metrics check", path, err))
			}
			if !v.OK {
				faulty++
			}
		}
		if faulty > 0 {
			return fmt.Errorf("metrics check: %d of %s faulty", faulty, cli.Plural(int64(len(paths)), "stream"))
		}
		return nil
	}
	return c
}

// checkStream prints findings as they come, or all as one line of JSON.
func (a *app) checkStream(ctx context.Context, path string, opts metrics.CheckOptions, limit int64, asJSON bool) (v Check, err error) {
	in := a.In()
	if path != "-" {
		at, name, err := a.StreamAt(ctx, path)
		if err != nil {
			return v, err
		}
		f, err := at.Open(name)
		if err != nil {
			return v, err
		}
		defer f.Close()
		in = f
	}
	v = Check{Path: path, Findings: []Finding{}}
	err = cli.Buffered(a.Out(), func(w io.Writer) error {
		shown := int64(0)
		sum, err := metrics.Check(metricsview.UntilCancelled(ctx, in), opts, func(f metrics.Finding) {
			if shown++; limit > 0 && shown > limit {
				return
			}
			if asJSON {
				v.Findings = append(v.Findings, Finding{f.Line, f.Column, f.Offset, f.Warning, f.Err.Error()})
			} else {
				fmt.Fprintf(w, "%s\n", cli.Safe(findingText(path, f)))
			}
		})
		if err != nil {
			return err
		}
		v.fill(sum)
		if asJSON {
			return cli.WriteJSONLine(w, v)
		}
		return printChecked(w, v, limit)
	})
	return v, err
}

func (v *Check) fill(sum metrics.CheckStats) {
	v.OK, v.Slug, v.Lines, v.Bytes, v.Events = sum.Faults == 0, sum.Slug, sum.Lines, sum.Bytes, sum.Events
	v.Opens, v.Points, v.Annotations, v.Other, v.Ended = sum.Opens, sum.Metrics, sum.Annotations, sum.Other, sum.Ended
	v.Faults, v.Warnings = sum.Faults, sum.Warnings
}

// findingText is what compilers print, so that editors find the place.
func findingText(path string, f metrics.Finding) string {
	word := "fault"
	if f.Warning {
		word = "warning"
	}
	return fmt.Sprintf("%s:%d:%d: %s: %v", path, f.Line, f.Column, word, f.Err)
}

func printChecked(w io.Writer, v Check, limit int64) error {
	if more := v.Faults + v.Warnings - limit; limit > 0 && more > 0 {
		fmt.Fprintf(w, "%s: %s more, see --limit\n", cli.Safe(v.Path), cli.Plural(more, "finding"))
	}
	word := "ok"
	if !v.OK {
		word = "faulty"
	}
	text := fmt.Sprintf("%-7s %s  %s, %s", word, v.Path, cli.Plural(v.Events, "event"), cli.Size(v.Bytes))
	for _, part := range []struct {
		n    int64
		what string
	}{{v.Faults, "fault"}, {v.Warnings, "warning"}, {v.Other, "other line"}} {
		if part.n > 0 {
			text += ", " + cli.Plural(part.n, part.what)
		}
	}
	_, err := fmt.Fprintln(w, cli.Safe(text))
	return err
}
