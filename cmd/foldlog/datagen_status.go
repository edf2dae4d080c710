package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/internal/cli"
)

func (a *app) datagenStatusCmd() *cobra.Command {
	c := &cobra.Command{
		Use:        "status LOG [--json]",
		SuggestFor: []string{"show", "list", "ls"},
		Short:      "Count a log's items by status and step, with failures and writers",
		Long:       "Count a log's items by status and step, roll failures up by step and type, and\nlist the writers and what there is to maintain.",
		Example:    "  foldlog datagen status digits/v1",
		Args:       operands("LOG"),
	}
	root := rootFlag(c)
	asJSON := jsonFlag(c, "print one JSON object")
	c.RunE = func(c *cobra.Command, args []string) error {
		return datagenFailed("status", args[0], a.readLog(c.Context(), args[0], *root, func(ref logRef, l *datagen.Log, v *datagen.View) error {
			s, err := summarizeLog(c.Context(), ref, l, v)
			if err != nil {
				return err
			}
			if *asJSON {
				return cli.WriteJSON(a.Out(), s)
			}
			return cli.Buffered(a.Out(), func(w io.Writer) error { return a.printStatus(w, &s) })
		}))
	}
	return c
}

// datagenStatus is the output of `foldlog datagen status --json`.
type datagenStatus struct {
	Path       string            `json:"path"`
	Pipeline   string            `json:"pipeline"`
	Experiment string            `json:"experiment"`
	Events     int64             `json:"events"`
	Items      int               `json:"items"` // sub-items too
	Roots      int               `json:"roots"`
	Suspects   int               `json:"suspects"` // items whose events may contradict each other
	States     datagenStates     `json:"states"`
	Steps      []stepCounts      `json:"steps"`
	Failures   []failureRoll     `json:"failures"`
	Writers    []datagenWriter   `json:"writers"`
	Upkeep     datagenUpkeepView `json:"maintenance"`
}

// datagenStates counts items by their status.
type datagenStates struct {
	Pending   int `json:"pending"`
	Running   int `json:"running"`
	Completed int `json:"completed"`
	Filtered  int `json:"filtered"`
	Failed    int `json:"failed"`
}

// stepCounts counts the completions of a step.
type stepCounts struct {
	Name      string `json:"name"`
	Index     int64  `json:"index"`
	Completed int64  `json:"completed"`
	Items     int    `json:"items"` // that stand behind it and have not ended
}

// failureRoll counts the failures of one type in one step.
type failureRoll struct {
	Step    string `json:"step"` // "" outside of steps
	Type    string `json:"type"`
	Events  int64  `json:"events"`
	Items   int    `json:"items"` // that stand at such a failure
	FirstMS int64  `json:"first_ms"`
	LastMS  int64  `json:"last_ms"`
}

// datagenWriter is a writer whose shard is still there.
type datagenWriter struct {
	Shard    string `json:"shard"`
	Run      string `json:"run"`
	Host     string `json:"host"`
	PID      int    `json:"pid"`
	Alive    bool   `json:"alive"`
	Sealed   bool   `json:"sealed"`
	Unmerged int    `json:"unmerged"` // generations
	Rows     int64  `json:"rows"`     // in them
}

// datagenUpkeepView says what there is to maintain.
type datagenUpkeepView struct {
	Version   uint64 `json:"version"` // of the table
	Fragments int    `json:"fragments"`
	Rows      int64  `json:"rows"`      // in the table
	Unindexed int    `json:"unindexed"` // fragments that an index does not cover
	Unmerged  int64  `json:"unmerged"`  // generations that the table does not have
	Waiting   int64  `json:"waiting"`   // rows in them
}

