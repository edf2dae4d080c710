package study

import (
	"fmt"
	"slices"
)

// openEntry gives an ended trial its outbox entry, if the end asks for one.
func (st *state) openEntry(t *Trial, in *Intent) {
	if in == nil {
		return
	}
	e := &OutboxEntry{
		Key:    EntryKey{Trial: t.ID, Epoch: t.Epoch},
		Intent: Intent{Retry: in.Retry, Raw: slices.Clone(in.Raw)},
		Opaque: in.Raw != nil,
		stamp:  st.stamp,
	}
	if in.Retry != nil {
		e.Effects = []EffectState{{Effect: Effect{Name: RetryEffect, Retry: in.Retry}}}
	}
	t.Outbox = e
	st.pending.set(st.stamp, t.ID, struct{}{})
}

// entry finds an outbox entry and its trial.
func (st *state) entry(key EntryKey) (*Trial, *OutboxEntry, error) {
	t, err := st.managed(key.Trial)
	switch {
	case err != nil:
		return nil, nil, err
	case t.Outbox == nil || t.Outbox.Key.Epoch != key.Epoch:
		return nil, nil, fmt.Errorf("outbox entry of trial %d at epoch %d: %w", key.Trial, key.Epoch, ErrNotFound)
	}
	return t, t.Outbox, nil
}

func phaseConflict(t *Trial, what string) error {
	return &ConflictError{Trial: t.ID, What: what + ", outbox phase " + t.Outbox.Phase.String(), State: t.State, Owner: t.Owner, Epoch: t.Epoch}
}

func (op *OutboxAdvance) apply(st *state, env *envelope) error {
	if op.Key.Raw != "" {
		return nil
	}
	t, e, err := st.entry(op.Key)
	if err != nil {
		return err
	}
	known := op.PhaseRaw == ""
	if known && (op.Phase != e.Phase || e.Phase >= PhaseDone) {
		return phaseConflict(t, "advance from "+op.Phase.String())
	}
	if known && op.Phase == PhaseEffects && (len(op.Effects) > 0 || !e.settled()) {
		return fmt.Errorf("outbox entry of trial %d: %w: effects are pending", t.ID, ErrBadState)
	}
	if err := e.checkNew(op.Effects); err != nil {
		return fmt.Errorf("outbox entry of trial %d: %w", t.ID, err)
	}
	e = st.editEntry(t)
	e.Opaque = e.Opaque || !known || op.EffectsRaw != nil
	for i := range op.Effects {
		f := &op.Effects[i]
		e.Opaque = e.Opaque || f.Raw != nil
		e.Effects = append(e.Effects, EffectState{Effect: Effect{
			Name: f.Name, Retry: f.Retry, Payload: slices.Clone(f.Payload), Raw: slices.Clone(f.Raw)}})
	}
	if known {
		e.Phase++
	}
	st.putStudyState(t.Study, ScopeSampler, op.SamplerState, env)
	st.putStudyState(t.Study, ScopeScheduler, op.SchedulerState, env)
	if e.Phase == PhaseDone {
		st.pending.delete(st.stamp, t.ID)
	}
	return nil
}

// checkNew refuses effects of names that the entry has, or that come twice.
func (e *OutboxEntry) checkNew(fx []Effect) error {
	for i := range fx {
		if fx[i].Raw != nil {
			continue
		}
		twice := slices.ContainsFunc(fx[:i], func(f Effect) bool { return f.Raw == nil && f.Name == fx[i].Name })
		if twice || e.find(fx[i].Name) >= 0 {
			return fmt.Errorf("effect %.80q: %w", fx[i].Name, ErrExists)
		}
	}
	return nil
}

// editEntry returns a version of a trial's outbox entry that may be changed.
func (st *state) editEntry(t *Trial) *OutboxEntry {
	t = st.edit(t)
	if t.Outbox.stamp != st.stamp {
		c := *t.Outbox
		c.Effects, c.stamp = slices.Clone(c.Effects), st.stamp
		t.Outbox = &c
	}
	return t.Outbox
}

// pendingEffect finds an effect that may be completed now; -1 if the entry is
// opaque and it may be one that this version does not see.
func (st *state) pendingEffect(key EffectKey, replacement bool) (*Trial, int, error) {
	t, e, err := st.entry(key.Entry())
	if err != nil {
		return nil, 0, err
	}
	i := e.find(key.Effect)
	switch {
	case i < 0 && e.Opaque:
		return t, -1, nil
	case i < 0:
		return nil, 0, fmt.Errorf("effect %.80q of trial %d: %w", key.Effect, key.Trial, ErrNotFound)
	case e.Effects[i].Done:
		return nil, 0, fmt.Errorf("effect %.80q of trial %d: %w: it is complete", key.Effect, key.Trial, ErrExists)
	case (e.Effects[i].Retry != nil) != replacement:
		return nil, 0, fmt.Errorf("effect %.80q of trial %d: %w: replacements and external effects differ", key.Effect, key.Trial, ErrInvalid)
	case e.Phase != PhaseEffects && !e.Opaque:
		return nil, 0, phaseConflict(t, "complete an effect")
	}
	return t, i, nil
}

// complete marks an effect, found before, as done.
func (st *state) complete(t *Trial, i int, replacement TrialID) {
	if i < 0 {
		return
	}
	f := &st.editEntry(t).Effects[i]
	f.Done, f.Replacement = true, replacement
}

func (op *OutboxEffectComplete) apply(st *state, _ *envelope) error {
	if op.Key.Raw != "" {
		return nil
	}
	t, i, err := st.pendingEffect(op.Key, false)
	if err != nil {
		return err
	}
	st.complete(t, i, 0)
	return nil
}

func (op *OutboxReplacement) apply(st *state, env *envelope) error {
	s, err := st.checkNew(op.Study, op.Trial, op.Number)
	if err != nil {
		return err
	}
	if err := op.checkRetry(st); err != nil {
		return err
	}
	source, i := (*Trial)(nil), -1
	if op.Effect.Raw == "" {
		if source, i, err = st.pendingEffect(op.Effect, true); err != nil {
			return err
		}
	} else if _, done := st.effects.get(op.Effect.Raw); done {
		return fmt.Errorf("effect %.80s: %w: it is complete", op.Effect.Raw, ErrExists)
	} else {
		st.effects.set(st.stamp, op.Effect.Raw, op.Trial)
	}
	t := st.addTrial(s, op.Template, env)
	t.Managed, t.Replacement = true, true
	if op.RetryOf != nil {
		t.retryOf, t.hasRetryOf = *op.RetryOf, true
		t.Attempt = st.trials.at(int(*op.RetryOf)).Attempt + 1
	}
	if op.Attempt.Raw == "" {
		t.Attempt, t.MaxAttempts = op.Attempt.Number, op.Attempt.Max
	}
	st.complete(source, i, t.ID)
	return nil
}

// checkRetry checks the cap and the source of a replacement.
func (op *OutboxReplacement) checkRetry(st *state) error {
	if a := op.Attempt; a.Raw == "" && a.Max > 0 && a.Number > a.Max {
		return fmt.Errorf("%w: attempt %d of %d", ErrInvalid, a.Number, a.Max)
	}
	if op.RetryOf == nil {
		return nil
	}
	_, err := st.trial(*op.RetryOf)
	return err
}
