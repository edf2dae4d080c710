package datagen

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// at makes an event of item "i" by a short line: sequence, checkpoint, writer epoch.
func at(seq int64, checkpoint, epoch string, kind Kind) Event {
	e := Event{ID: fmt.Sprintf("%s.%s.%d", checkpoint, epoch, seq), Item: "i", Root: "i", Seq: seq, Checkpoint: checkpoint, Kind: kind,
		Run: "r", Epoch: epoch, Time: time.Unix(seq, 0).UTC(), Schema: 1}
	switch kind {
	case StepCompleted:
		e.Step = &Step{Name: "s", Instance: "s-" + checkpoint}
	case StepFailed:
		e.Failure = &Failure{Type: "ValueError"}
	case ItemEnded:
		e.End = EndCompleted
	}
	return e
}

func setting(seq int64, checkpoint, epoch, name string, v int64) Event {
	e := at(seq, checkpoint, epoch, FieldSet)
	e.Step = &Step{Name: "s", Instance: "s-" + checkpoint}
	e.Field = &Field{Name: name, Type: "int", Codec: 1, Value: Value{Kind: Int, Int: v}}
	return e
}

func appending(seq int64, checkpoint, epoch, name string, v int64) Event {
	e := setting(seq, checkpoint, epoch, name, v)
	e.Kind = FieldAppend
	return e
}

func with(e Event, change func(*Event)) Event {
	change(&e)
	return e
}

// shown is an item's fields, steps, status and faults as one line.
func shown(it *Item) string {
	var b strings.Builder
	for _, f := range it.Fields {
		fmt.Fprintf(&b, "%s=", f.Name)
		for i, v := range f.Values {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprint(&b, v.Int)
		}
		b.WriteByte(' ')
	}
	for _, s := range it.Steps {
		fmt.Fprintf(&b, "%s ", s.Instance)
	}
	b.WriteString(string(it.Status))
	for _, f := range it.Faults {
		fmt.Fprintf(&b, "; %d: %s", f.Seq, f.What)
	}
	return b.String()
}

