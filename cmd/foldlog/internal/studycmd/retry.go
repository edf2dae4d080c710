package studycmd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/cmd/foldlog/internal/cmdline"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/sleep"
	"github.com/foldlog/foldlog/internal/studyview"
	"github.com/foldlog/foldlog/study"
	"github.com/foldlog/foldlog/study/asktell"
)

// retryOptions are the operands and flags of study retry.
type retryOptions struct {
	numbers             []uint64
	failed, raw, asJSON bool
	max                 uint64
	stale               time.Duration
}

func (a *app) retryCmd() *cobra.Command {
	var o retryOptions
	c := &cobra.Command{
		Use:   "retry PATH [NUMBER...] [--failed] [--stale DURATION] [--max N] [--json]",
		Short: "Try trials again that failed or whose owner is gone",
		Long: `Try trials again that failed: those of the given numbers, or with --failed all.
Each is repeated by a new trial with the same parameters, which waits for the
next ask --lease or "study run", and knows whom it repeats. A trial is repeated
once: when it is asked for again, its repetition is named and nothing is done.
What the end of managed trials had asked for and nobody delivered, such as the
retries of a killed worker, is delivered first, also without any number.

With --stale the command watches the running managed trials for so long first,
and fails those whose owner showed no sign of life meanwhile, so that they are
tried again. It trusts no clock but its own. A trial whose claim stated a longer
lease is left alone.`,
		Example: "  foldlog study retry search.atj 3 5\n  foldlog study retry search.atj --failed --max 3\n  foldlog study retry search.atj --stale 1m",
		Args:    cmdline.Operands("PATH", "[NUMBER]..."),
	}
	name := studyFlag(c)
	f := c.Flags()
	f.BoolVar(&o.failed, "failed", false, "try every trial again that failed and was not given up")
	f.DurationVar(&o.stale, "stale", 0, "watch for this `DURATION`, and fail trials whose owner is silent")
	f.Uint64Var(&o.max, "max", 0, "leave trials alone that had `N` attempts (0: no limit)")
	f.BoolVar(&o.raw, "raw", false, "repeat by raw trials, for ask without --lease")
	f.BoolVar(&o.asJSON, "json", false, "print one line of JSON for each new trial")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := o.parse(c, args[1:]); err != nil {
			return err
		}
		return cli.Failed("study retry", args[0], a.writeStudy(c.Context(), args[0], *name, nil, func(j study.Storage, st *study.Study) error {
			return a.retry(c.Context(), j, st, &o)
		}))
	}
	return c
}

func (o *retryOptions) parse(c *cobra.Command, args []string) error {
	for _, arg := range args {
		n, err := parseNumber(arg)
		if err != nil {
			return err
		}
		o.numbers = append(o.numbers, n)
	}
	switch {
	case o.failed && len(o.numbers) > 0:
		return cli.Usagef("give numbers or --failed, not both")
	case c.Flags().Changed("stale") && o.stale < time.Millisecond:
		return cli.Usagef("--stale %v: must be a millisecond at least", o.stale)
	}
	return nil
}

func (a *app) retry(ctx context.Context, j study.Storage, st *study.Study, o *retryOptions) error {
	if o.stale > 0 {
		if err := a.failStale(ctx, j, st, o); err != nil {
			return err
		}
	}
	created, err := a.deliverOutbox(ctx, j)
	if err == nil && (o.failed || len(o.numbers) > 0) {
		var again []study.TrialID
		if again, err = a.repeat(ctx, j, st, o); err == nil {
			created, err = appendTrials(created, j.Snapshot(), again)
		}
	}
	return errors.Join(err, a.printRetried(j.Snapshot(), created, o.asJSON))
}

func appendTrials(list []*study.Trial, snap *study.Snapshot, ids []study.TrialID) ([]*study.Trial, error) {
	for _, id := range ids {
		t, err := snap.Trial(id)
		if err != nil {
			return list, err
		}
		list = append(list, t)
	}
	return list, nil
}

// skipped is a trial that is not repeated, and why.
type skipped struct {
	number uint64
	why    string
}

