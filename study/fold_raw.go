package study

import (
	"fmt"
	"slices"
)

func (op *CreateStudy) apply(st *state, env *envelope) error {
	if uint64(op.Study) != uint64(st.studies.len()) {
		return fmt.Errorf("%w: study %d where %d is next", ErrOutOfOrder, op.Study, st.studies.len())
	}
	s := &Study{ID: op.Study, Config: op.Config, CreatedMillis: env.at, stamp: st.stamp}
	st.studies.push(st.stamp, s)
	if _, taken := st.names.get(op.Config.Name); !taken {
		st.names.set(st.stamp, op.Config.Name, op.Study)
	}
	return nil
}

func (op *CreateTrial) apply(st *state, env *envelope) error {
	s, err := st.checkNew(op.Study, op.Trial, op.Number)
	if err != nil {
		return err
	}
	st.addTrial(s, op.Template, env)
	return nil
}

func (op *Transition) apply(st *state, env *envelope) error {
	t, err := st.trial(op.Trial)
	if err != nil {
		return err
	}
	switch {
	case t.Managed:
		return fmt.Errorf("%w: trial %d is lifecycle-managed", ErrManaged, t.ID)
	case t.State != op.From:
		return &ConflictError{Trial: t.ID, What: fmt.Sprintf("%v to %v", op.From, op.To), State: t.State, Owner: t.Owner, Epoch: t.Epoch}
	case !CanMove(op.From, op.To):
		return &StateError{Trial: t.ID, State: t.State, What: "move to " + op.To.String()}
	}
	st.move(st.edit(t), op.To, env)
	return nil
}

func (op *ParamsBatch) apply(st *state, _ *envelope) error {
	t, err := st.trial(op.Trial)
	if err != nil {
		return err
	}
	st.edit(t).setParams(op.Params)
	return nil
}

func (op *Report) apply(st *state, _ *envelope) error {
	t, err := st.trial(op.Trial)
	if err != nil {
		return err
	}
	st.edit(t).addReport(st.stamp, op.Step, op.Values)
	return nil
}

func (op *SetValues) apply(st *state, _ *envelope) error {
	t, err := st.trial(op.Trial)
	if err != nil {
		return err
	}
	if err := st.checkValues(t, op.Values); err != nil {
		return err
	}
	st.edit(t).Values = slices.Clone(op.Values)
	return nil
}

// checkValues refuses final values that are not one per direction.
func (st *state) checkValues(t *Trial, values []float64) error {
	if want := len(st.studies.at(int(t.Study)).Config.Directions); len(values) != want {
		return fmt.Errorf("trial %d: %w: %d values for %d directions", t.ID, ErrInvalid, len(values), want)
	}
	return nil
}

func (op *SetError) apply(st *state, _ *envelope) error {
	t, err := st.trial(op.Trial)
	if err != nil {
		return err
	}
	st.edit(t).Error = op.Message
	return nil
}

// A raw heartbeat of a managed trial leaves the owner's heartbeat alone, which
// staleness is judged by.
func (op *Heartbeat) apply(st *state, _ *envelope) error {
	t, err := st.trial(op.Trial)
	if err != nil || t.Managed {
		return err
	}
	st.edit(t).HeartbeatMillis = op.AtMillis
	return nil
}

func (op *SetStudyUserAttr) apply(st *state, env *envelope) error {
	s, err := st.study(op.Study)
	if err != nil {
		return err
	}
	st.editStudy(s).attrs.set(st.stamp, op.Key, newAttr(op.Key, op.Value, env))
	if op.Key == DeletedAttr {
		st.rename(s.Config.Name)
	}
	return nil
}

// rename finds out anew which study a name means: the first of that name that
// is not deleted.
func (st *state) rename(name string) {
	st.names.delete(st.stamp, name)
	for _, s := range st.studies.from(0) {
		if s.Config.Name == name && !s.Deleted() {
			st.names.set(st.stamp, name, s.ID)
			return
		}
	}
}

func (op *SetTrialUserAttr) apply(st *state, env *envelope) error {
	t, err := st.trial(op.Trial)
	if err != nil {
		return err
	}
	st.setAttr(st.edit(t), op.Key, op.Value, env)
	return nil
}

func (op *PutState) apply(st *state, env *envelope) error {
	switch op.Scope.Kind {
	case ScopeSampler, ScopeScheduler:
		id := StudyID(op.Scope.ID)
		if _, err := st.study(id); err != nil {
			return err
		}
		st.putStudyState(id, op.Scope.Kind, &op.Blob, env)
	case ScopeTrial:
		t, err := st.trial(TrialID(op.Scope.ID))
		if err != nil {
			return err
		}
		st.edit(t).Blob = stateBlob(&op.Blob, env)
	default:
		st.blobs.set(st.stamp, op.Scope.Raw, stateBlob(&op.Blob, env))
	}
	return nil
}

// putStudyState replaces the state of a seam of a study that exists, if there is
// one to write.
func (st *state) putStudyState(id StudyID, kind ScopeKind, b *Blob, env *envelope) {
	if b == nil {
		return
	}
	s := st.editStudy(st.studies.at(int(id)))
	if kind == ScopeSampler {
		s.SamplerState = stateBlob(b, env)
	} else {
		s.SchedulerState = stateBlob(b, env)
	}
}
