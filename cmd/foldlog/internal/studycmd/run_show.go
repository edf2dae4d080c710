package studycmd

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/studyview"
	"github.com/foldlog/foldlog/runner"
	"github.com/foldlog/foldlog/study"
)

// ShowProgress keeps the bar up to date until the returned function is called.
func (run *Running) ShowProgress() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			if run.r.Refresh(ctx) == nil {
				run.showState(run.r.Snapshot())
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
	return func() { cancel(); <-done }
}

// showState counts trials as the budget does: retries are part of the trial that
// they repeat.
func (run *Running) showState(snap *study.Snapshot) {
	st, err := snap.Study(run.Study)
	if err != nil {
		return
	}
	counts := st.Counts()
	live := int64(counts[study.Waiting] + counts[study.Running] + counts[study.Paused])
	total := max(int64(run.Trials), int64(st.Reserved()))
	run.Bar.Set(max(int64(st.Reserved())-live, 0), total)
	words := strconv.Itoa(counts[study.Running]) + " running"
	if t := run.best.Best(snap, run.Study); t != nil {
		words += fmt.Sprintf(", best %s (trial %d)", studyview.ValuesText(t.Values), t.Number)
	}
	if text := run.lookAtForeign(snap, st); text != "" {
		words += ", " + text
	}
	run.Bar.Say(words)
}

// foreign is the waiting for trials that nobody of this run works on.
type foreign struct {
	since, last time.Time
	told        bool
	took        time.Duration
	most        int
}

// foreignPatience is how long others may be waited for before that is told.
const foreignPatience = 2 * time.Second

// lookAtForeign says what this run waits for once it has nothing else to do: the
// trials that others have claimed, by ask --lease or in another run.
func (run *Running) lookAtForeign(snap *study.Snapshot, st *study.Study) string {
	run.mu.Lock()
	defer run.mu.Unlock()
	now := time.Now()
	var first *study.Trial
	n, own := 0, len(run.ours) == 0
	for t := range snap.LiveTrials(run.Study, study.Running) {
		switch {
		case !t.Managed:
		case run.ours[t.Owner]:
			own = true
		default:
			if n++; first == nil {
				first = t
			}
		}
	}
	f := &run.waiting
	if own || n == 0 || st.Reserved() < run.Trials || st.Counts()[study.Waiting] > 0 {
		f.since = time.Time{}
		return ""
	}
	if f.since.IsZero() {
		f.since, f.last = now, now
	}
	f.took, f.last = f.took+now.Sub(f.last), now
	f.most = max(f.most, n)
	if now.Sub(f.since) >= foreignPatience && !f.told {
		f.told = true
		run.Bar.Notef("waiting for %s of others, trial %d of worker %d first: until it is told, or its owner has been silent for %v",
			cli.Plural(int64(n), "trial"), first.Number, first.Owner, max(run.Grace, first.Lease()))
	}
	return fmt.Sprintf("waiting for %s of others", cli.Plural(int64(n), "trial"))
}

// Event tells what a person should know.
func (run *Running) Event(e runner.Event) {
	run.mu.Lock()
	run.failures.count(e)
	run.mu.Unlock()
	bar := run.Bar
	switch e.Kind {
	case runner.Started:
		if run.Verbose {
			bar.Notef("trial %d started (worker %d, epoch %d)", e.Number, e.Worker, e.Epoch)
		}
	case runner.Finished:
		if e.State == study.Failed.String() {
			bar.Notef("trial %d failed: %s", e.Number, reasonLine(e.Text))
		} else if run.Verbose {
			bar.Notef("trial %d is %s", e.Number, strings.ToLower(e.State))
		}
	case runner.FailedStale:
		bar.Notef("trial %d failed as %s", e.Number, e.Text)
	case runner.Retried:
		bar.Notef("trial %d %s, as attempt %d", e.Number, e.Text, e.Attempt)
	case runner.GivenBack:
		bar.Notef("trial %d was given back; the next run takes it up", e.Number)
	case runner.PutOnHold:
		bar.Notef("trial %d is %s", e.Number, holdText(run.Journal, e.Number))
	case runner.Late:
		bar.Notef("trial %d: result came too late: %s", e.Number, e.Text)
	case runner.Missing:
		bar.Notef("trial %d: %s", e.Number, e.Text)
	case runner.Cleared:
		bar.Notef("%s", e.Text)
	case runner.TakenOver:
		bar.Notef("took the journal over from %s, which had stopped", e.Text)
	case runner.Trouble:
		run.mu.Lock()
		text := run.troubles.text(e.Text, time.Now())
		run.mu.Unlock()
		if text != "" || run.Verbose {
			bar.Notef("trouble, tried again: %s", cmp.Or(text, e.Text))
		}
	}
}

// troublePause is the least time between two lines about trouble: a full disk is
// noticed by every worker, again and again.
const troublePause = 5 * time.Second

// troubles are what went wrong and is tried again.
type troubles struct {
	told time.Time
	more int
}

// text is what is to be said about one more, "" for nothing.
func (t *troubles) text(text string, now time.Time) string {
	if !t.told.IsZero() && now.Sub(t.told) < troublePause {
		t.more++
		return ""
	}
	if t.more > 0 {
		text += fmt.Sprintf(" (and %s more since the last)", cli.Count(int64(t.more)))
	}
	t.told, t.more = now, 0
	return text
}

// reasonLine is an error of a trial on one line. A command that ended by itself said
// why at the end of its output: most languages name the exception there.
func reasonLine(s string) string {
	first, rest, _ := strings.Cut(s, "\n")
	rest = strings.TrimSpace(rest)
	last := strings.TrimSpace(rest[strings.LastIndexByte(rest, '\n')+1:])
	if last == "" || !strings.HasPrefix(first, "exit status ") {
		return first
	}
	return first + ": " + cli.Shorten(last, maxReasonLine)
}

// maxReasonLine bounds, in runes, what is shown of the last line of an error.
const maxReasonLine = 120

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// text is the waiting for others in the end report.
func (f *foreign) text() string {
	return fmt.Sprintf("%s of others, for %s", cli.Plural(int64(f.most), "trial"), cli.Duration(f.took))
}
