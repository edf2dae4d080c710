package study

import (
	"context"
	"errors"
	"fmt"
)

// OutboxHandlers are what happens after a managed trial has ended. A callback
// that is nil does nothing and its phase is committed at once.
type OutboxHandlers struct {
	// Sampler tells the sampler: it gets the ended trial, and the study's
	// sampler state as it is now, nil without, and returns what to save.
	// Whatever it returns is saved exactly once per trial, but it may be
	// called again with a newer state if somebody else was faster, or after a
	// crash: it must be a function of what it is given.
	Sampler func(ctx context.Context, t *Trial, state *StateBlob) (Callback, error)
	// Scheduler is the same for the scheduler.
	Scheduler func(ctx context.Context, t *Trial, state *StateBlob) (Callback, error)
	// External carries out an effect. It is called at least once: the key is
	// what the other side can tell repetitions by. If it is nil, entries that
	// have external effects wait for somebody else.
	External func(ctx context.Context, key EffectKey, payload []byte) error
}

// Callback is what a callback leaves behind.
type Callback struct {
	// State replaces the seam's state, nil leaves it.
	State *Blob
	// Effects are carried out later, exactly once if they are replacements.
	Effects []Effect
}

// errMoved means that what a callback was given is not current any more.
var errMoved = errors.New("state has moved on")

// DeliverOutbox drives every pending outbox entry to its end: sampler callback,
// scheduler callback, effects. It may be stopped or killed anywhere, and any
// number of processes may deliver at once: what is saved is saved once, and
// every replacement is created once. It returns the trials that were created
// by these calls, and the errors of handlers together, after all entries have
// had their turn.
func DeliverOutbox(ctx context.Context, st Storage, h OutboxHandlers) (created []TrialID, err error) {
	var failures []error
	for t := range st.Snapshot().Pending() {
		d := delivery{ctx: ctx, st: st, h: &h, key: t.Outbox.Key}
		err := d.run()
		created = append(created, d.created...)
		if err != nil {
			failures = append(failures, fmt.Errorf("outbox of trial %d: %w", t.ID, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return created, errors.Join(failures...)
}

// delivery drives one entry.
type delivery struct {
	ctx     context.Context
	st      Storage
	h       *OutboxHandlers
	key     EntryKey
	created []TrialID
}

func (d *delivery) run() error {
	if d.h.Sampler == nil && d.h.Scheduler == nil && d.h.External == nil {
		return d.settleAll()
	}
	for {
		snap := d.st.Snapshot()
		t, e, err := snap.st.entry(d.key)
		if err != nil {
			return err
		}
		done := false
		switch e.Phase {
		case PhaseSampler:
			err = d.callback(snap, t, PhaseSampler, d.h.Sampler)
		case PhaseScheduler:
			err = d.callback(snap, t, PhaseScheduler, d.h.Scheduler)
		case PhaseEffects:
			done, err = d.effects(e)
		default:
			return nil
		}
		if errors.Is(err, errMoved) { // what we saw is old: look again
			err = d.st.Refresh(d.ctx)
		}
		if err != nil || done {
			return err
		}
	}
}

// settleAll is run without any handler, in one transaction.
func (d *delivery) settleAll() error {
	var refs []TrialRef
	err := d.st.Update(d.ctx, func(tx *Tx) (err error) {
		refs, err = tx.OutboxSettle(d.key)
		return err
	})
	if err != nil {
		return err
	}
	for _, ref := range refs {
		d.created = append(d.created, ref.ID)
	}
	return nil
}

// callback runs one seam's callback outside of the transaction, and saves what
// it returned if nothing has moved meanwhile.
func (d *delivery) callback(snap *Snapshot, t *Trial, phase Phase, f func(context.Context, *Trial, *StateBlob) (Callback, error)) error {
	scope := SamplerScope(t.Study)
	if phase == PhaseScheduler {
		scope = SchedulerScope(t.Study)
	}
	state := snap.State(scope)
	var cb Callback
	if f != nil {
		var err error
		if cb, err = f(d.ctx, t, state); err != nil {
			return fmt.Errorf("%v callback: %w", phase, err)
		}
	}
	a := Advance{Effects: cb.Effects}
	if phase == PhaseSampler {
		a.SamplerState = cb.State
	} else {
		a.SchedulerState = cb.State
	}
	return d.st.Update(d.ctx, func(tx *Tx) error {
		current := tx.Snapshot()
		_, now, err := current.st.entry(d.key)
		if err != nil {
			return err
		}
		if now.Phase != phase || f != nil && version(current.State(scope)) != version(state) {
			return errMoved
		}
		return tx.OutboxAdvance(d.key, phase, a)
	})
}

func version(b *StateBlob) uint64 {
	if b == nil {
		return 0
	}
	return b.Seq
}

// effects carries out what is left and ends the entry. Done tells that there is
// nothing more to do here.
func (d *delivery) effects(e *OutboxEntry) (done bool, err error) {
	var acknowledged []EffectKey
	leave := false
	for i := range e.Effects {
		f := &e.Effects[i]
		switch {
		case f.Done || f.Retry != nil || f.Raw != nil:
		case d.h.External == nil:
			leave = true
		default:
			if err := d.h.External(d.ctx, e.EffectKey(i), f.Payload); err != nil {
				return false, fmt.Errorf("effect %.80q: %w", f.Name, err)
			}
			acknowledged = append(acknowledged, e.EffectKey(i))
		}
	}
	var created []TrialID
	err = d.st.Update(d.ctx, func(tx *Tx) error {
		var err error
		if created, err = d.settle(tx, acknowledged); err != nil || leave {
			return err
		}
		return tx.OutboxAdvance(d.key, PhaseEffects, Advance{})
	})
	if err != nil {
		return false, err
	}
	d.created = append(d.created, created...)
	return true, nil
}

// settle acknowledges external effects and creates replacements.
func (d *delivery) settle(tx *Tx, acknowledged []EffectKey) (created []TrialID, err error) {
	_, e, err := tx.draft.st.entry(d.key)
	if err != nil {
		return nil, err
	}
	if e.Phase != PhaseEffects {
		return nil, errMoved
	}
	for _, key := range acknowledged {
		if err := tx.OutboxEffectComplete(key); err != nil {
			return nil, err
		}
	}
	refs, err := tx.replace(e)
	for _, ref := range refs {
		created = append(created, ref.ID)
	}
	return created, err
}
