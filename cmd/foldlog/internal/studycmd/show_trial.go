package studycmd

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/studyview"
	"github.com/foldlog/foldlog/study"
)

// ShownTrial is the output of `foldlog study show NUMBER --json`.
type ShownTrial struct {
	Study string `json:"study"`
	studyview.CurvedTrial
	Lineage []studyview.CurvedTrial `json:"lineage"` // the trials that it repeats, newest first
}

func (a *app) showTrial(snap *study.Snapshot, st *study.Study, number uint64, asJSON bool) error {
	t, err := pickTrial(snap, st, number)
	if err != nil {
		return err
	}
	lineage, err := snap.Lineage(t.ID)
	if err != nil {
		return err
	}
	shown := ShownTrial{Study: st.Config.Name, CurvedTrial: studyview.CurveOf(snap, st, t), Lineage: []studyview.CurvedTrial{}}
	for _, parent := range lineage[1:] {
		if parent.Study == st.ID {
			shown.Lineage = append(shown.Lineage, studyview.CurveOf(snap, st, parent))
		}
	}
	if asJSON {
		return cli.WriteJSON(a.Out(), shown)
	}
	return cli.Buffered(a.Out(), func(w io.Writer) error { return a.printTrial(w, st, t, shown) })
}

// linesOf is a text of several lines, a pair for each.
func linesOf(label, text string) (pairs [][2]string) {
	for line := range strings.Lines(text) {
		pairs = append(pairs, [2]string{label, strings.TrimRight(line, "\r\n")})
		label = ""
	}
	return pairs
}

func (a *app) printTrial(w io.Writer, st *study.Study, t *study.Trial, s ShownTrial) error {
	pairs := [][2]string{
		{"trial", strconv.FormatUint(t.Number, 10)},
		{"id", strconv.FormatUint(uint64(t.ID), 10)},
		{"state", s.State},
		{"result", studyview.Results(st, t.Values)},
	}
	if s.OnHold {
		pairs[2][1] += ", on hold"
	}
	pairs = append(pairs, linesOf("error", t.Error)...)
	pairs = append(pairs, [2]string{"attempt", attemptText(t)})
	if s.Worker != nil {
		pairs = append(pairs, [2]string{"owner", fmt.Sprintf("worker %d at epoch %d", *s.Worker, s.Epoch)})
	}
	if s.GraceMS != nil {
		pairs = append(pairs, [2]string{"lease", leaseText(*s.GraceMS)})
	}
	pairs = append(pairs,
		[2]string{"created", cli.Moment(a.Time(), int64(t.CreatedMillis))}, [2]string{"started", cli.Moment(a.Time(), int64(t.StartedMillis))},
		[2]string{"ended", cli.Moment(a.Time(), int64(t.EndedMillis))}, [2]string{"seen", cli.Moment(a.Time(), int64(t.HeartbeatMillis))})
	if len(t.Params) == 0 {
		pairs = append(pairs, fixedFields(s.Fixed)...)
	}
	pairs = append(pairs, paramFields(t.Params)...)
	if s.Log != nil {
		pairs = append(pairs, [2]string{"log", *s.Log})
	}
	if s.Run != nil {
		pairs = append(pairs, [2]string{"run", *s.Run})
	}
	for key, attr := range studyview.UserAttrs(t.Attrs()) {
		pairs = append(pairs, [2]string{"attribute", key + " = " + string(attr.Value)})
	}
	for _, p := range s.Lineage {
		pairs = append(pairs, [2]string{"repeats", repeatText(p)})
	}
	if err := cli.WriteFields(w, pairs...); err != nil {
		return err
	}
	return a.printCurves(w, st, s)
}

func fixedFields(params studyview.Params) (pairs [][2]string) {
	for _, p := range params {
		pairs = append(pairs, [2]string{"fixed " + p.Name, p.Text()})
	}
	return pairs
}

func repeatText(p studyview.CurvedTrial) string {
	s := fmt.Sprintf("trial %d, attempt %d, %s", p.Number, p.Attempt, p.State)
	if p.Error != "" {
		s += ": " + p.Error
	}
	return s
}

// printCurves shows the reports of the trial and of those that it repeats.
func (a *app) printCurves(w io.Writer, st *study.Study, s ShownTrial) error {
	columns := []cli.Column{{Title: "TRIAL", Align: cli.Right}, {Title: "STEP", Align: cli.Right}}
	for _, name := range st.ObjectiveNames() {
		columns = append(columns, cli.Column{Title: strings.ToUpper(name), Align: cli.Right})
	}
	t := cli.NewTable(columns...)
	t.Bold = a.Color()
	for _, trial := range append(slices.Clone(s.Lineage), s.CurvedTrial) {
		for _, r := range trial.Curve {
			row := []string{strconv.FormatUint(trial.Number, 10), strconv.FormatUint(r.Step, 10)}
			for _, v := range r.Values {
				row = append(row, studyview.Significant(float64(v)))
			}
			t.Row(row...)
		}
	}
	if t.Len() == 0 {
		return nil
	}
	fmt.Fprintln(w)
	return t.Write(w)
}