func TestFaultsAreToldAndTheRestIsFolded(t *testing.T) {
	created := at(0, "c0", "A", ItemCreated)
	step := func(seq int64, c, epoch string) Event { return at(seq, c, epoch, StepCompleted) }
	for _, c := range []struct {
		name   string
		events []Event
		want   string
	}{
		{"nothing is wrong", []Event{created, setting(1, "c1", "A", "x", 1), step(2, "c1", "A")}, "x=1 s-c1 running"},
		{"two writers at one sequence", []Event{created, setting(1, "c1", "A", "x", 1), step(2, "c1", "A"), setting(2, "d", "B", "x", 2), step(3, "d", "B"), setting(4, "e", "B", "y", 3), step(5, "e", "B")},
			`y=3 s-e running; 2: two events at one sequence, by writer epochs "A" and "B", of which one was not fenced`},
		{"one identity, two contents", []Event{created, setting(1, "c1", "A", "x", 1), with(setting(1, "c1", "A", "x", 2), func(e *Event) { e.ID = "c1.A.1" }), step(2, "c1", "A")},
			`running; 1: two events have this identity, with different content; 1: two events have this identity, with different content`},
		{"no creation", []Event{setting(1, "c1", "A", "x", 1), step(2, "c1", "A"), step(3, "c2", "A")},
			`x=1 s-c1 s-c2 running; 1: there is no ITEM_CREATED before`},
		{"the root changes", []Event{created, with(setting(1, "c1", "A", "x", 1), func(e *Event) { e.Root = "other" }), step(2, "c1", "A"), step(3, "c2", "A")},
			`s-c2 running; 1: root "other" and parent "", which were "i" and ""`},
		{"an event of another item", []Event{created, with(setting(1, "c1", "A", "x", 1), func(e *Event) { e.Item = "j" }), step(2, "c1", "A")},
			`running; 1: the event is of item "j"`},
		{"a value is appended to what was set", []Event{created, setting(1, "c1", "A", "x", 1), step(2, "c1", "A"), appending(3, "c2", "A", "x", 2), setting(4, "c2", "A", "y", 2), step(5, "c2", "A"), appending(6, "c3", "A", "z", 4), step(7, "c3", "A")},
			`x=1 z=4 s-c1 s-c3 running; 3: a value is appended to field "x", which was set`},
		{"a value is set after others were appended", []Event{created, appending(1, "c1", "A", "x", 1), appending(2, "c1", "A", "x", 2), step(3, "c1", "A"), setting(4, "c2", "A", "x", 3), step(5, "c2", "A")},
			`x=3 s-c1 s-c2 running`},
		{"something after the end", []Event{created, at(1, "c1", "A", ItemEnded), setting(2, "c2", "A", "x", 1), step(3, "c2", "A")},
			`completed; 2: FIELD_SET after the item ended; 3: STEP_COMPLETED after the item ended`},
		{"two ends", []Event{created, at(1, "c1", "A", ItemEnded), at(2, "c2", "A", ItemEnded)},
			`completed; 2: TERMINAL after the item ended`},
		{"created again before the end", []Event{created, step(1, "c1", "A"), at(2, "c2", "A", ItemCreated), step(3, "c3", "A")},
			`s-c1 s-c3 running; 2: it is created again before it ended`},
		{"an old writer goes on", []Event{created, step(1, "c1", "B"), setting(2, "c2", "A", "x", 1), step(3, "c2", "A"), step(4, "c3", "B")},
			`s-c1 s-c3 running; 2: writer epoch "A" goes on after "B" took the item over; 3: writer epoch "A" goes on after "B" took the item over`},
		{"a field without a value", []Event{created, with(setting(1, "c1", "A", "x", 1), func(e *Event) { e.Field.Value = Value{} }), step(2, "c1", "A")},
			`running; 1: field "x" without a value`},
		{"a value of a new kind", []Event{created, with(setting(1, "c1", "A", "x", 1), func(e *Event) { e.Field.Value = Value{Kind: "decimal"} })},
			`running; 1: field "x" has a value of unknown kind "decimal"`},
		{"a new kind of event", []Event{created, at(1, "c1", "A", "PAUSED")},
			`running; 1: unknown kind of event "PAUSED"`},
		{"an unknown end", []Event{created, with(at(1, "c1", "A", ItemEnded), func(e *Event) { e.End = "lost" })},
			`running; 1: it ends in an unknown way, "lost"`},
		{"a step without a name", []Event{created, with(step(1, "c1", "A"), func(e *Event) { e.Step = nil })},
			`running; 1: a completed step without a name`},
		{"a negative sequence", []Event{at(-1, "c", "A", StepCompleted), created},
			`pending; -1: a negative sequence`},
	} {
		t.Run(c.name, func(t *testing.T) {
			it := Fold(c.events)
			if d := cmp.Diff(c.want, shown(it)); d != "" {
				t.Error(d)
			}
			slices.Reverse(c.events)
			if d := itemDiff(it, Fold(c.events)); d != "" {
				t.Error(d)
			}
			if err := it.Err(); (err != nil) != (len(it.Faults) > 0) || err != nil && !errors.Is(err, ErrFault) {
				t.Error(err)
			}
		})
	}
}

// A fencing violation names both events and both writers.
func TestFencingViolationsNameBothSides(t *testing.T) {
	it := Fold([]Event{at(0, "c0", "A", ItemCreated), at(1, "c1", "A", StepCompleted), at(1, "d1", "B", StepCompleted)})
	err := it.Err()
	for _, part := range []string{"c1.A.1", "d1.B.1", `"A"`, `"B"`, "sequence 1", `"i"`} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not name %s", err, part)
		}
	}
	var fault *Fault
	if !errors.As(err, &fault) || !slices.Equal(fault.Events, []string{"c1.A.1", "d1.B.1"}) || !slices.Equal(fault.Epochs, []string{"A", "B"}) {
		t.Errorf("%+v", fault)
	}
}

