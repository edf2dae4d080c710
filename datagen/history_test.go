package datagen

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// itemDiff compares items with all that they keep.
func itemDiff(want, got *Item) string {
	return cmp.Diff(want, got, cmp.AllowUnexported(Item{}), cmp.Comparer(func(a, b stepKey) bool { return a == b }),
		cmp.Comparer(func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }))
}

// history is a made-up life of an item, with what must come of it.
type history struct {
	events []Event
	status Status
	fields map[string][]Value
	done   map[string]bool
	fails  int
	begun  int
}

// teller makes a history the way a writer does.
type teller struct {
	t       *rapid.T
	h       history
	item    string
	seq     int64
	attempt int32
	epoch   int
	batch   int
	step    int
	set     map[string]bool
	now     time.Time
}

func newTeller(t *rapid.T, item string) *teller {
	return &teller{t: t, item: item, now: time.UnixMicro(1_790_000_000_000_000).UTC(),
		h: history{fields: map[string][]Value{}, done: map[string]bool{}}, set: map[string]bool{}}
}

// add appends one checkpoint.
func (g *teller) add(events ...Event) {
	g.batch++
	g.now = g.now.Add(time.Duration(rapid.IntRange(0, 5_000_000).Draw(g.t, "later")) * time.Microsecond)
	for i := range events {
		e := &events[i]
		e.Item, e.Root, e.Checkpoint = g.item, g.item, fmt.Sprintf("c%d", g.batch)
		e.ID = EventID(e.Item, e.Checkpoint, i)
		e.Seq, g.seq = g.seq, g.seq+1
		e.Attempt, e.Run, e.Epoch = g.attempt, "run", fmt.Sprintf("epoch-%d", g.epoch)
		e.Time, e.Schema = g.now, SchemaVersion
		if e.Field != nil && e.Field.Value.Kind == Blob {
			e.Field.Value.Blob.Event = e.ID
		}
	}
	g.h.events = append(g.h.events, events...)
}

func (g *teller) create() Event {
	g.h.status, g.h.fields, g.h.done = StatusPending, map[string][]Value{}, map[string]bool{}
	clear(g.set)
	g.h.begun++
	return Event{Kind: ItemCreated, Tags: json.RawMessage(`{"k":"v"}`)}
}

// steps are the changes of one step and its end.
func (g *teller) steps() (out []Event) {
	g.step++
	step := &Step{Name: rapid.SampledFrom([]string{"load", "refine", "score"}).Draw(g.t, "step"), Index: int64(g.step % 3),
		Instance: fmt.Sprintf("s#%d", g.step)}
	if rapid.Bool().Draw(g.t, "looped") {
		n := int64(g.step)
		step.Iteration = &n
	}
	for range rapid.IntRange(0, 3).Draw(g.t, "changes") {
		name := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(g.t, "field")
		e := Event{Kind: FieldSet, Step: step, Field: &Field{Name: name, Type: "t", Codec: 1, Value: drawValue(g.t)}}
		if was, there := g.set[name]; rapid.Bool().Draw(g.t, "append") && (!there || !was) {
			e.Kind = FieldAppend
			g.h.fields[name] = append(g.h.fields[name], e.Field.Value)
		} else {
			g.h.fields[name] = []Value{e.Field.Value}
		}
		g.set[name] = e.Kind == FieldSet
		out = append(out, e)
	}
	g.h.status, g.h.done[step.Instance] = StatusRunning, true
	return append(out, Event{Kind: StepCompleted, Step: step})
}

func drawValue(t *rapid.T) Value {
	switch rapid.SampledFrom([]ValueKind{Int, Float, Bool, Str, JSON, Blob}).Draw(t, "kind") {
	case Int:
		return Value{Kind: Int, Int: rapid.Int64().Draw(t, "int")}
	case Float:
		return Value{Kind: Float, Float: rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 1.5, math.NaN(), math.Inf(1),
			math.Inf(-1), 5e-324, math.MaxFloat64}).Draw(t, "float")}
	case Bool:
		return Value{Kind: Bool, Bool: rapid.Bool().Draw(t, "bool")}
	case Str:
		return Value{Kind: Str, Str: rapid.String().Draw(t, "str")}
	case JSON:
		return Value{Kind: JSON, JSON: json.RawMessage(rapid.SampledFrom([]string{`null`, `{"a":[1,2.5]}`, `"x"`, `123456789012345678901`}).Draw(t, "json"))}
	}
	return Value{Kind: Blob, Blob: BlobRef{Size: 4, Checksum: Checksum([]byte{1, 2, 3, byte(rapid.IntRange(0, 3).Draw(t, "byte"))})}}
}

