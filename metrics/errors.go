package metrics

import (
	"errors"
	"fmt"
)

// What can be wrong with a line, an event or a target. Every error of this
// package wraps one of these or an error of package serde, net/http or os.
var (
	// ErrKind means that an object is no event: its kind is missing or unknown.
	ErrKind = errors.New("unknown kind of event")
	// ErrMissing means that a field of the kind is not there.
	ErrMissing = errors.New("missing field")
	// ErrEmpty means a line without anything on it.
	ErrEmpty = errors.New("empty line")
	// ErrLineTooLong means a line of more bytes than a reader holds.
	ErrLineTooLong = errors.New("line too long")
	// ErrTorn means a last line without its newline.
	ErrTorn = errors.New("torn last line")
	// ErrOrder means an event where its kind may not stand: before the first
	// open, or after done without a new open.
	ErrOrder = errors.New("event out of place")
	// ErrSlug means a slug that is empty, too long, or holds what it may not;
	// or two different slugs in one stream.
	ErrSlug = errors.New("bad slug")
	// ErrName means a metric name that is empty, too long or not UTF-8.
	ErrName = errors.New("bad metric name")
	// ErrTooLarge means that something exceeds a limit of the document and
	// cannot be cut.
	ErrTooLarge = errors.New("too large")
	// ErrMetadata means metadata that is not one JSON object.
	ErrMetadata = errors.New("metadata is not a JSON object")
	// ErrTarget means a target that is neither jsonl:PATH, stdout nor
	// http(s)://HOST.
	ErrTarget = errors.New("unknown target")
	// ErrClosed means an event for a log that has ended.
	ErrClosed = errors.New("metrics log is closed")

	// ErrDiskFull, ErrReadOnly, ErrGone and ErrPipeClosed are why a file or
	// pipe takes no more: no space or quota left, no permission to write, no
	// longer at its path, no reader any more.
	ErrDiskFull   = errors.New("disk full")
	ErrReadOnly   = errors.New("not writable")
	ErrGone       = errors.New("file is no longer at its path")
	ErrPipeClosed = errors.New("pipe closed by its reader")
	// ErrSlow means a target that took too long and lost events for it.
	ErrSlow = errors.New("target too slow")
	// ErrAway means a server that does not answer, or answers 5xx or 429.
	ErrAway = errors.New("server away")
	// ErrUnauthorized means that the server refused the token (401, 403).
	ErrUnauthorized = errors.New("not authorised")
	// ErrConflict means that the server holds other bytes for the stream.
	ErrConflict = errors.New("conflict")
	// ErrRefused means any other answer that repeating cannot change.
	ErrRefused = errors.New("refused by the server")
	// ErrRewritten means that a followed file was truncated, replaced or
	// overwritten.
	ErrRewritten = errors.New("file was rewritten")
	// ErrNoFile means that a directory, a pipe or the like lies where a stream's file
	// should.
	ErrNoFile = errors.New("not a regular file")
)

// LineError is one bad line, or a part of one.
type LineError struct {
	// Line counts from 1 through the whole stream, 0 if it is not known.
	Line int64
	// Column is the byte of the line at which it was noticed, from 1.
	Column int
	// Err is the reason.
	Err error
}

// Error implements error.
func (e *LineError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("column %d: %v", e.Column, e.Err)
	}
	return fmt.Sprintf("line %d, column %d: %v", e.Line, e.Column, e.Err)
}

// Unwrap returns the reason.
func (e *LineError) Unwrap() error { return e.Err }

// LimitError is a text, name or metadata that exceeds a limit of the document.
type LimitError struct {
	What  string // what is too large, for example "open metadata"
	Size  int    // its size, in Unit
	Limit int    // the most there may be, in Unit
	Unit  string // "bytes" or "UTF-16 units"
	Err   error  // the sentinel
}

// Error implements error.
func (e *LimitError) Error() string {
	return fmt.Sprintf("%s: %v: %d %s, at most %d", e.What, e.Err, e.Size, e.Unit, e.Limit)
}

// Unwrap returns the sentinel.
func (e *LimitError) Unwrap() error { return e.Err }

// TargetError is what went wrong with one target.
type TargetError struct {
	Target string // as [Target.String] spells it
	Op     string // "open", "write", "sync", "send", ...
	Err    error
}

// Error implements error.
func (e *TargetError) Error() string { return fmt.Sprintf("%s %s: %v", e.Op, e.Target, e.Err) }

// Unwrap returns the reason.
func (e *TargetError) Unwrap() error { return e.Err }
