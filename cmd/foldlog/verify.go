package main

import (
	"context"
	"fmt"
	"io"
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
MemWAL. The bytes of a log at a server (http://HOST/PATH) are read through it and
checked here.`,
		Example: "  foldlog verify search.atj runs/*.jsonl",
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
	faulty, damaged := 0, ""
	for _, path := range paths {
		v, err := a.verifyOne(ctx, path, opts)
		if ctx.Err() != nil {
			return cli.Failed("verify", path, ctx.Err())
		}
		if logkind.NoAnswer(err) {
			return cli.Failed("verify", path, err)
		}
		if err != nil {
			v.Faults = append(v.Faults, logkind.Place{
				File: path, What: err.Error(), Hint: cli.HintFor(err, hints.Rules())})
		}
		v.Normalize()
		if !v.OK {
			faulty++
			if err == nil && damaged == "" && v.Kind != logkind.LanceDataset && v.Kind != logkind.DatagenLog {
				damaged = v.Path
			}
		}
		err = cli.Buffered(a.Out(), func(w io.Writer) error { return print(w, v) })
		if err != nil {
			return err
		}
	}
	if faulty == 0 {
		return nil
	}
	err := fmt.Errorf("verify: %d of %s faulty", faulty, cli.Plural(int64(len(paths)), "log"))
	if damaged == "" {
		return err
	}
	return cli.WithHint(err, "foldlog cp --salvage "+damaged+" DEST copies what is sound")
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
