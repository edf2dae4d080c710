package datagen

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"
)

// Status is where an item stands in its life.
type Status string

// The states of an item.
const (
	// StatusPending: it is created, and nothing else has happened since.
	StatusPending Status = "pending"
	// StatusRunning: something has happened, and more is to come.
	StatusRunning Status = "running"
	// StatusCompleted and StatusFiltered: it has ended.
	StatusCompleted Status = "completed"
	StatusFiltered  Status = "filtered"
	// StatusFailed: its latest attempt failed. It can be resumed.
	StatusFailed Status = "failed"
)

// Finished reports whether nothing more is to be done.
func (s Status) Finished() bool { return s == StatusCompleted || s == StatusFiltered }

// Item is what the events of one item fold into.
type Item struct {
	ID string
	// Root is the root of the item's tree, itself for one without a Parent.
	Root, Parent string
	Status       Status
	// Fields are in the order in which they first appeared. A re-run begins without.
	Fields []FieldState
	// Cursor is the step that was completed last, nil before the first. Steps are
	// all that were, in order.
	Cursor *Step
	Steps  []StepDone
	// Attempt is that of the latest event.
	Attempt int32
	// LastSeq is the highest sequence of any event, those at fault too, so that the
	// next is above it.
	LastSeq int64
	// Epochs are the writer epochs in the order in which they took the item over;
	// Run is that of the latest event.
	Epochs []string
	Run    string
	// Failures are all that ever were, of all attempts and runs.
	Failures []ItemFailure
	// Tags are those of the latest creation, nil for none.
	Tags json.RawMessage
	// Created is when it was created last, Updated the time of the latest event.
	Created, Updated time.Time
	// Creations counts how often it was begun: more than once after a re-run.
	Creations int
	// Faults say where the events contradict each other, at most MaxFaults.
	Faults []Fault

	last    *Fault // the last fault
	created int64  // sequence of the latest creation
	done    map[stepKey]int
	fields  map[string]int
}

// MaxFaults is how many faults of one item are reported.
const MaxFaults = 100

// FieldState is a field of an item.
type FieldState struct {
	Name string
	// Appended says that the values were appended; else there is one, which was set.
	Appended bool
	Values   []FieldValue
}

// Value is the value that was set, or the last that was appended.
func (f *FieldState) Value() Value { return f.Values[len(f.Values)-1].Value }

// FieldValue is a value with its codec and where it comes from.
type FieldValue struct {
	Value
	// Type is the codec's stable id, Codec its version.
	Type  string
	Codec int32
	From  Origin
}

// Origin is the event that something comes from.
type Origin struct {
	Event, Checkpoint string
	Seq               int64
	Step              *Step
	Attempt           int32
	Run, Epoch        string
	Time              time.Time
}

// StepDone is a completed step.
type StepDone struct {
	Step
	From Origin
}

// ItemFailure is a failure with where it happened.
type ItemFailure struct {
	Failure
	From Origin
}

// Fault is a contradiction in the events of an item, for which errors.Is(err,
// ErrFault) holds. It is confined to the item: what its checkpoint says is left
// out, and the rest is folded.
type Fault struct {
	Item string
	// Seq is where it was noticed.
	Seq int64
	// Events are the identities of those concerned, Epochs those of their writers.
	Events, Epochs []string
	// What is wrong, as a phrase.
	What string
}

// Error implements error.
func (f *Fault) Error() string {
	return fmt.Sprintf("item %q, sequence %d: %s (%s)", f.Item, f.Seq, f.What, strings.Join(f.Events, ", "))
}

// Unwrap returns ErrFault.
func (f *Fault) Unwrap() error { return ErrFault }

// Err is the first fault since the item was created last, nil if there is none.
// Such an item cannot go on; creating it anew, as for a re-run, is the way out.
func (it *Item) Err() error {
	if f := it.standing(math.MaxInt64); f != nil {
		return f
	}
	return nil
}

// standing is the first fault since the latest creation that comes before a
// sequence. The last of all faults is looked at even if there are too many to tell.
func (it *Item) standing(before int64) *Fault {
	for i := range it.Faults {
		if f := &it.Faults[i]; (f.Seq >= it.created || f.Seq < 0) && f.Seq < before {
			return f
		}
	}
	if f := it.last; f != nil && f.Seq >= it.created && f.Seq < before {
		return f
	}
	return nil
}

// Done reports whether an execution of a step is complete (see Step.Instance).
func (it *Item) Done(instance string) bool {
	_, ok := it.done[stepKey{instance, -1}]
	return ok
}

// DoneStep reports whether a step is complete, in its iteration if it has one.
func (it *Item) DoneStep(s Step) bool {
	if s.Iteration == nil {
		return it.Done(s.Instance)
	}
	_, ok := it.done[stepKey{s.Instance, *s.Iteration}]
	return ok
}

// stepKey is an execution of a step, with -1 for any iteration.
type stepKey struct {
	instance  string
	iteration int64
}

// Field returns a field by its name.
func (it *Item) Field(name string) (*FieldState, bool) {
	i, ok := it.fields[name]
	if !ok {
		return nil, false
	}
	return &it.Fields[i], true
}

// Failure is the one that the item stands at, nil if its status is another.
func (it *Item) Failure() *ItemFailure {
	if it.Status != StatusFailed || len(it.Failures) == 0 {
		return nil
	}
	return &it.Failures[len(it.Failures)-1]
}
