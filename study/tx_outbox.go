package study

import (
	"fmt"
	"slices"
)

// Advance is what the callback of a phase leaves behind.
type Advance struct {
	// SamplerState and SchedulerState replace the study's blobs, nil for none.
	SamplerState, SchedulerState *Blob
	// Effects are to be carried out once in the effects phase.
	Effects []Effect
}

// OutboxAdvance (outbox-advance) commits a phase of an outbox entry together
// with the state and the effects of its callback. The error is a
// [*ConflictError] if the entry is in another phase: somebody else was faster.
func (tx *Tx) OutboxAdvance(key EntryKey, phase Phase, a Advance) error {
	op := &OutboxAdvance{Key: EntryKey{Trial: key.Trial, Epoch: key.Epoch}, Phase: phase}
	var err error
	if op.SamplerState, err = optCanonicalBlob(a.SamplerState); err != nil {
		return err
	}
	if op.SchedulerState, err = optCanonicalBlob(a.SchedulerState); err != nil {
		return err
	}
	for i := range a.Effects {
		f := a.Effects[i]
		if f.Raw != nil || f.Name == "" {
			return fmt.Errorf("outbox-advance: %w: an effect needs a name", ErrInvalid)
		}
		if f.Retry == nil {
			if f.Payload, err = canonical(f.Payload); err != nil {
				return fmt.Errorf("effect %.80q: %w", f.Name, err)
			}
		}
		op.Effects = append(op.Effects, f)
	}
	return tx.do(op)
}

// OutboxEffectComplete (outbox-effect-complete) records that an external effect
// has been carried out. Doing so again changes nothing.
func (tx *Tx) OutboxEffectComplete(key EffectKey) error {
	key.Raw = ""
	_, e, err := tx.draft.st.entry(key.Entry())
	if err != nil {
		return err
	}
	if i := e.find(key.Effect); i >= 0 && e.Effects[i].Done {
		return nil
	}
	return tx.do(&OutboxEffectComplete{Key: key})
}

// OutboxReplacement (outbox-replacement) creates the managed trial that replaces
// an ended one, with its parameters fixed. A second call creates nothing and
// returns the same trial.
func (tx *Tx) OutboxReplacement(key EffectKey) (TrialRef, error) {
	key.Raw = ""
	source, e, err := tx.draft.st.entry(key.Entry())
	if err != nil {
		return TrialRef{}, err
	}
	i := e.find(key.Effect)
	if i < 0 || e.Effects[i].Retry == nil {
		return TrialRef{}, fmt.Errorf("replacement %.80q of trial %d: %w", key.Effect, key.Trial, ErrNotFound)
	}
	if e.Effects[i].Done {
		t, err := tx.draft.st.trial(e.Effects[i].Replacement)
		if err != nil {
			return TrialRef{}, err
		}
		return TrialRef{t.ID, t.Number}, nil
	}
	tpl, err := tx.cloneTemplate(Repeat(source))
	if err != nil {
		return TrialRef{}, err
	}
	s, err := tx.study(source.Study)
	if err != nil {
		return TrialRef{}, err
	}
	ref := tx.next(s)
	id := source.ID
	return ref, tx.do(&OutboxReplacement{Effect: key, Study: source.Study, Trial: ref.ID, Number: ref.Number,
		Template: tpl, Attempt: *e.Effects[i].Retry, RetryOf: &id})
}

// OutboxSettle drives an outbox entry to its end, as [DeliverOutbox] does without
// handlers, but within this transaction: after [Tx.LifecycleTerminal] of the same
// one, the end of a trial and what follows from it are published together or not at
// all. The phases are committed without callbacks, and replacements are created and
// returned. An entry with external effects is left to whoever can carry them out;
// one that is done stays as it is.
func (tx *Tx) OutboxSettle(key EntryKey) (created []TrialRef, err error) {
	for {
		_, e, err := tx.draft.st.entry(key)
		if err != nil || e.Phase == PhaseDone {
			return created, err
		}
		if e.Phase == PhaseEffects {
			refs, err := tx.replace(e)
			created = append(created, refs...)
			if err != nil || slices.ContainsFunc(e.Effects, isExternal) {
				return created, err
			}
		}
		if err := tx.OutboxAdvance(key, e.Phase, Advance{}); err != nil {
			return created, err
		}
	}
}

// isExternal tells an effect that is to be carried out outside of the storage.
func isExternal(f EffectState) bool { return f.Retry == nil && f.Raw == nil && !f.Done }

// replace creates the replacements of an entry that are not there yet.
func (tx *Tx) replace(e *OutboxEntry) (created []TrialRef, err error) {
	for i := range e.Effects {
		if f := &e.Effects[i]; f.Retry == nil || f.Done {
			continue
		}
		ref, err := tx.OutboxReplacement(e.EffectKey(i))
		if err != nil {
			return created, err
		}
		created = append(created, ref)
	}
	return created, nil
}

// Repeat is the template of a trial that tries t again: its parameters, or if it
// never got any, those fixed for it, and t as the parent.
func Repeat(t *Trial) *Template {
	id := t.ID
	tpl := &Template{Parent: &id}
	for _, p := range t.Params {
		tpl.Fixed = append(tpl.Fixed, FixedParam{p.Name, p.Value})
	}
	if len(t.Params) == 0 && t.Template != nil {
		tpl.Fixed = append(tpl.Fixed, t.Template.Fixed...)
	}
	return tpl
}
