package datagenview

import (
	"context"
	"strings"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/serde"
	"github.com/foldlog/foldlog/lance/memwal"
)

// Status is the output of `foldlog datagen status --json`.
type Status struct {
	Path       string        `json:"path"`
	Pipeline   string        `json:"pipeline"`
	Experiment string        `json:"experiment"`
	Events     int64         `json:"events"`
	Items      int           `json:"items"` // sub-items too
	Roots      int           `json:"roots"`
	Suspects   int           `json:"suspects"` // items whose events may contradict each other
	States     States        `json:"states"`
	Steps      []StepCounts  `json:"steps"`
	Failures   []FailureRoll `json:"failures"`
	Writers    []Writer      `json:"writers"`
	Upkeep     Upkeep        `json:"maintenance"`
}

// States counts items by their status.
type States struct {
	Pending   int `json:"pending"`
	Running   int `json:"running"`
	Completed int `json:"completed"`
	Filtered  int `json:"filtered"`
	Failed    int `json:"failed"`
}

// StepCounts counts the completions of a step.
type StepCounts struct {
	Name      string `json:"name"`
	Index     int64  `json:"index"`
	Completed int64  `json:"completed"`
	Items     int    `json:"items"` // that stand behind it and have not ended
}

// FailureRoll counts the failures of one type in one step.
type FailureRoll struct {
	Step    string `json:"step"` // "" outside of steps
	Type    string `json:"type"`
	Events  int64  `json:"events"`
	Items   int    `json:"items"` // that stand at such a failure
	FirstMS int64  `json:"first_ms"`
	LastMS  int64  `json:"last_ms"`
}

// Writer is a writer whose shard is still there.
type Writer struct {
	Shard    string `json:"shard"`
	Run      string `json:"run"`
	Host     string `json:"host"`
	PID      int    `json:"pid"`
	Alive    bool   `json:"alive"`
	Sealed   bool   `json:"sealed"`
	Unmerged int    `json:"unmerged"` // generations
	Rows     int64  `json:"rows"`     // in them
}

// Upkeep says what there is to maintain.
type Upkeep struct {
	Version   uint64 `json:"version"` // of the table
	Fragments int    `json:"fragments"`
	Rows      int64  `json:"rows"`      // in the table
	Unindexed int    `json:"unindexed"` // fragments that an index does not cover
	Unmerged  int64  `json:"unmerged"`  // generations that the table does not have
	Waiting   int64  `json:"waiting"`   // rows in them
}

// Summarize tells what a log holds at a view of it, but not where it lies.
func Summarize(ctx context.Context, l *datagen.Log, v *datagen.View) (Status, error) {
	o, err := v.Overview(ctx)
	if err != nil {
		return Status{}, err
	}
	return StatusOf(ctx, l, o)
}

// StatusOf is Summarize for a view whose overview is there.
func StatusOf(ctx context.Context, l *datagen.Log, o datagen.Overview) (Status, error) {
	s := Status{Steps: []StepCounts{}, Failures: []FailureRoll{}, Writers: []Writer{}}
	s.Events, s.Items, s.Roots, s.Suspects = o.Events, o.Items, o.Roots, o.Suspects
	s.States = States(o.Status)
	for _, st := range o.Steps {
		s.Steps = append(s.Steps, StepCounts(st))
	}
	for _, f := range o.Failures {
		s.Failures = append(s.Failures, FailureRoll{f.Step, f.Type, f.Events, f.Items, serde.Millis(f.First), serde.Millis(f.Last)})
	}
	writers, err := l.Writers(ctx)
	if err != nil {
		return s, err
	}
	for _, w := range writers {
		s.Writers = append(s.Writers, Writer{w.Shard.String(), w.Run, w.Host, w.PID, w.Alive, w.Sealed, w.Unmerged, w.Rows})
	}
	s.Upkeep, err = upkeepOf(ctx, l)
	return s, err
}

func upkeepOf(ctx context.Context, l *datagen.Log) (u Upkeep, err error) {
	base, err := l.Table().Base(ctx)
	if err != nil {
		return u, err
	}
	shards, err := l.Table().Shards(ctx)
	if err != nil {
		return u, err
	}
	u = Upkeep{Version: base.Version(), Fragments: len(base.Fragments()), Rows: base.Rows()}
	u.Waiting, u.Unmerged = memwal.Unmerged(shards)
	for _, x := range base.Indexes() {
		u.Unindexed = max(u.Unindexed, x.Unindexed)
	}
	return u, nil
}

// String is the states for people, those that are there.
func (s States) String() string {
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
