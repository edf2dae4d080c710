package study

import (
	"fmt"
	"slices"
)

// CreateStudy (create-study) creates a study and returns its id. The error is
// an [*ExistsError] if there is one of that name.
func (tx *Tx) CreateStudy(c Config) (StudyID, error) {
	if err := checkConfig(&c); err != nil {
		return 0, fmt.Errorf("create-study: %w", err)
	}
	if id, taken := tx.draft.st.names.get(c.Name); taken {
		return 0, &ExistsError{Name: c.Name, Study: id}
	}
	op := &CreateStudy{Study: StudyID(tx.draft.st.studies.len()), Config: c.clone()}
	return op.Study, tx.do(op)
}

// OpenOrCreateStudy returns the study of that name, creating it if there is none. What
// belongs to a new study, such as its sampler, goes into the same transaction.
func (tx *Tx) OpenOrCreateStudy(c Config) (id StudyID, created bool, err error) {
	if st, ok := tx.Snapshot().StudyByName(c.Name); ok {
		return st.ID, false, nil
	}
	id, err = tx.CreateStudy(c)
	return id, err == nil, err
}

func checkConfig(c *Config) error {
	switch {
	case c.Name == "":
		return fmt.Errorf("%w: a study needs a name", ErrInvalid)
	case len(c.Directions) == 0:
		return fmt.Errorf("%w: a study needs a direction", ErrInvalid)
	case c.MetricNames != nil && len(c.MetricNames) != len(c.Directions):
		return fmt.Errorf("%w: %d metric names for %d directions", ErrInvalid, len(c.MetricNames), len(c.Directions))
	case c.Space == nil:
		return nil
	case c.Space.Raw != "":
		return fmt.Errorf("%w: search space of unknown shape", ErrInvalid)
	}
	for i, p := range c.Space.Params {
		if slices.ContainsFunc(c.Space.Params[:i], func(q SpaceParam) bool { return q.Name == p.Name }) {
			return fmt.Errorf("%w: parameter %.80q is declared twice", ErrInvalid, p.Name)
		}
		if err := checkConditions(c.Space.Params[:i], p); err != nil {
			return err
		}
	}
	return nil
}

func (c *Config) clone() Config {
	n := *c
	n.Directions = slices.Clone(c.Directions)
	n.MetricNames = slices.Clone(c.MetricNames)
	n.Extra = slices.Clone(c.Extra)
	if c.Seed != nil {
		seed := *c.Seed
		n.Seed = &seed
	}
	if c.Space != nil {
		n.Space = &Space{Params: slices.Clone(c.Space.Params)}
	}
	return n
}

// CreateTrial (create-trial) creates a raw trial, waiting. Tpl may be nil.
func (tx *Tx) CreateTrial(study StudyID, tpl *Template) (TrialRef, error) {
	s, err := tx.study(study)
	if err != nil {
		return TrialRef{}, err
	}
	if tpl, err = tx.cloneTemplate(tpl); err != nil {
		return TrialRef{}, err
	}
	ref := tx.next(s)
	return ref, tx.do(&CreateTrial{Study: study, Trial: ref.ID, Number: ref.Number, Template: tpl})
}

// Transition (transition) moves a raw trial from one state to another. The
// error is a [*ConflictError] if it is in another state than from, a
// [*StateError] if the move is not allowed or the trial would be Complete
// without values.
func (tx *Tx) Transition(trial TrialID, from, to State) error {
	t, err := tx.raw(trial, "transition")
	if err != nil {
		return err
	}
	if to == Complete && t.State == from && t.Values == nil {
		return &StateError{Trial: trial, State: t.State, What: "complete without values"}
	}
	return tx.do(&Transition{Trial: trial, From: from, To: to})
}

// ParamsBatch (params-batch) records parameters of a raw trial that has not
// ended, all or none. None may be set already.
func (tx *Tx) ParamsBatch(trial TrialID, params []Param) error {
	t, err := tx.open(trial, "params-batch")
	if err != nil {
		return err
	}
	if err := checkParams(t, params); err != nil {
		return err
	}
	return tx.do(&ParamsBatch{Trial: trial, Params: params})
}

