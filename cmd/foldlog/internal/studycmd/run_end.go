package studycmd

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/serde"
	"github.com/foldlog/foldlog/internal/studyview"
	"github.com/foldlog/foldlog/metrics"
	"github.com/foldlog/foldlog/runner"
	"github.com/foldlog/foldlog/study"
)

// failures counts failed trials by their reason.
type failures struct {
	list []FailedTrials
}

// FailedTrials are the trials that failed for one reason.
type FailedTrials struct {
	Reason string   `json:"reason"` // the first line of the error; "stale" if the worker went silent
	Count  int      `json:"count"`
	Trials []uint64 `json:"trials"` // the first ones, by number
	line   string   // Reason with what all of them printed last, or Reason if they differ
}

// maxNamed and maxReasons bound what is kept of failures.
const (
	maxNamed   = 10
	maxReasons = 100
)

// failuresOf are those of a whole study.
func failuresOf(snap *study.Snapshot, st *study.Study) *failures {
	f := new(failures)
	for t := range snap.Trials(st.ID, study.TrialFilter{States: []study.State{study.Failed}}) {
		reason, line := cmp.Or(firstLine(t.Error), "no reason given"), cmp.Or(reasonLine(t.Error), "no reason given")
		if strings.HasPrefix(reason, staleReason+": ") {
			reason, line = staleReason, staleReason
		}
		f.add(reason, line, t.Number)
	}
	return f
}

// staleReason is why the trial of a worker that went silent has failed.
const staleReason = "stale"

// count takes in what happened in a run.
func (f *failures) count(e runner.Event) {
	switch {
	case e.Kind == runner.FailedStale:
		f.add(staleReason, staleReason, e.Number)
	case e.Kind == runner.Finished && e.State == study.Failed.String():
		f.add(firstLine(e.Text), reasonLine(e.Text), e.Number)
	}
}

func (f *failures) add(reason, line string, number uint64) {
	i := slices.IndexFunc(f.list, func(t FailedTrials) bool { return t.Reason == reason })
	if i < 0 && len(f.list) == maxReasons {
		i = maxReasons - 1
		f.list[i].Reason, f.list[i].line = "other reasons", "other reasons"
	}
	if i < 0 {
		i = len(f.list)
		f.list = append(f.list, FailedTrials{Reason: reason, Trials: []uint64{}, line: line})
	}
	t := &f.list[i]
	if t.line != line {
		t.line = t.Reason
	}
	t.Count++
	place, _ := slices.BinarySearch(t.Trials, number) // workers end in any order
	t.Trials = slices.Insert(t.Trials, place, number)
	t.Trials = t.Trials[:min(len(t.Trials), maxNamed)]
}

// sorted are the reasons, the most frequent first.
func (f *failures) sorted() []FailedTrials {
	list := slices.Clone(f.list)
	slices.SortStableFunc(list, func(a, b FailedTrials) int { return cmp.Compare(b.Count, a.Count) })
	if list == nil {
		list = []FailedTrials{}
	}
	return list
}

// unmeasured is how the reason begins of a trial whose command has not printed its result.
const unmeasured = "the output has no value for \""

// onlyUnmeasured tells that nothing has failed for another reason.
func (f *failures) onlyUnmeasured() bool {
	return len(f.list) == 1 && strings.HasPrefix(f.list[0].Reason, unmeasured)
}

// missing is the first metric that an unmeasured trial lacks.
func (t FailedTrials) missing() string {
	name, _, _ := strings.Cut(strings.TrimPrefix(t.Reason, unmeasured), "\"")
	return name
}

func (t FailedTrials) String() string {
	texts := make([]string, len(t.Trials))
	for i, n := range t.Trials {
		texts[i] = strconv.FormatUint(n, 10)
	}
	if t.Count > len(t.Trials) {
		texts = append(texts, "...")
	}
	word := "trial"
	if t.Count > 1 {
		word = "trials"
	}
	return fmt.Sprintf("%d, %s (%s %s)", t.Count, t.line, word, strings.Join(texts, ", "))
}

// RunSummary is the output of `foldlog study run --json`.
type RunSummary struct {
	Path   string `json:"path"`
	Study  string `json:"study"`
	TookMS int64  `json:"took_ms"`
	runner.Report
	TimedOut bool                  `json:"timed_out"` // --timeout ended the run before its budget was used up
	GaveUp   bool                  `json:"gave_up"`   // --max-failures ended the run
	Failures []FailedTrials        `json:"failures"`  // of this run
	WaitedMS int64                 `json:"waited_ms"` // only for trials of others
	Logs     *string               `json:"logs"`      // directory of the trials' output, null if none is kept
	Runs     *string               `json:"runs"`      // directory of the trials' metrics, null if none are kept
	States   studyview.StateCounts `json:"states"`    // of the study's trials, after the run
	Best     []studyview.BestTrial `json:"best"`      // the best trial, or the Pareto front
}

