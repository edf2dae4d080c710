package study

import "fmt"

// RetryPolicy decides what follows the failure of a managed trial, whether its
// owner failed it or it went stale.
type RetryPolicy struct {
	// MaxRetries is how often a trial is tried again: there are at most
	// 1 + MaxRetries attempts.
	MaxRetries uint64
}

// Intent is what the end of a trial in that state asks for: a replacement if it
// failed and may be tried again. A nil policy has no intent: such an end opens
// no outbox entry.
func (p *RetryPolicy) Intent(t *Trial, end State) *Intent {
	if p == nil {
		return nil
	}
	if end == Failed && t.Attempt <= p.MaxRetries {
		return &Intent{Retry: &Attempt{Number: t.Attempt + 1, Max: 1 + p.MaxRetries}}
	}
	return &Intent{}
}

// LifecycleReserve (lifecycle-reserve) creates a managed trial, waiting. Budget
// is how many reservations the study may have, not counting abandoned ones and
// replacements; 0 is no limit. The error wraps [ErrBudget] if it has them.
func (tx *Tx) LifecycleReserve(study StudyID, tpl *Template, budget uint64) (TrialRef, error) {
	s, err := tx.study(study)
	if err != nil {
		return TrialRef{}, err
	}
	if budget > 0 && s.Reserved() >= budget {
		return TrialRef{}, fmt.Errorf("study %d: %w: %d of %d", study, ErrBudget, s.Reserved(), budget)
	}
	if tpl, err = tx.cloneTemplate(tpl); err != nil {
		return TrialRef{}, err
	}
	ref := tx.next(s)
	return ref, tx.do(&LifecycleReserve{Study: study, Trial: ref.ID, Number: ref.Number, Template: tpl})
}

// LifecycleAbandon (lifecycle-abandon) fails a managed trial that is still
// waiting. The error is a [*ConflictError] if it is not.
func (tx *Tx) LifecycleAbandon(trial TrialID, reason string) error {
	return tx.do(&LifecycleAbandon{Trial: trial, Reason: reason})
}

// Claim is what a worker brings when it starts a managed trial.
type Claim struct {
	// From is the state the trial must be in: Waiting or Paused.
	From State
	// Worker is the new owner.
	Worker uint64
	// HeartbeatMillis is the owner's first heartbeat, by its own clock.
	HeartbeatMillis uint64
	// Params are written with the claim.
	Params []Param
	// State is trial-owned state written with the claim, nil for none.
	State *Blob
}

// LifecycleClaim (lifecycle-claim) starts a managed trial at the next epoch and
// returns the fence that its owner has to show from now on. The error is a
// [*ConflictError] if somebody else was faster.
func (tx *Tx) LifecycleClaim(trial TrialID, c Claim) (Fence, error) {
	t, err := tx.draft.st.managed(trial)
	if err != nil {
		return Fence{}, err
	}
	op := &LifecycleClaim{
		Trial: trial, From: c.From, Worker: c.Worker, HeartbeatMillis: c.HeartbeatMillis,
		Epoch: t.Epoch + 1, HeartbeatSeq: 1, Params: c.Params,
	}
	if t.State == c.From {
		if err := checkParams(t, c.Params); err != nil {
			return Fence{}, err
		}
	}
	if op.State, err = optCanonicalBlob(c.State); err != nil {
		return Fence{}, err
	}
	return Fence{Trial: trial, Worker: c.Worker, Epoch: op.Epoch}, tx.do(op)
}

// LifecycleRenew (lifecycle-renew) is the owner's heartbeat, by its own clock in
// Unix milliseconds. The error is a [*FencedError] if it is not the owner any
// more, as of every method that takes a fence.
func (tx *Tx) LifecycleRenew(f Fence, heartbeatMillis uint64) error {
	t, err := tx.draft.st.owned(f)
	if err != nil {
		return err
	}
	return tx.do(&LifecycleRenew{Trial: f.Trial, Worker: f.Worker, Epoch: f.Epoch,
		HeartbeatMillis: heartbeatMillis, HeartbeatSeq: t.HeartbeatSeq + 1})
}

