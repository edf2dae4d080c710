package lance

import (
	"errors"
	"fmt"
	"io"

	"github.com/foldlog/foldlog/lance/internal/format"
	"github.com/foldlog/foldlog/objstore"
)

// The causes of errors, for errors.Is. Those of package objstore pass through:
// after objstore.ErrAmbiguous a commit may or may not be durable.
var (
	// ErrNotFound: there is no dataset, or no such version of it.
	ErrNotFound = errors.New("dataset not found")
	// ErrExists: there is a dataset already.
	ErrExists = errors.New("dataset exists")
	// ErrConflict: another commit changed what this one rests on, and doing it
	// again will not help.
	ErrConflict = errors.New("conflicting commit")
	// ErrCorrupt: an object's bytes cannot be what its place says. The error is a
	// [CorruptError].
	ErrCorrupt = format.ErrCorrupt
	// ErrStale: a commit took longer than clean-up allows, or began at a version that
	// clean-up has passed, and was given up.
	ErrStale = errors.New("commit came too late")
	// ErrMerged: the generation is already merged into the table.
	ErrMerged = errors.New("generation is already merged")
)

// CorruptError says which object is not what it should be.
type CorruptError struct {
	// Path is relative to the dataset.
	Path string
	// Err is the cause; it wraps ErrCorrupt.
	Err error
}

// Error implements error.
func (e *CorruptError) Error() string { return fmt.Sprintf("%s: %v", e.Path, e.Err) }

// Unwrap returns the cause.
func (e *CorruptError) Unwrap() error { return e.Err }

// UnsupportedError names something that is valid Lance and not read or written here.
type UnsupportedError = format.UnsupportedError

// in names the object that an error of parsing came from.
func in(path string, err error) error {
	var c *CorruptError
	switch {
	case err == nil || errors.As(err, &c):
		return err
	case errors.Is(err, ErrCorrupt):
		return &CorruptError{Path: path, Err: err}
	}
	return fmt.Errorf("%s: %w", path, err)
}

// missing turns the absence of an object that must be there, or of its end, into
// corruption.
func missing(path string, err error) error {
	if errors.Is(err, objstore.ErrNotFound) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &CorruptError{Path: path, Err: fmt.Errorf("%w: %w", ErrCorrupt, err)}
	}
	return err
}

// guard turns a panic of a library that parses hostile bytes into corruption.
func guard(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: %v", ErrCorrupt, p)
	}
}