// print is the report at the end, which came by runErr if that is not nil.
func (run *Running) print(report runner.Report, took time.Duration, runErr error) error {
	snap := run.r.Snapshot()
	st, err := snap.Study(run.Study)
	if err != nil {
		return err
	}
	logs, runs := "", ""
	if run.Logs != "" {
		logs = filepath.Join(run.Logs, metrics.EncodeSlug(st.Config.Name))
	}
	if run.Runs != "" {
		runs = filepath.Join(run.Runs, metrics.RunsDir)
	}
	counts := st.Counts()
	left := st.Reserved() < run.Trials || counts[study.Waiting]+counts[study.Paused] > 0
	timedOut := run.timeout > 0 && took >= run.timeout && left
	failing := cli.As[*runner.FailingError](runErr)
	s := studyview.SummaryOf(snap, st)
	if run.json {
		return cli.WriteJSON(run.Out(), RunSummary{run.Journal, s.Name, took.Milliseconds(), report, timedOut, failing, run.failures.sorted(),
			run.waiting.took.Milliseconds(), serde.OrNull(logs), serde.OrNull(runs), s.States, s.Best})
	}
	pairs := [][2]string{
		{"study", s.Name},
		{"this run", fmt.Sprintf("%d complete, %d failed, %d given back, %d retried, in %s",
			report.Complete, report.Failed, report.GivenBack, report.Retried, cli.Duration(took))},
		{"all trials", s.States.String()},
	}
	if timedOut {
		pairs = append(pairs, [2]string{"stopped", fmt.Sprintf("after %v; the same command goes on", run.timeout)})
	}
	if failing {
		pairs = append(pairs, [2]string{"stopped", fmt.Sprintf("after %d failed trials in a row", run.maxFailures)})
	}
	pairs = append(pairs, run.details(report)...)
	best, err := run.bestPairs(snap, st)
	if err != nil {
		return err
	}
	pairs = append(pairs, best...)
	if logs != "" && report != (runner.Report{}) {
		pairs = append(pairs, [2]string{"logs", filepath.Join(logs, "NUMBER.log")})
	}
	switch {
	case report != (runner.Report{}) || left:
	case run.Trials == 0:
		run.Notef("no trial is waiting; --trials N, or trials: N in a study file, says how many the study is to have")
	default:
		run.Notef("the study has its %s; a larger --trials goes on", cli.Plural(int64(run.Trials), "trial"))
	}
	return cli.WriteFields(run.Out(), pairs...)
}

// details are what not every run has.
func (run *Running) details(report runner.Report) (pairs [][2]string) {
	if report.Pruned > 0 {
		pairs = append(pairs, [2]string{"pruned", strconv.Itoa(report.Pruned)})
	}
	if report.OnHold > 0 {
		pairs = append(pairs, [2]string{"on hold", fmt.Sprintf("%d, until: foldlog study resume %s NUMBER", report.OnHold, run.Journal)})
	}
	pairs = append(pairs, failurePairs(run.failures.sorted(), run.Journal)...)
	if run.waiting.took > 0 {
		pairs = append(pairs, [2]string{"waited for", run.waiting.text()})
	}
	if report.Late > 0 {
		pairs = append(pairs, [2]string{"came too late", fmt.Sprintf("%d, kept in %s", report.Late, runner.LatePath(run.Journal))})
	}
	return pairs
}

// failurePairs tell the reasons, the most frequent first.
func failurePairs(list []FailedTrials, path string) (pairs [][2]string) {
	for i, t := range list {
		if i == maxNamed {
			return append(pairs, [2]string{"failed", "for other reasons: foldlog study trials " + path + " --state failed"})
		}
		pairs = append(pairs, [2]string{"failed", t.String()})
	}
	return pairs
}

func (run *Running) bestPairs(snap *study.Snapshot, st *study.Study) (pairs [][2]string, err error) {
	best, err := snap.Best(run.Study)
	label := "best"
	if len(st.Config.Directions) > 1 {
		label = "Pareto front"
	}
	for _, t := range best {
		pairs = append(pairs, [2]string{label, fmt.Sprintf("trial %d: %s  %s", t.Number, studyview.ValuesText(t.Values), studyview.ParamsText(t.Params))})
	}
	return pairs, err
}
