package studycmd

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/cmd/foldlog/internal/cmdline"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/logkind"
	"github.com/foldlog/foldlog/internal/studyview"
	"github.com/foldlog/foldlog/study"
)

func (a *app) showCmd() *cobra.Command {
	c := &cobra.Command{
		Use:        "show PATH [NUMBER] [--all] [--json]",
		SuggestFor: []string{"list", "ls", "status"},
		Short:      "Show the studies of a journal, who works on what, or one trial",
		Long: `Show the studies of a journal: what they are about, how many trials are in each
state, the best ones, why trials failed, who works on which, and what is still to
be done after the end of managed trials. --all also lists trials that wait or are paused, the
attributes, and studies that were deleted.

With NUMBER show one trial: parameters, results, reports, and the trials that it
repeats with what they reported.`,
		Example: "  foldlog study show search.atj\n  foldlog study show search.atj 3",
		Args:    cmdline.Operands("PATH", "[NUMBER]"),
	}
	name := studyFlag(c)
	all := c.Flags().Bool("all", false, "list waiting and paused trials, attributes and deleted studies too")
	asJSON := cmdline.JSONFlag(c, "print one JSON object")
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 2 {
			number, err := parseNumber(args[1])
			if err != nil {
				return err
			}
			return cli.Failed("study show", args[0], a.readStudy(c.Context(), args[0], *name, func(snap *study.Snapshot, st *study.Study) error {
				return a.showTrial(snap, st, number, *asJSON)
			}))
		}
		return cli.Failed("study show", args[0], a.readStudies(c.Context(), args[0], func(r logkind.StudyReader) error {
			return a.showStudies(r, args[0], *name, *all, *asJSON)
		}))
	}
	return c
}

// ShownJournal is the output of `foldlog study show --json`.
type ShownJournal struct {
	Path    string       `json:"path"`
	Format  string       `json:"format"` // the version of the format, as "v6"
	Studies []ShownStudy `json:"studies"`
}

// ShownStudy is a study and what goes on in it.
type ShownStudy struct {
	studyview.Summary
	Live    []studyview.Trial `json:"live"`    // running trials; waiting and paused ones too with --all
	Pending []Pending         `json:"pending"` // what is to be done after the end of trials
	// Failures are the reasons of its failed trials, the most frequent first.
	Failures []FailedTrials `json:"failures"`
}

// Pending is an outbox entry that is not done.
type Pending struct {
	Number  uint64   `json:"number"`  // of the trial that ended
	Epoch   uint64   `json:"epoch"`   // in which it ended
	Phase   string   `json:"phase"`   // what comes next: sampler, scheduler or effects
	Effects []string `json:"effects"` // the names of those that are not carried out
}

func (a *app) showStudies(r logkind.StudyReader, path, name string, all, asJSON bool) error {
	snap := r.Snapshot()
	shown := ShownJournal{Path: path, Format: logkind.FormatName(r.Header().Format), Studies: []ShownStudy{}}
	if name != "" {
		st, err := pickStudy(snap, path, name)
		if err != nil {
			return err
		}
		shown.Studies = append(shown.Studies, showStudy(snap, st, all))
	} else {
		studies := openStudies(snap)
		if all {
			studies = snap.Studies()
		}
		for st := range studies {
			shown.Studies = append(shown.Studies, showStudy(snap, st, all))
		}
	}
	if asJSON {
		return cli.WriteJSON(a.Out(), shown)
	}
	return cli.Buffered(a.Out(), func(w io.Writer) error {
		for i, s := range shown.Studies {
			if i > 0 {
				fmt.Fprintln(w)
			}
			st, _ := snap.Study(study.StudyID(s.ID)) // it comes from there
			if err := a.printStudy(w, path, st, s, all); err != nil {
				return err
			}
		}
		if len(shown.Studies) == 0 {
			a.Notef("the journal holds no study")
		}
		return nil
	})
}

func showStudy(snap *study.Snapshot, st *study.Study, all bool) ShownStudy {
	s := ShownStudy{Summary: studyview.SummaryOf(snap, st), Live: []studyview.Trial{}, Pending: []Pending{}, Failures: failuresOf(snap, st).sorted()}
	states := []study.State{study.Running}
	if all {
		states = append(states, study.Paused, study.Waiting)
	}
	for _, state := range states {
		for t := range snap.LiveTrials(st.ID, state) {
			s.Live = append(s.Live, studyview.TrialOf(snap, st, t))
		}
	}
	for t, e := range snap.Pending() {
		if t.Study == st.ID {
			s.Pending = append(s.Pending, viewPending(t, e))
		}
	}
	return s
}

