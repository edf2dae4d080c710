package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/datagen/pipeline"
)

// counter counts how often each step of each item was executed.
type counter struct {
	mu    sync.Mutex
	times map[string]int
}

func (c *counter) count(call *pipeline.Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.times == nil {
		c.times = map[string]int{}
	}
	c.times[call.Item.ID+" "+call.Step.Instance]++
}

// everything is a pipeline with every kind of node, nested: a loop whose length
// depends on the item, a branch whose condition is false again behind it, maps in
// loops, a map whose sub-items are filtered, a step that fails at first, filters.
func everything(c *counter, flaky bool) *pipeline.Pipeline {
	add := func(name, field string, by int64) *pipeline.Step {
		return &pipeline.Step{Name: name, Run: func(_ context.Context, call *pipeline.Call) error {
			c.count(call)
			at, _ := call.Int(field)
			call.Set(field, datagen.IntValue(at+by))
			call.Append("log", datagen.StrValue(call.Step.Instance))
			return nil
		}}
	}
	failing := &pipeline.Step{Name: "flaky", Retry: pipeline.Retry{Attempts: 3, Backoff: time.Microsecond},
		Run: func(_ context.Context, call *pipeline.Call) error {
			c.count(call)
			if flaky && call.Try < 3 {
				return errors.New("not yet")
			}
			call.Set("blob", datagen.BlobValue([]byte(call.Item.ID)))
			return nil
		}}
	number := func(s *pipeline.State) int64 { n, _ := s.Int("number"); return n }
	return &pipeline.Pipeline{Steps: []pipeline.Node{
		add("first", "x", 1),
		&pipeline.Loop{Name: "refine", Max: 4,
			Until: func(s *pipeline.State) (bool, error) { x, err := s.Int("x"); return x > number(s)+1, err },
			Steps: []pipeline.Node{
				add("more", "x", 1),
				&pipeline.Branch{Name: "way", Cases: []pipeline.Case{
					{Name: "even", When: func(s *pipeline.State) (bool, error) { x, err := s.Int("x"); return x%2 == 0, err },
						Steps: []pipeline.Node{add("odd-now", "y", 1)}},
					{Steps: []pipeline.Node{}},
				}},
				&pipeline.Map{Name: "tiles", Over: parts(2), Steps: []pipeline.Node{add("tile", "z", 1)},
					Reduce: func(_ context.Context, call *pipeline.Call, subs []*datagen.Item) error {
						c.count(call)
						call.Set("tiles", datagen.IntValue(int64(len(subs))))
						return nil
					}},
			}},
		&pipeline.Filter{Name: "not-two", Keep: func(s *pipeline.State) (bool, error) { return number(s) != 2, nil }},
		failing,
		add("reset", "x", -100), // the loop's and the branch's conditions are others from here on
		&pipeline.Map{Name: "variants", Parallel: 2, Over: parts(3), Steps: []pipeline.Node{
			add("make", "v", 7),
			&pipeline.Loop{Name: "polish", Max: 2, Steps: []pipeline.Node{add("rub", "v", 1)}},
			&pipeline.Filter{Name: "not-last", Keep: func(s *pipeline.State) (bool, error) { n, err := s.Int("part"); return n != 2, err }},
			&pipeline.Map{Name: "deep", Over: parts(1), Steps: []pipeline.Node{add("leaf", "w", 1)}},
		}, Reduce: func(_ context.Context, call *pipeline.Call, subs []*datagen.Item) error {
			c.count(call)
			for _, sub := range subs {
				call.Append("kept", datagen.StrValue(sub.ID+" "+string(sub.Status)))
			}
			return nil
		}},
		&pipeline.Step{Name: "judge", Run: func(_ context.Context, call *pipeline.Call) error {
			c.count(call)
			if number(&call.State) == 1 {
				call.Filter()
			}
			return nil
		}},
		add("last", "x", 1),
	}}
}

func parts(n int64) func(context.Context, *pipeline.State) ([]pipeline.Part, error) {
	return func(context.Context, *pipeline.State) ([]pipeline.Part, error) {
		all := make([]pipeline.Part, n)
		for i := range all {
			all[i].Fields = []datagen.Change{datagen.Set("part", datagen.IntValue(int64(i)))}
		}
		return all, nil
	}
}

var keys = []string{"a", "b", "c", "d"}

func runAll(t *testing.T, l *memLog, c *counter, workers int) (pipeline.Report, error) {
	t.Helper()
	return pipeline.Run(t.Context(), l, everything(c, true), sources(keys...), pipeline.Options{Workers: workers})
}

