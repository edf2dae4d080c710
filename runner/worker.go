package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/foldlog/foldlog/study"
)

// givenBackAttr marks a trial that was stopped with its worker, so that the next
// worker takes it up.
const givenBackAttr = "foldlog:given_back"

// worker works on one study, in one or several loops that share a storage.
type worker struct {
	*prepared
	st    study.Storage
	retry *study.RetryPolicy
	tell  func(Event)
	group func(pid int, runs bool)
	// drain is closed when no further trial is to begin.
	drain <-chan struct{}

	// claimed tells that this worker has claimed a trial before.
	claimed atomic.Bool
	// stumbled tells that the journal was not written although it should have
	// been, since a sweeper last asked.
	stumbled atomic.Bool

	mu     sync.Mutex
	report Report
	held   reservations
	// attempts are the trials that run.
	attempts map[*attempt]bool
}

// Work runs trials, Config.Jobs of them at once, until the budget is used up and
// nothing is left to do, until drain is closed, or until ctx ends. With drain the
// trials that run are finished first; with ctx they are stopped and given back,
// to be run again by whoever works on the study next. Tell, if not nil, hears of
// every event, from several goroutines.
//
// A trial that fails is no error of Work. Errors are those of the storage.
func Work(ctx context.Context, drain <-chan struct{}, st study.Storage, c Config, tell func(Event)) (Report, error) {
	return work(ctx, drain, st, c, tell, func(int, bool) {})
}

// work also tells the process group of every command when it begins and when it
// has ended.
func work(ctx context.Context, drain <-chan struct{}, st study.Storage, c Config, tell func(Event), group func(int, bool)) (Report, error) {
	p, err := c.prepare(st.Snapshot())
	if err != nil {
		return Report{}, err
	}
	w := &worker{prepared: p, st: st, retry: &study.RetryPolicy{MaxRetries: c.Retries}, tell: tell, group: group}
	err = w.run(ctx, drain)
	p.tidyState()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.report, err
}

func (w *worker) event(e Event) {
	w.mu.Lock()
	w.report.count(&e)
	w.mu.Unlock()
	if w.tell != nil {
		w.tell(e)
	}
}

// run runs the loops and watches over the study meanwhile. The first error lets
// the other loops end after what they run.
func (w *worker) run(ctx context.Context, drain <-chan struct{}) error {
	w.clearLeftovers()
	watch, stop := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { w.watch(watch) })
	defer watching.Wait()
	defer stop()
	draining, end := context.WithCancel(watch)
	defer end()
	w.drain = draining.Done()
	watching.Go(func() {
		select {
		case <-drain:
			end()
		case <-draining.Done():
		}
	})
	errs := make([]error, w.Jobs)
	var loops sync.WaitGroup
	for i := range w.Jobs {
		loops.Go(func() {
			l := loop{worker: w}
			if errs[i] = l.run(ctx); errs[i] != nil {
				end()
			}
		})
	}
	loops.Wait()
	return errors.Join(errs...)
}

// loop runs one trial after another.
type loop struct {
	*worker
	// unsure is a claim that may or may not have been published.
	unsure study.Fence
}

func (w *loop) run(ctx context.Context) error {
	var patience patience
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.drain:
			return nil
		default:
		}
		c, err := w.claim(ctx)
		switch {
		case ctx.Err() != nil && c == nil:
			return nil
		case err != nil && (!w.claimed.Load() || hopeless(err) || patience.over()):
			return fmt.Errorf("claim a trial: %w", err)
		case err != nil:
			w.trouble(ctx, fmt.Errorf("claim a trial: %w", err))
			wait(ctx, w.drain, patience.pause())
			continue
		}
		patience.reset()
		if c != nil {
			w.claimed.Store(true)
			if err := w.trial(ctx, c); err != nil {
				return fmt.Errorf("trial %d: %w", c.t.Number, err)
			}
			continue
		}
		if w.nothingLeft() {
			return nil
		}
		wait(ctx, w.drain, w.pollEvery())
	}
}

// pollEvery is how often a worker without a trial looks for one.
func (w *worker) pollEvery() time.Duration {
	return min(max(w.Grace/8, 20*time.Millisecond), 100*time.Millisecond)
}

func wait(ctx context.Context, drain <-chan struct{}, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-drain:
	case <-t.C:
	}
}

// nothingLeft tells whether no trial of this study waits, runs, or has a retry to
// come; those on hold do not count. Trials of others keep us here: should their
// worker die, somebody has to take over.
func (w *worker) nothingLeft() bool {
	snap := w.st.Snapshot()
	for _, state := range []study.State{study.Waiting, study.Running} {
		for t := range snap.LiveTrials(w.Study, state) {
			if t.Managed {
				return false
			}
		}
	}
	for t := range snap.LiveTrials(w.Study, study.Paused) {
		if w.mayGoOn(snap, t) {
			return false
		}
	}
	for t := range snap.Pending() {
		if t.Study == w.Study {
			return false
		}
	}
	return true
}

// watch fails trials that have gone stale and delivers what follows the end of
// a trial, now and then and for as long as we work.
//
// Whoever could not write, or did not look, cannot tell the silence of others
// from its own: after a full disk, a machine that was paused or a stalled file
// system, everybody is given the grace anew. Its own trials nobody fails: it lives.
func (w *worker) watch(ctx context.Context) {
	var sweeper *study.Sweeper
	var looked time.Time
	for ctx.Err() == nil {
		if err := w.st.Refresh(ctx); err != nil {
			w.trouble(ctx, err)
		} else {
			if w.stumbled.Swap(false) || time.Since(looked) > w.Grace/2 {
				sweeper = study.NewSweeper(study.SweeperOptions{Grace: w.Grace, Retry: w.retry, Own: w.runs})
			}
			looked = time.Now()
			w.stopHeld()
			w.settle(ctx, sweeper)
		}
		wait(ctx, nil, min(w.Grace/4, 5*time.Second))
	}
}

func (w *worker) settle(ctx context.Context, sweeper *study.Sweeper) {
	stale, err := sweeper.Sweep(ctx, w.st)
	for _, id := range stale {
		if t, err := w.st.Snapshot().Trial(id); err == nil {
			w.event(Event{Kind: FailedStale, Trial: id, Number: t.Number, Attempt: t.Attempt, Worker: t.Owner, Epoch: t.Epoch, Text: t.Error})
		}
	}
	if len(stale) > 0 {
		w.clearLeftovers()
	}
	if err == nil {
		err = w.deliver(ctx)
	}
	w.trouble(ctx, err)
}

// trouble tells of an error that the next round may not meet again.
func (w *worker) trouble(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil {
		w.stumbled.Store(true)
		w.event(Event{Kind: Trouble, Text: err.Error()})
	}
}

// deliver creates the retries that are due for trials that others have ended.
func (w *worker) deliver(ctx context.Context) error {
	created, err := study.DeliverOutbox(ctx, w.st, study.OutboxHandlers{})
	for _, id := range created {
		w.retried(id)
	}
	return err
}

// retried tells of a trial that repeats another one.
func (w *worker) retried(id study.TrialID) {
	t, err := w.st.Snapshot().Trial(id)
	if err != nil {
		return
	}
	text := ""
	if parent, ok := t.Parent(); ok {
		if source, err := w.st.Snapshot().Trial(parent); err == nil {
			text = fmt.Sprintf("repeats trial %d", source.Number)
		}
	}
	w.event(Event{Kind: Retried, Trial: id, Number: t.Number, Attempt: t.Attempt, Text: text})
}
