package datagencmd

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/cmd/foldlog/internal/cmdline"
	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/datagen/export"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/logkind"
)

// exportFlags is the command line of datagen export.
type exportFlags struct {
	root, format, out   string
	status              []string
	blobs, noProvenance bool
}

func (a *app) exportCmd() *cobra.Command {
	var f exportFlags
	c := &cobra.Command{
		Use:   "export LOG [--format jsonl|parquet] [--out FILE] [--status STATUS]... [--blobs]",
		Short: "Export the finished items with the provenance of every value",
		Long: `Export the items that are completed, or those of --status, with the provenance of
every value: the step, attempt, run and time that it comes from. JSONL has an object
for each item, Parquet a row for each value, in the columns of the log. Blobs are
their size and checksum; with --blobs their bytes too.

With --out the file is replaced once the export is complete, and left as it was
otherwise. A pipe or a device is written to.`,
		Example: "  foldlog datagen export digits/v1 --out digits.jsonl\n  foldlog datagen export digits/v1 --blobs --out digits.parquet",
		Args:    cmdline.Operands("LOG"),
	}
	flags := c.Flags()
	rootVar(c, &f.root)
	flags.StringVar(&f.format, "format", "", "the `FORMAT`, jsonl or parquet (default: parquet if --out ends in .parquet, else jsonl)")
	cmdline.OutFlag(flags, &f.out)
	flags.StringArrayVar(&f.status, "status", []string{"completed"}, "items of this `STATUS`; again for each further one")
	flags.BoolVar(&f.blobs, "blobs", false, "with the bytes of blobs")
	flags.BoolVar(&f.noProvenance, "no-provenance", false, "without where the values come from (JSONL)")
	c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"jsonl", "parquet"}, cobra.ShellCompDirectiveNoFileComp))
	c.RegisterFlagCompletionFunc("status", cobra.FixedCompletions(statuses, cobra.ShellCompDirectiveNoFileComp))
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := f.check(); err != nil {
			return err
		}
		return failed("export", args[0], a.readLog(c.Context(), args[0], f.root, func(_ logkind.DatagenRef, _ *datagen.Log, v *datagen.View) error {
			return a.exportItems(c.Context(), v, &f)
		}))
	}
	return c
}

func (f *exportFlags) check() error {
	if f.format == "" {
		var err error
		if f.format, err = cli.FormatOf(f.out, "jsonl", "parquet"); err != nil {
			return err
		}
	}
	if f.format != "jsonl" && f.format != "parquet" {
		return cli.Usagef("--format %q: jsonl or parquet", f.format)
	}
	for _, s := range f.status {
		if !slices.Contains(statuses, s) {
			return cli.Usagef("--status %q: there are %s", s, strings.Join(statuses, ", "))
		}
	}
	return nil
}

func (a *app) exportItems(ctx context.Context, v *datagen.View, f *exportFlags) error {
	write, opts := export.JSONL, export.Options{NoProvenance: f.noProvenance}
	if f.format == "parquet" {
		write = export.Parquet
	}
	if f.blobs {
		opts.Blobs = v.Blob
	}
	var states []datagen.Status
	for _, s := range f.status {
		states = append(states, datagen.Status(s))
	}
	var stats export.Stats
	do := func(w io.Writer) (err error) {
		stats, err = write(ctx, w, export.Having(v.Folds(ctx), states...), opts)
		return err
	}
	if err := a.WriteOut(f.out, do); err != nil || f.out == "" {
		return err
	}
	a.Notef("exported %s with %s to %s", cli.Plural(stats.Items, "item"), cli.Plural(stats.Values, "value"), f.out)
	return nil
}