// repeat creates the repetitions in one extent, all or none.
func (a *app) repeat(ctx context.Context, j study.Storage, st *study.Study, o *retryOptions) (created []study.TrialID, err error) {
	var left []skipped
	err = j.Update(ctx, func(tx *study.Tx) error {
		created, left, err = o.repeatIn(tx, st)
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, s := range left {
		a.Notef("trial %d is left alone: %s", s.number, s.why)
	}
	return created, nil
}

func (o *retryOptions) repeatIn(tx *study.Tx, st *study.Study) (created []study.TrialID, left []skipped, err error) {
	snap := tx.Snapshot()
	sources, err := o.sources(snap, st)
	if err != nil {
		return nil, nil, err
	}
	repeated := repetitions(snap, st)
	for _, t := range sources {
		by, done := repeated[t.ID]
		switch {
		case done:
			if !o.failed {
				left = append(left, skipped{t.Number, fmt.Sprintf("trial %d tries it again already", by)})
			}
			continue
		case o.max > 0 && t.Attempt >= o.max:
			left = append(left, skipped{t.Number, "it was attempt " + strconv.FormatUint(t.Attempt, 10)})
			continue
		}
		ref, err := asktell.NewWaiting(tx, st.ID, study.Repeat(t), !o.raw)
		if err != nil {
			return nil, nil, err
		}
		repeated[t.ID] = ref.Number
		created = append(created, ref.ID)
	}
	return created, left, nil
}

// sources are the trials that are asked to be tried again.
func (o *retryOptions) sources(snap *study.Snapshot, st *study.Study) (list []*study.Trial, err error) {
	if o.failed {
		for t := range snap.Trials(st.ID, study.TrialFilter{States: []study.State{study.Failed}}) {
			if !t.Abandoned {
				list = append(list, t)
			}
		}
		return list, nil
	}
	for _, n := range o.numbers {
		t, err := pickTrial(snap, st, n)
		if err != nil {
			return nil, err
		}
		if t.State != study.Failed {
			return nil, &study.StateError{Trial: t.ID, State: t.State, What: "try trial number " + strconv.FormatUint(n, 10) + " again"}
		}
		list = append(list, t)
	}
	return list, nil
}

// repetitions tells which trials are repeated already, and by which number.
func repetitions(snap *study.Snapshot, st *study.Study) map[study.TrialID]uint64 {
	by := map[study.TrialID]uint64{}
	for t := range snap.Trials(st.ID, study.TrialFilter{}) {
		if parent, ok := t.Parent(); ok {
			by[parent] = t.Number
		}
	}
	return by
}

// failStale watches for the given time and fails the trials of this study that
// did not move.
func (a *app) failStale(ctx context.Context, j study.Storage, st *study.Study, o *retryOptions) error {
	sweeper := study.NewSweeper(study.SweeperOptions{Grace: o.stale})
	sweeper.Observe(j.Snapshot())
	a.Notef("watching running trials for %v", o.stale)
	var stale []study.Observation
	for end := time.Now().Add(o.stale); ; {
		last := !time.Now().Before(end)
		if err := j.Refresh(ctx); err != nil {
			return err
		}
		stale = sweeper.Observe(j.Snapshot())
		if last {
			break
		}
		if err := sleep.For(ctx, min(max(time.Until(end), 0)+time.Millisecond, o.stale/4+time.Millisecond, time.Second)); err != nil {
			return err
		}
	}
	a.noteLongLeases(j.Snapshot(), st, o.stale)
	for _, seen := range stale {
		if err := a.failOne(ctx, j, st, seen, o); err != nil {
			return err
		}
	}
	return nil
}

// noteLongLeases says which trials were not watched for long enough.
func (a *app) noteLongLeases(snap *study.Snapshot, st *study.Study, watched time.Duration) {
	for t := range snap.LiveTrials(st.ID, study.Running) {
		if lease := t.Lease(); lease > watched {
			a.Notef("trial %d is left alone: its lease is %s", t.Number, cli.Duration(lease))
		}
	}
}

func (a *app) failOne(ctx context.Context, j study.Storage, st *study.Study, seen study.Observation, o *retryOptions) error {
	t, err := j.Snapshot().Trial(seen.Trial)
	if err != nil || t.Study != st.ID {
		return err
	}
	reason := seen.Reason()
	err = j.Update(ctx, func(tx *study.Tx) error { return tx.LifecycleFailStale(seen, reason, o.policy(t)) })
	if errors.Is(err, study.ErrConflict) {
		return nil // it has moved after all
	}
	if err == nil {
		a.Notef("trial %d failed: %s", t.Number, reason)
	}
	return err
}

// policy tries a stale trial again unless it has had all its attempts.
func (o *retryOptions) policy(t *study.Trial) *study.RetryPolicy {
	if o.max > 0 {
		return &study.RetryPolicy{MaxRetries: o.max - 1}
	}
	return &study.RetryPolicy{MaxRetries: min(t.Attempt, math.MaxUint64-1)}
}

// RetriedTrial is a line of the output of `foldlog study retry --json`.
type RetriedTrial struct {
	Number  uint64  `json:"number"`
	ID      uint64  `json:"id"`
	Attempt uint64  `json:"attempt"`
	RetryOf *uint64 `json:"retry_of"` // the number of the trial that it repeats, null if that is of another study
}

func (a *app) printRetried(snap *study.Snapshot, created []*study.Trial, asJSON bool) error {
	t := cli.NewTable(cli.Column{Title: "TRIAL", Align: cli.Right}, cli.Column{Title: "ATTEMPT"}, cli.Column{Title: "REPEATS"})
	t.Bold = a.Color()
	for _, trial := range created {
		line := RetriedTrial{Number: trial.Number, ID: uint64(trial.ID), Attempt: trial.Attempt}
		source := ""
		if parent := studyview.ParentOf(snap, trial); parent != nil {
			line.RetryOf, source = &parent.Number, strconv.FormatUint(parent.Number, 10)
		}
		if !asJSON {
			t.Row(strconv.FormatUint(trial.Number, 10), attemptText(trial), source)
		} else if err := cli.WriteJSONLine(a.Out(), line); err != nil {
			return err
		}
	}
	switch {
	case asJSON:
		return nil
	case t.Len() > 0:
		return t.Write(a.Out())
	}
	a.Notef("nothing to try again")
	return nil
}
