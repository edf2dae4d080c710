package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/cmd/foldlog/internal/cmdline"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/logkind"
)

func (a *app) lsCmd() *cobra.Command {
	c := &cobra.Command{
		Use:        "ls [ROOT] [--deep] [--json]",
		SuggestFor: []string{"list", "status"},
		Short:      "List every log under a root",
		Long: `List every log under a root with its kind, state and size, and what it holds: the
run of a stream and how it ended, the studies of a journal and their trials, the
events of a datagen log. The root is FOLDLOG_ROOT, or else the current directory, if
none is given; http://HOST is that of a server, http://HOST/DIRECTORY what is under it.

The trials of a journal are counted where that is soon done: up to 4 MiB on this
machine, and 256 KiB at a server. Of a larger one the operations are counted instead;
--deep reads any to its end.`,
		Example: "  foldlog ls experiments/\n  foldlog ls http://logs.example:7654",
		Args:    cmdline.Operands("[ROOT]"),
	}
	var opts logkind.SummarizeOptions
	c.Flags().BoolVar(&opts.Deep, "deep", false, "read every journal to its end, to count its trials")
	asJSON := cmdline.JSONFlag(c, "print one line of JSON for each log")
	c.RunE = func(c *cobra.Command, args []string) error {
		root := a.Root(args)
		if *asJSON {
			return a.List(c.Context(), root, opts, func(s logkind.Summary) error { return cli.WriteJSONLine(a.Out(), s) })
		}
		t := cli.NewTable(cli.Column{Title: "LOG"}, cli.Column{Title: "KIND"}, cli.Column{Title: "STATE"},
			cli.Column{Title: "SIZE", Align: cli.Right}, cli.Column{Title: "CHANGED"}, cli.Column{Title: "HOLDS"})
		t.Bold = a.Color()
		err := a.List(c.Context(), root, opts, func(s logkind.Summary) error {
			t.Row(s.Path, s.Kind, s.State, cli.Size(s.Bytes), a.Ago(s.ModifiedMS), s.Detail)
			return nil
		})
		if t.Len() == 0 {
			if err == nil {
				a.Notef("no logs under %s", root)
			}
			return err
		}
		return errors.Join(t.Write(a.Out()), err)
	}
	return c
}
