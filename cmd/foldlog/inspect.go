package main

import (
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/cmd/foldlog/internal/cmdline"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/logkind"
)

func (a *app) inspectCmd() *cobra.Command {
	c := &cobra.Command{
		Use:     "inspect PATH [--json]",
		Short:   "Say what a log is and holds",
		Long:    "Say what a log is and holds: its kind and version, counts, writers, sizes and time span.",
		Example: "  foldlog inspect search.atj",
		Args:    cmdline.Operands("PATH"),
	}
	asJSON := cmdline.JSONFlag(c, "print one JSON object")
	c.RunE = func(c *cobra.Command, args []string) error {
		at, err := a.find(c.Context(), "inspect", args[0])
		if err != nil {
			return err
		}
		found, err := at.Kind.Inspect(c.Context(), at.Path)
		if err != nil {
			return cli.Failed("inspect", args[0], err)
		}
		found.Path = at.Name
		found.Normalize()
		if *asJSON {
			return cli.WriteJSON(a.Out(), found)
		}
		return a.printInspection(found)
	}
	return c
}

func (a *app) printInspection(found logkind.Inspection) error {
	if err := cli.WriteFields(a.Out(), inspectionFields(&found, a.Time())...); err != nil {
		return err
	}
	if len(found.Writers) == 0 {
		return nil
	}
	if _, err := a.Out().Write([]byte("\n")); err != nil {
		return err
	}
	t := cli.NewTable(cli.Column{Title: "WRITER"}, cli.Column{Title: "EVENTS", Align: cli.Right},
		cli.Column{Title: "SIZE", Align: cli.Right}, cli.Column{Title: "LAST EVENT"})
	t.Bold = a.Color()
	for _, w := range found.Writers {
		t.Row(w.Name, cli.Count(w.Events), cli.Size(w.Bytes), cli.Moment(a.Time(), w.LastMS))
	}
	return t.Write(a.Out())
}

// inspectionFields is the inspection as label and value for people.
func inspectionFields(i *logkind.Inspection, now time.Time) [][2]string {
	pairs := [][2]string{
		{"path", i.Path},
		{"kind", i.Kind},
		{"format", i.Format},
		{"state", i.State},
		{"created by", i.Program},
		{"size", cli.Size(i.Bytes) + " in " + cli.Plural(i.Files, "file")},
		{"events", cli.Count(i.Events)},
		{"first event", cli.Moment(now, i.FirstMS)},
		{"last event", cli.Moment(now, i.LastMS)},
	}
	for _, name := range slices.Sorted(maps.Keys(i.Counts)) {
		pairs = append(pairs, [2]string{name, cli.Count(i.Counts[name])})
	}
	for _, note := range i.Notes {
		pairs = append(pairs, [2]string{"note", note})
	}
	return pairs
}
