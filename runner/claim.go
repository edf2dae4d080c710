package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/foldlog/foldlog/internal/serde"
	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/metrics"
	"github.com/foldlog/foldlog/study"
	"github.com/foldlog/foldlog/study/sampler"
)

// A trial is claimed in two steps, so that suggesting its parameters, which may
// take long, does not keep the journal from everybody else: a new one is first
// reserved under the budget, then parameters are suggested, then it is claimed
// with them. A reservation that nothing was enqueued for belongs to the worker
// that made it. Should that one die in between, whoever saw it lie there for the
// grace takes it over; should it live after all, the faster claim wins.

// claimed is a trial that is ours to run.
type claimed struct {
	t     *study.Trial
	fence study.Fence
	plan
}

// plan is where what comes of a trial is kept.
type plan struct {
	log  string // path of its log, "" without
	link runLink
	open *metrics.Event // of its run, nil without
}

// claim takes the next trial: one that was given back, one that waits, or a new
// one under the budget; nil if there is none.
func (w *loop) claim(ctx context.Context) (*claimed, error) {
	if err := w.st.Refresh(ctx); err != nil {
		return nil, err
	}
	if c := w.published(); c != nil {
		return c, nil
	}
	for ctx.Err() == nil {
		t, err := w.next(ctx)
		if t == nil && err == nil {
			return nil, nil
		}
		var c *claimed
		if err == nil {
			c, err = w.start(ctx, t)
			w.release(t.ID)
		}
		if !errors.Is(err, errTaken) {
			return c, err
		}
		if err := w.st.Refresh(ctx); err != nil {
			return nil, err
		}
	}
	return nil, ctx.Err()
}

// published finds the trial of a claim whose outcome was unknown, if the claim was
// published after all. Otherwise nobody would run that trial.
func (w *loop) published() *claimed {
	fence := w.unsure
	w.unsure = study.Fence{}
	t, err := w.st.Snapshot().Trial(fence.Trial)
	if fence.Epoch == 0 || err != nil || t.State != study.Running || t.Owner != fence.Worker || t.Epoch != fence.Epoch {
		return nil
	}
	c := &claimed{t: t, fence: fence}
	if c.plan, err = w.plan(t, t.Params); err != nil {
		c.plan = plan{}
	}
	return c
}

// next finds a trial to run, and keeps it from the other loops until it is
// released: a waiting one, else a new reservation. It looks without the
// journal's lease first, so that idle workers do not fight for it.
func (w *loop) next(ctx context.Context) (*study.Trial, error) {
	snap := w.st.Snapshot()
	if t := w.take(snap); t != nil {
		return t, nil
	}
	st, err := snap.Study(w.Study)
	if err != nil || w.Trials == 0 || st.Reserved() >= w.Trials {
		return nil, err
	}
	var ref study.TrialRef
	err = w.st.Update(ctx, func(tx *study.Tx) (err error) {
		ref, err = tx.LifecycleReserve(w.Study, nil, w.Trials)
		return refused(err)
	})
	switch {
	case errors.Is(err, study.ErrBudget):
		return nil, nil
	case err != nil: // if it was published all the same, it bears our name and is found
		return nil, err
	}
	return w.takeOwn(ref.ID)
}

// errTaken means that somebody else has claimed the trial.
var errTaken = errors.New("taken by another worker")

// start claims a trial with its parameters. If it stays unknown whether the claim was
// published, it is looked for next time.
func (w *loop) start(ctx context.Context, t *study.Trial) (*claimed, error) {
	params, err := w.suggest(w.st.Snapshot(), t)
	if err != nil {
		return nil, &refusal{fmt.Errorf("trial %d: %w", t.Number, err)}
	}
	if len(t.Params) > 0 {
		params = nil
	}
	p, err := w.plan(t, append(t.Params[:len(t.Params):len(t.Params)], params...))
	if err != nil {
		return nil, &refusal{fmt.Errorf("trial %d: %w", t.Number, err)}
	}
	var fence study.Fence
	err = w.st.Update(ctx, func(tx *study.Tx) (err error) {
		fence, err = w.claimIn(tx, t, params, p)
		return refused(err)
	})
	var uncertain *journal.UncertainError
	var refusal *refusal
	switch {
	case errors.As(err, &refusal) && (errors.Is(err, study.ErrConflict) || errors.Is(err, study.ErrBadState)):
		return nil, errTaken
	case errors.As(err, &uncertain):
		w.unsure = fence
		return nil, err
	case err != nil:
		return nil, err
	}
	claimedTrial, err := w.st.Snapshot().Trial(fence.Trial)
	return &claimed{claimedTrial, fence, p}, err
}

// claimIn claims, and says for how long we may be silent and where everything is
// kept.
func (w *loop) claimIn(tx *study.Tx, t *study.Trial, params []study.Param, p plan) (study.Fence, error) {
	fence, err := tx.LifecycleClaim(t.ID, study.Claim{
		From: t.State, Worker: w.st.Worker(), HeartbeatMillis: nowMillis(), Params: params,
	})
	if err == nil && t.Lease() != w.Grace {
		// Other runs may have a shorter grace than our heartbeats are made for.
		err = tx.SetLease(fence, w.Grace)
	}
	attrs := p.attrs(w.prepared)
	if isGivenBack(t) {
		attrs = append(attrs, attr{givenBackAttr, []byte("false")})
	}
	for _, a := range attrs {
		if old, ok := t.Attr(a.key); err == nil && (!ok || string(old.Value) != string(a.value)) {
			err = tx.LifecycleSystemAttr(fence, a.key, a.value)
		}
	}
	return fence, err
}

type attr struct {
	key   string
	value []byte
}

// attrs are the attributes that tell where what comes of a trial is.
func (p plan) attrs(c *prepared) (list []attr) {
	if p.log != "" {
		list = append(list, attr{logAttr, serde.AppendString(nil, c.portable(p.log))})
	}
	if p.open != nil {
		if b, err := json.Marshal(p.link); err == nil {
			list = append(list, attr{runAttr, b})
		}
	}
	return list
}

func (p *prepared) plan(t *study.Trial, params []study.Param) (pl plan, err error) {
	if p.Logs != "" {
		pl.log = p.logPath(t.Number)
	}
	if p.Runs != "" {
		pl.link, pl.open, err = p.newRun(t, params)
	}
	return pl, err
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
