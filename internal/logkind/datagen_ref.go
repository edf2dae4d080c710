package logkind

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/objstore"
	"github.com/foldlog/foldlog/remote"
)

// DatagenRef is the place of a datagen log.
type DatagenRef struct {
	Root, Pipeline, Experiment string
	Server                     *remote.Client // nil for a root that is no server
	instead                    error          // what the operand names if it is the path of another log
	at                         string         // the operand as a path at the server
	dir                        string         // where a copy lies, which has no names
}

// Store is what the log lies in.
func (r DatagenRef) Store() (objstore.Store, error) {
	if r.Server == nil {
		return datagen.OpenRoot(r.Root)
	}
	_, dir, _, err := remote.Parse(r.Root, "")
	return objstore.Prefix(r.Server.Store(), dir), err
}

// Reading is said by a command that only reads, which does not wait long for a server
// that is away.
func (r DatagenRef) Reading() {
	if r.Server != nil {
		r.Server.FirstPatience = firstPatience
	}
}

// isURL tells roots that are no directories.
func isURL(root string) bool {
	return strings.HasPrefix(root, "s3://") || strings.HasPrefix(root, "http://") || strings.HasPrefix(root, "https://")
}

// String is the path of the log.
func (r DatagenRef) String() string {
	if r.dir != "" {
		return r.dir
	}
	path := datagen.Path(r.Pipeline, r.Experiment)
	if isURL(r.Root) {
		return strings.TrimSuffix(r.Root, "/") + "/" + path
	}
	return filepath.Join(r.Root, filepath.FromSlash(path))
}

// Open opens a log that exists.
func (r DatagenRef) Open(ctx context.Context, opts datagen.Options) (*datagen.Log, error) {
	if r.dir != "" {
		return datagen.OpenDir(ctx, r.dir, opts)
	}
	store, err := r.Store()
	if err != nil {
		return nil, err
	}
	l, err := datagen.Open(ctx, store, r.Pipeline, r.Experiment, opts)
	if errors.Is(err, datagen.ErrNoLog) {
		if other := cmp.Or(r.instead, otherThanDatagen(ctx, r.Server, r.at)); other != nil {
			return nil, other
		}
		err = cli.WithHint(err, "foldlog datagen init "+r.String()+" makes one"+r.listing())
	}
	return l, err
}

// listing says how to find the logs that exist. Those in a bucket are not listed.
func (r DatagenRef) listing() string {
	if InBucket(r.Root) {
		return "; check the bucket, the prefix, the pipeline and the experiment"
	}
	return ", foldlog ls " + r.Root + " lists those there are"
}

// refAway takes the path of a log in a bucket or at a server apart.
func refAway(path string) (ref DatagenRef, ok bool) {
	root, rest, found := strings.Cut(path, "/"+datagen.Directory+"/")
	names := strings.Split(strings.TrimRight(rest, "/"), "/")
	if !isURL(path) || !found || len(names) != 3 {
		return DatagenRef{}, false
	}
	ref = DatagenRef{Root: root, Pipeline: names[0], Experiment: names[1]}
	return ref, ref.String() == strings.TrimRight(path, "/")
}

// DatagenRoot is the root that the flag or the environment says.
func (f Finder) DatagenRoot(flag string) string {
	if flag != "" {
		return flag
	}
	return f.Root(nil)
}

// DatagenLogToRead is DatagenLog for a command that only reads: LOG may be the path of a
// copy too, wherever on this machine that lies.
func (f Finder) DatagenLogToRead(ctx context.Context, arg, root string) (DatagenRef, error) {
	if root == "" && f.isCopy(arg) {
		return DatagenRef{dir: filepath.Clean(arg)}, nil
	}
	return f.DatagenLog(ctx, arg, root)
}

// isCopy tells the path of a datagen log which is not where the names of a log would be.
func (f Finder) isCopy(path string) bool {
	if f.away(path) || InBucket(path) || strings.Contains("/"+filepath.ToSlash(path), "/"+datagen.Directory+"/") {
		return false
	}
	c, err := Examine(path)
	if err != nil || c.Info == nil || !c.Info.IsDir() {
		return false
	}
	kind, log, err := identify(f.Kinds, c)
	return err == nil && kind != nil && kind.Name() == DatagenLog && filepath.Clean(log) == c.Path
}

