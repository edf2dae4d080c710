package logkind

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/remote"
)

// List calls emit for every log under root, in the order of paths, in which run-9 is
// before run-10. What cannot be read is reported and skipped, and makes the whole fail at
// the end.
func (f Finder) List(ctx context.Context, root string, opts SummarizeOptions, emit func(Summary) error) error {
	c, at, err := f.ReadingServer(root)
	if err != nil {
		return err
	}
	if c != nil {
		return cli.Failed("ls", root, f.listAt(ctx, c, at, opts, emit))
	}
	if InBucket(root) {
		return cli.Failed("ls", root, cli.WithHint(errors.New("what a bucket has is not listed"),
			"foldlog inspect "+strings.TrimRight(root, "/")+"/datagen_checkpoints/PIPELINE/EXPERIMENT/log.lance looks at a log there"))
	}
	if _, err := os.Stat(root); err != nil {
		return cli.Failed("ls", root, err)
	}
	l := lister{Finder: f, ctx: ctx, opts: opts, emit: emit, done: map[string]bool{}}
	if err := l.visit(root, false); err != nil {
		return cli.Failed("ls", root, err)
	}
	return cli.Failed("ls", root, someUnreadable(l.unreadable))
}

func someUnreadable(n int) error {
	if n == 0 {
		return nil
	}
	return fmt.Errorf("%d could not be read", n)
}

// lister walks a tree. A path in done is a log that was told, or a part of one.
type lister struct {
	Finder
	ctx        context.Context
	opts       SummarizeOptions
	emit       func(Summary) error
	done       map[string]bool
	unreadable int
}

// visit looks at one path and at what is under it. Links to directories are
// not followed, except the root itself.
func (l *lister) visit(path string, link bool) error {
	if err := l.ctx.Err(); err != nil || l.done[path] {
		return err
	}
	c, err := Examine(path)
	var kind Kind
	var log string
	if err == nil {
		kind, log, err = identify(l.Kinds, c)
	}
	switch {
	case err != nil:
		l.skip(path, err)
		return nil
	case kind != nil:
		return l.tell(kind, log)
	case c.Info != nil && c.Info.IsDir() && !link:
		return l.descend(path)
	}
	return nil
}

func (l *lister) descend(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		l.skip(dir, err)
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return cli.CompareNames(a.Name(), b.Name()) })
	for _, e := range entries {
		link := e.Type()&os.ModeSymlink != 0
		if err := l.visit(filepath.Join(dir, e.Name()), link); err != nil {
			return err
		}
	}
	return nil
}

func (l *lister) tell(kind Kind, log string) error {
	if l.done[log] {
		return nil
	}
	l.done[log] = true
	for _, part := range kind.Parts(log) {
		l.done[part] = true
	}
	s, err := kind.Summarize(l.ctx, log, l.opts)
	if err != nil {
		l.unreadable++
		s.State, s.Detail = StateUnreadable, err.Error()
	}
	s.Path, s.Kind = log, kind.Name()
	return l.emit(s)
}

func (l *lister) skip(path string, err error) {
	l.unreadable++
	l.Notef("%v", cli.Failed("read", path, err))
}

// listAt is list for a server, or a directory under its root.
func (f Finder) listAt(ctx context.Context, c *remote.Client, at string, opts SummarizeOptions, emit func(Summary) error) error {
	logs, waiting, err := c.Logs(ctx, at)
	if err != nil {
		return err
	}
	if len(logs) == 0 && at != "" {
		return noLogAt(c)
	}
	if waiting > 0 {
		f.Notef("the server is still reading %s", cli.Plural(waiting, "stream"))
	}
	slices.SortFunc(logs, func(a, b remote.Log) int { return cli.CompareNames(a.Path, b.Path) })
	w := World{Server: c, ctx: ctx}
	unreadable := 0
	for s := range inOrder(logs, func(l remote.Log) Summary { return w.summarize(ctx, l, opts) }) {
		if s.State == StateUnreadable {
			unreadable++
		}
		if err := cmp.Or(ctx.Err(), emit(s)); err != nil {
			return err
		}
	}
	return someUnreadable(unreadable)
}
