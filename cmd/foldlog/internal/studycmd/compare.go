package studycmd

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/cmd/foldlog/internal/cmdline"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/logkind"
	"github.com/foldlog/foldlog/internal/studyview"
	"github.com/foldlog/foldlog/study"
)

// compareFlags is the command line of compare.
type compareFlags struct {
	names     []string
	reference []float64
}

func (a *app) compareCmd() *cobra.Command {
	var flags compareFlags
	c := &cobra.Command{
		Use:        "compare PATH... [--study NAME]... [--reference V,V...] [--json]",
		SuggestFor: []string{"diff"},
		Short:      "Put several studies beside one another",
		Long: `Put studies beside one another: all those of the journals given, or those that
--study names. They must have the same directions.

With one objective "reached" is the first trial that is as good as the worst of
their best values; "better" is how often the value of a completed trial is better
than one of the first study, and p how often chance alone would make such a
difference (Mann-Whitney). With several objectives the fronts are compared by
their hypervolumes, up to a reference beyond the worst values of all, or the one
that --reference gives.`,
		Example: "  foldlog study compare tpe.atj random.atj\n  foldlog study compare all.atj --study small --study large",
		Args:    cmdline.Operands("PATH..."),
	}
	c.Flags().StringArrayVar(&flags.names, "study", nil, "compare the study of this `NAME`; again for each further one")
	c.RegisterFlagCompletionFunc("study", completeStudies)
	c.Flags().Float64SliceVar(&flags.reference, "reference", nil, "the reference `POINT` of hypervolumes, a value per objective")
	c.Flags().Lookup("reference").DefValue = ""
	asJSON := cmdline.JSONFlag(c, "print one JSON object")
	c.RunE = func(c *cobra.Command, args []string) error {
		v, err := a.compare(c.Context(), args, &flags)
		if err != nil {
			return err
		}
		if *asJSON {
			return cli.WriteJSON(a.Out(), v)
		}
		return a.printComparison(v)
	}
	return c
}

// compare opens the journals one after another; snapshots outlive their readers.
func (a *app) compare(ctx context.Context, paths []string, f *compareFlags) (*studyview.Comparison, error) {
	var sides []studyview.Side
	found := map[string]bool{}
	for _, path := range paths {
		err := a.readStudies(ctx, path, func(r logkind.StudyReader) error {
			for st := range openStudies(r.Snapshot()) {
				if len(f.names) == 0 || slices.Contains(f.names, st.Config.Name) {
					found[st.Config.Name] = true
					sides = append(sides, studyview.Side{Path: path, Snap: r.Snapshot(), St: st})
				}
			}
			return nil
		})
		if err != nil {
			return nil, cli.Failed("study compare", path, err)
		}
	}
	for _, name := range f.names {
		if !found[name] {
			return nil, cli.Failed("study compare", strings.Join(paths, " "), fmt.Errorf("study %q: %w", name, study.ErrNotFound))
		}
	}
	if len(sides) == 0 {
		return nil, cli.Failed("study compare", strings.Join(paths, " "), fmt.Errorf("no study: %w", study.ErrNotFound))
	}
	return studyview.Compare(sides, f.reference)
}

func (a *app) printComparison(v *studyview.Comparison) error {
	columns := []cli.Column{{}}
	for _, s := range v.Studies {
		columns = append(columns, cli.Column{Title: s.Study})
	}
	table := cli.NewTable(columns...)
	table.Bold = a.Color()
	row := func(label string, cell func(*studyview.ComparedStudy) string) {
		cells, some := []string{label}, false
		for i := range v.Studies {
			cells = append(cells, cell(&v.Studies[i]))
			some = some || cells[i+1] != ""
		}
		if some {
			table.Row(cells...)
		}
	}
	row("journal", func(s *studyview.ComparedStudy) string { return s.Path })
	row("trials", func(s *studyview.ComparedStudy) string { return cli.Count(s.Trials) })
	row("", func(s *studyview.ComparedStudy) string { return s.States.String() })
	row("elapsed", func(s *studyview.ComparedStudy) string { return studyview.MillisText(s.ElapsedMS) })
	row("busy", func(s *studyview.ComparedStudy) string { return studyview.MillisText(s.BusyMS) })
	if len(v.Directions) == 1 {
		valueRows(v, row)
	} else {
		row("front", func(s *studyview.ComparedStudy) string { return cli.Plural(int64(len(s.Best)), "trial") })
		row("hypervolume", func(s *studyview.ComparedStudy) string { return s.VolumeText() })
	}
	if err := table.Write(a.Out()); err != nil {
		return err
	}
	if len(v.Reference) > 0 {
		parts := make([]string, len(v.Reference))
		for i, r := range v.Reference {
			parts[i] = v.Metrics[i] + " " + studyview.Significant(float64(r))
		}
		a.Notef("hypervolumes go up to %s", strings.Join(parts, ", "))
	}
	return nil
}

// valueRows are the rows of studies of one objective.
func valueRows(v *studyview.Comparison, row func(string, func(*studyview.ComparedStudy) string)) {
	row("best "+v.Metrics[0], func(s *studyview.ComparedStudy) string {
		if len(s.Best) == 0 {
			return ""
		}
		return fmt.Sprintf("%s (trial %d)", studyview.Significant(float64(s.Best[0].Values[0])), s.Best[0].Number)
	})
	if v.Target != nil {
		row("reached "+studyview.Significant(float64(*v.Target)), func(s *studyview.ComparedStudy) string {
			if s.Reached == nil {
				return "never"
			}
			return fmt.Sprintf("trial %d", *s.Reached)
		})
	}
	row("better", func(s *studyview.ComparedStudy) string {
		if s.Better == nil {
			return ""
		}
		return fmt.Sprintf("%s (p %.3g)", studyview.Percent(float64(*s.Better)), float64(*s.P))
	})
	var names []string
	for _, s := range v.Studies {
		for _, p := range s.BestParams {
			if !slices.Contains(names, p.Name) {
				names = append(names, p.Name)
			}
		}
	}
	for _, name := range names {
		row("param "+name, func(s *studyview.ComparedStudy) string {
			if i := slices.IndexFunc(s.BestParams, func(p study.Param) bool { return p.Name == name }); i >= 0 {
				return studyview.ParamText(s.BestParams[i])
			}
			return "-"
		})
	}
}
