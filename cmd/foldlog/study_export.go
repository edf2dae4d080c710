package main

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/serde"
	"github.com/foldlog/foldlog/study"
	"github.com/foldlog/foldlog/study/optuna"
)

func (a *app) studyExportCmd() *cobra.Command {
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
		Args:    operands("PATH"),
	}
	name := studyFlag(c)
	c.Flags().StringVar(&format, "format", "", "the `FORMAT`, csv, json or optuna (default: json if --out ends in .json, else csv)")
	c.Flags().StringVar(&out, "out", "", "write to this `FILE` and not to standard output")
	c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"csv", "json", "optuna"}, cobra.ShellCompDirectiveNoFileComp))
	c.RunE = func(c *cobra.Command, args []string) error {
		if format == "" {
			format = formatOf(out, "csv", "json")
		}
		write := exportCSV
		switch format {
		case "csv":
		case "json":
			write = exportJSON
		case "optuna":
			return failed("study export", args[0], a.exportOptuna(args[0], *name, out))
		default:
			return cli.Usagef("--format %q: csv, json or optuna", format)
		}
		return failed("study export", args[0], a.readStudy(args[0], *name, func(snap *study.Snapshot, st *study.Study) error {
			return a.exportTo(out, st.NumTrials(), func(w io.Writer) error { return write(w, snap, st) })
		}))
	}
	return c
}

// formatOf is the other format if that is the ending of a file's name.
func formatOf(out, usual, other string) string {
	if strings.EqualFold(filepath.Ext(out), "."+other) {
		return other
	}
	return usual
}

// exportTo writes to a file, or to standard output without one.
func (a *app) exportTo(out string, trials int, write func(io.Writer) error) error {
	if out == "" {
		return cli.Buffered(a.Out(), write)
	}
	if err := replaceFile(out, write); err != nil {
		return failed("write", out, err)
	}
	a.Notef("exported %s to %s", plural(int64(trials), "trial"), out)
	return nil
}

// exportOptuna exports one study or, without a name, all that are not deleted.
func (a *app) exportOptuna(path, name, out string) error {
	return a.readStudies(path, func(r studyReader) error {
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

// exportedStudy is the output of `foldlog study export --format json`. It is
// written trial by trial, so that it may be longer than memory.
type exportedStudy struct {
	Study  studySummary  `json:"study"`
	Trials []curvedTrial `json:"trials"` // by number
}

func exportJSON(w io.Writer, snap *study.Snapshot, st *study.Study) error {
	head, err := compactJSON(exportedStudy{Study: summarizeStudy(snap, st), Trials: []curvedTrial{}})
	if err != nil {
		return err
	}
	if _, err := w.Write(head[:len(head)-len("]}")]); err != nil {
		return err
	}
	sep := "\n"
	for t := range snap.Trials(st.ID, study.TrialFilter{}) {
		line, err := compactJSON(viewCurve(snap, st, t))
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "%s%s", sep, line); err != nil {
			return err
		}
		sep = ",\n"
	}
	_, err = io.WriteString(w, "\n]}\n")
	return err
}

func compactJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	err := cli.WriteJSONLine(&b, v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// csvColumns are the columns that depend on the trials.
type csvColumns struct{ params, attrs []string }

// columnsOf collects the names of all parameters, the declared ones first, and
// of all attributes.
func columnsOf(snap *study.Snapshot, st *study.Study) (c csvColumns) {
	known := map[string]bool{}
	for _, p := range spaceOf(st) {
		known[p.Name] = true
		c.params = append(c.params, p.Name)
	}
	attrs := map[string]bool{}
	for t := range snap.Trials(st.ID, study.TrialFilter{}) {
		for _, p := range t.Params {
			if !known[p.Name] {
				known[p.Name] = true
				c.params = append(c.params, p.Name)
			}
		}
		for key := range userAttrs(t.Attrs()) {
			if !attrs[key] {
				attrs[key] = true
				c.attrs = append(c.attrs, key)
			}
		}
	}
	slices.Sort(c.attrs)
	return c
}

func exportCSV(w io.Writer, snap *study.Snapshot, st *study.Study) error {
	columns, metrics := columnsOf(snap, st), metricNames(st)
	out := csv.NewWriter(w)
	if err := out.Write(columns.titles(metrics)); err != nil {
		return err
	}
	for t := range snap.Trials(st.ID, study.TrialFilter{}) {
		if err := out.Write(columns.row(snap, t, len(metrics))); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

func (c csvColumns) titles(metrics []string) []string {
	titles := []string{"number", "id", "state"}
	for _, name := range metrics {
		titles = append(titles, "values_"+name)
	}
	for _, name := range c.params {
		titles = append(titles, "params_"+name)
	}
	for _, key := range c.attrs {
		titles = append(titles, "user_attrs_"+key)
	}
	return append(titles, "created", "started", "ended", "attempt", "retry_of", "error")
}

func (c csvColumns) row(snap *study.Snapshot, t *study.Trial, objectives int) []string {
	row := []string{strconv.FormatUint(t.Number, 10), strconv.FormatUint(uint64(t.ID), 10), stateName(t.State)}
	row = append(row, cells(t, objectives, c.params)...)
	for _, key := range c.attrs {
		attr, _ := t.Attr(key)
		row = append(row, serde.Text(attr.Value))
	}
	retryOf := ""
	if parent := parentOf(snap, t); parent != nil {
		retryOf = strconv.FormatUint(parent.Number, 10)
	}
	return append(row, csvTime(t.CreatedMillis), csvTime(t.StartedMillis), csvTime(t.EndedMillis),
		strconv.FormatUint(t.Attempt, 10), retryOf, t.Error)
}

// csvTime is a time as ISO 8601 in UTC, "" for 0.
func csvTime(millis uint64) string {
	if millis == 0 {
		return ""
	}
	return time.UnixMilli(int64(millis)).UTC().Format("2006-01-02T15:04:05.000Z")
}
