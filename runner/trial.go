package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/foldlog/foldlog/internal/child"
	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/metrics"
	"github.com/foldlog/foldlog/study"
)

// attempt is one run of a trial's command.
type attempt struct {
	*loop
	t     *study.Trial
	fence study.Fence
	objs  *objectives
	tail  child.Tail
	log   *logFile
	run   *stream
	// stateDir is where the command keeps its checkpoints, "" without.
	stateDir string
	// unsure tells that a write that was to end the attempt may have been published.
	unsure bool
	// kill stops the command, for one of the reasons of stop.go; the first
	// counts.
	kill context.CancelCauseFunc
}

// trial runs the command of a trial and finishes the trial. The error is for
// what keeps the worker from going on.
func (w *loop) trial(ctx context.Context, c *claimed) error {
	running, kill := context.WithCancelCause(ctx)
	defer kill(nil)
	a := &attempt{loop: w, t: c.t, fence: c.fence, objs: newObjectives(w.Metrics), kill: kill}
	a.objs.goOn(c.t)
	defer w.enter(a)()
	a.happened(Event{Kind: Started})
	a.open(&c.plan)
	var helpers sync.WaitGroup
	done := make(chan struct{})
	helpers.Go(func() { a.renew(done) })
	helpers.Go(func() { a.publish(done) })
	runErr := a.runCommand(running)
	close(done)
	helpers.Wait()
	stopped := stopReason(running)
	switch {
	case stopped == nil && ctx.Err() == nil && asksToPause(runErr):
		return a.giveBack(ctx, true)
	case runErr != nil && (stopped == nil && ctx.Err() != nil || errors.Is(stopped, errOnHold)):
		return a.giveBack(ctx, false)
	}
	outcome := a.outcome(runErr, stopped)
	a.close(outcome)
	return a.finish(ctx, outcome)
}

// open makes what is kept beside the journal. Without it the trial runs all the
// same.
func (a *attempt) open(p *plan) {
	if p.log != "" {
		a.log = newLogFile(p.log, a.LogBytes)
	}
	var err error
	if p.open != nil {
		if a.run, err = openStream(a.Runs, p.link, p.open); err != nil {
			a.missing(fmt.Errorf("its metrics are not kept as a run: %w", err))
		}
	}
	if err := a.openState(); err != nil {
		a.missing(err)
	}
}

// close ends what open has made.
func (a *attempt) close(o study.Outcome) {
	failure, _, _ := strings.Cut(o.Error, "\n")
	a.missing(a.run.end(failure))
	a.closeLog()
	a.closeState()
}

func (a *attempt) closeLog() {
	if a.log == nil {
		return
	}
	if err := a.log.close(); err != nil {
		a.missing(fmt.Errorf("its log is not whole: %w", err))
	}
}

// missing tells of something besides the trial that could not be kept.
func (a *attempt) missing(err error) {
	if err != nil {
		a.happened(Event{Kind: Missing, Text: err.Error()})
	}
}

// happened tells of something that happened to this trial.
func (a *attempt) happened(e Event) {
	e.Trial, e.Number, e.Attempt = a.t.ID, a.t.Number, a.t.Attempt
	e.Worker, e.Epoch = a.fence.Worker, a.fence.Epoch
	a.event(e)
}

// runCommand runs the command to its end, or until ctx ends.
func (a *attempt) runCommand(ctx context.Context) error {
	v := a.values(a.t)
	args, err := a.command.expand(v)
	if err != nil {
		return err
	}
	dir, err := a.makeDir(v)
	if err != nil {
		return fmt.Errorf("working directory: %w", err)
	}
	env, err := a.environment(v)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, a.objs.close)()
	lines := metrics.NewMixed(0, func(it *metrics.Item) {
		step, counts := a.objs.take(it)
		a.run.take(it, step, counts)
	})
	kept := []io.Writer{&a.tail}
	if a.log != nil {
		kept = append(kept, a.log)
	}
	var limit *time.Timer
	command := child.Command{
		Args: args, Dir: dir, Env: env, Patience: a.StopGrace,
		Out: io.MultiWriter(append(kept[:len(kept):len(kept)], lines)...), Err: io.MultiWriter(kept...),
		Started: func(group int) { a.group(group, true); limit = a.limitTime() },
		Left:    func() { limit.Stop() },
		Ended:   func(group int) { a.group(group, false) },
	}
	return errors.Join(command.Run(ctx), lines.Close())
}

