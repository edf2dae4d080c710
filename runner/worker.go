package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/study"
	"github.com/foldlog/foldlog/study/sampler"
)

// givenBackAttr marks a trial that was stopped with its worker, so that the next
// worker takes it up.
const givenBackAttr = "foldlog:given_back"

// worker works on one study.
type worker struct {
	*prepared
	st    study.Storage
	retry *study.RetryPolicy
	tell  func(Event)
	group func(int)

	// claimed tells that this worker has claimed a trial before, unsure is a
	// claim of which it is not known whether it was published.
	claimed bool
	unsure  study.Fence
	// stumbled tells that the journal was not written although it should have
	// been, since a sweeper last asked.
	stumbled atomic.Bool

	mu     sync.Mutex
	report Report
}

// Work runs trials one after another until the budget is used up and nothing is
// left to do, until drain is closed, or until ctx ends. With drain the trial
// that runs is finished first; with ctx it is stopped and given back, to be run
// again by whoever works on the study next. Tell, if not nil, hears of every
// event, from several goroutines.
//
// A trial that fails is no error of Work. Errors are those of the storage.
func Work(ctx context.Context, drain <-chan struct{}, st study.Storage, c Config, tell func(Event)) (Report, error) {
	return work(ctx, drain, st, c, tell, func(int) {})
}

// work also tells the process group of every command that runs, and 0 when it
// has ended.
func work(ctx context.Context, drain <-chan struct{}, st study.Storage, c Config, tell func(Event), group func(int)) (Report, error) {
	p, err := c.prepare(st.Snapshot())
	if err != nil {
		return Report{}, err
	}
	w := &worker{prepared: p, st: st, retry: &study.RetryPolicy{MaxRetries: c.Retries}, tell: tell, group: group}
	err = w.run(ctx, drain)
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

func (w *worker) run(ctx context.Context, drain <-chan struct{}) error {
	watch, stop := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { w.watch(watch) })
	defer watching.Wait()
	defer stop()
	var patience patience
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-drain:
			return nil
		default:
		}
		t, fence, err := w.claim(ctx)
		switch {
		case ctx.Err() != nil && fence.Epoch == 0:
			return nil
		case err != nil && (!w.claimed || hopeless(err) || patience.over()):
			return fmt.Errorf("claim a trial: %w", err)
		case err != nil:
			w.trouble(ctx, fmt.Errorf("claim a trial: %w", err))
			wait(ctx, drain, patience.pause())
			continue
		}
		patience.reset()
		if fence.Epoch > 0 {
			w.claimed = true
			if err := w.trial(ctx, t, fence); err != nil {
				return fmt.Errorf("trial %d: %w", t.Number, err)
			}
			w.trouble(ctx, w.deliver(ctx))
			continue
		}
		if w.nothingLeft() {
			return nil
		}
		wait(ctx, drain, w.pollEvery())
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

