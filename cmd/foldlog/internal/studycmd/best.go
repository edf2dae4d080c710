package studycmd

import (
	"fmt"
	"io"
	"math"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/cmd/foldlog/internal/cmdline"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/studyview"
	"github.com/foldlog/foldlog/study"
)

func (a *app) bestCmd() *cobra.Command {
	var top int
	c := &cobra.Command{
		Use:   "best PATH [--top N] [--json]",
		Short: "Print the best trial, or the Pareto front",
		Long: `Print the best completed trial of a study: the one with the lowest value, or the
highest if the study maximizes. Of equal values the lower number wins. The
infinities are ordinary values; a trial whose value is NaN is never best.

With several objectives print the Pareto front by number: every completed trial
that no other one dominates. A trial dominates another if it is at least as good
in every objective and better in one. Trials that have a NaN among their values
are left out; trials with equal values are all on the front.

If no trial qualifies the exit status is 1.`,
		Example: "  foldlog study best search.atj\n  foldlog study best search.atj --top 5",
		Args:    cmdline.Operands("PATH"),
	}
	name := studyFlag(c)
	c.Flags().IntVar(&top, "top", 1, "print the `N` best trials (studies of one objective)")
	asJSON := cmdline.JSONFlag(c, "print one line of JSON for each trial")
	c.RunE = func(c *cobra.Command, args []string) error {
		if top < 1 {
			return cli.Usagef("--top %d: must be 1 at least", top)
		}
		return cli.Failed("study best", args[0], a.readStudy(c.Context(), args[0], *name, func(snap *study.Snapshot, st *study.Study) error {
			if len(st.Config.Directions) > 1 && c.Flags().Changed("top") {
				return cli.Usagef("--top needs a study of one objective; this one has %d, and its best trials are a Pareto front", len(st.Config.Directions))
			}
			best, err := bestTrials(snap, st, top)
			if err != nil {
				return err
			}
			return a.printBest(snap, st, best, *asJSON)
		}))
	}
	return c
}

// bestTrials is the front, or the first top trials of one objective.
func bestTrials(snap *study.Snapshot, st *study.Study, top int) (best []*study.Trial, err error) {
	if len(st.Config.Directions) == 1 && top > 1 {
		ranked, err := snap.Ranked(st.ID, 0)
		if err != nil {
			return nil, err
		}
		for _, t := range ranked {
			if len(best) < top && len(t.Values) == 1 && !math.IsNaN(t.Values[0]) {
				best = append(best, t)
			}
		}
	} else if best, err = snap.Best(st.ID); err != nil {
		return nil, err
	}
	if len(best) == 0 {
		return nil, cli.WithHint(fmt.Errorf("best trial %w: no trial is complete with values that are not NaN", study.ErrNotFound),
			"foldlog study trials lists them all")
	}
	return best, nil
}

func (a *app) printBest(snap *study.Snapshot, st *study.Study, best []*study.Trial, asJSON bool) error {
	if asJSON {
		return cli.Buffered(a.Out(), func(w io.Writer) error {
			for _, t := range best {
				if err := cli.WriteJSONLine(w, studyview.TrialOf(snap, st, t)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return a.printTrials(st, best)
}
