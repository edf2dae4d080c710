package objstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"
)

// Store is a flat space of objects. Implementations are safe for concurrent use.
// Errors are of type [*Error] and wrap one of the sentinels where one applies.
type Store interface {
	// Get reads a whole object of at most limit bytes; a larger one is
	// ErrTooLarge and costs no more memory than the limit.
	Get(ctx context.Context, key string, limit int64) ([]byte, error)
	// GetRange reads n bytes from an offset. An object that ends earlier is
	// io.ErrUnexpectedEOF.
	GetRange(ctx context.Context, key string, off, n int64) ([]byte, error)
	// Stat describes an object without reading it.
	Stat(ctx context.Context, key string) (Info, error)
	// List yields objects in byte order of their keys. After an error it ends.
	List(ctx context.Context, opts ListOptions) iter.Seq2[Info, error]
	// Put writes an object, replacing one of the same key.
	Put(ctx context.Context, key string, data []byte) error
	// PutIfAbsent writes an object whose key must be free: ErrExists if another
	// writer's bytes are there, ErrAmbiguous if the outcome cannot be told.
	PutIfAbsent(ctx context.Context, key string, data []byte) error
	// Create begins an object too large for memory. It exists once Close of the
	// writer has returned nil, replacing one of the same key.
	Create(ctx context.Context, key string) (Writer, error)
	// Delete removes an object. A key that is not there is not an error.
	Delete(ctx context.Context, key string) error
}

// Sweeper is a [Store] in which writers that died leave something behind.
type Sweeper interface {
	// Sweep removes what unfinished writes under a prefix left longer than age
	// ago, and returns how many there were.
	Sweep(ctx context.Context, prefix string, age time.Duration) (int, error)
}

// Writer receives a large object in order. Abort after Close does nothing, so it
// can be deferred.
type Writer interface {
	io.Writer
	// Close makes the object appear, durably.
	Close() error
	// Abort gives the object up.
	Abort() error
}

// Info describes an object, or, from a listing with Delimiter, a common prefix.
type Info struct {
	// Key is the object's name; a common prefix ends in a slash.
	Key string
	// Size is in bytes.
	Size int64
	// Modified is by the store's clock; zero for a common prefix.
	Modified time.Time
}

// ListOptions selects what List yields. The zero value is everything.
type ListOptions struct {
	// Prefix is what keys begin with, any string.
	Prefix string
	// StartAfter leaves out keys up to and including this one.
	StartAfter string
	// Delimiter folds everything below the next slash after Prefix into one
	// entry.
	Delimiter bool
}

// The causes of errors, for errors.Is.
var (
	// ErrNotFound: there is no such object.
	ErrNotFound = errors.New("object not found")
	// ErrExists: a conditional write found the key taken.
	ErrExists = errors.New("object exists")
	// ErrAmbiguous: a conditional write may or may not have happened, now or later.
	ErrAmbiguous = errors.New("outcome of the write is unknown")
	// ErrTooLarge: the object exceeds the caller's limit.
	ErrTooLarge = errors.New("object is larger than allowed")
	// ErrKey: the key is not one that every store can hold.
	ErrKey = errors.New("invalid key")
	// ErrDenied: the store does not know the credentials, or they may not do this.
	ErrDenied = errors.New("access denied")
	// ErrClock: the store denies requests since this machine's clock and its own differ
	// by too much; it is an ErrDenied too.
	ErrClock = errors.New("the clock is off")
	// ErrNoBucket: the bucket does not exist.
	ErrNoBucket = errors.New("no such bucket")
	// ErrRefused: the store will not do this, however often it is asked.
	ErrRefused = errors.New("refused by the store")
)

// Error says which operation on which key failed.
type Error struct {
	// Op is the method in lower case.
	Op string
	// Key is the object's key or the listing's prefix.
	Key string
	// Err is the cause.
	Err error
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("%s %s: %v", e.Op, e.Key, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

func wrap(op, key string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Op: op, Key: key, Err: err}
}

// tempPrefix begins the names of local files that are not objects yet.
const tempPrefix = ".tmp-"

// CheckKey reports whether every store can hold a key: slash-separated parts,
// none empty, "." or "..", without control characters, backslashes or colons.
func CheckKey(key string) error {
	if key == "" || len(key) > 1000 {
		return fmt.Errorf("%w: %q", ErrKey, key)
	}
	for part := range strings.SplitSeq(key, "/") {
		if part == "" || part == "." || part == ".." || strings.HasPrefix(part, tempPrefix) {
			return fmt.Errorf("%w: %q", ErrKey, key)
		}
	}
	if strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' || r == ':' }) {
		return fmt.Errorf("%w: %q", ErrKey, key)
	}
	return nil
}