// nothingLeft tells whether no trial of this study waits, runs, or has a retry
// to come. Trials of others keep us here: should their worker die, somebody has
// to take over.
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
		if isGivenBack(t) {
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
// system, everybody is given the grace anew.
func (w *worker) watch(ctx context.Context) {
	var sweeper *study.Sweeper
	var looked time.Time
	for ctx.Err() == nil {
		if err := w.st.Refresh(ctx); err != nil {
			w.trouble(ctx, err)
		} else {
			if w.stumbled.Swap(false) || time.Since(looked) > w.Grace/2 {
				sweeper = study.NewSweeper(&study.SweeperOptions{Grace: w.Grace, Retry: w.retry})
			}
			looked = time.Now()
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

// deliver creates the retries that are due.
func (w *worker) deliver(ctx context.Context) error {
	created, err := study.DeliverOutbox(ctx, w.st, study.OutboxHandlers{})
	for _, id := range created {
		t, err := w.st.Snapshot().Trial(id)
		if err != nil {
			continue
		}
		text := ""
		if parent, ok := t.Parent(); ok {
			if source, err := w.st.Snapshot().Trial(parent); err == nil {
				text = fmt.Sprintf("repeats trial %d", source.Number)
			}
		}
		w.event(Event{Kind: Retried, Trial: id, Number: t.Number, Attempt: t.Attempt, Text: text})
	}
	return err
}

// claim takes the next trial: one that was given back, one that waits, or a new
// one under the budget. The fence has epoch 0 if there is none.
func (w *worker) claim(ctx context.Context) (*study.Trial, study.Fence, error) {
	if err := w.st.Refresh(ctx); err != nil {
		return nil, study.Fence{}, err
	}
	if t, fence := w.published(); t != nil {
		return t, fence, nil
	}
	if !w.claimable(w.st.Snapshot()) {
		return nil, study.Fence{}, nil
	}
	var fence study.Fence
	var refused error
	err := w.st.Update(ctx, func(tx *study.Tx) error {
		fence, refused = w.claimIn(tx)
		return refused
	})
	var uncertain *journal.UncertainError
	switch {
	case errors.Is(err, study.ErrBudget):
		return nil, study.Fence{}, nil
	case errors.As(err, &uncertain):
		w.unsure = fence
		return nil, study.Fence{}, err
	case refused != nil:
		return nil, study.Fence{}, &refusal{err}
	case err != nil:
		return nil, study.Fence{}, err
	}
	t, err := w.st.Snapshot().Trial(fence.Trial)
	return t, fence, err
}

// published finds the trial of a claim of which it was not known whether it was
// published, if it was. It would otherwise wait for nobody.
func (w *worker) published() (*study.Trial, study.Fence) {
	fence := w.unsure
	w.unsure = study.Fence{}
	t, err := w.st.Snapshot().Trial(fence.Trial)
	if fence.Epoch == 0 || err != nil || t.State != study.Running || t.Owner != fence.Worker || t.Epoch != fence.Epoch {
		return nil, study.Fence{}
	}
	return t, fence
}

// claimable looks without the lease, so that idle workers do not fight for it.
func (w *worker) claimable(snap *study.Snapshot) bool {
	if t := w.waiting(snap); t != nil {
		return true
	}
	st, err := snap.Study(w.Study)
	return err == nil && st.Reserved() < w.Trials
}

// waiting is the trial to run next, nil if none waits.
func (w *worker) waiting(snap *study.Snapshot) *study.Trial {
	for t := range snap.LiveTrials(w.Study, study.Paused) {
		if isGivenBack(t) {
			return t
		}
	}
	for t := range snap.LiveTrials(w.Study, study.Waiting) {
		if t.Managed {
			return t
		}
	}
	return nil
}

func isGivenBack(t *study.Trial) bool {
	a, ok := t.Attr(givenBackAttr)
	return ok && t.Managed && string(a.Value) == "true"
}

func (w *worker) claimIn(tx *study.Tx) (study.Fence, error) {
	t := w.waiting(tx.Snapshot())
	if t == nil {
		if w.Trials == 0 {
			return study.Fence{}, study.ErrBudget
		}
		ref, err := tx.LifecycleReserve(w.Study, nil, w.Trials)
		if err != nil {
			return study.Fence{}, err
		}
		if t, err = tx.Snapshot().Trial(ref.ID); err != nil {
			return study.Fence{}, err
		}
	}
	params, err := w.suggest(tx.Snapshot(), t)
	if err != nil {
		return study.Fence{}, fmt.Errorf("trial %d: %w", t.Number, err)
	}
	fence, err := tx.LifecycleClaim(t.ID, study.Claim{
		From: t.State, Worker: w.st.Worker(), HeartbeatMillis: nowMillis(), Params: params,
	})
	if err == nil && t.Lease() != w.Grace {
		// Other runs may have a shorter grace than our heartbeats are made for.
		err = tx.SetLease(fence, w.Grace)
	}
	if err != nil || !isGivenBack(t) {
		return fence, err
	}
	return fence, tx.LifecycleSystemAttr(fence, givenBackAttr, []byte("false"))
}

// suggest draws what the trial does not have yet.
func (w *worker) suggest(snap *study.Snapshot, t *study.Trial) ([]study.Param, error) {
	if len(t.Params) > 0 {
		return nil, nil
	}
	var fixed []study.FixedParam
	if t.Template != nil {
		fixed = t.Template.Fixed
	}
	st, err := snap.Study(t.Study)
	if err != nil {
		return nil, err
	}
	return sampler.Suggest(w.sampler, sampler.NewHistory(snap, st, t.Number), w.Space, fixed)
}