// Report (report) records intermediate values of a raw trial that has not
// ended. The same step may be reported again: the last one is current.
func (tx *Tx) Report(trial TrialID, step uint64, values ...float64) error {
	if _, err := tx.open(trial, "report"); err != nil {
		return err
	}
	if len(values) == 0 {
		return fmt.Errorf("report: %w: no values", ErrInvalid)
	}
	return tx.do(&Report{Trial: trial, Step: step, Values: values})
}

// SetValues (set-values) records the final values of a raw trial that has not
// ended, one per direction.
func (tx *Tx) SetValues(trial TrialID, values ...float64) error {
	if _, err := tx.open(trial, "set-values"); err != nil {
		return err
	}
	return tx.do(&SetValues{Trial: trial, Values: values})
}

// SetError (set-error) records why a raw trial, which has not ended, is about
// to fail.
func (tx *Tx) SetError(trial TrialID, message string) error {
	if _, err := tx.open(trial, "set-error"); err != nil {
		return err
	}
	return tx.do(&SetError{Trial: trial, Message: message})
}

// Heartbeat (heartbeat) records that the worker of a raw trial lives, by the
// caller's clock in Unix milliseconds.
func (tx *Tx) Heartbeat(trial TrialID, atMillis uint64) error {
	if _, err := tx.open(trial, "heartbeat"); err != nil {
		return err
	}
	return tx.do(&Heartbeat{Trial: trial, AtMillis: atMillis})
}

// SetStudyUserAttr (set-study-user-attr) sets a user attribute to a JSON value.
// Keys that begin with atune: or foldlog: are refused with [ErrReserved].
func (tx *Tx) SetStudyUserAttr(study StudyID, key string, value []byte) error {
	if err := checkUserKey(key); err != nil {
		return err
	}
	return tx.setStudyAttr(study, key, value)
}

// SetStudySystemAttr is [Tx.SetStudyUserAttr] for this program's own keys,
// which begin with foldlog:.
func (tx *Tx) SetStudySystemAttr(study StudyID, key string, value []byte) error {
	if err := checkSystemKey(key); err != nil {
		return err
	}
	return tx.setStudyAttr(study, key, value)
}

func (tx *Tx) setStudyAttr(study StudyID, key string, value []byte) error {
	c, err := canonical(value)
	if err != nil {
		return fmt.Errorf("attribute %.80q: %w", key, err)
	}
	return tx.do(&SetStudyUserAttr{Study: study, Key: key, Value: c})
}

// SetTrialUserAttr (set-trial-user-attr) sets a user attribute of a raw trial,
// in any state, to a JSON value. Keys that begin with atune: or foldlog: are
// refused with [ErrReserved].
func (tx *Tx) SetTrialUserAttr(trial TrialID, key string, value []byte) error {
	if err := checkUserKey(key); err != nil {
		return err
	}
	return tx.setTrialAttr(trial, key, value)
}

// SetTrialSystemAttr is [Tx.SetTrialUserAttr] for this program's own keys,
// which begin with foldlog:.
func (tx *Tx) SetTrialSystemAttr(trial TrialID, key string, value []byte) error {
	if err := checkSystemKey(key); err != nil {
		return err
	}
	return tx.setTrialAttr(trial, key, value)
}

func (tx *Tx) setTrialAttr(trial TrialID, key string, value []byte) error {
	if _, err := tx.raw(trial, "set-trial-user-attr"); err != nil {
		return err
	}
	c, err := canonical(value)
	if err != nil {
		return fmt.Errorf("attribute %.80q: %w", key, err)
	}
	return tx.do(&SetTrialUserAttr{Trial: trial, Key: key, Value: c})
}

// PutState (put-state) replaces the state blob of a sampler, a scheduler or a
// raw trial.
func (tx *Tx) PutState(scope Scope, blob Blob) error {
	switch scope.Kind {
	case ScopeOther:
		return fmt.Errorf("put-state: %w: unknown scope", ErrInvalid)
	case ScopeTrial:
		if _, err := tx.raw(TrialID(scope.ID), "put-state"); err != nil {
			return err
		}
	}
	c, err := canonicalBlob(&blob)
	if err != nil {
		return err
	}
	return tx.do(&PutState{Scope: scope, Blob: c})
}
