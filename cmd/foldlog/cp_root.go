package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/logkind"
	"github.com/foldlog/foldlog/metrics"
	"github.com/foldlog/foldlog/remote"
)

// copyRoot copies every log under a directory, here or at a server, to the same place
// under dest. What cannot be copied is reported and skipped, and makes the whole fail at
// the end; a full disk and a server that is away end it.
func (a *app) copyRoot(ctx context.Context, root, dest string, opts logkind.CopyOptions) error {
	if err := a.emptyPlace(root, dest); err != nil {
		return err
	}
	under, unread := a.logsUnder(ctx, root)
	if len(under) == 0 {
		if unread == nil {
			a.Notef("no logs under %s", root)
		}
		return unread
	}
	if err := os.MkdirAll(dest, 0o777); err != nil {
		return err
	}
	var bytes int64
	failed, runs := 0, false
	for _, log := range under {
		done, err := a.copyUnder(ctx, root, log, dest, opts)
		if ends(ctx, err) {
			return err
		}
		if err = errors.Join(err, done.Lost); err != nil {
			failed++
			a.Notef("%v", cli.Failed("cp", log, err))
		}
		bytes += done.Bytes
		runs = runs || done.run
	}
	a.Notef("copied %s, %s, to %s", cli.Plural(int64(len(under)-failed), "log"), cli.Size(bytes), dest)
	if c, _, err := a.Server(root); runs && c != nil && err == nil {
		a.Notef("the tags and notes of runs are not copied from a server; foldlog cp -r on its machine has them")
	}
	if failed > 0 {
		return fmt.Errorf("%d of %s not copied, or not whole", failed, cli.Plural(int64(len(under)), "log"))
	}
	return unread
}

// ends tells an error after which nothing further can be copied.
func ends(ctx context.Context, err error) bool {
	return err != nil && (ctx.Err() != nil || logkind.NoAnswer(err) || errors.Is(err, syscall.ENOSPC))
}

// emptyPlace is the error of a destination that has something in it, or lies in the root.
func (a *app) emptyPlace(root, dest string) error {
	if logkind.InBucket(dest) {
		return cli.Usagef("DEST %q: a copy is made on this machine and not in a bucket", dest)
	}
	if c, _, err := a.Server(dest); c != nil || err != nil {
		return cli.Usagef("DEST %q: a root is copied to a directory of this machine", dest)
	}
	switch entries, err := os.ReadDir(dest); {
	case len(entries) > 0:
		return cli.WithHint(fmt.Errorf("create %s: %w", dest, fs.ErrExist), "a copy never overwrites; give a directory that is empty, or does not exist")
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	from, fromErr := filepath.Abs(root)
	to, toErr := filepath.Abs(dest)
	if err := errors.Join(fromErr, toErr); err != nil {
		return err
	}
	if rel, err := filepath.Rel(from, to); err == nil && filepath.IsLocal(rel) {
		return cli.WithHint(fmt.Errorf("%s lies in %s", dest, root), "give a directory beside it")
	}
	return nil
}

// copiedUnder is the copy of a log of a root.
type copiedUnder struct {
	logkind.CopyStats
	run bool // it is a stream among the runs of a server
}

func (a *app) copyUnder(ctx context.Context, root, log, dest string, opts logkind.CopyOptions) (done copiedUnder, err error) {
	rel, err := a.below(root, log)
	if err != nil {
		return done, err
	}
	at, err := a.Finder.Find(ctx, log)
	if err != nil {
		return done, err
	}
	to := filepath.Join(dest, rel)
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return done, err
	}
	if done.CopyStats, err = a.copyLog(ctx, at, to, opts); err != nil {
		return done, err
	}
	a.Debugf("copied %s, %s, to %s", cli.Plural(done.Events, "event"), cli.Size(done.Bytes), to)
	done.run = at.Kind.Name() == logkind.MetricsStream && path.Base(path.Dir(path.Dir(filepath.ToSlash(rel)))) == metrics.RunsDir
	if done.run && at.Server == nil {
		err = copyLabels(filepath.Dir(at.Path), filepath.Dir(to))
	}
	return done, err
}

// below is the path of a log relative to the root that it was found under. Where one at a
// server would lie outside of the root it is an error.
func (a *app) below(root, log string) (string, error) {
	c, under, err := a.Server(root)
	if err != nil {
		return "", err
	}
	if c == nil {
		return filepath.Rel(root, log)
	}
	_, at, _, err := remote.Parse(log, "")
	if err != nil {
		return "", err
	}
	rel := strings.TrimPrefix(strings.TrimPrefix(at, strings.Trim(under, "/")), "/")
	return filepath.Localize(rel)
}

// labelsFile has the tags and notes of a run, beside its streams.
const labelsFile = "labels.log"

// copyLabels copies what was noted about a run, unless another of its streams has
// brought that along.
func copyLabels(from, to string) error {
	in, err := os.Open(filepath.Join(from, labelsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(filepath.Join(to, labelsFile), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}
