// Package datagencmd is foldlog datagen: a file for each command that works on datagen logs.
package datagencmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/cmd/foldlog/internal/cmdline"
	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/logkind"
)

const long = `Work on datagen logs: run pipelines whose every step is checkpointed, look at
their items, and take the results out. A log is the Lance dataset
ROOT/datagen_checkpoints/PIPELINE/EXPERIMENT/log.lance, where ROOT is a directory,
s3://BUCKET/PREFIX, or http://HOST of a server ("foldlog serve"). Any number of
processes may work on it at once.

LOG is such a path, with or without log.lance, or PIPELINE/EXPERIMENT below
--root (FOLDLOG_ROOT, or else the current directory). http://HOST/PIPELINE/EXPERIMENT
is a log at a server, server:PIPELINE/EXPERIMENT one at that of FOLDLOG_SERVER.
Commands that only read take the path of a copy too, as "foldlog cp" makes it.`

// app is what the commands share.
type app struct{ logkind.Finder }

// New is foldlog datagen and the commands beneath it.
func New(f logkind.Finder) *cobra.Command {
	a := &app{f}
	noun := &cobra.Command{
		Use:   "datagen",
		Short: "Data generation: run pipelines, look at items, resume, export",
		Long:  long,
	}
	noun.AddCommand(
		a.initCmd(),
		a.runCmd(),
		a.appendCmd(),
		a.sessionCmd(),
		a.statusCmd(),
		a.itemsCmd(),
		a.itemCmd(),
		a.failuresCmd(),
		a.resumeCmd(),
		a.blobCmd(),
		a.exportCmd(),
		a.mergeCmd(),
		a.compactCmd(),
	)
	return noun
}

// rootFlag adds --root, which every command on a datagen log has.
func rootFlag(c *cobra.Command) *string {
	root := new(string)
	rootVar(c, root)
	return root
}

// rootVar is rootFlag for a variable that is there.
func rootVar(c *cobra.Command, root *string) {
	c.Flags().StringVar(root, "root", "", "the `ROOT` of the logs, a directory, s3://BUCKET/PREFIX or http://HOST (default: FOLDLOG_ROOT, or .)")
}

// readLog opens a log for reading and hands the present view to fn.
func (a *app) readLog(ctx context.Context, arg, root string, fn func(logkind.DatagenRef, *datagen.Log, *datagen.View) error) error {
	ref, err := a.DatagenLogToRead(ctx, arg, root)
	if err != nil {
		return err
	}
	ref.Reading()
	l, err := ref.Open(ctx, datagen.Options{})
	if err != nil {
		return err
	}
	v, err := l.View(ctx)
	if err != nil {
		return err
	}
	return fn(ref, l, v)
}

// failed says what was being done, unless it is the command line that is
// wrong.
func failed(verb, arg string, err error) error {
	if cli.As[*cli.UsageError](err) {
		return err
	}
	return cli.Failed("datagen "+verb, arg, err)
}

func (a *app) initCmd() *cobra.Command {
	c := &cobra.Command{
		Use:        "init LOG [--root ROOT] [--open]",
		SuggestFor: []string{"create", "new"},
		Short:      "Make an empty log",
		Long:       "Make an empty log. With --open one that exists is no error: any number of\nstart scripts may say so at once.",
		Example:    "  foldlog datagen init digits/v1 --root experiments\n  foldlog datagen init s3://bucket/experiments/datagen_checkpoints/digits/v1",
		Args:       cmdline.Operands("LOG"),
	}
	root := rootFlag(c)
	reuse := c.Flags().Bool("open", false, "use the log if it exists")
	asJSON := cmdline.JSONFlag(c, "print one JSON object")
	c.RunE = func(c *cobra.Command, args []string) error {
		made, err := a.datagenInit(c.Context(), args[0], *root, *reuse)
		if err != nil {
			return failed("init", args[0], err)
		}
		if *asJSON {
			return cli.WriteJSON(a.Out(), made)
		}
		word := "opened"
		if made.Created {
			word = "created"
		}
		_, err = fmt.Fprintln(a.Out(), word, cli.Safe(made.Path))
		return err
	}
	return c
}

// CreatedLog is the output of `foldlog datagen init --json`.
type CreatedLog struct {
	Path       string `json:"path"`
	Pipeline   string `json:"pipeline"`
	Experiment string `json:"experiment"`
	Created    bool   `json:"created"` // false if it was there
}

func (a *app) datagenInit(ctx context.Context, arg, root string, reuse bool) (CreatedLog, error) {
	ref, err := a.DatagenLog(ctx, arg, root)
	if err != nil {
		return CreatedLog{}, err
	}
	store, err := ref.Store()
	if err != nil {
		return CreatedLog{}, err
	}
	made := CreatedLog{ref.String(), ref.Pipeline, ref.Experiment, true}
	_, err = datagen.Create(ctx, store, ref.Pipeline, ref.Experiment, datagen.Options{})
	switch {
	case errors.Is(err, datagen.ErrLogExists) && reuse:
		made.Created, err = false, nil
	case errors.Is(err, datagen.ErrLogExists):
		err = cli.WithHint(err, "--open uses it as it is")
	}
	return made, err
}
