package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/internal/cli"
)

func (a *app) cpCmd() *cobra.Command {
	var opts copyOptions
	c := &cobra.Command{
		Use:   "cp PATH DEST [--salvage]",
		Short: "Copy a log consistently, even while it is written",
		Long: `Copy a log consistently, even while it is being written. DEST must not exist,
unless it is a directory, in which the copy keeps its name. A damaged log is
refused; with --salvage its committed events up to the first fault are copied.`,
		Example: "  foldlog cp search.atj backup/\n  foldlog cp --salvage damaged.atj rescued.atj",
		Args:    operands("PATH", "DEST"),
	}
	c.Flags().BoolVar(&opts.Salvage, "salvage", false, "copy what is committed before the first fault")
	c.RunE = func(c *cobra.Command, args []string) error {
		kind, log, err := a.find("cp", args[0])
		if err != nil {
			return err
		}
		dest, err := destination(log, args[1])
		if err != nil {
			return failed("cp", args[0], err)
		}
		done, err := a.copyLog(c.Context(), kind, log, dest, opts)
		if err != nil {
			return failed("cp", args[0], err)
		}
		a.Notef("copied %s, %s, to %s", plural(done.Events, "event"), cli.Size(done.Bytes), dest)
		if done.Lost != nil {
			a.Notef("%v", done.Lost)
		}
		return nil
	}
	return c
}

func (a *app) copyLog(ctx context.Context, kind logKind, log, dest string, opts copyOptions) (copied, error) {
	bar := a.NewProgress("cp "+log, cli.Bytes)
	defer bar.Close()
	opts.Progress = bar.Set
	return kind.Copy(ctx, log, dest, opts)
}

// destination is the path of the copy, which does not exist yet.
func destination(log, dest string) (string, error) {
	if inBucket(dest) {
		return "", cli.Usagef("DEST %q: a copy is made on this machine and not in a bucket", dest)
	}
	if info, err := os.Stat(dest); err == nil && info.IsDir() {
		dest = filepath.Join(dest, filepath.Base(log))
	}
	switch _, err := os.Lstat(dest); {
	case err == nil:
		return "", cli.WithHint(fmt.Errorf("create %s: %w", dest, fs.ErrExist),
			"a copy never overwrites; give a path that does not exist")
	case !os.IsNotExist(err):
		return "", err
	}
	return dest, nil
}