func TestReRunsBeginWithoutWhatWasMade(t *testing.T) {
	events := []Event{at(0, "c0", "A", ItemCreated), appending(1, "c1", "A", "x", 1), at(2, "c1", "A", StepCompleted), at(3, "c2", "A", StepFailed),
		with(at(4, "c3", "A", ItemEnded), func(e *Event) { e.Attempt, e.End = 1, EndFiltered }),
		with(at(5, "c4", "B", ItemCreated), func(e *Event) { e.Attempt = 2 })}
	it := Fold(events)
	if got := shown(it); got != "pending" || it.Creations != 2 || len(it.Failures) != 1 || it.Cursor != nil || it.Done("s-c1") {
		t.Errorf("%s, %+v", got, it)
	}
	it = Fold(append(events, with(setting(6, "c5", "B", "x", 2), func(e *Event) { e.Attempt = 2 })))
	if got := shown(it); got != "x=2 running" || it.Attempt != 2 || !slices.Equal(it.Epochs, []string{"A", "B"}) {
		t.Errorf("%s, %+v", got, it)
	}
}

// Creating a faulty item anew is the way out.
func TestReRunsLeaveFaultsBehind(t *testing.T) {
	events := []Event{at(0, "c0", "A", ItemCreated), at(1, "c1", "A", StepCompleted), at(1, "d1", "B", StepCompleted)}
	if it := Fold(events); it.Err() == nil {
		t.Fatal("no fault")
	}
	it := Fold(append(events, at(2, "c2", "C", ItemCreated), at(3, "c3", "C", StepCompleted)))
	if it.Err() != nil || len(it.Faults) != 1 || shown(it)[:13] != "s-c3 running;" {
		t.Errorf("%v: %s", it.Err(), shown(it))
	}
}

func TestFailuresStandUntilALaterAttempt(t *testing.T) {
	later := func(attempt int32, e Event) Event { e.Attempt = attempt; return e }
	base := []Event{at(0, "c0", "A", ItemCreated), at(1, "c1", "A", StepCompleted), at(2, "c2", "A", StepFailed)}
	for _, c := range []struct {
		name  string
		more  []Event
		want  Status
		fails int
	}{
		{"it stands", nil, StatusFailed, 1},
		{"another of the same attempt", []Event{at(3, "c3", "A", StepFailed)}, StatusFailed, 2},
		{"a later attempt begins", []Event{later(1, setting(3, "c3", "A", "x", 1))}, StatusRunning, 1},
		{"a later attempt fails too", []Event{later(1, at(3, "c3", "A", StepFailed))}, StatusFailed, 2},
		{"a step of a later attempt", []Event{later(1, at(3, "c3", "A", StepCompleted))}, StatusRunning, 1},
		{"attempts counted for each step", []Event{later(1, at(3, "c3", "A", StepCompleted)), setting(4, "c4", "A", "x", 1)}, StatusRunning, 1},
		{"it ends", []Event{later(1, at(3, "c3", "A", ItemEnded))}, StatusCompleted, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			it := Fold(append(slices.Clone(base), c.more...))
			if it.Status != c.want || len(it.Failures) != c.fails || len(it.Faults) != 0 || !it.Done("s-c1") {
				t.Errorf("%s, %d failures, faults %v", it.Status, len(it.Failures), it.Faults)
			}
			if f := it.Failure(); (f != nil) != (c.want == StatusFailed) || f != nil && f.Type != "ValueError" {
				t.Errorf("failure %+v", f)
			}
		})
	}
}

