package studycmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/cmd/foldlog/internal/cmdline"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/serde"
	"github.com/foldlog/foldlog/study"
	"github.com/foldlog/foldlog/study/pruner"
	"github.com/foldlog/foldlog/study/sampler"
)

// searchOptions are the flags that choose how a study searches. Empty texts are
// not stored: the study has the defaults then.
type searchOptions struct{ sampler, pruner string }

func (o *searchOptions) flags(c *cobra.Command) {
	c.Flags().StringVar(&o.sampler, "sampler", "", "what suggests parameters, as `NAME[:OPTION=VALUE,...]`: "+strings.Join(sampler.Names(), ", ")+" (default: "+sampler.Default+")")
	c.Flags().StringVar(&o.pruner, "pruner", "", "what stops trials early, as `NAME[:OPTION=VALUE,...]`: "+strings.Join(pruner.Names(), ", ")+" (default: "+pruner.Default+")")
	c.RegisterFlagCompletionFunc("sampler", cobra.FixedCompletions(sampler.Names(), cobra.ShellCompDirectiveNoFileComp))
	c.RegisterFlagCompletionFunc("pruner", cobra.FixedCompletions(pruner.Names(), cobra.ShellCompDirectiveNoFileComp))
}

// check refuses what cannot work on a study of that configuration.
func (o *searchOptions) check(config study.Config) error {
	if o.sampler != "" {
		s, err := sampler.Parse(o.sampler)
		if err == nil {
			err = sampler.Check(s, config)
		}
		if err != nil {
			return cli.Usagef("--sampler %s: %v", o.sampler, err)
		}
	}
	if o.pruner != "" {
		p, err := pruner.Parse(o.pruner)
		if err == nil {
			err = pruner.Check(p, config)
		}
		if err != nil {
			return cli.Usagef("--pruner %s: %v", o.pruner, err)
		}
	}
	return nil
}

// openOrCreate creates a study with its sampler and pruner in one transaction,
// unless there is one of that name.
func (o *searchOptions) openOrCreate(ctx context.Context, st study.Storage, c study.Config) (created bool, err error) {
	err = st.Update(ctx, func(tx *study.Tx) (err error) {
		var id study.StudyID
		id, created, err = tx.OpenOrCreateStudy(c)
		if err != nil || !created {
			return err
		}
		for _, attr := range [][2]string{{sampler.Attribute, o.sampler}, {pruner.Attribute, o.pruner}} {
			if attr[1] == "" {
				continue
			}
			if err := tx.SetStudySystemAttr(id, attr[0], serde.AppendString(nil, attr[1])); err != nil {
				return err
			}
		}
		return nil
	})
	return created && err == nil, err
}

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
