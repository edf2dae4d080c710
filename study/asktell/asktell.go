// Package asktell is how trials are asked for, given in advance and ended from
// outside of a search, by the command line and by the server: the same rules for
// both. Everything happens in transactions of the caller.
package asktell

import (
	"fmt"
	"strconv"
	"time"

	"github.com/foldlog/foldlog/study"
	"github.com/foldlog/foldlog/study/sampler"
)

// Claimed says how a managed trial is asked for.
type Claimed struct {
	// Lease is how long its owner may be silent.
	Lease time.Duration
	// Budget is how many reservations the study may have, 0 is no limit.
	Budget uint64
	// Worker is the owner, nil for the storage's own.
	Worker *uint64
}

// suggester draws what a trial does not have yet; a nil one draws nothing.
type suggester func(*study.Tx, *study.Trial) ([]study.Param, error)

func (f suggester) params(tx *study.Tx, t *study.Trial) ([]study.Param, error) {
	if f == nil {
		return nil, nil
	}
	return f(tx, t)
}

// start starts the first raw trial that waits, or a new one, with its parameters.
func start(tx *study.Tx, id study.StudyID, draw suggester) (study.TrialID, error) {
	t := FirstWaiting(tx.Snapshot(), id, false)
	if t == nil {
		ref, err := tx.CreateTrial(id, nil)
		if err != nil {
			return 0, err
		}
		if t, err = tx.Snapshot().Trial(ref.ID); err != nil {
			return 0, err
		}
	}
	params, err := draw.params(tx, t)
	if err != nil {
		return 0, err
	}
	if err := tx.Transition(t.ID, study.Waiting, study.Running); err != nil {
		return 0, err
	}
	if len(params) == 0 {
		return t.ID, nil
	}
	return t.ID, tx.ParamsBatch(t.ID, params)
}

// claim claims the first managed trial that waits, or a new one, with its
// parameters.
func claim(tx *study.Tx, id study.StudyID, c Claimed, draw suggester) (study.TrialID, error) {
	t := FirstWaiting(tx.Snapshot(), id, true)
	if t == nil {
		ref, err := tx.LifecycleReserve(id, nil, c.Budget)
		if err != nil {
			return 0, err
		}
		if t, err = tx.Snapshot().Trial(ref.ID); err != nil {
			return 0, err
		}
	}
	params, err := draw.params(tx, t)
	if err != nil {
		return 0, err
	}
	worker := tx.Worker()
	if c.Worker != nil {
		worker = *c.Worker
	}
	fence, err := tx.LifecycleClaim(t.ID, study.Claim{
		From: study.Waiting, Worker: worker, HeartbeatMillis: tx.AtMillis(), Params: params,
	})
	if err != nil {
		return 0, err
	}
	return t.ID, tx.SetLease(fence, c.Lease)
}

// FirstWaiting is the trial of one kind that has waited longest, nil if none
// waits. A managed one that nothing was given for is no such trial: a worker has
// reserved it, and is about to start it.
func FirstWaiting(snap *study.Snapshot, id study.StudyID, managed bool) *study.Trial {
	for t := range snap.LiveTrials(id, study.Waiting) {
		if t.Managed == managed && (!managed || t.Template != nil) {
			return t
		}
	}
	return nil
}

// Suggest draws what a trial does not have yet.
func Suggest(tx *study.Tx, t *study.Trial) ([]study.Param, error) {
	st, err := tx.Snapshot().Study(t.Study)
	if err != nil || len(t.Params) > 0 {
		return nil, err
	}
	s, err := sampler.Of(st)
	if err != nil {
		return nil, err
	}
	return suggest(tx.Snapshot(), s, t)
}

// enqueueKeyPrefix begins the study attributes that remember the keys of
// enqueued trials. The value is the id of the trial; it is written in one extent
// with the trial, so that there is never one without the other.
const enqueueKeyPrefix = study.SystemPrefix + "enqueue-key:"

// Enqueue creates a trial that waits to be asked for, with values given in
// advance; created is false if the key, where it is not empty, has been used
// before. Raw makes a raw trial.
func Enqueue(tx *study.Tx, id study.StudyID, tpl *study.Template, userKey string, raw bool) (trial study.TrialID, created bool, err error) {
	st, err := tx.Snapshot().Study(id)
	if err != nil {
		return 0, false, err
	}
	key := enqueueKeyPrefix + userKey
	if attr, used := st.Attr(key); used && userKey != "" {
		n, err := strconv.ParseUint(string(attr.Value), 10, 64)
		if err != nil {
			return 0, false, fmt.Errorf("attribute %q is not the id of a trial: %w", key, err)
		}
		return study.TrialID(n), false, nil
	}
	ref, err := NewWaiting(tx, id, tpl, raw)
	if err == nil && userKey != "" {
		err = tx.SetStudySystemAttr(id, key, strconv.AppendUint(nil, uint64(ref.ID), 10))
	}
	return ref.ID, true, err
}

// NewWaiting creates a trial that waits.
func NewWaiting(tx *study.Tx, id study.StudyID, tpl *study.Template, raw bool) (study.TrialRef, error) {
	if raw {
		return tx.CreateTrial(id, tpl)
	}
	return tx.LifecycleReserve(id, tpl, 0)
}

// End ends a raw trial.
func End(tx *study.Tx, id study.TrialID, o study.Outcome) error {
	t, err := tx.Snapshot().Trial(id)
	if err != nil {
		return err
	}
	switch {
	case t.State.Terminal():
		err = &study.StateError{Trial: id, State: t.State, What: "tell"}
	case o.State == study.Complete:
		err = tx.SetValues(id, o.Values...)
	case o.Error != "":
		err = tx.SetError(id, o.Error)
	}
	if err != nil {
		return err
	}
	return tx.Transition(id, t.State, o.State)
}