func summarizeLog(ctx context.Context, ref logRef, l *datagen.Log, v *datagen.View) (datagenStatus, error) {
	s := datagenStatus{Path: ref.String(), Pipeline: ref.pipeline, Experiment: ref.experiment, Steps: []stepCounts{}, Failures: []failureRoll{}, Writers: []datagenWriter{}}
	o, err := v.Overview(ctx)
	if err != nil {
		return s, err
	}
	s.Events, s.Items, s.Roots, s.Suspects = o.Events, o.Items, o.Roots, o.Suspects
	s.States = datagenStates(o.Status)
	for _, st := range o.Steps {
		s.Steps = append(s.Steps, stepCounts(st))
	}
	for _, f := range o.Failures {
		s.Failures = append(s.Failures, failureRoll{f.Step, f.Type, f.Events, f.Items, millis(f.First), millis(f.Last)})
	}
	writers, err := l.Writers(ctx)
	if err != nil {
		return s, err
	}
	for _, w := range writers {
		s.Writers = append(s.Writers, datagenWriter{w.Shard.String(), w.Run, w.Host, w.PID, w.Alive, w.Sealed, w.Unmerged, w.Rows})
	}
	s.Upkeep, err = upkeepOf(ctx, l)
	return s, err
}

func upkeepOf(ctx context.Context, l *datagen.Log) (u datagenUpkeepView, err error) {
	base, err := l.Table().Base(ctx)
	if err != nil {
		return u, err
	}
	shards, err := l.Table().Shards(ctx)
	if err != nil {
		return u, err
	}
	u = datagenUpkeepView{Version: base.Version(), Fragments: len(base.Fragments()), Rows: base.Rows()}
	u.Waiting, u.Unmerged = unmerged(shards)
	for _, x := range base.Indexes() {
		u.Unindexed = max(u.Unindexed, x.Unindexed)
	}
	return u, nil
}

// String is the states for people, those that are there.
func (s datagenStates) String() string {
	var parts []string
	for _, p := range []struct {
		n    int
		word string
	}{{s.Completed, "completed"}, {s.Filtered, "filtered"}, {s.Failed, "failed"}, {s.Running, "running"}, {s.Pending, "pending"}} {
		if p.n > 0 {
			parts = append(parts, cli.Count(int64(p.n))+" "+p.word)
		}
	}
	return strings.Join(parts, ", ")
}

func (a *app) printStatus(w io.Writer, s *datagenStatus) error {
	items := cli.Count(int64(s.Roots))
	if subs := s.Items - s.Roots; subs > 0 {
		items += fmt.Sprintf(", and %s", plural(int64(subs), "sub-item"))
	}
	suspects := ""
	if s.Suspects > 0 {
		suspects = plural(int64(s.Suspects), "item") + " whose events may contradict each other; see items --suspect, and verify"
	}
	waiting := ""
	if s.Upkeep.Unmerged > 0 {
		waiting = fmt.Sprintf("%s in %s to be merged into the table", plural(s.Upkeep.Waiting, "event"), plural(s.Upkeep.Unmerged, "generation"))
	}
	err := cli.WriteFields(w, [][2]string{
		{"log", cli.Safe(s.Path)}, {"events", cli.Count(s.Events)}, {"items", items}, {"status", s.States.String()}, {"suspect", suspects},
		{"table", fmt.Sprintf("version %d, %s in %s", s.Upkeep.Version, plural(s.Upkeep.Rows, "event"), plural(int64(s.Upkeep.Fragments), "fragment"))},
		{"waiting", waiting},
	}...)
	if err != nil {
		return err
	}
	if err := a.printStatusTables(w, s); err != nil {
		return err
	}
	return a.printWriters(w, s.Writers)
}

func (a *app) printStatusTables(w io.Writer, s *datagenStatus) error {
	if len(s.Steps) > 0 {
		fmt.Fprintln(w)
		t := cli.NewTable(cli.Column{Title: "STEP"}, cli.Column{Title: "DONE", Align: cli.Right}, cli.Column{Title: "ITEMS BEHIND IT", Align: cli.Right})
		t.Bold = a.Color()
		for _, st := range s.Steps {
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
		cli.Column{Title: "ITEMS FAILED", Align: cli.Right}, cli.Column{Title: "LAST"})
	t.Bold = a.Color()
	for _, f := range s.Failures {
		t.Row(f.Type, f.Step, cli.Count(f.Events), cli.Count(int64(f.Items)), a.age(f.LastMS))
	}
	return t.Write(w)
}

func (a *app) printWriters(w io.Writer, writers []datagenWriter) error {
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
			state = "sealed"
		case x.Alive:
			state = "alive"
		}
		t.Row(shorten(x.Shard, 9), x.Run, process, state, cli.Count(x.Rows))
	}
	return t.Write(w)
}