// DatagenLog reads the operand LOG.
func (f Finder) DatagenLog(ctx context.Context, arg, root string) (DatagenRef, error) {
	slashed := filepath.ToSlash(arg)
	base, at, away, err := remote.Parse(arg, f.Var("FOLDLOG_SERVER"))
	switch {
	case err != nil:
		return DatagenRef{}, &cli.UsageError{Err: err}
	case away && strings.Contains("/"+at, "/"+datagen.Directory+"/"):
		slashed = base + "/" + at
	case away:
		root, slashed = base, at
	}
	rest := slashed
	ref := DatagenRef{Root: f.DatagenRoot(root), at: at}
	if i := strings.LastIndex("/"+slashed, "/"+datagen.Directory+"/"); i >= 0 {
		ref.Root, rest = strings.TrimSuffix(slashed[:i], "/"), slashed[i+len(datagen.Directory)+1:]
		switch {
		case ref.Root == "" && strings.HasPrefix(slashed, "/"):
			ref.Root = "/"
		case ref.Root == "":
			ref.Root = "."
		}
	}
	names := strings.Split(strings.TrimSuffix(rest, "/"), "/")
	if len(names) == 3 && names[2] == "log.lance" {
		names = names[:2]
	}
	if len(names) != 2 {
		return ref, f.noDatagenLog(ctx, arg)
	}
	ref.Pipeline, ref.Experiment = names[0], names[1]
	if other := f.WrongKind(arg, DatagenLog); !away && root == "" && other != nil && other.What != plainDirectory {
		ref.instead = other
	}
	if err := f.RootServer(&ref); err != nil {
		return ref, err
	}
	if err := errors.Join(datagen.CheckName(ref.Pipeline), datagen.CheckName(ref.Experiment)); err != nil {
		return ref, &cli.UsageError{Err: fmt.Errorf("LOG %q: %w", arg, err)}
	}
	return ref, nil
}

// noDatagenLog is the error of an operand that names no log: a wrong command line, or the
// path of a log of another kind.
func (f Finder) noDatagenLog(ctx context.Context, arg string) error {
	const hint = "give PIPELINE/EXPERIMENT, or the path of its log.lance"
	if c, at, err := f.ReadingServer(arg); c != nil && err == nil {
		return cmp.Or(otherThanDatagen(ctx, c, at), cli.WithHint(cli.Usagef("LOG %q is no datagen log", arg), hint))
	}
	other := f.WrongKind(arg, DatagenLog)
	switch {
	case f.isCopy(arg):
		return cli.WithHint(errCopy, "commands that read take it as it is; to write to it, move it to ROOT/"+datagen.Path("PIPELINE", "EXPERIMENT"))
	case other == nil:
		return cli.WithHint(cli.Usagef("LOG %q is no datagen log", arg), hint)
	case other.Kind != "":
		return other
	}
	return cli.WithHint(cli.Usagef("LOG %q is %s, and no datagen log", arg, other.What), hint)
}

// otherThanDatagen is the error of a path at a server at which another log lies, or a copy
// of a datagen log. It is nil without a server, and if that cannot be asked.
func otherThanDatagen(ctx context.Context, c *remote.Client, at string) error {
	if c == nil || at == "" {
		return nil
	}
	logs, _, err := c.Logs(ctx, at)
	if err != nil || !itself(logs, at) {
		return nil
	}
	w := World{Server: c, ctx: ctx}
	if kind := w.kindAt(ctx, logs[0]); kind != nil && kind.Name() == DatagenLog {
		return cli.WithHint(errCopy, "foldlog inspect "+w.NameOf(logs[0].Path)+" shows it; as ROOT/"+datagen.Path("PIPELINE", "EXPERIMENT")+" it is a log again")
	}
	if other := wrongKindAt(c, logs, at, DatagenLog); other != nil {
		return other
	}
	return nil
}

// errCopy is the error of a datagen log that lies in another place than a log with names.
var errCopy = errors.New("it is a copy of a datagen log, which has no names")

// RootServer finds the server of a datagen log whose root is one.
func (f Finder) RootServer(ref *DatagenRef) error {
	c, at, err := f.Server(ref.Root)
	if err != nil || c == nil {
		return err
	}
	ref.Server, ref.Root = c, c.Base
	if at != "" {
		ref.Root = remote.Address(c.Base, at)
	}
	return nil
}