// drawHistory makes a life without contradictions.
func drawHistory(t *rapid.T, item string) history {
	g := newTeller(t, item)
	first := []Event{g.create()}
	if rapid.Bool().Draw(t, "joined") {
		first = append(first, g.steps()...)
	}
	g.add(first...)
	for range rapid.IntRange(0, 12).Draw(t, "checkpoints") {
		if rapid.IntRange(0, 4).Draw(t, "takeover") == 0 {
			g.epoch++
		}
		g.next()
	}
	return g.h
}

func (g *teller) next() {
	if g.h.status.Finished() {
		if rapid.IntRange(0, 2).Draw(g.t, "rerun") == 0 {
			g.attempt++
			g.add(g.create())
		}
		return
	}
	switch rapid.IntRange(0, 5).Draw(g.t, "what") {
	case 0:
		g.h.fails++
		g.h.status = StatusFailed
		g.add(Event{Kind: StepFailed, Failure: &Failure{Type: "E", Dump: json.RawMessage(`{"m":1}`), Traceback: "t"}})
		g.attempt++
	case 1:
		end, status := EndCompleted, StatusCompleted
		if rapid.Bool().Draw(g.t, "filtered") {
			end, status = EndFiltered, StatusFiltered
		}
		var events []Event
		if rapid.Bool().Draw(g.t, "joined") {
			events = g.steps()
		}
		g.h.status = status
		g.add(append(events, Event{Kind: ItemEnded, End: end})...)
	default:
		g.add(g.steps()...)
	}
}

// shuffled are the events in any order, some of them several times.
func shuffled(t *rapid.T, events []Event) []Event {
	out := slices.Clone(events)
	for range rapid.IntRange(0, len(events)).Draw(t, "repeats") {
		out = append(out, events[rapid.IntRange(0, len(events)-1).Draw(t, "which")])
	}
	return rapid.Permutation(out).Draw(t, "order")
}

func TestHistoriesFoldIntoWhatWasTold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawHistory(t, "item")
		it := Fold(shuffled(t, h.events))
		if it.Status != h.status || len(it.Faults) > 0 || len(it.Failures) != h.fails || it.Creations != h.begun {
			t.Fatalf("status %s, %d failures, %d creations, faults %v; want %s, %d, %d", it.Status, len(it.Failures), it.Creations,
				it.Faults, h.status, h.fails, h.begun)
		}
		if n := len(it.Steps); n != len(h.done) || n > 0 && it.Cursor.Instance != it.Steps[n-1].Instance {
			t.Fatalf("%d steps, want %d", n, len(h.done))
		}
		for instance := range h.done {
			if !it.Done(instance) {
				t.Fatalf("%s is not done", instance)
			}
		}
		got := map[string][]Value{}
		for _, f := range it.Fields {
			for _, v := range f.Values {
				got[f.Name] = append(got[f.Name], v.Value)
			}
		}
		if len(got) != len(h.fields) {
			t.Fatalf("fields %v, want %v", got, h.fields)
		}
		for name, want := range h.fields {
			if !slices.EqualFunc(got[name], want, func(a, b Value) bool { return a.Equal(&b) }) {
				t.Fatalf("field %s is %v, want %v", name, got[name], want)
			}
		}
		if it.LastSeq != int64(len(h.events)-1) {
			t.Fatalf("last sequence %d of %d events", it.LastSeq, len(h.events))
		}
	})
}