// Two writers may find an item fresh at once. That is no fault as long as the one
// whose creation does not stand stops.
func TestOfRivalCreationsOneStands(t *testing.T) {
	a, b := at(0, "c0", "A", ItemCreated), at(0, "d0", "B", ItemCreated)
	for _, events := range [][]Event{{a, b}, {b, a}} {
		it := Fold(events)
		if it.Err() != nil || it.Status != StatusPending || !slices.Equal(it.Epochs, []string{"A"}) || it.Creations != 1 {
			t.Errorf("%v %+v", it.Err(), it)
		}
	}
	it := Fold([]Event{a, b, at(1, "c1", "A", StepCompleted)})
	if it.Err() != nil || shown(it) != "s-c1 running" {
		t.Error(shown(it))
	}
	it = Fold([]Event{a, b, setting(1, "d1", "B", "x", 1), at(2, "d1", "B", StepCompleted), at(3, "c1", "A", StepCompleted)})
	if got := shown(it); !strings.HasPrefix(got, `s-c1 running; 1: writer epoch "B" goes on, though the creation by "A" stands`) {
		t.Error(got)
	}
	if it := Fold([]Event{a, b, at(0, "e", "C", StepCompleted)}); it.Err() == nil {
		t.Error("another event at the sequence is no fault")
	}
}

func TestIterationsAreToldApart(t *testing.T) {
	round := func(n int64) *int64 { return &n }
	events := []Event{at(0, "c0", "A", ItemCreated)}
	for n := range int64(3) {
		e := at(n+1, fmt.Sprint("c", n+1), "A", StepCompleted)
		e.Step = &Step{Name: "refine", Instance: "refine", Iteration: round(n)}
		events = append(events, e)
	}
	it := Fold(events)
	if !it.Done("refine") || it.Done("score") || !it.DoneStep(Step{Instance: "refine", Iteration: round(2)}) ||
		it.DoneStep(Step{Instance: "refine", Iteration: round(3)}) || *it.Cursor.Iteration != 2 {
		t.Errorf("%+v", it.Steps)
	}
}

func TestFaultsAreTakenApartByItemAndBounded(t *testing.T) {
	events := []Event{at(0, "c0", "A", ItemCreated)}
	for i := range 3 * MaxFaults {
		events = append(events, at(int64(i+1), fmt.Sprint("c", i), "A", "NEW"))
	}
	it := Fold(events)
	if len(it.Faults) != MaxFaults {
		t.Errorf("%d faults", len(it.Faults))
	}
	seq := it.LastSeq + 1
	if it = Fold(append(events, at(seq, "again", "B", ItemCreated))); it.Err() != nil {
		t.Error(it.Err())
	}
	if it = Fold(append(events, at(seq, "again", "B", ItemCreated), at(seq+1, "more", "B", "NEW"))); it.Err() == nil {
		t.Error("a fault beyond those that are told is none")
	}
	if Fold(nil) != nil {
		t.Error("an item of no events")
	}
}

func TestMoments(t *testing.T) {
	for text, want := range map[string]AsOf{
		"12": {Seq: new(int64)}, "2026-11-29": {Time: time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)},
		"2026-11-29T12:00:00.5+01:00": {Time: time.Date(2026, 11, 29, 11, 0, 0, 5e8, time.UTC)}, "c1-9": {Checkpoint: "c1-9"}, "-1": {Checkpoint: "-1"},
	} {
		if want.Seq != nil {
			*want.Seq = 12
		}
		got, err := ParseAsOf(text)
		if err != nil || !cmp.Equal(want, got) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
		if again, err := ParseAsOf(got.String()); err != nil || !cmp.Equal(got, again) {
			t.Errorf("%s is spelled %q", text, got.String())
		}
	}
	if _, err := ParseAsOf(""); err == nil {
		t.Error("no moment is one")
	}
	if _, err := FoldAt([]Event{at(0, "c0", "A", ItemCreated)}, AsOf{Checkpoint: "none"}); !errors.Is(err, ErrNoCheckpoint) {
		t.Error(err)
	}
}