// renew shows that we live, four times in a grace, until done.
func (a *attempt) renew(done <-chan struct{}) {
	tick := time.NewTicker(a.Grace / 4)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		a.noted(a.st.Update(context.Background(), func(tx *study.Tx) error {
			return tx.LifecycleRenew(a.fence, nowMillis())
		}))
	}
}

// publish writes reports as they come. What comes while one transaction is
// being synced goes into the next together.
func (a *attempt) publish(done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case <-a.objs.news:
		}
		for reports := a.objs.drain(false); len(reports) > 0; reports = a.objs.drain(false) {
			err := a.write(context.Background(), reports, nil)
			if !a.noted(err) {
				a.objs.close()
				return
			}
			if err != nil {
				a.objs.putBack(reports)
				wait(context.Background(), done, time.Second)
				break
			}
			a.prune()
		}
	}
}

// write publishes reports, and what else is done in the same extent if last is
// not nil.
func (a *attempt) write(ctx context.Context, reports []*study.MutateReport, last func(*study.Tx) error) error {
	return a.st.Update(ctx, func(tx *study.Tx) error {
		for _, r := range reports {
			if err := tx.LifecycleFenced(a.fence, r); err != nil {
				return err
			}
		}
		if last == nil {
			return nil
		}
		return last(tx)
	})
}

// writeRest publishes the reports that are left, the last of them together with
// what ends the attempt. What could not be written is there for the next try.
func (a *attempt) writeRest(last func(*study.Tx) error) error {
	for {
		reports, then := a.objs.drain(true), last
		if len(reports) == maxReports {
			then = nil
		}
		if err := a.write(context.Background(), reports, then); err != nil {
			a.objs.putBack(reports)
			return err
		}
		if then != nil {
			return nil
		}
	}
}

// noted looks at the error of a write during the run. If the trial was taken
// away the command is stopped; everything else is reported and tried again. It
// tells whether the trial is still ours.
func (a *attempt) noted(err error) bool {
	switch {
	case err == nil:
		return true
	case errors.Is(err, study.ErrFenced):
		a.kill(&lostError{err})
		return false
	}
	a.trouble(err)
	return true
}

// trouble tells of an error of a write that is tried again.
func (a *attempt) trouble(err error) {
	a.stumbled.Store(true)
	a.happened(Event{Kind: Trouble, Text: err.Error()})
}

// outcome is how the trial ended.
func (a *attempt) outcome(runErr, stopped error) study.Outcome {
	var timeout *TimeoutError
	switch {
	case errors.Is(stopped, errPruned):
		return study.PrunedEarly()
	case errors.As(stopped, &timeout):
		runErr = timeout
	case runErr == nil:
		values, err := a.objs.result()
		if err == nil {
			return study.Completed(values...)
		}
		runErr = err
	}
	reason := runErr.Error()
	if end := a.tail.String(); end != "" {
		reason += "\n" + end
	}
	return study.FailedWith(reason)
}

// finish writes the last reports and the end of the trial. A result is never
// dropped: what the journal does not take is kept beside it.
func (a *attempt) finish(ctx context.Context, outcome study.Outcome) error {
	var patience patience
	for {
		err := a.end(outcome)
		switch {
		case err == nil:
			a.happened(Event{Kind: Finished, State: outcome.State.String(), Text: outcome.Error})
			a.toldRetry()
			return nil
		case errors.Is(err, study.ErrFenced):
			return a.keepLate(outcome, err)
		case ctx.Err() != nil || hopeless(err) || patience.over():
			return errors.Join(err, a.keepLate(outcome, err))
		}
		a.trouble(err)
		// No heartbeats are made any more: within the grace there is time for
		// several tries.
		wait(ctx, nil, min(patience.pause(), a.Grace/8))
	}
}

