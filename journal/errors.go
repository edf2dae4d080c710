package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

var (
	// ErrExist is the cause when a journal is created where there is one.
	ErrExist = fmt.Errorf("a journal is already there: %w", fs.ErrExist)
	// ErrNotJournal is the cause when a file is not a study journal at all.
	ErrNotJournal = errors.New("not a study journal")
	// ErrHeadMissing is the cause when a data directory holds data but the head
	// beside it is gone. It is never mended by starting over.
	ErrHeadMissing = errors.New("the head is missing beside a data directory that holds data")
	// ErrDataMissing is the cause when a head names data and its directory is
	// gone.
	ErrDataMissing = errors.New("the data directory is missing")
	// ErrReplaced is the cause when the journal at the path is no longer the
	// one that was opened.
	ErrReplaced = errors.New("another journal has taken this one's place")
	// ErrClosed is the cause of every call on a closed handle.
	ErrClosed = errors.New("the journal handle is closed")
	// ErrReadOnlyPlatform is the cause when a journal is opened for writing on
	// a platform whose durability calls have not been proved.
	ErrReadOnlyPlatform = fmt.Errorf("writing journals on this platform: %w", errors.ErrUnsupported)

	// errFileMissing says that a data file which the history needs is gone.
	errFileMissing = errors.New("the data file is missing")
	// errFenced says that the lease was taken over before anything was
	// published; the writer starts over under a new one.
	errFenced = errors.New("the lease was taken over")
	// errExtentFull says that a transaction does not fit behind those before it.
	errExtentFull = errors.New("the extent is full")
)

// CorruptError says where a journal does not hold what it must.
type CorruptError struct {
	// Path is the damaged file.
	Path string
	// Offset is the byte offset in that file, of the extent, line or field.
	Offset int64
	// Seq is the operation concerned, 0 where that cannot be told.
	Seq uint64
	// Err says what is wrong.
	Err error
}

func (e *CorruptError) Error() string {
	if e.Seq == 0 {
		return fmt.Sprintf("%s: corrupt at byte %d: %v", e.Path, e.Offset, e.Err)
	}
	return fmt.Sprintf("%s: corrupt at byte %d, operation %d: %v", e.Path, e.Offset, e.Seq, e.Err)
}

// Unwrap returns the cause.
func (e *CorruptError) Unwrap() error { return e.Err }

// NewerFormatError refuses a journal of a later format than this package
// writes.
type NewerFormatError struct {
	Path   string
	Format uint64
}

func (e *NewerFormatError) Error() string {
	return fmt.Sprintf("%s: format %d is newer than %d, the newest that this program reads", e.Path, e.Format, FormatVersion)
}

// TooLargeError refuses an operation before anything is written.
type TooLargeError struct {
	// What is the thing that is too large: "record", "extent" or "journal".
	What string
	// Size and Limit are in bytes.
	Size, Limit int64
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%s of %d bytes is over the cap of %d bytes", e.What, e.Size, e.Limit)
}

// UncertainError says that an append may not last: the calls that would have
// told failed. The operations must not be sent again blindly; the journal tells,
// once it can be read again, whether it holds them.
type UncertainError struct {
	// First and Last are the sequence numbers that the append would have, 0 of a
	// journal that was being created or migrated.
	First, Last uint64
	// Visible tells that the head names the append: readers see it, but a
	// power loss could still take it away.
	Visible bool
	// Err is the failure.
	Err error
}

func (e *UncertainError) Error() string {
	state := "unknown"
	if e.Visible {
		state = "visible, but perhaps not durable"
	}
	if e.Last == 0 {
		return fmt.Sprintf("outcome of making the journal is %s: %v", state, e.Err)
	}
	return fmt.Sprintf("outcome of operations %d to %d is %s: %v", e.First, e.Last, state, e.Err)
}

// Unwrap returns the failure.
func (e *UncertainError) Unwrap() error { return e.Err }

// isEnvironment tells an error of the operating system, which says nothing
// about the journal, from a fault in the bytes.
func isEnvironment(err error) bool {
	var path *fs.PathError
	var sys *os.SyscallError
	var errno syscall.Errno
	return errors.As(err, &path) || errors.As(err, &sys) || errors.As(err, &errno)
}

// passing tells an error that may be gone the next time, with the journal as it
// was: the system's, and whatever is missing or in the journal's place.
func passing(err error) bool {
	for _, cause := range []error{ErrHeadMissing, ErrDataMissing, ErrReplaced, errFileMissing} {
		if errors.Is(err, cause) {
			return true
		}
	}
	return isEnvironment(err)
}
