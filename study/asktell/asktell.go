// Package asktell asks for trials, enqueues them and ends them from outside of a worker,
// by the same rules for the command line and the server. [Ask] makes transactions of its
// own; everything else happens in one of the caller.
package asktell

import (
	"fmt"
	"strconv"
	"time"

	"github.com/foldlog/foldlog/study"
	"github.com/foldlog/foldlog/study/sampler"
)

// AskOptions says what trial is asked for. The zero value is a raw one.
type AskOptions struct {
	// Key, unless it is empty, is drawn by the caller for the trial, and written with
	// its start: asking again with it, because the answer was lost or whoever worked on
	// it died, returns that trial. It has [MaxKey] bytes of UTF-8 at most.
	Key string
	// Lease asks for a managed trial, whose owner may be silent for that long; 0 asks
	// for a raw one. What follows is of managed trials.
	Lease time.Duration
	// Budget is how many reservations the study may have, 0 is no limit.
	Budget uint64
	// Worker is the owner, nil for the storage's own.
	Worker *uint64
}

func (o AskOptions) managed() bool { return o.Lease > 0 }

// EnqueueOptions says what trial is given in advance. The zero value is a managed one.
type EnqueueOptions struct {
	// Key, unless it is empty, is drawn by the caller: a second trial is not created
	// with it.
	Key string
	// Raw makes a raw trial.
	Raw bool
}

// start starts the first raw trial that waits, or a new one.
func start(tx *study.Tx, id study.StudyID) (study.TrialID, error) {
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
	return t.ID, tx.Transition(t.ID, study.Waiting, study.Running)
}

// claim claims the first managed trial that waits, or a new one.
func claim(tx *study.Tx, id study.StudyID, c AskOptions) (study.TrialID, error) {
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
	worker := tx.Worker()
	if c.Worker != nil {
		worker = *c.Worker
	}
	fence, err := tx.LifecycleClaim(t.ID, study.Claim{From: study.Waiting, Worker: worker, HeartbeatMillis: tx.AtMillis()})
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
// advance; created is false, and the trial the one before, if the key has been used.
func Enqueue(tx *study.Tx, id study.StudyID, tpl *study.Template, o EnqueueOptions) (trial study.TrialID, created bool, err error) {
	st, err := tx.Snapshot().Study(id)
	if err != nil {
		return 0, false, err
	}
	key := enqueueKeyPrefix + o.Key
	if attr, used := st.Attr(key); used && o.Key != "" {
		n, err := strconv.ParseUint(string(attr.Value), 10, 64)
		if err != nil {
			return 0, false, fmt.Errorf("attribute %q is not the id of a trial: %w", key, err)
		}
		return study.TrialID(n), false, nil
	}
	ref, err := NewWaiting(tx, id, tpl, !o.Raw)
	if err == nil && o.Key != "" {
		err = tx.SetStudySystemAttr(id, key, strconv.AppendUint(nil, uint64(ref.ID), 10))
	}
	return ref.ID, true, err
}

// NewWaiting creates a trial that waits, a managed one or a raw one.
func NewWaiting(tx *study.Tx, id study.StudyID, tpl *study.Template, managed bool) (study.TrialRef, error) {
	if managed {
		return tx.LifecycleReserve(id, tpl, 0)
	}
	return tx.CreateTrial(id, tpl)
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