// toldRetry tells of the trial that repeats this one, if its end has made one.
func (a *attempt) toldRetry() {
	t, err := a.st.Snapshot().Trial(a.t.ID)
	if err != nil || t.Outbox == nil {
		return
	}
	for _, f := range t.Outbox.Effects {
		if f.Retry != nil && f.Done {
			a.retried(f.Replacement)
		}
	}
}

// end writes what is left, and the end with what follows from it.
func (a *attempt) end(outcome study.Outcome) error {
	return a.writeLast(func(tx *study.Tx) error {
		if err := tx.LifecycleTerminal(a.fence, outcome, a.retry); err != nil {
			return err
		}
		_, err := tx.OutboxSettle(study.EntryKey{Trial: a.t.ID, Epoch: a.fence.Epoch})
		return err
	}, func(t *study.Trial) bool {
		return t.State == outcome.State && t.Error == outcome.Error && slices.EqualFunc(t.Values, outcome.Values, sameFloat)
	})
}

func sameFloat(a, b float64) bool { return a == b || a != a && b != b }

// writeLast is writeRest, but once it was uncertain whether that was published it looks
// whether the trial is what it was to become: what is refused then, since the trial is
// not ours any more, may be so by our own write.
func (a *attempt) writeLast(last func(*study.Tx) error, became func(*study.Trial) bool) error {
	err := a.writeRest(last)
	var uncertain *journal.UncertainError
	a.unsure = a.unsure || errors.As(err, &uncertain)
	if err == nil || !a.unsure {
		return err
	}
	if err := a.st.Refresh(context.Background()); err != nil {
		return err
	}
	t, findErr := a.st.Snapshot().Trial(a.t.ID)
	if findErr == nil && t.Owner == a.fence.Worker && t.Epoch == a.fence.Epoch && became(t) {
		return nil
	}
	return err
}

// giveBack pauses a trial whose command was stopped, with what that has saved, so
// that the next worker runs it again; with hold not before it is resumed.
func (a *attempt) giveBack(ctx context.Context, hold bool) error {
	a.missing(a.run.interrupt())
	a.closeLog()
	state := a.savedState()
	var patience patience
	for {
		err := a.pause(state, hold)
		switch {
		case err == nil:
			a.happenedToPause()
			return nil
		case errors.Is(err, study.ErrFenced):
			return nil // it is not ours any more
		case ctx.Err() != nil || hopeless(err) || patience.over():
			return fmt.Errorf("give back: %w", err)
		}
		a.trouble(err)
		wait(ctx, nil, min(patience.pause(), a.Grace/8))
	}
}

func (a *attempt) pause(state *study.Blob, hold bool) error {
	return a.writeLast(func(tx *study.Tx) error {
		err := tx.LifecycleSystemAttr(a.fence, givenBackAttr, []byte("true"))
		if err == nil && hold {
			err = Hold(tx, a.t.ID)
		}
		if err == nil && state != nil {
			err = tx.LifecycleFenced(a.fence, &study.MutateState{Blob: *state})
		}
		if err != nil {
			return err
		}
		return tx.LifecycleFenced(a.fence, &study.MutatePause{})
	}, func(t *study.Trial) bool { return t.State == study.Paused })
}

// happenedToPause tells of the pause, and whether somebody has to end it.
func (a *attempt) happenedToPause() {
	kind := GivenBack
	snap := a.st.Snapshot()
	if st, err := snap.Study(a.Study); err == nil {
		if t, err := snap.Trial(a.t.ID); err == nil && OnHold(st, t) {
			kind = PutOnHold
		}
	}
	a.happened(Event{Kind: kind})
}
