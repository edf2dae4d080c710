package logkind

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/metrics"
	"github.com/foldlog/foldlog/remote"
)

// Finder finds logs on this machine and, for operands that are addresses, at servers. It
// says what it waits for and what it passes over.
type Finder struct {
	*cli.Env
	Kinds []Kind // of this machine
}

// Root is the root that a command works on.
func (f Finder) Root(args []string) string {
	if len(args) > 0 {
		return args[0]
	}
	if root := f.Var("FOLDLOG_ROOT"); root != "" {
		return root
	}
	return "."
}

// Located is a log that was found.
type Located struct {
	Kind Kind
	Path string // as the kind knows it
	Name string // as people give it
	// Server is where it is, nil for this machine and what it reaches.
	Server *remote.Client
}

// Find returns the log at a path or an address.
func (f Finder) Find(ctx context.Context, operand string) (Located, error) {
	server, at, err := f.ReadingServer(operand)
	if err != nil {
		return Located{}, err
	}
	if server != nil {
		return f.lookUpAt(ctx, server, operand, at)
	}
	c, err := Examine(operand)
	if err != nil {
		return Located{}, err
	}
	kind, log, err := identify(f.Kinds, c)
	switch {
	case err != nil:
		return Located{}, err
	case kind != nil:
		f.Debugf("%s is a %s", log, kind.Name())
		return Located{Kind: kind, Path: log, Name: log}, nil
	case InBucket(operand):
		return Located{}, cli.WithHint(fs.ErrNotExist, "check the bucket and the path, s3://BUCKET/PREFIX/datagen_checkpoints/PIPELINE/EXPERIMENT/log.lance of a datagen log")
	case c.Info == nil:
		return Located{}, fs.ErrNotExist
	case c.Info.IsDir() && isRun(filepath.ToSlash(c.Path)):
		if streams, err := streamsUnder(c.Path); err == nil && len(streams) == 1 {
			return f.Find(ctx, streams[0])
		}
	}
	return Located{}, &unknownKindError{operand, c.Info.IsDir(), f.Kinds}
}

// isRun tells whether a directory, by where it lies, has the streams of one run. One that
// has a single stream is an address of that.
func isRun(dir string) bool { return path.Base(path.Dir(dir)) == metrics.RunsDir }

// lookUpAt asks a server what is at a path.
func (f Finder) lookUpAt(ctx context.Context, c *remote.Client, text, at string) (Located, error) {
	logs, _, err := c.Logs(ctx, at)
	if err != nil {
		return Located{}, err
	}
	w := World{Server: c, ctx: ctx}
	if itself(logs, at) || len(logs) == 1 && isRun(at) {
		if kind := w.kindAt(ctx, logs[0]); kind != nil {
			f.Debugf("%s is a %s", logs[0].Path, kind.Name())
			return Located{kind, "/" + logs[0].Path, w.NameOf(logs[0].Path), c}, nil
		}
	}
	if len(logs) > 0 || at == "" {
		return Located{}, &unknownKindError{text, true, f.Kinds}
	}
	return Located{}, noLogAt(c)
}

// itself tells whether what a server has found at a path is one log that the path, or
// its page, is of, and not what a directory holds.
func itself(logs []remote.Log, at string) bool {
	return len(logs) == 1 && at != "" && !strings.HasPrefix(logs[0].Path, at+"/")
}

func noLogAt(c *remote.Client) error {
	return cli.WithHint(fs.ErrNotExist, "the server has no log there; foldlog ls "+c.Base+" lists those that it has")
}

// IsDirectory tells whether an error of [Finder.Find] is that of a directory which is no
// log and may hold some.
func IsDirectory(err error) bool {
	var unknown *unknownKindError
	return errors.As(err, &unknown) && unknown.dir
}

// unknownKindError is the error of content that no kind recognises.
type unknownKindError struct {
	path  string
	dir   bool
	kinds []Kind
}

func (e *unknownKindError) Error() string { return "not a log of a known kind" }

// Hint names the known kinds, or how to look into a directory.
func (e *unknownKindError) Hint() string {
	if e.dir {
		return "foldlog ls " + e.path + " lists the logs under it"
	}
	names := make([]string, len(e.kinds))
	for i, k := range e.kinds {
		names[i] = k.Name()
	}
	if len(names) == 0 {
		return "this build knows no kind of log"
	}
	return "the kind is told by content; known are: " + strings.Join(names, ", ")
}
