package datagen

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// log draws the events of several items, some of them at fault, as they may lie.
func drawLog(t *rapid.T) (all []Event, items map[string][]Event) {
	items = map[string][]Event{}
	for i := range rapid.IntRange(1, 6).Draw(t, "items") {
		id := fmt.Sprintf("item-%d", i)
		events := drawHistory(t, id).events
		if rapid.IntRange(0, 3).Draw(t, "spoil") == 0 {
			events = slices.DeleteFunc(spoil(t, events), func(e Event) bool { return e.Item != id })
		}
		if len(events) > 0 {
			items[id] = Fold(events).folded(events)
			all = append(all, items[id]...)
		}
	}
	return rapid.Permutation(all).Draw(t, "order"), items
}

// folded are the events of an item once each, as a view of the log yields them.
func (it *Item) folded(events []Event) []Event {
	var f Folder
	f.Add(events...)
	return slices.Clone(f.Events())
}

// item is what is known of an item; ok is false if there is none.
func (s *Summary) item(id string) (sum ItemSummary, ok bool) {
	i, ok := s.index[hashItem(id)]
	if !ok {
		return ItemSummary{}, false
	}
	return s.summary(id, s.at(i)), true
}

func TestListsCountWhatFoldsFind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all, items := drawLog(t)
		s, c := new(Summary), new(Classes)
		for i := range all {
			s.AddEvent(&all[i])
			c.AddEvent(&all[i])
		}
		counts := map[Status]int{}
		for id, events := range items {
			it := Fold(events)
			counts[it.Status]++
			sum, ok := s.item(id)
			if !ok || sum.Status != it.Status || sum.LastSeq != it.LastSeq || sum.Attempt != it.Attempt ||
				!sum.Updated.Equal(it.Updated) || !sum.Created.Equal(it.Created) || sum.Events != len(events) {
				t.Fatalf("summary %+v of item %+v", sum, it)
			}
			if len(it.Faults) == 0 && (sum.Suspect == unbroken(events) || sum.Failures != len(it.Failures) || it.Cursor == nil && sum.Step != "" ||
				it.Cursor != nil && it.Cursor.Name != sum.Step || it.Failure() != nil && it.Failure().Type != sum.ErrorType) {
				t.Fatalf("summary %+v of item %+v", sum, it)
			}
			if want := classOf(it.Status); c.Of(id) != want {
				t.Fatalf("class %s of item %+v", c.Of(id), it)
			}
		}
		o := s.Overview()
		if o.Items != len(items) || o.Events != int64(len(all)) || c.Len() != len(items) ||
			o.Status != (StatusCounts{counts[StatusPending], counts[StatusRunning], counts[StatusCompleted], counts[StatusFiltered], counts[StatusFailed]}) {
			t.Fatalf("overview %+v, want %v", o, counts)
		}
		if c.Of("none") != Fresh {
			t.Fatal("an item that is not there is not fresh")
		}
	})
}

// unbroken reports whether the sequences of events in order have no gap and come once.
func unbroken(events []Event) bool {
	for i := range events {
		if events[i].Seq != events[0].Seq+int64(i) {
			return false
		}
	}
	return true
}

func classOf(s Status) Class {
	switch s {
	case StatusCompleted:
		return Finished
	case StatusFiltered:
		return Filtered
	}
	return Resumable
}

func TestRowsSumUpLikeEvents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all, items := drawLog(t)
		all = slices.DeleteFunc(all, func(e Event) bool { return e.Kind == StepStarted })
		byEvent, byRow, c := new(Summary), new(Summary), new(Classes)
		for i := range all {
			byEvent.AddEvent(&all[i])
		}
		for len(all) > 0 {
			n := rapid.IntRange(1, len(all)).Draw(t, "rows")
			rec, err := Record(all[:n])
			if err != nil {
				t.Fatal(err)
			}
			if err := byRow.Add(rec); err != nil {
				t.Fatal(err)
			}
			if err := c.Add(rec); err != nil {
				t.Fatal(err)
			}
			all = all[n:]
		}
		if d := cmp.Diff(byEvent.Overview(), byRow.Overview()); d != "" {
			t.Fatal(d)
		}
		for id := range items {
			want, _ := byEvent.item(id)
			if got, _ := byRow.item(id); !cmp.Equal(want, got) {
				t.Fatal(cmp.Diff(want, got))
			}
			if got := c.Of(id); got != classOf(want.Status) && want.Events > 0 {
				t.Fatalf("class %s of %+v", got, want)
			}
		}
	})
}

