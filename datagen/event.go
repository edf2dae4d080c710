package datagen

import (
	"encoding/json"
	"time"
)

// The versions of the log's schema. A writer writes SchemaVersion; bump it when
// a reader of the version before would misread the events.
const (
	// SchemaVersion is what we write: the columns of the document.
	SchemaVersion = 1
	// StepsSchemaVersion is the revision that other writers use, with steps that
	// open frames (StepStarted). We read it.
	StepsSchemaVersion = 2
)

// Kind is what an event says happened (column event_type).
type Kind string

// The kinds of events.
const (
	// ItemCreated begins an item, and once more after Terminal a deliberate re-run.
	ItemCreated Kind = "ITEM_CREATED"
	// FieldSet replaces a field's value.
	FieldSet Kind = "FIELD_SET"
	// FieldAppend adds a value to those of a field.
	FieldAppend Kind = "FIELD_APPEND"
	// StepStarted opens a frame of steps; only in schema version 2, never written.
	StepStarted Kind = "STEP_STARTED"
	// StepCompleted ends a step, last in its batch.
	StepCompleted Kind = "STEP_COMPLETED"
	// StepFailed says that an attempt failed.
	StepFailed Kind = "FAILED"
	// ItemEnded says that nothing more is to be done for the item.
	ItemEnded Kind = "TERMINAL"
)

// End is how an item ended (column terminal).
type End string

// The two ends.
const (
	EndCompleted End = "completed"
	EndFiltered  End = "filtered"
)

// Event is one row of the log. A field that a kind does not use has its zero
// value; docs/format/datagen.md has the columns.
type Event struct {
	// ID is the event's identity and the log's primary key; see EventID.
	ID string
	// Item is the item's scoped identity, Root that of the tree's root and Parent
	// that of the direct parent, "" for a root.
	Item, Root, Parent string
	// Seq orders the events of an item; it is strictly increasing.
	Seq int64
	// Checkpoint is the identity of the batch.
	Checkpoint string
	Kind       Kind
	// Step is where in the pipeline it happened; nil where no step is concerned.
	Step *Step
	// Attempt counts the executions of the item from 0.
	Attempt int32
	// Run attributes the event to a run of the pipeline.
	Run string
	// Epoch is the writer's claim on the item (column writer_epoch), opaque.
	Epoch string
	// Field is the changed field and Value what it was set to or what was appended.
	Field *Field
	// Tags are the item's query tags, a JSON object (of ItemCreated, not
	// authoritative), nil for none.
	Tags json.RawMessage
	// End is how the item ended (of ItemEnded).
	End End
	// Failure is what went wrong (of StepFailed).
	Failure *Failure
	// Time is when it happened by the writer's clock, in whole microseconds UTC.
	Time time.Time
	// Schema is the version that the event was written with.
	Schema int32
	// Frame is what only schema version 2 has.
	Frame *Frame
}

// Step says where in a pipeline something happened.
type Step struct {
	// Name is the step's name, Index its static position in the pipeline.
	Name  string
	Index int64
	// Instance tells one execution of the step in the item from every other, in
	// loops and branches too: such as "refine#2/classify".
	Instance string
	// Iteration counts the rounds of the innermost loop around the step from 0;
	// nil outside of loops.
	Iteration *int64
}

// Field is one change of one field.
type Field struct {
	Name string
	// Type is the stable id of the value's codec, Codec its version.
	Type  string
	Codec int32
	Value Value
}

// Failure is what went wrong in an attempt.
type Failure struct {
	Type string
	// Dump is the serialized failure, a JSON value, nil for none.
	Dump      json.RawMessage
	Traceback string
}

// Frame is the placing of a step in schema version 2.
type Frame struct {
	StepKind, EnclosingStep, SelectorStep string
	// Status is running, completed, filtered or failed.
	Status string
}
