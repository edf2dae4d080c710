package study

import (
	"errors"
	"fmt"
)

// What can be wrong. Every error of this package wraps one of these, or an
// error of the journal or of internal/serde.
var (
	// ErrInvalid means that an argument or a field can never be right.
	ErrInvalid = errors.New("invalid")
	// ErrNotFound means that there is no such study, trial or entry.
	ErrNotFound = errors.New("not found")
	// ErrExists means that there is one already.
	ErrExists = errors.New("exists already")
	// ErrBadState means that the state of a trial forbids the operation.
	ErrBadState = errors.New("bad state")
	// ErrConflict means that somebody else was faster.
	ErrConflict = errors.New("conflict")
	// ErrFenced means that the caller does not own the trial any more.
	ErrFenced = errors.New("fenced")
	// ErrBudget means that the study has all the trials it may have.
	ErrBudget = errors.New("trial budget used up")
	// ErrReserved means that a user attribute's key begins with a reserved
	// prefix.
	ErrReserved = errors.New("reserved key")
	// ErrManaged means that a raw operation names a lifecycle-managed trial,
	// or a lifecycle operation a raw one.
	ErrManaged = errors.New("wrong kind of trial")
	// ErrOutOfOrder means that an identity, number or sequence is not the
	// next one.
	ErrOutOfOrder = errors.New("out of order")
	// ErrTooLarge means that an operation exceeds a cap.
	ErrTooLarge = errors.New("too large")
	// ErrUnknownKind means an operation that this version does not know.
	ErrUnknownKind = errors.New("unknown operation kind")
	// ErrField means that a field of an operation is missing, doubled or
	// wrong.
	ErrField = errors.New("bad field")
	// ErrStaleDraft means that the parent of a draft has changed since.
	ErrStaleDraft = errors.New("stale draft")
	// ErrRewound means that a log does not hold the history that was read from it: an
	// older copy of it has been put in its place. It is read anew.
	ErrRewound = errors.New("the history is not that of the log any more")
	// ErrClosed means that the storage has been closed.
	ErrClosed = errors.New("storage is closed")
)

// ReplayError says which operation a fold refuses and why. The fold is as it
// was before.
type ReplayError struct {
	// Seq is the operation's sequence number.
	Seq uint64
	// Kind is its kind, if it could be told.
	Kind string
	// Err is the reason.
	Err error
}

// Error implements error.
func (e *ReplayError) Error() string {
	if e.Kind == "" {
		return fmt.Sprintf("replay operation %d: %v", e.Seq, e.Err)
	}
	return fmt.Sprintf("replay operation %d (%s): %v", e.Seq, e.Kind, e.Err)
}

// Unwrap returns the reason.
func (e *ReplayError) Unwrap() error { return e.Err }

// FencedError is a write by somebody who does not own the trial (any more).
// The late values stay with the caller.
type FencedError struct {
	// Fence is what the caller claimed to hold.
	Fence Fence
	// State is the trial's state.
	State State
	// Owner and Epoch are the last owner and the current epoch.
	Owner, Epoch uint64
}

// Error implements error.
func (e *FencedError) Error() string {
	f := e.Fence
	if f.Worker == e.Owner && f.Epoch == e.Epoch {
		return fmt.Sprintf("trial %d: fenced: it is %v, and worker %d at epoch %d does not own it any more",
			f.Trial, e.State, f.Worker, f.Epoch)
	}
	return fmt.Sprintf("trial %d: fenced: worker %d at epoch %d does not own it: its last owner is worker %d at epoch %d, and it is %v",
		f.Trial, f.Worker, f.Epoch, e.Owner, e.Epoch, e.State)
}

// Unwrap returns ErrFenced.
func (e *FencedError) Unwrap() error { return ErrFenced }

// ConflictError is an operation that lost against another one.
type ConflictError struct {
	// Trial is the trial they met on.
	Trial TrialID
	// What says what was tried.
	What string
	// State, Owner and Epoch are what holds now.
	State        State
	Owner, Epoch uint64
}

// Error implements error.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("trial %d: conflict: %s, but it is %v, held by worker %d at epoch %d",
		e.Trial, e.What, e.State, e.Owner, e.Epoch)
}

// Unwrap returns ErrConflict.
func (e *ConflictError) Unwrap() error { return ErrConflict }

// StateError is an operation that the state of a trial forbids.
type StateError struct {
	// Trial is the trial.
	Trial TrialID
	// State is the state it is in.
	State State
	// What says what was tried.
	What string
}

// Error implements error.
func (e *StateError) Error() string {
	return fmt.Sprintf("trial %d: bad state: %s while it is %v", e.Trial, e.What, e.State)
}

// Unwrap returns ErrBadState.
func (e *StateError) Unwrap() error { return ErrBadState }

// ExistsError is a study that exists already.
type ExistsError struct {
	// Name is the study's name.
	Name string
	// Study is the one that exists.
	Study StudyID
}

// Error implements error.
func (e *ExistsError) Error() string {
	return fmt.Sprintf("study %q exists already, id %d", e.Name, e.Study)
}

// Unwrap returns ErrExists.
func (e *ExistsError) Unwrap() error { return ErrExists }

func noStudy(id StudyID) error { return fmt.Errorf("study %d: %w", id, ErrNotFound) }

func noTrial(id TrialID) error { return fmt.Errorf("trial %d: %w", id, ErrNotFound) }

// NumberError is a number that a study has no trial for.
type NumberError struct {
	// Study is the study.
	Study StudyID
	// Number is the ordinal asked for.
	Number uint64
}

// Error implements error.
func (e *NumberError) Error() string {
	return fmt.Sprintf("trial number %d of study %d: not found", e.Number, e.Study)
}

// Unwrap returns ErrNotFound.
func (e *NumberError) Unwrap() error { return ErrNotFound }
