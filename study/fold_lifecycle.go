package study

import (
	"fmt"
	"slices"
)

// managed finds a lifecycle-managed trial.
func (st *state) managed(id TrialID) (*Trial, error) {
	t, err := st.trial(id)
	if err == nil && !t.Managed {
		return nil, fmt.Errorf("%w: trial %d is not lifecycle-managed", ErrManaged, id)
	}
	return t, err
}

// owned finds a trial and checks the fence.
func (st *state) owned(f Fence) (*Trial, error) {
	t, err := st.managed(f.Trial)
	if err != nil {
		return nil, err
	}
	if t.State != Running || t.Owner != f.Worker || t.Epoch != f.Epoch {
		return nil, &FencedError{Fence: f, State: t.State, Owner: t.Owner, Epoch: t.Epoch}
	}
	return t, nil
}

func (op *LifecycleReserve) apply(st *state, env *envelope) error {
	s, err := st.checkNew(op.Study, op.Trial, op.Number)
	if err != nil {
		return err
	}
	t := st.addTrial(s, op.Template, env)
	t.Managed, t.Reserver = true, env.worker
	st.studies.at(int(op.Study)).reserved++
	return nil
}

func (op *LifecycleAbandon) apply(st *state, env *envelope) error {
	t, err := st.managed(op.Trial)
	if err != nil {
		return err
	}
	if t.State != Waiting {
		return &ConflictError{Trial: t.ID, What: "abandon a reservation", State: t.State, Owner: t.Owner, Epoch: t.Epoch}
	}
	t = st.edit(t)
	t.Error, t.Abandoned = op.Reason, true
	st.move(t, Failed, env)
	if !t.Replacement {
		st.studies.at(int(t.Study)).reserved--
	}
	return nil
}

func (op *LifecycleClaim) apply(st *state, env *envelope) error {
	t, err := st.managed(op.Trial)
	if err != nil {
		return err
	}
	switch {
	case op.From != Waiting && op.From != Paused:
		return fmt.Errorf("trial %d: %w: claim from %v", t.ID, ErrInvalid, op.From)
	case t.State.Terminal():
		return &StateError{Trial: t.ID, State: t.State, What: "claim"}
	case t.State != op.From:
		return &ConflictError{Trial: t.ID, What: "claim from " + op.From.String(), State: t.State, Owner: t.Owner, Epoch: t.Epoch}
	case op.Epoch != t.Epoch+1:
		return fmt.Errorf("trial %d: %w: claim at epoch %d where %d is next", t.ID, ErrOutOfOrder, op.Epoch, t.Epoch+1)
	}
	t = st.edit(t)
	t.Owner, t.Epoch = op.Worker, op.Epoch
	t.HeartbeatMillis, t.HeartbeatSeq = op.HeartbeatMillis, op.HeartbeatSeq
	t.setParams(op.Params)
	if op.State != nil {
		t.Blob = stateBlob(op.State, env)
	}
	st.move(t, Running, env)
	return nil
}

func (op *LifecycleRenew) apply(st *state, _ *envelope) error {
	t, err := st.owned(Fence{op.Trial, op.Worker, op.Epoch})
	if err != nil {
		return err
	}
	if op.HeartbeatSeq <= t.HeartbeatSeq {
		return fmt.Errorf("trial %d: %w: heartbeat %d after %d", t.ID, ErrOutOfOrder, op.HeartbeatSeq, t.HeartbeatSeq)
	}
	t = st.edit(t)
	t.HeartbeatMillis, t.HeartbeatSeq = op.HeartbeatMillis, op.HeartbeatSeq
	return nil
}

func (op *LifecycleFailStale) apply(st *state, env *envelope) error {
	t, err := st.managed(op.Trial)
	if err != nil {
		return err
	}
	current := t.State == op.ObservedState && t.Owner == op.Owner && t.Epoch == op.Epoch &&
		t.HeartbeatMillis == op.HeartbeatMillis && t.HeartbeatSeq == op.HeartbeatSeq
	switch {
	case !current:
		return &ConflictError{Trial: t.ID, What: "fail as stale what is not as observed", State: t.State, Owner: t.Owner, Epoch: t.Epoch}
	case !CanMove(t.State, Failed):
		return &StateError{Trial: t.ID, State: t.State, What: "fail as stale"}
	case op.NowMillis < op.HeartbeatMillis || op.NowMillis-op.HeartbeatMillis < op.GraceMillis:
		return fmt.Errorf("trial %d: %w: not stale: heartbeat %d and grace %d against %d",
			t.ID, ErrConflict, op.HeartbeatMillis, op.GraceMillis, op.NowMillis)
	}
	t = st.edit(t)
	t.Error = op.Reason
	st.move(t, Failed, env)
	st.openEntry(t, op.Intent)
	return nil
}

func (op *LifecycleFenced) apply(st *state, env *envelope) error {
	t, err := st.owned(Fence{op.Trial, op.Worker, op.Epoch})
	if err != nil {
		return err
	}
	t = st.edit(t)
	switch m := op.Mutation.(type) {
	case *MutateReport:
		t.addReport(st.stamp, m.Step, m.Values)
	case *MutateParams:
		t.setParams(m.Params)
	case *MutateUserAttr:
		st.setAttr(t, m.Key, m.Value, env)
	case *MutateState:
		t.Blob = stateBlob(&m.Blob, env)
	case *MutateError:
		t.Error = m.Message
	case *MutatePause:
		st.move(t, Paused, env)
	}
	return nil
}

func (op *LifecycleTerminal) apply(st *state, env *envelope) error {
	t, err := st.owned(Fence{op.Trial, op.Worker, op.Epoch})
	if err != nil {
		return err
	}
	o := &op.Outcome
	if !o.State.Terminal() {
		return fmt.Errorf("trial %d: %w: %v is no outcome", t.ID, ErrInvalid, o.State)
	}
	values := o.State == Complete && (o.Raw == nil || o.Values != nil)
	if values {
		if err := st.checkValues(t, o.Values); err != nil {
			return err
		}
	}
	t = st.edit(t)
	if values {
		t.Values = slices.Clone(o.Values)
	}
	if o.State == Failed {
		t.Error = o.Error
	}
	if o.Blob != nil {
		t.Blob = stateBlob(o.Blob, env)
	}
	st.move(t, o.State, env)
	st.openEntry(t, op.Intent)
	return nil
}

func (op *LifecycleFinalizedState) apply(st *state, env *envelope) error {
	t, err := st.managed(op.Trial)
	switch {
	case err != nil:
		return err
	case !t.State.Terminal():
		return &StateError{Trial: t.ID, State: t.State, What: "replace the final state"}
	case op.Scope.Kind != ScopeOther && op.Scope != TrialScope(t.ID):
		return fmt.Errorf("trial %d: %w: final state of another scope", t.ID, ErrInvalid)
	}
	st.edit(t).Blob = stateBlob(&op.Blob, env)
	return nil
}
