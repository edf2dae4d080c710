package studycmd

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/cmd/foldlog/internal/cmdline"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/study"
	"github.com/foldlog/foldlog/study/pruner"
)

// PruneVerdict is the output of `foldlog study should-prune --json`.
type PruneVerdict struct {
	Trial  uint64  `json:"trial"`
	Prune  bool    `json:"prune"`
	Pruner string  `json:"pruner"` // the study's, as it was named
	Step   *uint64 `json:"step"`   // of the last report, null without one
}

func (a *app) shouldPruneCmd() *cobra.Command {
	c := &cobra.Command{
		Use:   "should-prune PATH NUMBER [--json]",
		Short: "Tell whether a trial is worth going on with",
		Long: `Tell whether a trial is worth going on with, by what it and the other trials
have reported: print "prune" or "continue". The study's pruner decides, which
"study create --pruner" names; without one no trial is pruned. Nothing is
changed: stop the trial and tell it as pruned. The exit status is 0 either way.`,
		Example: "  [ \"$(foldlog study should-prune search.atj 3)\" = prune ] && foldlog study tell search.atj 3 --state pruned",
		Args:    cmdline.Operands("PATH", "NUMBER"),
	}
	name := studyFlag(c)
	asJSON := cmdline.JSONFlag(c, "print one JSON object")
	c.ValidArgsFunction = completeRunning
	c.RunE = func(c *cobra.Command, args []string) error {
		number, err := parseNumber(args[1])
		if err != nil {
			return err
		}
		return cli.Failed("study should-prune", args[0], a.readStudy(c.Context(), args[0], *name, func(snap *study.Snapshot, st *study.Study) error {
			return a.shouldPrune(snap, st, number, *asJSON)
		}))
	}
	return c
}

func (a *app) shouldPrune(snap *study.Snapshot, st *study.Study, number uint64, asJSON bool) error {
	t, err := pickTrial(snap, st, number)
	if err != nil {
		return err
	}
	v, err := viewPrune(snap, st, t)
	if err != nil {
		return err
	}
	if asJSON {
		return cli.WriteJSON(a.Out(), v)
	}
	word := "continue"
	if v.Prune {
		word = "prune"
	}
	_, err = fmt.Fprintln(a.Out(), word)
	return err
}

func viewPrune(snap *study.Snapshot, st *study.Study, t *study.Trial) (PruneVerdict, error) {
	p, err := pruner.Of(st)
	if err != nil {
		return PruneVerdict{}, err
	}
	v := PruneVerdict{Trial: t.Number, Prune: p.Prune(pruner.NewHistory(snap, st), t), Pruner: pruner.TextOf(st)}
	if step, _, ok := t.LastReport(); ok {
		v.Step = &step
	}
	return v, nil
}
