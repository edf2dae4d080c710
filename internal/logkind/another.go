package logkind

import (
	"bytes"
	"fmt"
	"path/filepath"

	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/remote"
)

// KindError is the error of a path at which there is something else than the log that a
// command works on.
type KindError struct {
	Kind   string // what is there, one of the names of the kinds, "" if it is no log
	What   string // the same in words, with its article
	Wanted string // the kind that the command works on
	hint   string
	err    error // what it was noticed by, nil if it was looked for
}

var _ cli.Hinted = (*KindError)(nil)

func (e *KindError) Error() string { return "it is " + e.What + ", and no " + e.Wanted }

// Unwrap is what the reader of the wanted kind had to say.
func (e *KindError) Unwrap() error { return e.err }

// Hint says which command shows what is there.
func (e *KindError) Hint() string { return e.hint }

// showing is how a log of each kind is looked at.
var showing = map[string]string{
	StudyJournal:  "foldlog study show %s shows it",
	MetricsStream: "foldlog metrics show %s shows it",
	DatagenLog:    "foldlog datagen status %s shows it",
	LanceDataset:  "foldlog inspect %s shows it",
}

// plainDirectory is what a directory is that is no log.
const plainDirectory = "a directory"

// optunaLine begins a line of a journal file of Optuna's.
var optunaLine = []byte(`{"op_code"`)

// WrongKind says what is at a path of this machine instead of a log of the wanted kind. It
// is nil if there is nothing, if it is one after all, and if nobody can look.
func (f Finder) WrongKind(path, wanted string) *KindError {
	if InBucket(path) {
		return nil
	}
	c, err := Examine(path)
	if err != nil || c.Info == nil {
		return nil
	}
	kind, log, err := identify(f.Kinds, c)
	if err != nil {
		return nil
	}
	e := &KindError{Wanted: wanted}
	switch whole := kind != nil && filepath.Clean(log) == c.Path; {
	case kind == nil && c.Info.IsDir():
		e.What, e.hint = plainDirectory, "foldlog ls "+path+" lists the logs under it"
	case kind == nil:
		e.What, e.hint = fileInWords(c), fileHint(c, path, wanted)
	case kind.Name() == wanted && whole:
		return nil
	case kind.Name() == wanted:
		e.Kind, e.What, e.hint = wanted, "a part of "+log, "give "+log
	case whole:
		e.Kind, e.What, e.hint = kind.Name(), "a "+kind.Name(), fmt.Sprintf(showing[kind.Name()], log)
	default:
		e.Kind, e.What, e.hint = kind.Name(), "a part of the "+kind.Name()+" "+log, fmt.Sprintf(showing[kind.Name()], log)
	}
	return e
}

// wrongKindAt is WrongKind of what a server has found at a path.
func wrongKindAt(c *remote.Client, logs []remote.Log, at, wanted string) *KindError {
	if !itself(logs, at) || logs[0].Kind == wanted || showing[logs[0].Kind] == "" {
		return nil
	}
	kind := logs[0].Kind
	return &KindError{Kind: kind, What: "a " + kind, Wanted: wanted, hint: fmt.Sprintf(showing[kind], World{Server: c}.NameOf(logs[0].Path))}
}

func fileInWords(c Candidate) string {
	switch {
	case c.Info.Mode().IsRegular() && c.Info.Size() == 0:
		return "an empty file"
	case bytes.HasPrefix(c.Start, optunaLine):
		return "a journal file of Optuna's"
	}
	return "a file that is no log"
}

func fileHint(c Candidate, path, wanted string) string {
	if wanted == StudyJournal && bytes.HasPrefix(c.Start, optunaLine) {
		return "foldlog study import " + path + " PATH.atj makes a study journal of it"
	}
	return "give the path of a " + wanted + "; foldlog ls ROOT lists the logs under a root"
}
