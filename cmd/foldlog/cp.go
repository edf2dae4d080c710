package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/cmd/foldlog/internal/cmdline"
	"github.com/foldlog/foldlog/cmd/foldlog/internal/metricscmd"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/logkind"
	"github.com/foldlog/foldlog/metrics"
	"github.com/foldlog/foldlog/remote"
)

func (a *app) cpCmd() *cobra.Command {
	var opts logkind.CopyOptions
	var root bool
	c := &cobra.Command{
		Use:        "cp PATH DEST [--salvage] [-r]",
		SuggestFor: []string{"backup", "copy"},
		Short:      "Copy a log consistently, even while it is written",
		Long: `Copy a log consistently, even while it is being written. DEST must not exist,
unless it is a directory, in which the copy keeps its name. A damaged journal or
stream is refused; with --salvage its committed events up to the first fault are
copied, and the exit status is 1 if that leaves anything out. A datagen log whose
files cannot be read is refused too; one whose events contradict each other is copied
as it is, and the exit status is 1.

PATH may be a log at a server, http://HOST/PATH. DEST may be a server, http://HOST, for
a metrics stream, which gets the place of its run there, as by "metrics push".

With -r every log under the directory PATH is copied, or at a server http://HOST, each to
its place under DEST, which does not exist or is empty: a backup that is a root itself.
What cannot be copied is told and passed over, and the exit status is 1. Tags and notes of
runs are copied on the machine of a server; other files are not.`,
		Example: "  foldlog cp search.atj backup/\n  foldlog cp --salvage damaged.atj rescued.atj\n  foldlog cp http://logs.example:7654/search.atj backup/\n  foldlog cp -r experiments/ backup-monday",
		Args:    cmdline.Operands("PATH", "DEST"),
	}
	c.Flags().BoolVar(&opts.Salvage, "salvage", false, "copy what is committed before the first fault")
	c.Flags().BoolVarP(&root, "recursive", "r", false, "copy every log under a directory")
	c.RunE = func(c *cobra.Command, args []string) error {
		at, err := a.find(c.Context(), "cp", args[0])
		switch {
		case root && logkind.IsDirectory(err):
			return cli.Failed("cp", args[0], a.copyRoot(c.Context(), args[0], args[1], opts))
		case logkind.IsDirectory(err):
			return cli.WithHint(err, "foldlog cp -r copies every log under it")
		case err != nil:
			return err
		}
		to, in, err := a.Server(args[1])
		if err != nil {
			return err
		}
		if to != nil {
			return cli.Failed("cp", args[0], a.copyToServer(c.Context(), at, to, in, opts))
		}
		dest, err := a.destination(at.Path, args[1])
		if err != nil {
			return cli.Failed("cp", args[0], err)
		}
		done, err := a.copyLog(c.Context(), at, dest, opts)
		if err != nil {
			return cli.Failed("cp", args[0], err)
		}
		a.Notef("copied %s, %s, to %s", cli.Plural(done.Events, "event"), cli.Size(done.Bytes), dest)
		return cli.Failed("cp", args[0], done.Lost)
	}
	return c
}

func (a *app) copyLog(ctx context.Context, at logkind.Located, dest string, opts logkind.CopyOptions) (logkind.CopyStats, error) {
	bar := a.NewProgress("cp "+at.Name, cli.Bytes)
	defer bar.Close()
	opts.Progress, opts.Stage = bar.Set, bar.Say
	return at.Kind.Copy(ctx, at.Path, dest, opts)
}

// copyToServer sends a metrics stream. Other kinds of log are made at a server by what
// writes them, with the fences that keep writers apart.
func (a *app) copyToServer(ctx context.Context, from logkind.Located, to *remote.Client, in string, opts logkind.CopyOptions) error {
	if from.Kind.Name() != logkind.MetricsStream {
		return cli.WithHint(fmt.Errorf("a %s cannot be copied to a server", from.Kind.Name()),
			"copy it into the root there, on that machine; foldlog cp "+remote.Address(to.Base, "PATH")+" DEST copies from a server")
	}
	if opts.Salvage {
		return cli.Usagef("--salvage: a damaged stream is salvaged to a file first")
	}
	p, err := metricscmd.PushFile(ctx, a.Finder, to.Base, from.Name)
	if err != nil {
		return err
	}
	if path := streamPath(p); in != "" && in != path && !strings.HasPrefix(path, in+"/") {
		a.Notef("a server has the place of a stream from its run: not %s", in)
	}
	a.Notef("copied %s, %s, to %s", cli.Plural(p.Events, "event"), cli.Size(p.Bytes), remote.Address(to.Base, streamPath(p)))
	if p.Torn > 0 {
		a.Notef("%s: the last line is torn: %s without a newline not sent", from.Name, cli.Size(p.Torn))
	}
	return nil
}

// destination is the path of the copy, which does not exist yet.
func (a *app) destination(log, dest string) (string, error) {
	if logkind.InBucket(dest) {
		return "", cli.Usagef("DEST %q: a copy is made on this machine and not in a bucket", dest)
	}
	if info, err := os.Stat(dest); err == nil && info.IsDir() && !a.isLog(dest) {
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

// isLog tells whether a directory is a log or lies in one: nothing is copied into it.
func (a *app) isLog(dir string) bool {
	what := a.WrongKind(dir, "")
	return what != nil && what.Kind != ""
}

// streamPath is where a server has a stream that was sent to it.
func streamPath(p metrics.PushStats) string {
	return filepath.ToSlash(metrics.StreamPath("", p.Slug, p.Stream))
}
