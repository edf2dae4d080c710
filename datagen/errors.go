package datagen

import (
	"errors"
	"fmt"
)

// What can be wrong with names and events, for errors.Is.
var (
	// ErrName: a pipeline's or an experiment's name has a character that no name may
	// have, or is empty or too long.
	ErrName = errors.New("not a name of a pipeline or an experiment")
	// ErrEvent: an event cannot be written as it is. The error is an [EventError].
	ErrEvent = errors.New("event is not valid")
	// ErrNewer: the log was written with a newer schema than this program knows.
	ErrNewer = errors.New("log has a newer schema")
	// ErrSchema: a table does not have the columns of a log.
	ErrSchema = errors.New("table is no datagen log")
	// ErrFault: the events of an item contradict each other. The error is a [Fault].
	ErrFault = errors.New("item is at fault")
	// ErrNoCheckpoint: an item has no checkpoint of that identity.
	ErrNoCheckpoint = errors.New("no such checkpoint")
)

// EventError says what is wrong with an event of a batch.
type EventError struct {
	// Index is the event's place in the batch, ID its identity if it has one.
	Index int
	ID    string
	// Column is the column of the log at fault, "" if it is the batch as a whole.
	Column string
	// Err is the reason.
	Err error
}

// Error implements error.
func (e *EventError) Error() string {
	at := fmt.Sprintf("event %d", e.Index)
	if e.ID != "" {
		at += " (" + e.ID + ")"
	}
	if e.Column != "" {
		at += ": " + e.Column
	}
	return fmt.Sprintf("%s: %v", at, e.Err)
}

// Unwrap returns the reason and ErrEvent.
func (e *EventError) Unwrap() []error { return []error{ErrEvent, e.Err} }
