package main

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/cmd/foldlog/internal/cmdline"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/logkind"
)

// defaultTail is how many events tail begins with.
const defaultTail = 10

func (a *app) tailCmd() *cobra.Command {
	var opts logkind.TailOptions
	c := &cobra.Command{
		Use:   "tail PATH [-f] [-n N]",
		Short: "Print the last events, and follow a log that is being written",
		Long: `Print the last committed events, one JSON line each. With -f wait for more and
print each event once, in order, until interrupted. A log at a server is looked at
twice a second; a server that is away is waited for.`,
		Example: "  foldlog tail -f search.atj",
		Args:    cmdline.Operands("PATH"),
	}
	c.Flags().BoolVarP(&opts.Follow, "follow", "f", false, "wait for more events")
	c.Flags().Int64VarP(&opts.Last, "last", "n", defaultTail, "begin with the last `N` events")
	c.RunE = func(c *cobra.Command, args []string) error {
		if opts.Last < 0 {
			return cli.Usagef("--last %d: must not be negative", opts.Last)
		}
		at, err := a.find(c.Context(), "tail", args[0])
		if err != nil {
			return err
		}
		if at.Server != nil && opts.Follow {
			at.Server.Patience = logkind.Endless
		}
		err = a.tail(c.Context(), at.Kind, at.Path, opts)
		if opts.Follow && errors.Is(err, context.Canceled) {
			return nil // an interrupt is the only way to end it
		}
		return cli.Failed("tail", args[0], err)
	}
	return c
}

// tail does not keep events back while it follows.
func (a *app) tail(ctx context.Context, kind logkind.Kind, log string, opts logkind.TailOptions) error {
	if opts.Follow {
		return kind.Tail(ctx, log, a.Out(), opts)
	}
	return cli.Buffered(a.Out(), func(w io.Writer) error {
		return kind.Tail(ctx, log, w, opts)
	})
}
