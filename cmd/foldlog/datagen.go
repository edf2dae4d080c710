package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/remote"
)

const datagenLong = `Work on datagen logs: run pipelines whose every step is checkpointed, look at
their items, and take the results out. A log is the Lance dataset
ROOT/datagen_checkpoints/PIPELINE/EXPERIMENT/log.lance, where ROOT is a directory,
s3://BUCKET/PREFIX, or http://HOST of a server ("foldlog serve"). Any number of
processes may work on it at once.

LOG is such a path, with or without log.lance, or PIPELINE/EXPERIMENT below
--root (FOLDLOG_ROOT, or else the current directory). http://HOST/PIPELINE/EXPERIMENT
is a log at a server, server:PIPELINE/EXPERIMENT one at that of FOLDLOG_SERVER.`

func (a *app) datagenCmd() *cobra.Command {
	noun := &cobra.Command{
		Use:   "datagen",
		Short: "Data generation: run pipelines, look at items, resume, export",
		Long:  datagenLong,
	}
	noun.AddCommand(
		a.datagenInitCmd(),
		a.datagenRunCmd(),
		a.datagenAppendCmd(),
		a.datagenSessionCmd(),
		a.datagenStatusCmd(),
		a.datagenItemsCmd(),
		a.datagenItemCmd(),
		a.datagenFailuresCmd(),
		a.datagenResumeCmd(),
		a.datagenBlobCmd(),
		a.datagenExportCmd(),
		a.datagenMergeCmd(),
		a.datagenCompactCmd(),
	)
	return noun
}

// rootFlag adds --root, which every command on a datagen log has.
func rootFlag(c *cobra.Command) *string {
	return c.Flags().String("root", "", "the `ROOT` of the logs, a directory or s3://BUCKET/PREFIX (default: FOLDLOG_ROOT, or .)")
}

// datagenRoot is the root that the flag or the environment says.
func (a *app) datagenRoot(flag string) string {
	if flag != "" {
		return flag
	}
	return a.root(nil)
}

// logRef reads the operand LOG.
func (a *app) logRef(arg, root string) (logRef, error) {
	slashed := filepath.ToSlash(arg)
	base, at, away, err := remote.Parse(arg, a.Var("FOLDLOG_SERVER"))
	switch {
	case err != nil:
		return logRef{}, &cli.UsageError{Err: err}
	case away && strings.Contains("/"+at, "/"+datagen.Directory+"/"):
		slashed = base + "/" + at
	case away:
		root, slashed = base, at
	}
	rest := slashed
	ref := logRef{root: a.datagenRoot(root)}
	if i := strings.LastIndex("/"+slashed, "/"+datagen.Directory+"/"); i >= 0 {
		ref.root, rest = strings.TrimSuffix(slashed[:i], "/"), slashed[i+len(datagen.Directory)+1:]
		switch {
		case ref.root == "" && strings.HasPrefix(slashed, "/"):
			ref.root = "/"
		case ref.root == "":
			ref.root = "."
		}
	}
	names := strings.Split(strings.TrimSuffix(rest, "/"), "/")
	if len(names) == 3 && names[2] == "log.lance" {
		names = names[:2]
	}
	if len(names) != 2 {
		err := cli.Usagef("LOG %q is no datagen log", arg)
		if what := a.anotherKind(arg); !away && what != "" {
			err = cli.Usagef("LOG %q is %s, and no datagen log", arg, what)
		}
		return ref, cli.WithHint(err, "give PIPELINE/EXPERIMENT, or the path of its log.lance")
	}
	ref.pipeline, ref.experiment = names[0], names[1]
	if what := a.anotherKind(arg); !away && root == "" && what != "" && what != plainDirectory {
		ref.instead = cli.WithHint(fmt.Errorf("it is %s, and no datagen log", what), "give PIPELINE/EXPERIMENT, or the path of its log.lance")
	}
	if err := a.rootServer(&ref); err != nil {
		return ref, err
	}
	if err := errors.Join(datagen.CheckName(ref.pipeline), datagen.CheckName(ref.experiment)); err != nil {
		return ref, &cli.UsageError{Err: fmt.Errorf("LOG %q: %w", arg, err)}
	}
	return ref, nil
}

