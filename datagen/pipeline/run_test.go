package pipeline_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/datagen/pipeline"
)

func set(name string) *pipeline.Step {
	return &pipeline.Step{Name: name, Run: func(_ context.Context, c *pipeline.Call) error {
		c.Set(name, datagen.IntValue(c.Iteration))
		return nil
	}}
}

func failing(name string, err error, attempts int) *pipeline.Step {
	return &pipeline.Step{Name: name, Retry: pipeline.Retry{Attempts: attempts, Backoff: time.Microsecond},
		Run: func(context.Context, *pipeline.Call) error { return err }}
}

func mustRun(t *testing.T, l *memLog, keys string, nodes ...pipeline.Node) pipeline.Report {
	t.Helper()
	report, err := pipeline.Run(t.Context(), l, &pipeline.Pipeline{Steps: nodes}, sources(strings.Fields(keys)...), pipeline.Options{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func instances(item *datagen.Item) (names []string) {
	for _, s := range item.Steps {
		names = append(names, s.Instance)
	}
	return names
}

func TestInstancesArePathsWithIterations(t *testing.T) {
	l := newMemLog()
	mustRun(t, l, "a",
		&pipeline.Loop{Name: "outer", Max: 2, Steps: []pipeline.Node{
			&pipeline.Loop{Name: "inner", Max: 2, Steps: []pipeline.Node{set("s")}},
			&pipeline.Branch{Name: "b", Cases: []pipeline.Case{{Name: "yes", Steps: []pipeline.Node{set("s")}}}},
			&pipeline.Map{Name: "m", Over: parts(1), Steps: []pipeline.Node{set("s")}},
		}})
	item := l.fold("a")
	want := []string{"input", "outer#0/inner#0/s", "outer#0/inner#1/s", "outer#0/b=yes/s", "outer#0/m",
		"outer#1/inner#0/s", "outer#1/inner#1/s", "outer#1/b=yes/s", "outer#1/m"}
	if diff := cmp.Diff(want, instances(item)); diff != "" {
		t.Errorf("instances (-want +got):\n%s", diff)
	}
	var rounds []int64
	for _, s := range item.Steps[1:] {
		rounds = append(rounds, *s.Iteration)
	}
	if want := []int64{0, 1, 0, 0, 0, 1, 1, 1}; !slices.Equal(rounds, want) {
		t.Errorf("iterations %v, want %v", rounds, want)
	}
	for _, id := range []string{"a/outer#0~m:0", "a/outer#1~m:0"} {
		if sub := l.fold(id); sub == nil || sub.Parent != "a" || sub.Root != "a" || sub.Status != datagen.StatusCompleted {
			t.Errorf("sub-item %s is %+v", id, sub)
		}
	}
}

func TestAStepIsTriedAndThenTheItemStaysFailed(t *testing.T) {
	l := newMemLog()
	report := mustRun(t, l, "a b", set("first"), failing("bad", errors.New("no luck"), 3), set("last"))
	if want := (pipeline.Report{Failed: 2, Steps: 2, Retries: 4}); report != want {
		t.Errorf("report %+v, want %+v", report, want)
	}
	item := l.fold("a")
	if item.Status != datagen.StatusFailed || len(item.Failures) != 3 || item.Attempt != 2 {
		t.Errorf("item is %s after %d failures, attempt %d", item.Status, len(item.Failures), item.Attempt)
	}
	if f := item.Failure(); f.Type != "error" || string(f.Dump) != `{"message":"no luck"}` || f.From.Step.Name != "bad" {
		t.Errorf("failure %+v", f)
	}
	// The next run goes on where it failed.
	report = mustRun(t, l, "a b", set("first"), set("bad"), set("last"))
	if want := (pipeline.Report{Completed: 2, Steps: 4}); report != want {
		t.Errorf("report of the next run %+v, want %+v", report, want)
	}
}

func TestAPanicFailsTheItemWithItsStack(t *testing.T) {
	l := newMemLog()
	report := mustRun(t, l, "a", &pipeline.Step{Name: "bad", Run: func(context.Context, *pipeline.Call) error { panic("ouch") }})
	f := l.fold("a").Failure()
	if report.Failed != 1 || f.Type != "panic" || !strings.Contains(string(f.Dump), "ouch") || !strings.Contains(f.Traceback, "run_test.go") {
		t.Errorf("%+v: %+v", report, f)
	}
}

func TestAConditionThatFailsFailsTheItem(t *testing.T) {
	wrong := func(s *pipeline.State) (bool, error) { return s.Bool("gone") }
	for name, node := range map[string]pipeline.Node{
		"filter": &pipeline.Filter{Name: "n", Keep: wrong},
		"loop":   &pipeline.Loop{Name: "n", Until: wrong, Steps: []pipeline.Node{set("s")}},
		"branch": &pipeline.Branch{Name: "n", Cases: []pipeline.Case{{When: wrong}}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newMemLog()
			report := mustRun(t, l, "a", node)
			f := l.fold("a").Failure()
			if report.Failed != 1 || !strings.Contains(string(f.Dump), `field \"gone\" is not set`) || f.From.Step.Name != "n" {
				t.Errorf("%+v: %+v", report, f)
			}
		})
	}
}

func TestAFailedSubItemFailsTheItemUnlessItKeepsGoing(t *testing.T) {
	for _, keep := range []bool{false, true} {
		l := newMemLog()
		var got []datagen.Status
		m := &pipeline.Map{Name: "m", Over: parts(3), KeepGoing: keep, Parallel: 1, Steps: []pipeline.Node{
			&pipeline.Step{Name: "s", Run: func(_ context.Context, c *pipeline.Call) error {
				if n, _ := c.Int("part"); n == 1 {
					return errors.New("no")
				}
				return nil
			}}}, Reduce: func(_ context.Context, _ *pipeline.Call, subs []*datagen.Item) error {
			for _, s := range subs {
				got = append(got, s.Status)
			}
			return nil
		}}
		report := mustRun(t, l, "a", m)
		last := l.fold("a/m:2")
		if !keep && (report.Failed != 1 || l.fold("a").Status != datagen.StatusFailed || last != nil) {
			t.Errorf("report %+v, the item is %s, its last sub-item %v", report, l.fold("a").Status, last)
		}
		want := []datagen.Status{datagen.StatusCompleted, datagen.StatusFailed, datagen.StatusCompleted}
		if keep && (report.Completed != 1 || !slices.Equal(got, want)) {
			t.Errorf("report %+v, sub-items %v", report, got)
		}
	}
}

func TestAnItemOfAnotherPipelineIsLeftAlone(t *testing.T) {
	for name, nodes := range map[string][]pipeline.Node{
		"a step is gone":        {set("one"), failing("three", errors.New("no"), 1)},
		"a step was put before": {set("new"), set("one"), set("two"), failing("three", errors.New("no"), 1)},
		"two changed places":    {set("two"), set("one"), failing("three", errors.New("no"), 1)},
		"it ends early":         {set("one")},
	} {
		t.Run(name, func(t *testing.T) {
			l := newMemLog()
			mustRun(t, l, "a", set("one"), set("two"), failing("three", errors.New("no"), 1))
			before := l.writes
			var refused []pipeline.Event
			report, err := pipeline.Run(t.Context(), l, &pipeline.Pipeline{Steps: nodes}, sources("a", "b"), pipeline.Options{
				Workers: 1, OnEvent: func(e pipeline.Event) {
					if e.Kind == pipeline.Refused {
						refused = append(refused, e)
					}
				}})
			var changed *pipeline.ChangedError
			if err != nil || report.Refused != 1 || len(refused) != 1 || !errors.As(refused[0].Err, &changed) || changed.Item != "a" {
				t.Fatalf("%+v, %v, %v", report, refused, err)
			}
			if before == l.writes {
				t.Errorf("the other item was not worked on")
			}
			if got := instances(l.fold("a")); !slices.Equal(got, []string{"input", "one", "two"}) {
				t.Errorf("steps of the refused item: %v", got)
			}
		})
	}
	// Steps that come after what was done may change.
	l := newMemLog()
	mustRun(t, l, "a", set("one"), failing("two", errors.New("no"), 1))
	if report := mustRun(t, l, "a", set("one"), set("other"), set("more")); report.Completed != 1 {
		t.Errorf("report %+v", report)
	}
}

func TestTheEndOfTheContextStopsStepsAndRecordsNothing(t *testing.T) {
	l := newMemLog()
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	wait := &pipeline.Step{Name: "wait", Run: func(ctx context.Context, _ *pipeline.Call) error {
		cancel(gone)
		<-ctx.Done()
		return errors.New("interrupted")
	}}
	report, err := pipeline.Run(ctx, l, &pipeline.Pipeline{Steps: []pipeline.Node{wait}}, sources("a", "b", "c"), pipeline.Options{Workers: 1})
	if !errors.Is(err, gone) && !errors.Is(err, context.Canceled) || report.Left != 1 || report.Failed != 0 {
		t.Errorf("%+v, %v", report, err)
	}
	if f := l.fold("a").Failures; len(f) > 0 {
		t.Errorf("it is recorded as %+v", f)
	}
}

func TestWorkersBoundTheStepsThatRun(t *testing.T) {
	l := newMemLog()
	running := make(chan struct{}, 3)
	busy := &pipeline.Step{Name: "busy", Run: func(context.Context, *pipeline.Call) error {
		select {
		case running <- struct{}{}:
		default:
			return errors.New("more than three at once")
		}
		time.Sleep(time.Millisecond)
		<-running
		return nil
	}}
	m := &pipeline.Map{Name: "m", Over: parts(6), Steps: []pipeline.Node{busy}}
	p := &pipeline.Pipeline{Steps: []pipeline.Node{m}}
	report, err := pipeline.Run(t.Context(), l, p, sources("a", "b", "c", "d"), pipeline.Options{Workers: 3})
	if err != nil || report.Completed != 4 {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestWrongPipelinesAreRefused(t *testing.T) {
	one := []pipeline.Node{set("s")}
	yes := func(*pipeline.State) (bool, error) { return true, nil }
	for want, nodes := range map[string][]pipeline.Node{
		"check pipeline: it has no steps":                     nil,
		`check pipeline: a/b: name "a/b"`:                     {set("a/b")},
		"check pipeline: s: the name stands twice":            {set("s"), set("s")},
		"check pipeline: input: the name is that":             {set("input")},
		"check pipeline: l: the loop would never end":         {&pipeline.Loop{Name: "l", Steps: one}},
		"check pipeline: l: the loop has no steps":            {&pipeline.Loop{Name: "l", Until: yes}},
		"check pipeline: l/s: it has nothing to run":          {&pipeline.Loop{Name: "l", Max: 1, Steps: []pipeline.Node{&pipeline.Step{Name: "s"}}}},
		"check pipeline: f: it has no condition":              {&pipeline.Filter{Name: "f"}},
		"check pipeline: m: it does not say over what":        {&pipeline.Map{Name: "m", Steps: one}},
		"check pipeline: b: the case \"1\" stands twice":      {&pipeline.Branch{Name: "b", Cases: []pipeline.Case{{Name: "1"}, {}}}},
		"check pipeline: s: attempts and pauses must not be ": {failing("s", nil, -1)},
		"check pipeline: a step is nil":                       {nil},
	} {
		_, err := pipeline.Run(t.Context(), newMemLog(), &pipeline.Pipeline{Steps: nodes}, sources("a"), pipeline.Options{})
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestErrorsOfTheSourcesEndTheRun(t *testing.T) {
	broken := errors.New("line 2 is broken")
	l := newMemLog()
	report, err := pipeline.Run(t.Context(), l, &pipeline.Pipeline{Steps: []pipeline.Node{set("s")}},
		func(yield func(pipeline.Source, error) bool) {
			_ = yield(pipeline.Source{Key: "a"}, nil) && yield(pipeline.Source{}, broken)
		}, pipeline.Options{Workers: 1})
	if !errors.Is(err, broken) || report != (pipeline.Report{}) {
		t.Errorf("%+v, %v", report, err)
	}
}
