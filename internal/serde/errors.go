package serde

import (
	"errors"
	"fmt"
)

// Why a text was refused. Every error of this package wraps one of these,
// except those that a caller handed to [Scanner.Fail].
var (
	// ErrSyntax means that the text is not JSON.
	ErrSyntax = errors.New("not valid JSON")
	// ErrType means that a value is JSON, but of another type than is due.
	ErrType = errors.New("wrong type of value")
	// ErrUTF8 means that a string holds bytes that are not UTF-8.
	ErrUTF8 = errors.New("not valid UTF-8")
	// ErrSurrogate means that an escape names half of a surrogate pair.
	ErrSurrogate = errors.New("lone surrogate")
	// ErrDepth means that values nest deeper than [MaxDepth].
	ErrDepth = errors.New("nested too deeply")
	// ErrRange means that a number does not fit the type that is due.
	ErrRange = errors.New("number out of range")
	// ErrNonFinite means that NaN or an infinity stands where only finite
	// numbers may.
	ErrNonFinite = errors.New("non-finite number")
	// ErrDuplicateKey means that an object has the same key twice.
	ErrDuplicateKey = errors.New("duplicate key")
)

// Error is a refusal with the place it was noticed at.
type Error struct {
	// Offset is the byte offset in the scanned text.
	Offset int
	// Err is the reason, wrapping one of the sentinels of this package or
	// the error given to [Scanner.Fail].
	Err error
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("at byte %d: %v", e.Offset, e.Err) }

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }
