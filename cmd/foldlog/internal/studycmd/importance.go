package studycmd

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/cmd/foldlog/internal/cmdline"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/studyview"
	"github.com/foldlog/foldlog/study"
)

// importanceFlags adds the flags that say how importance is computed.
func importanceFlags(c *cobra.Command, f *studyview.ImportanceOptions) {
	c.Flags().StringVar(&f.Method, "method", "fanova", "the `METHOD`, fanova or permutation")
	c.Flags().IntVar(&f.Trees, "trees", 0, "use `N` trees (0: 64, for permutation 24)")
	c.Flags().Uint64Var(&f.Seed, "seed", 0, "the `SEED` of what is random")
	c.Flags().BoolVar(&f.Ranks, "ranks", false, "look at the ranks of the values, so that a few that went astray do not outweigh all others")
	c.RegisterFlagCompletionFunc("method", cobra.FixedCompletions([]string{"fanova", "permutation"}, cobra.ShellCompDirectiveNoFileComp))
}

func (a *app) importanceCmd() *cobra.Command {
	var flags studyview.ImportanceOptions
	c := &cobra.Command{
		Use:   "importance PATH [--objective NAME] [--method fanova|permutation] [--ranks] [--json]",
		Short: "Say how much each parameter matters",
		Long: `Say how much each parameter of a study matters to an objective, from the completed
trials. SHARE is its part of what all parameters make by themselves, FRACTION its
part of the whole variance, SPREAD how far the trees of the forest disagree.

With fanova a random forest is taken apart over the whole space; what the
fractions leave of 1 are interactions. With permutation the values of a parameter
are exchanged among trials that the forest has not seen; interactions count for
each of their parameters. Numbers count in the scale that they are drawn in. A
parameter that some trials lack counts where it is there.`,
		Example: "  foldlog study importance search.atj\n  foldlog study importance search.atj --objective latency --ranks",
		Args:    cmdline.Operands("PATH"),
	}
	name := studyFlag(c)
	objectiveFlag(c, &flags.Objective, 0)
	importanceFlags(c, &flags)
	asJSON := cmdline.JSONFlag(c, "print one JSON object")
	c.RunE = func(c *cobra.Command, args []string) error {
		return cli.Failed("study importance", args[0], a.readStudy(c.Context(), args[0], *name, func(snap *study.Snapshot, st *study.Study) error {
			view, err := flags.Compute(snap, st)
			if err != nil {
				return err
			}
			if *asJSON {
				return cli.WriteJSON(a.Out(), view)
			}
			return a.printImportance(view)
		}))
	}
	return c
}

// objectiveFlag adds --objective; the path is the operand of that index.
func objectiveFlag(c *cobra.Command, objective *string, path int) {
	c.Flags().StringVar(objective, "objective", "", "the `NAME` or number of the objective (default: the first)")
	c.RegisterFlagCompletionFunc("objective", func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		var names []string
		if len(args) > path {
			withSnapshot(args[path], func(snap *study.Snapshot) {
				if st, err := pickStudy(snap, args[path], c.Flag("study").Value.String()); err == nil {
					for _, name := range st.ObjectiveNames() {
						if cli.Safe(name) == name {
							names = append(names, name)
						}
					}
				}
			})
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	})
}

func (a *app) printImportance(v *studyview.Importance) error {
	table := cli.NewTable(cli.Column{Title: "PARAMETER"}, cli.Column{Title: "SHARE", Align: cli.Right}, cli.Column{Title: "FRACTION", Align: cli.Right},
		cli.Column{Title: "SPREAD", Align: cli.Right}, cli.Column{Title: "TRIALS", Align: cli.Right})
	table.Bold = a.Color()
	for _, p := range v.Params {
		table.Row(p.Param, studyview.Percent(p.Share), studyview.Percent(p.Fraction), studyview.Percent(p.Spread), cli.Count(int64(p.Trials)))
	}
	if err := cli.Buffered(a.Out(), func(w io.Writer) error { return table.Write(w) }); err != nil {
		return err
	}
	for _, note := range v.Notes() {
		a.Notef("%s", note)
	}
	return nil
}
