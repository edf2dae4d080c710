package datagen

import (
	"errors"
	"fmt"
	"time"
)

// What can keep a log from being read or written, for errors.Is.
var (
	// ErrNoLog: the experiment has no log.
	ErrNoLog = errors.New("no such log")
	// ErrLogExists: the experiment has a log already.
	ErrLogExists = errors.New("log exists")
	// ErrHeld: another writer that lives has the item. The error is a [HeldError].
	ErrHeld = errors.New("item is held by another writer")
	// ErrEnded: the item is completed or filtered. The error is an [EndedError].
	ErrEnded = errors.New("item has ended")
	// ErrFenced: another took over what this writer had. The error is a [FencedError].
	ErrFenced = errors.New("writer was fenced")
	// ErrUnsure: whether a checkpoint is durable is not known. Open the item again: the
	// log tells.
	ErrUnsure = errors.New("outcome of a checkpoint is unknown")
	// ErrOutage: the storage failed for as long as it was waited for.
	ErrOutage = errors.New("the storage has failed")
	// ErrClosed: the writer or the stream was closed.
	ErrClosed = errors.New("writer is closed")
	// ErrNoItem: the log has no such item.
	ErrNoItem = errors.New("no such item")
	// ErrNoBlob: no event of the log holds the blob.
	ErrNoBlob = errors.New("no such blob")
	// ErrBlob: the bytes of a blob are not those that were written.
	ErrBlob = errors.New("blob is damaged")
)

// HeldError says who has an item.
type HeldError struct {
	Item string
	// By is the writer epoch, or its beginning, Holder the process behind it in words.
	By, Holder string
	// Free is in how long the holder is taken for dead if it does not move; zero if
	// that cannot be told.
	Free time.Duration
}

// Error implements error.
func (e *HeldError) Error() string {
	by := e.By
	if e.Holder != "" {
		by = e.Holder
	}
	return fmt.Sprintf("item %q is held by %s", e.Item, by)
}

// Unwrap returns ErrHeld.
func (e *HeldError) Unwrap() error { return ErrHeld }

// EndedError says how an item ended.
type EndedError struct {
	// Item is the item as it ended.
	Item *Item
}

// Error implements error.
func (e *EndedError) Error() string {
	return fmt.Sprintf("item %q is %s", e.Item.ID, e.Item.Status)
}

// Unwrap returns ErrEnded.
func (e *EndedError) Unwrap() error { return ErrEnded }

// FencedError says who took over from a writer.
type FencedError struct {
	// Epoch is what was taken over, By who took it, as far as it is known.
	Epoch, By string
	// Err is how it was noticed.
	Err error
}

// Error implements error.
func (e *FencedError) Error() string {
	return fmt.Sprintf("writer epoch %s was taken over by %s: %v", e.Epoch, e.By, e.Err)
}

// Unwrap returns ErrFenced and the cause.
func (e *FencedError) Unwrap() []error { return []error{ErrFenced, e.Err} }