// TestKilledAtEveryWriteEndsAsIfNothingHadHappened kills the log at each write in
// turn, and goes on until all is done. The last write before a death is lost, so
// that of each life one step at most runs again for each worker.
func TestKilledAtEveryWriteEndsAsIfNothingHadHappened(t *testing.T) {
	whole := newMemLog()
	var once counter
	report, err := runAll(t, whole, &once, 1)
	if err != nil {
		t.Fatal(err)
	}
	if report.Completed != 2 || report.Filtered != 2 || report.Failed != 0 {
		t.Fatalf("report %+v", report)
	}
	want, writes := whole.outcome(), whole.writes
	stride := 1
	if testing.Short() {
		stride = 1 + writes/10
	}
	for dieAt := 1; dieAt <= writes; dieAt += stride {
		l := newMemLog()
		l.revive(dieAt)
		var c counter
		if _, err := runAll(t, l, &c, 1); !errors.Is(err, errKilled) {
			t.Fatalf("killed at write %d: %v", dieAt, err)
		}
		l.revive(0)
		if _, err := runAll(t, l, &c, 1); err != nil {
			t.Fatalf("after a death at write %d: %v", dieAt, err)
		}
		if diff := cmp.Diff(want, l.outcome()); diff != "" {
			t.Fatalf("after a death at write %d (-uninterrupted +resumed):\n%s", dieAt, diff)
		}
		more := 0
		for key, n := range c.times {
			more += n - once.times[key]
		}
		// A flaky step that dies has its attempts anew.
		if more > 3 || len(l.twice()) > 0 {
			t.Fatalf("after a death at write %d: %d executions too many, completed twice: %v", dieAt, more, l.twice())
		}
	}
}

// TestDyingAgainAndAgain dies after every few writes, with several workers.
func TestDyingAgainAndAgain(t *testing.T) {
	whole := newMemLog()
	if _, err := runAll(t, whole, new(counter), 1); err != nil {
		t.Fatal(err)
	}
	most := 12
	if testing.Short() {
		most = 3
	}
	for every := 2; every < most; every++ {
		l := newMemLog()
		lives := 0
		for ; ; lives++ {
			l.revive(every + lives%3)
			_, err := runAll(t, l, new(counter), 3)
			if err == nil {
				break
			}
			if !errors.Is(err, errKilled) || lives > 2000 {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(whole.outcome(), l.outcome()); diff != "" {
			t.Fatalf("dying after %d writes (-uninterrupted +resumed):\n%s", every, diff)
		}
		if lives == 0 || len(l.twice()) > 0 {
			t.Errorf("%d deaths, completed twice: %v", lives, l.twice())
		}
	}
}

func TestNothingRunsAgainOnceAllIsDone(t *testing.T) {
	l := newMemLog()
	if _, err := runAll(t, l, new(counter), 2); err != nil {
		t.Fatal(err)
	}
	var c counter
	writes := l.writes
	report, err := runAll(t, l, &c, 2)
	if err != nil || len(c.times) > 0 || l.writes != writes || report != (pipeline.Report{}) {
		t.Errorf("ran %v, wrote %d more, reported %+v: %v", c.times, l.writes-writes, report, err)
	}
}

// TestDrainedAnywhereAndResumed closes drain after each event in turn.
func TestDrainedAnywhereAndResumed(t *testing.T) {
	whole := newMemLog()
	var once counter
	events := 0
	_, err := pipeline.Run(t.Context(), whole, everything(&once, false), sources(keys...), pipeline.Options{
		Workers: 2, OnEvent: func(pipeline.Event) { events++ }})
	if err != nil {
		t.Fatal(err)
	}
	points := 60
	if testing.Short() {
		points = 5
	}
	for stopAt := 1; stopAt <= events; stopAt += 1 + events/points {
		t.Run(fmt.Sprint(stopAt), func(t *testing.T) {
			l := newMemLog()
			var c counter
			drain, n := make(chan struct{}), 0
			opts := pipeline.Options{Workers: 2, Drain: drain, OnEvent: func(pipeline.Event) {
				if n++; n == stopAt {
					close(drain)
				}
			}}
			if _, err := pipeline.Run(t.Context(), l, everything(&c, false), sources(keys...), opts); err != nil {
				t.Fatal(err)
			}
			if _, err := pipeline.Run(t.Context(), l, everything(&c, false), sources(keys...), pipeline.Options{Workers: 2}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(whole.outcome(), l.outcome()); diff != "" {
				t.Errorf("outcome (-uninterrupted +resumed):\n%s", diff)
			}
			if diff := cmp.Diff(once.times, c.times); diff != "" {
				t.Errorf("executions (-uninterrupted +resumed):\n%s", diff)
			}
		})
	}
}
