package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/study"
	"github.com/foldlog/foldlog/study/analysis"
)

// importanceFlags say how importance is computed.
type importanceFlags struct {
	method, objective string
	trees             int
	seed              uint64
	ranks             bool
}

func (f *importanceFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.method, "method", "fanova", "the `METHOD`, fanova or permutation")
	c.Flags().IntVar(&f.trees, "trees", 0, "use `N` trees (0: 64, for permutation 24)")
	c.Flags().Uint64Var(&f.seed, "seed", 0, "the `SEED` of what is random")
	c.Flags().BoolVar(&f.ranks, "ranks", false, "look at the ranks of the values, so that a few that went astray do not outweigh all others")
	c.RegisterFlagCompletionFunc("method", cobra.FixedCompletions([]string{"fanova", "permutation"}, cobra.ShellCompDirectiveNoFileComp))
}

// importanceView is the importance of the parameters of a study in JSON.
type importanceView struct {
	Study     string            `json:"study"`
	Metric    string            `json:"metric"` // what they are important for
	Method    string            `json:"method"` // fanova or permutation
	Trials    int               `json:"trials"` // it was computed from
	Left      int               `json:"left"`   // completed trials left out, whose value is NaN or infinite
	Explained *number           `json:"explained"`
	Params    []paramImportance `json:"params"` // the most important first
}

// paramImportance is how much one parameter matters.
type paramImportance struct {
	Param    string  `json:"param"`
	Share    float64 `json:"share"`    // of what parameters make by themselves; all sum to 1
	Fraction float64 `json:"fraction"` // of the whole variance
	Spread   float64 `json:"spread"`   // standard deviation of fraction among the trees
	Trials   int     `json:"trials"`   // that have the parameter
}

func (a *app) studyImportanceCmd() *cobra.Command {
	var flags importanceFlags
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
		Args:    operands("PATH"),
	}
	name := studyFlag(c)
	objectiveFlag(c, &flags.objective, 0)
	flags.add(c)
	asJSON := jsonFlag(c, "print one JSON object")
	c.RunE = func(c *cobra.Command, args []string) error {
		return failed("study importance", args[0], a.readStudy(args[0], *name, func(snap *study.Snapshot, st *study.Study) error {
			view, err := flags.compute(snap, st)
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
					for _, name := range metricNames(st) {
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

// pickObjective finds an objective by its name or number.
func pickObjective(st *study.Study, text string) (int, error) {
	names := metricNames(st)
	if text == "" {
		return 0, nil
	}
	if i := slices.Index(names, text); i >= 0 {
		return i, nil
	}
	if i, err := strconv.Atoi(text); err == nil && i >= 0 && i < len(names) {
		return i, nil
	}
	return 0, cli.Usagef("--objective %q: the objectives are %s", text, objectives(st))
}

func (f *importanceFlags) compute(snap *study.Snapshot, st *study.Study) (*importanceView, error) {
	objective, err := pickObjective(st, f.objective)
	if err != nil {
		return nil, err
	}
	opts := analysis.ImportanceOptions{Objective: objective, Trees: f.trees, Seed: f.seed, Ranks: f.ranks}
	switch {
	case f.method == "permutation":
		opts.Method = analysis.Permutation
	case f.method != "fanova":
		return nil, cli.Usagef("--method %q: fanova or permutation", f.method)
	case f.trees < 0 || f.trees > analysis.MaxTrees:
		return nil, cli.Usagef("--trees %d: up to %d", f.trees, analysis.MaxTrees)
	}
	r, err := analysis.Importances(snap, st, &opts)
	if errors.Is(err, analysis.ErrTooFew) {
		return nil, cli.WithHint(err, "a few dozen completed trials say something; foldlog study show counts them")
	}
	if err != nil {
		return nil, err
	}
	view := &importanceView{Study: st.Config.Name, Metric: metricNames(st)[objective], Method: f.method, Trials: r.Trials, Left: r.Left, Params: []paramImportance{}}
	if r.Explained == r.Explained {
		explained := number(r.Explained)
		view.Explained = &explained
	}
	for _, p := range r.Params {
		view.Params = append(view.Params, paramImportance(p))
	}
	return view, nil
}

func (a *app) printImportance(v *importanceView) error {
	table := cli.NewTable(cli.Column{Title: "PARAMETER"}, cli.Column{Title: "SHARE", Align: cli.Right}, cli.Column{Title: "FRACTION", Align: cli.Right},
		cli.Column{Title: "SPREAD", Align: cli.Right}, cli.Column{Title: "TRIALS", Align: cli.Right})
	table.Bold = a.Color()
	for _, p := range v.Params {
		table.Row(p.Param, percent(p.Share), percent(p.Fraction), percent(p.Spread), cli.Count(int64(p.Trials)))
	}
	if err := cli.Buffered(a.Out(), func(w io.Writer) error { return table.Write(w) }); err != nil {
		return err
	}
	for _, note := range v.notes() {
		a.Notef("%s", note)
	}
	return nil
}

func percent(part float64) string { return strconv.FormatFloat(100*part, 'f', 1, 64) + "%" }

// poorlyExplained is below which R² the importances mean little.
const poorlyExplained = 0.3

// notes are what to know about the numbers.
func (v *importanceView) notes() []string {
	note := fmt.Sprintf("%s for %s, from %s", v.Method, v.Metric, plural(int64(v.Trials), "trial"))
	if v.Left > 0 {
		note += fmt.Sprintf(", %s without a finite value left out", cli.Count(int64(v.Left)))
	}
	switch {
	case v.Explained == nil:
		note += "; all values are the same"
	case *v.Explained < poorlyExplained:
		note += fmt.Sprintf("; they explain little of what unseen trials get (R² %.2f): do not trust this", *v.Explained)
	default:
		note += fmt.Sprintf("; they explain %s of the variance of unseen trials", percent(float64(*v.Explained)))
	}
	return []string{note}
}
