// Package logkind knows the kinds of log that there are: how a path or an address is
// recognised as one, on this machine, in a bucket or at a server, and how to list, show,
// verify, print, follow and copy a log whatever its kind is.
//
// What it says of a log are the documented JSON structs of report.go.
package logkind

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// kindsAt is the registry of the kinds of log that the general verbs know, in a
// world. A new kind is a file with one type, and a place here. The first kind that
// recognises a path has it, so the kinds must not claim each other's content.
func kindsAt(w World) []Kind {
	return []Kind{journalKind{w}, metricsKind{w}, datagenKind{w}, lanceKind{w}}
}

// Kinds are the kinds of log on this machine.
func Kinds() []Kind { return kindsAt(World{}) }

// Names of the kinds, in the singular, as people say them. They are the kinds in JSON
// and at a server too, so they never change.
const (
	StudyJournal  = "study journal"
	MetricsStream = "metrics stream"
	DatagenLog    = "datagen log"
	LanceDataset  = "lance dataset"
)

// Kind is one kind of log as ls, inspect, verify, cat, tail and cp see it.
// Errors are those of the package that owns the format, wrapped with what was
// being done; hintRules has the advice. Nothing here ever writes to the log.
type Kind interface {
	// Name is the kind as people say it, in the singular: "study journal".
	// It is also the kind in JSON, so it never changes.
	Name() string

	// Identify returns the path that names the log of which c is the whole
	// or a part, or "" if c is not of this kind. It judges by content and
	// not by name, claims what is damaged but was clearly this kind, and is
	// also asked about paths that do not exist (a journal whose head is lost
	// beside its data). An error means that it could not look.
	Identify(c Candidate) (log string, err error)

	// Parts lists the files and directories beside the log that belong to
	// it, so that ls does not look at them on their own.
	Parts(log string) []string

	// Summarize tells what ls shows. It must be cheap, no full replay, unless it is to
	// be deep.
	Summarize(ctx context.Context, log string, opts SummarizeOptions) (Summary, error)

	// Inspect tells what the log is and holds.
	Inspect(ctx context.Context, log string) (Inspection, error)

	// Verify checks everything that can be checked and lists all the faults
	// it can find. An error means that the check could not be finished; what
	// was found until then is returned with it.
	Verify(ctx context.Context, log string, opts VerifyOptions) (Verification, error)

	// Cat writes the committed events in order, one JSON line each. What is
	// before a fault is written before the error is returned.
	Cat(ctx context.Context, log string, w io.Writer, opts CatOptions) error

	// Tail writes the last committed events, and with Follow each new one
	// once, until ctx is cancelled. Every Write ends with a whole line.
	Tail(ctx context.Context, log string, w io.Writer, opts TailOptions) error

	// Copy makes a consistent copy of a log that may be live at dest, which
	// does not exist. On an error nothing is left at dest.
	Copy(ctx context.Context, log, dest string, opts CopyOptions) (CopyStats, error)
}

// SummarizeOptions is the zero value or says how closely to look.
type SummarizeOptions struct {
	Deep bool // replay what must be replayed to tell all, however large or far away it is
}

// CatOptions says what Cat writes.
type CatOptions struct {
	// From is the sequence number of the first event, counted from 1. 0 is
	// from the very beginning, the header line of the log included.
	From int64
	// Blobs asks for the bytes of blobs, which datagen logs have.
	Blobs bool
}

// TailOptions says what Tail writes.
type TailOptions struct {
	Last   int64 // how many committed events to begin with
	Follow bool  // then wait for more
}

// VerifyOptions is the zero value or says how much to check and whom to tell.
type VerifyOptions struct {
	// Versions is how many of the latest versions of a Lance dataset are checked;
	// zero is all.
	Versions int
	// Progress, if not nil, gets the bytes checked so far and those of all.
	Progress func(done, total int64)
}

// CopyOptions says how Copy treats a damaged log.
type CopyOptions struct {
	// Salvage copies the committed prefix of a damaged log, up to the first
	// fault. Without it a damaged log is refused.
	Salvage bool
	// Progress, if not nil, gets the bytes copied so far and those of all, counting the
	// bytes that are read again to check the copy.
	Progress func(done, total int64)
	// Stage is told in words what goes on once all is copied. Nil is nobody.
	Stage func(words string)
}

// Candidate is a path that may be a log, looked at once for all the kinds.
type Candidate struct {
	Path  string      // clean, so that a kind can add and cut suffixes
	Info  fs.FileInfo // nil if there is nothing at Path; links are followed
	Start []byte      // the first bytes if Path is a regular file, at most startSize
}

// startSize is enough for the first line of every kind of log but the longest
// open event of a metrics stream, whose beginning is enough.
const startSize = 4096

// Examine looks at a path. A path that does not exist is no error.
// One in a bucket is not looked at here: only Lance datasets lie there.
func Examine(path string) (Candidate, error) {
	if InBucket(path) {
		return Candidate{Path: strings.TrimRight(path, "/")}, nil
	}
	if path != "" {
		path = filepath.Clean(path)
	}
	c := Candidate{Path: path}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, err
	}
	c.Info = info
	// Only a regular file is opened: a pipe would wait for its writer.
	if info.Mode().IsRegular() {
		c.Start, err = readStart(path)
	}
	return c, err
}

func readStart(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	start := make([]byte, startSize)
	n, err := io.ReadFull(f, start)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = nil
	}
	return start[:n], err
}

// identify asks every kind about a candidate. The kind is nil if none knows it.
func identify(kinds []Kind, c Candidate) (Kind, string, error) {
	for _, k := range kinds {
		log, err := k.Identify(c)
		if err != nil {
			return nil, "", err
		}
		if log != "" {
			return k, log, nil
		}
	}
	return nil, "", nil
}