// plainDirectory is what a directory is that is no log.
const plainDirectory = "a directory"

// anotherKind says what lies at a path that names no datagen log, "" if nothing does.
func (a *app) anotherKind(path string) string {
	c, err := examine(path)
	if err != nil || c.Info == nil {
		return ""
	}
	kind, log, err := identify(a.kinds, c)
	switch {
	case err != nil || kind != nil && kind.Name() == nameDatagen:
		return ""
	case kind != nil && filepath.Clean(log) == c.Path:
		return "a " + kind.Name()
	case kind != nil:
		return "a part of the " + kind.Name() + " " + log
	case c.Info.IsDir():
		return plainDirectory
	}
	return "a file that is no log"
}

// readLog opens a log for reading and hands the present view to fn.
func (a *app) readLog(ctx context.Context, arg, root string, fn func(logRef, *datagen.Log, *datagen.View) error) error {
	ref, err := a.logRef(arg, root)
	if err != nil {
		return err
	}
	l, err := ref.open(ctx, datagen.Options{})
	if err != nil {
		return err
	}
	v, err := l.View(ctx)
	if err != nil {
		return err
	}
	return fn(ref, l, v)
}

// datagenFailed says what was being done, unless it is the command line that is
// wrong.
func datagenFailed(verb, arg string, err error) error {
	if cli.As[*cli.UsageError](err) {
		return err
	}
	return failed("datagen "+verb, arg, err)
}

func (a *app) datagenInitCmd() *cobra.Command {
	c := &cobra.Command{
		Use:     "init LOG [--root ROOT] [--open]",
		Short:   "Make an empty log",
		Long:    "Make an empty log. With --open one that exists is no error: any number of\nstart scripts may say so at once.",
		Example: "  foldlog datagen init digits/v1 --root experiments\n  foldlog datagen init s3://bucket/experiments/datagen_checkpoints/digits/v1",
		Args:    operands("LOG"),
	}
	root := rootFlag(c)
	reuse := c.Flags().Bool("open", false, "use the log if it exists")
	asJSON := jsonFlag(c, "print one JSON object")
	c.RunE = func(c *cobra.Command, args []string) error {
		made, err := a.datagenInit(c.Context(), args[0], *root, *reuse)
		if err != nil {
			return datagenFailed("init", args[0], err)
		}
		if *asJSON {
			return cli.WriteJSON(a.Out(), made)
		}
		word := "opened"
		if made.Created {
			word = "created"
		}
		a.say("%s %s", word, cli.Safe(made.Path))
		return nil
	}
	return c
}

// createdLog is the output of `foldlog datagen init --json`.
type createdLog struct {
	Path       string `json:"path"`
	Pipeline   string `json:"pipeline"`
	Experiment string `json:"experiment"`
	Created    bool   `json:"created"` // false if it was there
}

func (a *app) datagenInit(ctx context.Context, arg, root string, reuse bool) (createdLog, error) {
	ref, err := a.logRef(arg, root)
	if err != nil {
		return createdLog{}, err
	}
	store, err := ref.store()
	if err != nil {
		return createdLog{}, err
	}
	made := createdLog{ref.String(), ref.pipeline, ref.experiment, true}
	_, err = datagen.Create(ctx, store, ref.pipeline, ref.experiment, datagen.Options{})
	switch {
	case errors.Is(err, datagen.ErrLogExists) && reuse:
		made.Created, err = false, nil
	case errors.Is(err, datagen.ErrLogExists):
		err = cli.WithHint(err, "--open uses it as it is")
	}
	return made, err
}
