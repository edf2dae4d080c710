package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/cmd/foldlog/internal/cmdline"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/logkind"
)

func (a *app) catCmd() *cobra.Command {
	var opts logkind.CatOptions
	c := &cobra.Command{
		Use:   "cat PATH [--from N] [--blobs]",
		Short: "Print the committed events in order",
		Long: `Print the committed events in order, one JSON line each, byte for byte as the
log has them, after its header line if it has one. Lance tables and datagen logs have
an order by place only: rows of shards come before those that were merged into the
table, so the events of an item may not come in the order of their sequences.`,
		Example: "  foldlog cat search.atj | grep '\"kind\":\"set-values\"'\n  foldlog cat search.atj --from 1000",
		Args:    cmdline.Operands("PATH"),
	}
	c.Flags().BoolVar(&opts.Blobs, "blobs", false, "with the bytes of the blobs of a datagen log, in base64")
	c.Flags().Int64Var(&opts.From, "from", 0, "begin with event `N`, counted from 1, and leave the header out")
	c.RunE = func(c *cobra.Command, args []string) error {
		if c.Flags().Changed("from") && opts.From < 1 {
			return cli.Usagef("--from %d: events are counted from 1", opts.From)
		}
		at, err := a.find(c.Context(), "cat", args[0])
		if err != nil {
			return err
		}
		if opts.Blobs && at.Kind.Name() != logkind.DatagenLog {
			return cli.Usagef("--blobs: a %s has none", at.Kind.Name())
		}
		err = cli.Buffered(a.Out(), func(w io.Writer) error {
			return at.Kind.Cat(c.Context(), at.Path, w, opts)
		})
		return cli.Failed("cat", args[0], err)
	}
	return c
}
