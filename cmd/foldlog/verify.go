package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/cmd/foldlog/internal/cmdline"
	"github.com/foldlog/foldlog/cmd/foldlog/internal/hints"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/logkind"
)

func (a *app) verifyCmd() *cobra.Command {
	c := &cobra.Command{
		Use:   "verify PATH... [--versions N] [--json]",
		Short: "Check everything in logs that can be checked",
		Long: `Check everything in logs that can be checked, replay included, and name each
fault with its file and offset. The exit status is 1 if there is any fault, if
a log is missing, and if its format is newer than this program knows. Bytes
that no head has published are no fault. Of a Lance dataset, such as a datagen log is,
every version that is still listed is checked, or the latest N, and the shards of its
MemWAL. Of a directory every log under it is checked. The bytes of a log at a server
(http://HOST/PATH, or the address of the page of a run or a study) are read through it
and checked here.`,
		Example: "  foldlog verify search.atj runs/\n  foldlog verify http://logs.example:7654/runs/digits-0",
		Args:    cmdline.Operands("PATH..."),
	}
	asJSON := cmdline.JSONFlag(c, "print one line of JSON for each log")
	var opts logkind.VerifyOptions
	c.Flags().IntVar(&opts.Versions, "versions", 0, "check only the latest `N` versions of a Lance dataset or a datagen log")
	c.RunE = func(c *cobra.Command, args []string) error {
		print := printVerification
		if *asJSON {
			print = func(w io.Writer, v logkind.Verification) error { return cli.WriteJSONLine(w, v) }
		}
		if opts.Versions < 0 {
			return fmt.Errorf("verify: --versions is %d", opts.Versions)
		}
		return a.verify(c.Context(), args, opts, print)
	}
	return c
}

// verify checks one log after another and prints each answer as it comes.
func (a *app) verify(ctx context.Context, paths []string, opts logkind.VerifyOptions, print func(io.Writer, logkind.Verification) error) error {
	t := verifying{app: a, opts: opts, print: print}
	for _, path := range paths {
		if err := t.check(ctx, path, true); err != nil {
			return err
		}
	}
	if t.faulty == 0 {
		return t.unread
	}
	err := fmt.Errorf("verify: %d of %s faulty", t.faulty, cli.Plural(int64(t.checked), "log"))
	switch {
	case t.damaged != "":
		return cli.WithHint(err, "foldlog cp --salvage "+t.damaged+" DEST copies what is sound")
	case t.hopeless != "":
		return cli.WithHint(err, "nothing of "+t.hopeless+" is sound before its first fault; take a copy that was made earlier")
	}
	return err
}

// verifying is what has been checked so far.
type verifying struct {
	*app
	opts            logkind.VerifyOptions
	print           func(io.Writer, logkind.Verification) error
	checked, faulty int
	damaged         string // the first log that can be salvaged
	hopeless        string // the first that is damaged from its first event on
	unread          error  // of what is under directories
}

// check checks a log, or those under a directory. An error ends it all.
func (t *verifying) check(ctx context.Context, path string, directory bool) error {
	v, err := t.verifyOne(ctx, path, t.opts)
	switch {
	case ctx.Err() != nil:
		return cli.Failed("verify", path, ctx.Err())
	case logkind.NoAnswer(err):
		return cli.Failed("verify", path, err)
	case directory && logkind.IsDirectory(err):
		under, listErr := t.logsUnder(ctx, path)
		t.unread = cmp.Or(t.unread, cli.Failed("verify", path, listErr))
		for _, log := range under {
			if err := t.check(ctx, log, false); err != nil {
				return err
			}
		}
		if len(under) > 0 {
			return nil
		}
	}
	t.checked++
	if err != nil {
		v.Faults = append(v.Faults, logkind.Place{
			File: path, What: err.Error(), Hint: cli.HintFor(err, hints.Rules())})
	}
	v.Normalize()
	if !v.OK {
		t.faulty++
		if err == nil && v.Kind != logkind.LanceDataset && v.Kind != logkind.DatagenLog {
			t.advise(v)
		}
	}
	return cli.Buffered(t.Out(), func(w io.Writer) error { return t.print(w, v) })
}

// advise keeps the first log about which something can be said.
func (t *verifying) advise(v logkind.Verification) {
	if slices.ContainsFunc(v.Faults, func(p logkind.Place) bool { return p.Seq == 1 }) {
		t.hopeless = cmp.Or(t.hopeless, v.Path)
	} else {
		t.damaged = cmp.Or(t.damaged, v.Path)
	}
}

// logsUnder are the paths of the logs under a directory, those that cannot be read too.
func (a *app) logsUnder(ctx context.Context, dir string) (paths []string, err error) {
	err = a.List(ctx, dir, logkind.SummarizeOptions{}, func(s logkind.Summary) error {
		paths = append(paths, s.Path)
		return nil
	})
	return paths, err
}

// verifyOne returns what was found with the error that ended the check.
func (a *app) verifyOne(ctx context.Context, path string, opts logkind.VerifyOptions) (logkind.Verification, error) {
	at, err := a.Finder.Find(ctx, path)
	if err != nil {
		return logkind.Verification{Path: path}, err
	}
	bar := a.NewProgress("verify "+at.Name, cli.Bytes)
	defer bar.Close()
	opts.Progress = bar.Set
	v, err := at.Kind.Verify(ctx, at.Path, opts)
	v.Path, v.Kind = at.Name, at.Kind.Name()
	return v, err
}

func printVerification(w io.Writer, v logkind.Verification) error {
	word := "ok"
	if !v.OK {
		word = "faulty"
	}
	line := fmt.Sprintf("%-7s %s", word, cli.Safe(v.Path))
	if v.Kind != "" {
		line += fmt.Sprintf("  %s, %s, %s", strings.TrimSpace(v.Kind+" "+v.Format), cli.Plural(v.Events, "event"), cli.Size(v.Bytes))
	}
	fmt.Fprintln(w, line)
	printPlaces(w, "fault", v.Faults)
	printPlaces(w, "warning", v.Warnings)
	printPlaces(w, "note", v.Notes)
	return nil
}

// printPlaces writes to a buffer, which keeps the error for its flush.
func printPlaces(w io.Writer, word string, places []logkind.Place) {
	for _, p := range places {
		fmt.Fprintf(w, "  %s: %s\n", word, cli.Safe(p.String()))
		if p.Hint != "" {
			fmt.Fprintf(w, "  hint: %s\n", cli.Safe(p.Hint))
		}
	}
}
