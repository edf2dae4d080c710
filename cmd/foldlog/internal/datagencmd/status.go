package datagencmd

import (
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/cmd/foldlog/internal/cmdline"
	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/datagen/pipeline"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/datagenview"
	"github.com/foldlog/foldlog/internal/logkind"
)

func (a *app) statusCmd() *cobra.Command {
	c := &cobra.Command{
		Use:        "status LOG [--json]",
		SuggestFor: []string{"show", "list", "ls"},
		Short:      "Count a log's items by status and step, with failures and writers",
		Long: `Count a log's items by status and step, roll failures up by step and type, and list
the writers. Items "behind" a step have done it last and are not at their end; behind
"input" are those of which nothing but the given fields is there yet.

A writer is alive, has ended, or is gone: silent, so that others take its items over.
What it has written is read and durable at once, and merged into the table later, by
runs as they go or by "datagen merge".`,
		Example: "  foldlog datagen status digits/v1",
		Args:    cmdline.Operands("LOG"),
	}
	root := rootFlag(c)
	asJSON := cmdline.JSONFlag(c, "print one JSON object")
	c.RunE = func(c *cobra.Command, args []string) error {
		return failed("status", args[0], a.readLog(c.Context(), args[0], *root, func(ref logkind.DatagenRef, l *datagen.Log, v *datagen.View) error {
			s, err := datagenview.Summarize(c.Context(), l, v)
			if err != nil {
				return err
			}
			s.Path, s.Pipeline, s.Experiment = ref.String(), ref.Pipeline, ref.Experiment
			if *asJSON {
				return cli.WriteJSON(a.Out(), s)
			}
			say := new(latestFailures)
			if len(s.Failures) > 0 {
				if say, err = failuresSay(c.Context(), v); err != nil {
					return err
				}
			}
			return cli.Buffered(a.Out(), func(w io.Writer) error { return a.printStatus(w, &s, say) })
		}))
	}
	return c
}

func (a *app) printStatus(w io.Writer, s *datagenview.Status, say *latestFailures) error {
	items := cli.Count(int64(s.Roots))
	if subs := s.Items - s.Roots; subs > 0 {
		items += fmt.Sprintf(", and %s", cli.Plural(int64(subs), "sub-item"))
	}
	suspects := ""
	if s.Suspects > 0 {
		suspects = cli.Plural(int64(s.Suspects), "item") + " whose events may contradict each other; see items --suspect, and verify"
	}
	waiting := ""
	if s.Upkeep.Unmerged > 0 {
		waiting = cli.Plural(s.Upkeep.Waiting, "event") + " to be merged into the table"
	}
	err := cli.WriteFields(w, [][2]string{
		{"log", cli.Safe(s.Path)}, {"events", cli.Count(s.Events)}, {"items", items}, {"status", s.States.String()}, {"suspect", suspects},
		{"table", fmt.Sprintf("version %d, %s in %s", s.Upkeep.Version, cli.Plural(s.Upkeep.Rows, "event"), cli.Plural(int64(s.Upkeep.Fragments), "fragment"))},
		{"waiting", waiting},
	}...)
	if err != nil {
		return err
	}
	if err := a.printStatusTables(w, s, say); err != nil {
		return err
	}
	return a.printWriters(w, s.Writers)
}

func (a *app) printStatusTables(w io.Writer, s *datagenview.Status, say *latestFailures) error {
	if len(s.Steps) > 0 {
		fmt.Fprintln(w)
		t := cli.NewTable(cli.Column{Title: "STEP"}, cli.Column{Title: "DONE", Align: cli.Right}, cli.Column{Title: "ITEMS BEHIND IT", Align: cli.Right})
		t.Bold = a.Color()
		for _, st := range s.Steps {
			if st.Name == pipeline.InputStep && st.Items == 0 {
				continue // no step of the pipeline's
			}
			t.Row(st.Name, cli.Count(st.Completed), cli.Count(int64(st.Items)))
		}
		if err := t.Write(w); err != nil {
			return err
		}
	}
	if len(s.Failures) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	t := cli.NewTable(cli.Column{Title: "FAILURE"}, cli.Column{Title: "STEP"}, cli.Column{Title: "TIMES", Align: cli.Right},
		cli.Column{Title: "ITEMS FAILED", Align: cli.Right}, cli.Column{Title: "LAST"}, cli.Column{Title: "WHICH SAID"})
	t.Bold = a.Color()
	for _, f := range s.Failures {
		t.Row(f.Type, f.Step, cli.Count(f.Events), cli.Count(int64(f.Items)), a.Ago(f.LastMS), say.kinds[failureKind{f.Step, f.Type}].text)
	}
	return t.Write(w)
}

func (a *app) printWriters(w io.Writer, writers []datagenview.Writer) error {
	if len(writers) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	t := cli.NewTable(cli.Column{Title: "WRITER"}, cli.Column{Title: "RUN"}, cli.Column{Title: "PROCESS"}, cli.Column{Title: "STATE"},
		cli.Column{Title: "TO BE MERGED", Align: cli.Right})
	t.Bold = a.Color()
	for _, x := range writers {
		process := ""
		if x.PID != 0 {
			process = strconv.Itoa(x.PID) + " on " + x.Host
		}
		state := "gone"
		switch {
		case x.Sealed:
			state = "ended"
		case x.Alive:
			state = "alive"
		}
		t.Row(cli.Shorten(x.Shard, 9), x.Run, process, state, cli.Count(x.Rows))
	}
	return t.Write(w)
}