func viewPending(t *study.Trial, e *study.OutboxEntry) Pending {
	p := Pending{Number: t.Number, Epoch: e.Key.Epoch, Phase: e.Phase.Name(), Effects: []string{}}
	for _, f := range e.Effects {
		if !f.Done && f.Raw == nil {
			p.Effects = append(p.Effects, f.Name)
		}
	}
	return p
}

func (a *app) printStudy(w io.Writer, path string, st *study.Study, s ShownStudy, all bool) error {
	pairs := [][2]string{
		{"study", fmt.Sprintf("%s (id %d)%s", s.Name, s.ID, deletedText(s.Deleted))},
		{"objective", studyview.Objectives(st)},
	}
	for _, p := range s.Space {
		pairs = append(pairs, [2]string{"parameter", p.String()})
	}
	pairs = append(pairs, [2]string{"created", cli.Moment(a.Time(), int64(s.CreatedMS))}, [2]string{"trials", trialsText(s)})
	for _, b := range s.Best {
		values := make([]float64, len(b.Values))
		for i, v := range b.Values {
			values[i] = float64(v)
		}
		pairs = append(pairs, [2]string{"best", fmt.Sprintf("trial %d: %s", b.Number, studyview.RoundResults(st, values))})
	}
	pairs = append(pairs, failurePairs(s.Failures, path)...)
	if all {
		for _, key := range slices.Sorted(maps.Keys(s.Attrs)) {
			pairs = append(pairs, [2]string{"attribute", key + " = " + string(s.Attrs[key])})
		}
	}
	if err := cli.WriteFields(w, pairs...); err != nil {
		return err
	}
	if err := a.printLive(w, s.Live); err != nil {
		return err
	}
	return a.printPending(w, s.Pending)
}

func deletedText(deleted bool) string {
	if deleted {
		return ", deleted"
	}
	return ""
}

// trialsText is "5: 1 waiting, 4 complete".
func trialsText(s ShownStudy) string {
	if s.Trials == 0 {
		return "0"
	}
	return cli.Count(s.Trials) + ": " + s.States.String()
}

func (a *app) printLive(w io.Writer, live []studyview.Trial) error {
	if len(live) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	t := cli.NewTable(cli.Column{Title: "TRIAL", Align: cli.Right}, cli.Column{Title: "STATE"}, cli.Column{Title: "ATTEMPT"},
		cli.Column{Title: "OWNER"}, cli.Column{Title: "EPOCH"}, cli.Column{Title: "STARTED"}, cli.Column{Title: "SEEN"}, cli.Column{Title: "LEASE"})
	t.Bold = a.Color()
	for _, v := range live {
		owner, epoch, lease := "", "", ""
		if v.Worker != nil {
			owner, epoch = strconv.FormatUint(*v.Worker, 10), strconv.FormatUint(v.Epoch, 10)
		}
		if v.GraceMS != nil {
			lease = leaseText(*v.GraceMS)
		}
		t.Row(strconv.FormatUint(v.Number, 10), v.State, attemptOf(v), owner, epoch,
			a.Ago(int64(v.StartedMS)), a.Ago(int64(v.HeartbeatMS)), lease)
	}
	return t.Write(w)
}

func attemptOf(v studyview.Trial) string {
	return attemptText(&study.Trial{Attempt: v.Attempt, MaxAttempts: v.MaxAttempts})
}

func (a *app) printPending(w io.Writer, pending []Pending) error {
	if len(pending) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	t := cli.NewTable(cli.Column{Title: "ENDED TRIAL", Align: cli.Right}, cli.Column{Title: "NEXT"}, cli.Column{Title: "TO DO"})
	t.Bold = a.Color()
	for _, p := range pending {
		t.Row(strconv.FormatUint(p.Number, 10), p.Phase, strings.Join(p.Effects, ", "))
	}
	return t.Write(w)
}

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

// span is how long a trial took, or has been running; "" if it never started.
func span(t *study.Trial, now time.Time) string {
	end := t.EndedMillis
	switch {
	case t.StartedMillis == 0:
		return ""
	case end == 0:
		end = uint64(now.UnixMilli())
	}
	if end < t.StartedMillis {
		return "" // the clocks of two writers differ
	}
	return cli.Duration(time.Duration(end-t.StartedMillis) * time.Millisecond)
}