func TestFoldsDoNotDependOnOrderOrRepetition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := drawHistory(t, "item").events
		if rapid.Bool().Draw(t, "spoil") {
			events = spoil(t, events)
		}
		want := Fold(events)
		if d := itemDiff(want, Fold(shuffled(t, events))); d != "" {
			t.Fatal(d)
		}
		var f Folder
		in := shuffled(t, events)
		if rapid.Bool().Draw(t, "in order") {
			in = slices.Clone(events)
		}
		for len(in) > 0 {
			n := rapid.IntRange(1, len(in)).Draw(t, "portion")
			f.Add(in[:n]...)
			f.Item()
			in = in[n:]
		}
		if d := itemDiff(want, f.Item()); d != "" {
			t.Fatal(d)
		}
	})
}

// renamed is an event under another identity, which a blob in it is known by too.
func renamed(e Event, id string) Event {
	e.ID = id
	if e.Field != nil && e.Field.Value.Kind == Blob {
		field := *e.Field
		field.Value.Blob.Event = id
		e.Field = &field
	}
	return e
}

// spoil makes events contradict each other.
func spoil(t *rapid.T, events []Event) []Event {
	events = slices.Clone(events)
	for range rapid.IntRange(1, 4).Draw(t, "spoils") {
		i := rapid.IntRange(0, len(events)-1).Draw(t, "at")
		e := events[i]
		switch rapid.IntRange(0, 9).Draw(t, "how") {
		case 0: // the same sequence by another writer
			e.Epoch, e.Checkpoint = "stranger", e.Checkpoint+"x"
			events = append(events, renamed(e, e.ID+"x"))
		case 1: // the same identity with another content
			e.Run = "other"
			events = append(events, e)
		case 2:
			e.Seq = rapid.Int64Range(-2, 40).Draw(t, "seq")
			events = append(events, renamed(e, e.ID+"y"))
		case 3:
			events = slices.Delete(events, i, i+1)
			if len(events) == 0 {
				return append(events, e)
			}
		case 4:
			events[i].Root, events[i].Parent = "elsewhere", "elsewhere"
		case 5:
			events[i].Epoch = "epoch-0"
		case 6:
			events[i].Kind = rapid.SampledFrom([]Kind{ItemCreated, FieldSet, FieldAppend, StepStarted, StepCompleted, StepFailed, ItemEnded, "NEW"}).Draw(t, "kind")
		case 7:
			events[i].Item = "other"
		case 8:
			events[i].Attempt = rapid.Int32Range(-1, 5).Draw(t, "attempt")
		case 9:
			events[i].Checkpoint = "c1"
		}
	}
	return events
}

func TestCutsAreTheFoldsOfPrefixes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := drawHistory(t, "item").events
		n := rapid.IntRange(1, len(events)).Draw(t, "n")
		at := func(in []Event, a AsOf) *Item {
			it, err := FoldAt(shuffled(t, events), a)
			if err != nil {
				t.Fatal(err)
			}
			if d := itemDiff(Fold(in), it); d != "" {
				t.Fatalf("as of %q: %s", a.String(), d)
			}
			return it
		}
		last := events[n-1]
		at(events[:n], AsOf{Seq: &last.Seq})
		whole := n
		for whole < len(events) && events[whole].Checkpoint == last.Checkpoint {
			whole++
		}
		at(events[:whole], AsOf{Checkpoint: last.Checkpoint})
		for whole < len(events) && !events[whole].Time.After(last.Time) {
			whole++
		}
		at(events[:whole], AsOf{Time: last.Time})
		at(events, AsOf{})
		at(nil, AsOf{Time: events[0].Time.Add(-1)})
	})
}

func TestTrajectoriesEndInTheFold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := drawHistory(t, "item").events
		values := map[string]FieldValue{}
		n := 0
		for _, c := range Trajectory(shuffled(t, events)) {
			n += c.Events
			if c.Created {
				clear(values)
			}
			for _, d := range c.Changes {
				old, there := values[d.Name]
				if there != (d.Old != nil) || there && !old.Value.Equal(&d.Old.Value) {
					t.Fatalf("%s was %v, told as %v", d.Name, old, d.Old)
				}
				values[d.Name] = d.New
			}
		}
		if n != len(events) {
			t.Fatalf("%d events of %d", n, len(events))
		}
		for _, f := range Fold(events).Fields {
			if v, last := f.Value(), values[f.Name]; !v.Equal(&last.Value) {
				t.Fatalf("%s is %v, the trajectory ends in %v", f.Name, v, last)
			}
		}
	})
}
