package studycmd

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

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
