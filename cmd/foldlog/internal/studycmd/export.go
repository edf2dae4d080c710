package studycmd

import (
	"context"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/cmd/foldlog/internal/cmdline"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/logkind"
	"github.com/foldlog/foldlog/internal/studyview"
	"github.com/foldlog/foldlog/study"
	"github.com/foldlog/foldlog/study/optuna"
)

func (a *app) exportCmd() *cobra.Command {
	var format, out string
	c := &cobra.Command{
		Use:   "export PATH [--format csv|json|optuna] [--out FILE]",
		Short: "Export the trials of a study as CSV, JSON or a journal file of Optuna's",
		Long: `Export the trials of a study. CSV has a row for each trial: number, id, state,
values_NAME for each objective, params_NAME for each parameter, user_attrs_KEY
for each user attribute, created, started and ended (UTC), attempt, retry_of,
and error. JSON has the study and every trial with everything, reports included.
Optuna is a file that optuna.storages.JournalStorage opens, from release 3.1 on;
all studies of the journal are in it unless --study names one.

With --out the file is replaced once the export is complete, and left as it was
otherwise. A pipe or a device is written to.`,
		Example: "  foldlog study export search.atj --out trials.csv\n  foldlog study export search.atj --format json | jq '.trials[0]'",
		Args:    cmdline.Operands("PATH"),
	}
	name := studyFlag(c)
	c.Flags().StringVar(&format, "format", "", "the `FORMAT`, csv, json or optuna (default: json if --out ends in .json, else csv)")
	cmdline.OutFlag(c.Flags(), &out)
	c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"csv", "json", "optuna"}, cobra.ShellCompDirectiveNoFileComp))
	c.RunE = func(c *cobra.Command, args []string) error {
		if format == "" {
			var err error
			if format, err = cli.FormatOf(out, "csv", "json"); err != nil {
				return err
			}
		}
		write := studyview.WriteCSV
		switch format {
		case "csv":
		case "json":
			write = studyview.WriteJSON
		case "optuna":
			return cli.Failed("study export", args[0], a.exportOptuna(c.Context(), args[0], *name, out))
		default:
			return cli.Usagef("--format %q: csv, json or optuna", format)
		}
		return cli.Failed("study export", args[0], a.readStudy(c.Context(), args[0], *name, func(snap *study.Snapshot, st *study.Study) error {
			return a.exportTo(out, st.NumTrials(), func(w io.Writer) error { return write(w, snap, st) })
		}))
	}
	return c
}

// exportTo writes to a file, which is told, or to standard output without one.
func (a *app) exportTo(out string, trials int, write func(io.Writer) error) error {
	if err := a.WriteOut(out, write); err != nil || out == "" {
		return err
	}
	a.Notef("exported %s to %s", cli.Plural(int64(trials), "trial"), out)
	return nil
}

// exportOptuna exports one study or, without a name, all that are not deleted.
func (a *app) exportOptuna(ctx context.Context, path, name, out string) error {
	return a.readStudies(ctx, path, func(r logkind.StudyReader) error {
		snap, trials := r.Snapshot(), 0
		var studies []*study.Study
		if name != "" {
			st, err := pickStudy(snap, path, name)
			if err != nil {
				return err
			}
			studies = append(studies, st)
		} else {
			studies = slices.Collect(openStudies(snap))
		}
		for _, st := range studies {
			trials += st.NumTrials()
		}
		return a.exportTo(out, trials, func(w io.Writer) error { return optuna.Export(w, snap, studies) })
	})
}
