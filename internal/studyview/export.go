package studyview

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/serde"
	"github.com/foldlog/foldlog/study"
)

// Exported is the output of `foldlog study export --format json`. It is
// written trial by trial, so that it may be longer than memory.
type Exported struct {
	Study  Summary       `json:"study"`
	Trials []CurvedTrial `json:"trials"` // by number
}

// WriteJSON exports a study as an Exported.
func WriteJSON(w io.Writer, snap *study.Snapshot, st *study.Study) error {
	head, err := compactJSON(Exported{Study: SummaryOf(snap, st), Trials: []CurvedTrial{}})
	if err != nil {
		return err
	}
	if _, err := w.Write(head[:len(head)-len("]}")]); err != nil {
		return err
	}
	sep := "\n"
	for t := range snap.Trials(st.ID, study.TrialFilter{}) {
		line, err := compactJSON(CurveOf(snap, st, t))
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
	for _, p := range SpaceOf(st) {
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
		for key := range UserAttrs(t.Attrs()) {
			if !attrs[key] {
				attrs[key] = true
				c.attrs = append(c.attrs, key)
			}
		}
	}
	slices.Sort(c.attrs)
	return c
}

// WriteCSV exports a study as a row of CSV for each trial.
func WriteCSV(w io.Writer, snap *study.Snapshot, st *study.Study) error {
	columns, metrics := columnsOf(snap, st), st.ObjectiveNames()
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
	row := []string{strconv.FormatUint(t.Number, 10), strconv.FormatUint(uint64(t.ID), 10), t.State.Name()}
	row = append(row, Cells(t, objectives, c.params)...)
	for _, key := range c.attrs {
		attr, _ := t.Attr(key)
		row = append(row, serde.Text(attr.Value))
	}
	retryOf := ""
	if parent := ParentOf(snap, t); parent != nil {
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
