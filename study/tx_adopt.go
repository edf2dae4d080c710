package study

import (
	"fmt"
	"strings"
)

// Adopt publishes an operation that came from elsewhere as [Tx.Apply] does, with the
// rules of the methods for what no store may hold, whoever made it: a study without
// objectives or of a name that is taken, conditions that cannot hold, shapes that are
// not known, values that are not of their distribution, reports without values, raw
// operations of managed trials or of those that have ended, keys that begin with atune:.
// JSON values are spelt as they are stored.
func (tx *Tx) Adopt(op Op) error {
	if err := tx.adoptable(op); err != nil {
		return fmt.Errorf("%s: %w", op.Kind(), err)
	}
	return tx.do(op)
}

func (tx *Tx) adoptable(op Op) (err error) {
	switch op := op.(type) {
	case *CreateStudy:
		if id, taken := tx.draft.st.names.get(op.Config.Name); taken {
			return &ExistsError{Name: op.Config.Name, Study: id}
		}
		return checkConfig(&op.Config)
	case *CreateTrial:
		_, err = tx.cloneTemplate(op.Template)
	case *LifecycleReserve:
		_, err = tx.cloneTemplate(op.Template)
	case *SetStudyUserAttr:
		op.Value, err = adoptAttr(op.Key, op.Value)
	case *LifecycleClaim:
		if err = checkDrawn(op.Trial, op.Params); err == nil {
			op.State, err = optCanonicalBlob(op.State)
		}
	case *LifecycleFenced:
		err = adoptMutation(op)
	case *LifecycleTerminal:
		if op.Outcome.Raw != nil {
			return fmt.Errorf("%w: outcome of unknown shape", ErrInvalid)
		}
		op.Outcome.Blob, err = optCanonicalBlob(op.Outcome.Blob)
	case *LifecycleFinalizedState:
		op.Blob, err = canonicalBlob(&op.Blob)
	default:
		return tx.adoptableRaw(op)
	}
	return err
}

// adoptableRaw is adoptable for the operations of raw trials.
func (tx *Tx) adoptableRaw(op Op) (err error) {
	switch op := op.(type) {
	case *ParamsBatch:
		if _, err = tx.open(op.Trial, op.Kind()); err == nil {
			err = checkDrawn(op.Trial, op.Params)
		}
	case *Report:
		if _, err = tx.open(op.Trial, op.Kind()); err == nil && len(op.Values) == 0 {
			err = fmt.Errorf("%w: no values", ErrInvalid)
		}
	case *SetValues:
		_, err = tx.open(op.Trial, op.Kind())
	case *SetError:
		_, err = tx.open(op.Trial, op.Kind())
	case *Heartbeat:
		_, err = tx.open(op.Trial, op.Kind())
	case *SetTrialUserAttr:
		if _, err = tx.raw(op.Trial, op.Kind()); err == nil {
			op.Value, err = adoptAttr(op.Key, op.Value)
		}
	case *PutState:
		switch op.Scope.Kind {
		case ScopeOther:
			return fmt.Errorf("%w: unknown scope", ErrInvalid)
		case ScopeTrial:
			if _, err := tx.raw(TrialID(op.Scope.ID), op.Kind()); err != nil {
				return err
			}
		}
		op.Blob, err = canonicalBlob(&op.Blob)
	}
	return err
}

func adoptAttr(key string, value []byte) ([]byte, error) {
	if strings.HasPrefix(key, reservedPrefixes[0]) {
		return nil, fmt.Errorf("%w: %.80q begins with %q", ErrReserved, key, reservedPrefixes[0])
	}
	return canonical(value)
}

// adoptMutation refuses what [Tx.LifecycleFenced] does, but for parameters that are
// replaced.
func adoptMutation(op *LifecycleFenced) (err error) {
	switch m := op.Mutation.(type) {
	case *MutateReport:
		if len(m.Values) == 0 {
			return fmt.Errorf("%w: no values", ErrInvalid)
		}
	case *MutateParams:
		return checkDrawn(op.Trial, m.Params)
	case *MutateUserAttr:
		m.Value, err = adoptAttr(m.Key, m.Value)
	case *MutateState:
		m.Blob, err = canonicalBlob(&m.Blob)
	case *MutateOther, nil:
		return fmt.Errorf("%w: unknown mutation", ErrInvalid)
	}
	return err
}

// checkDrawn refuses parameters that are doubled or whose value is not of their
// distribution.
func checkDrawn(id TrialID, params []Param) error {
	seen := make(map[string]bool, len(params))
	for _, p := range params {
		if seen[p.Name] {
			return fmt.Errorf("trial %d: %w: parameter %.80q is there twice", id, ErrInvalid, p.Name)
		}
		if !fits(p.Dist, p.Value) {
			return fmt.Errorf("trial %d: %w: parameter %.80q: %v is not a value of its distribution", id, ErrInvalid, p.Name, p.Value)
		}
		seen[p.Name] = true
	}
	return nil
}