// LifecycleFenced (lifecycle-fenced) makes one change to a managed trial by its
// owner: [*MutateReport], [*MutateParams], [*MutateUserAttr], [*MutateState],
// [*MutateError] or [*MutatePause].
func (tx *Tx) LifecycleFenced(f Fence, m Mutation) error {
	t, err := tx.draft.st.owned(f)
	if err != nil {
		return err
	}
	if m, err = checkMutation(t, m); err != nil {
		return fmt.Errorf("lifecycle-fenced: %w", err)
	}
	return tx.do(&LifecycleFenced{Trial: f.Trial, Worker: f.Worker, Epoch: f.Epoch, Mutation: m})
}

// LifecycleSystemAttr (lifecycle-fenced) sets an attribute of Foldlog's own, whose
// key begins with "foldlog:", on a managed trial by its owner.
func (tx *Tx) LifecycleSystemAttr(f Fence, key string, value []byte) error {
	if err := checkSystemKey(key); err != nil {
		return err
	}
	if _, err := tx.draft.st.owned(f); err != nil {
		return err
	}
	value, err := canonical(value)
	if err != nil {
		return fmt.Errorf("system attribute %.80q: %w", key, err)
	}
	return tx.do(&LifecycleFenced{Trial: f.Trial, Worker: f.Worker, Epoch: f.Epoch, Mutation: &MutateUserAttr{Key: key, Value: value}})
}

// checkMutation checks a mutation and spells the JSON in it as it is stored.
func checkMutation(t *Trial, m Mutation) (Mutation, error) {
	switch m := m.(type) {
	case *MutateReport:
		if len(m.Values) == 0 {
			return nil, fmt.Errorf("%w: no values", ErrInvalid)
		}
	case *MutateParams:
		return m, checkParams(t, m.Params)
	case *MutateUserAttr:
		if err := checkUserKey(m.Key); err != nil {
			return nil, err
		}
		value, err := canonical(m.Value)
		return &MutateUserAttr{Key: m.Key, Value: value}, err
	case *MutateState:
		b, err := canonicalBlob(&m.Blob)
		return &MutateState{Blob: b}, err
	case *MutateOther, nil:
		return nil, fmt.Errorf("%w: unknown mutation", ErrInvalid)
	}
	return m, nil
}

// LifecycleTerminal (lifecycle-terminal) ends a managed trial. The policy
// decides whether a failure is tried again; nil opens no outbox entry at all.
func (tx *Tx) LifecycleTerminal(f Fence, o Outcome, policy *RetryPolicy) error {
	t, err := tx.draft.st.owned(f)
	if err != nil {
		return err
	}
	if o.Raw != nil {
		return fmt.Errorf("lifecycle-terminal: %w: outcome of unknown shape", ErrInvalid)
	}
	if o.Blob, err = optCanonicalBlob(o.Blob); err != nil {
		return err
	}
	return tx.do(&LifecycleTerminal{Trial: f.Trial, Worker: f.Worker, Epoch: f.Epoch,
		Outcome: o, Intent: policy.Intent(t, o.State)})
}

// LifecycleFailStale (lifecycle-fail-stale) fails a trial whose owner has been
// silent, if it still is what was observed. The error is a [*ConflictError] if
// it is not. See [Sweeper].
func (tx *Tx) LifecycleFailStale(o Observation, reason string, policy *RetryPolicy) error {
	t, err := tx.draft.st.managed(o.Trial)
	if err != nil {
		return err
	}
	now := o.HeartbeatMillis + o.ElapsedMillis
	if now < o.HeartbeatMillis {
		return fmt.Errorf("lifecycle-fail-stale: %w: heartbeat %d out of range", ErrInvalid, o.HeartbeatMillis)
	}
	return tx.do(&LifecycleFailStale{
		Trial: o.Trial, ObservedState: o.State, Owner: o.Owner, Epoch: o.Epoch,
		HeartbeatMillis: o.HeartbeatMillis, HeartbeatSeq: o.HeartbeatSeq,
		NowMillis: now, GraceMillis: o.GraceMillis, Reason: reason, Intent: policy.Intent(t, Failed),
	})
}

// LifecycleFinalizedState (lifecycle-finalized-state) replaces the state blob of
// a managed trial that has ended.
func (tx *Tx) LifecycleFinalizedState(trial TrialID, blob Blob) error {
	b, err := canonicalBlob(&blob)
	if err != nil {
		return err
	}
	return tx.do(&LifecycleFinalizedState{Trial: trial, Scope: TrialScope(trial), Blob: b})
}
