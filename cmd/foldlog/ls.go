package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/internal/cli"
)

func (a *app) lsCmd() *cobra.Command {
	c := &cobra.Command{
		Use:        "ls [ROOT] [--json]",
		SuggestFor: []string{"list", "status"},
		Short:      "List every log under a root",
		Long: `List every log under a root with its kind, state and size, and what it holds: the
run of a stream and how it ended, the studies of a journal and their trials, the
events of a datagen log. The root is FOLDLOG_ROOT, or else the current directory, if
none is given; http://HOST is that of a server, http://HOST/DIRECTORY what is under it.`,
		Example: "  foldlog ls experiments/\n  foldlog ls http://logs.example:7654",
		Args:    operands("[ROOT]"),
	}
	asJSON := jsonFlag(c, "print one line of JSON for each log")
	c.RunE = func(c *cobra.Command, args []string) error {
		root := a.root(args)
		if *asJSON {
			return a.list(c.Context(), root, func(s summary) error { return cli.WriteJSONLine(a.Out(), s) })
		}
		t := cli.NewTable(cli.Column{Title: "LOG"}, cli.Column{Title: "KIND"}, cli.Column{Title: "STATE"},
			cli.Column{Title: "SIZE", Align: cli.Right}, cli.Column{Title: "CHANGED"}, cli.Column{Title: "HOLDS"})
		t.Bold = a.Color()
		err := a.list(c.Context(), root, func(s summary) error {
			t.Row(s.Path, s.Kind, s.State, cli.Size(s.Bytes), a.age(s.ModifiedMS), s.Detail)
			return nil
		})
		if t.Len() == 0 {
			if err == nil {
				a.Notef("no logs under %s", root)
			}
			return err
		}
		return errors.Join(t.Write(a.Out()), err)
	}
	return c
}

// root is the root that a command works on.
func (a *app) root(args []string) string {
	if len(args) > 0 {
		return args[0]
	}
	if root := a.Var("FOLDLOG_ROOT"); root != "" {
		return root
	}
	return "."
}

func (a *app) age(ms int64) string {
	if ms == 0 {
		return ""
	}
	return cli.Age(a.Time(), time.UnixMilli(ms))
}

// list calls emit for every log under root, in the order of paths, in which run-9 is
// before run-10. What
// cannot be read is told and passed over, and makes the whole fail at the end.
func (a *app) list(ctx context.Context, root string, emit func(summary) error) error {
	c, at, err := a.readingServer(root)
	if err != nil {
		return err
	}
	if c != nil {
		return failed("ls", root, a.listAt(ctx, c, at, emit))
	}
	if _, err := os.Stat(root); err != nil {
		return failed("ls", root, err)
	}
	l := lister{app: a, ctx: ctx, emit: emit, done: map[string]bool{}}
	if err := l.visit(root, false); err != nil {
		return failed("ls", root, err)
	}
	return failed("ls", root, someUnreadable(l.unreadable))
}

func someUnreadable(n int) error {
	if n == 0 {
		return nil
	}
	return fmt.Errorf("%d could not be read", n)
}

// lister walks a tree. A path in done is a log that was told, or a part of one.
type lister struct {
	*app
	ctx        context.Context
	emit       func(summary) error
	done       map[string]bool
	unreadable int
}

// visit looks at one path and at what is under it. Links to directories are
// not followed, except the root itself.
func (l *lister) visit(path string, link bool) error {
	if err := l.ctx.Err(); err != nil || l.done[path] {
		return err
	}
	c, err := examine(path)
	var kind logKind
	var log string
	if err == nil {
		kind, log, err = identify(l.kinds, c)
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

func (l *lister) tell(kind logKind, log string) error {
	if l.done[log] {
		return nil
	}
	l.done[log] = true
	for _, part := range kind.Parts(log) {
		l.done[part] = true
	}
	s, err := kind.Summarize(l.ctx, log)
	if err != nil {
		l.unreadable++
		s.State, s.Detail = stateUnreadable, err.Error()
	}
	s.Path, s.Kind = log, kind.Name()
	return l.emit(s)
}

func (l *lister) skip(path string, err error) {
	l.unreadable++
	l.Notef("%v", failed("read", path, err))
}