func TestCollisionsAreSuspect(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawHistory(t, "item")
		e := h.events[rapid.IntRange(0, len(h.events)-1).Draw(t, "at")]
		e.ID, e.Epoch = "other", "stranger"
		s := new(Summary)
		for _, e := range append(h.events, e) {
			s.AddEvent(&e)
		}
		if sum, _ := s.item("item"); !sum.Suspect {
			t.Fatalf("%+v is not suspect", sum)
		}
		if o := s.Overview(); o.Suspects != 1 {
			t.Fatalf("%+v", o)
		}
	})
}

func TestTooManyNamesAreCountedTogether(t *testing.T) {
	s := new(Summary)
	const n = MaxGroups + 500
	for i := range n {
		s.AddEvent(&Event{Item: "i", Seq: int64(i), Kind: StepCompleted, Step: &Step{Name: fmt.Sprint("s", i)}, Epoch: fmt.Sprint(i)})
	}
	o := s.Overview()
	if len(o.Writers) != MaxGroups+1 || len(o.Steps) != MaxGroups+1 {
		t.Fatalf("%d writers, %d steps", len(o.Writers), len(o.Steps))
	}
	i := slices.IndexFunc(o.Steps, func(s StepSummary) bool { return s.Name == "" })
	if i < 0 || o.Steps[i].Completed != 500 {
		t.Errorf("the others: %+v", o.Steps[max(i, 0)])
	}
}

func TestEpochsOfOneWriterAreCountedTogether(t *testing.T) {
	s := new(Summary)
	for i := range 30 {
		s.AddEvent(&Event{Item: fmt.Sprint(i), Kind: ItemCreated, Run: "r", Epoch: fmt.Sprintf("0192f0c1-7d5e-7c1a-9d3b-3f2a4b5c6d7%d.1.%d", i%2, i)})
		s.AddEvent(&Event{Item: fmt.Sprint(i), Seq: 1, Kind: ItemEnded, End: EndCompleted, Epoch: "other"})
	}
	var got []string
	for _, w := range s.Overview().Writers {
		got = append(got, fmt.Sprintf("%s %s %d", w.Epoch, w.Run, w.Events))
	}
	want := []string{"0192f0c1-7d5e-7c1a-9d3b-3f2a4b5c6d70 r 15", "0192f0c1-7d5e-7c1a-9d3b-3f2a4b5c6d71 r 15", "other  30"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// The promise of the doc comment, with room for the allocator.
func TestClassesKeepLittleOfEachItem(t *testing.T) {
	const n = 200_000
	c := new(Classes)
	for i := range n {
		c.AddEvent(&Event{Item: fmt.Sprintf("a rather long source key that is not kept, number %d", i), Kind: ItemCreated})
	}
	if c.Len() != n {
		t.Errorf("%d items", c.Len())
	}
	if per := freedBytes(&c) / n; per < 8 || per > 68 {
		t.Errorf("%.0f bytes each", per)
	}
}

func TestSummariesKeepLittleOfEachItem(t *testing.T) {
	const n = 100_000
	s := new(Summary)
	for i := range n {
		s.AddEvent(&Event{Item: fmt.Sprintf("a rather long source key that is not kept, number %d", i), Kind: ItemCreated})
	}
	if s.Len() != n {
		t.Errorf("%d items", s.Len())
	}
	if per := freedBytes(&s) / n; per < 8 || per > 230 {
		t.Errorf("%.0f bytes each", per)
	}
}

// freedBytes is how much the heap shrinks when *p is let go, once what other tests left
// has been freed: two readings with nothing but that between them.
func freedBytes[T any](p **T) float64 {
	with := heapBytes()
	for range 20 {
		before := with
		if with = heapBytes(); before-with < 1<<10 {
			break
		}
	}
	*p = nil
	return float64(with - heapBytes())
}
