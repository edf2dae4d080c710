package datagen

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// B20, B26: whatever the crash left, the fold alone says what is done. The last
// step's end is not the item's.
func TestEveryPrefixSaysWhatIsLeftToDo(t *testing.T) {
	events := []Event{at(0, "c0", "A", ItemCreated), setting(1, "c1", "A", "x", 1), at(2, "c1", "A", StepCompleted),
		setting(3, "c2", "A", "y", 2), at(4, "c2", "A", StepCompleted), at(5, "c3", "A", ItemEnded)}
	batches := batchesOf(events)
	want := []string{"pending", "x=1 s-c1 running", "x=1 y=2 s-c1 s-c2 running", "x=1 y=2 s-c1 s-c2 completed"}
	var durable []Event
	for i, b := range batches {
		durable = append(durable, b...)
		if got := shown(Fold(durable)); got != want[i] {
			t.Errorf("after %d batches: %s, want %s", i+1, got, want[i])
		}
	}
}

// B23: a batch that is written again because its acknowledgement was lost is there
// once, by fold, list and class.
func TestARetriedBatchCountsOnce(t *testing.T) {
	batch := []Event{{Kind: ItemCreated}, {Kind: FieldAppend, Step: &Step{Name: "s", Instance: "s"},
		Field: &Field{Name: "x", Type: "int", Value: Value{Kind: Int, Int: 1}}}, {Kind: StepCompleted, Step: &Step{Name: "s", Instance: "s"}}}
	write := func() []Event {
		out := slices.Clone(batch)
		for i := range out {
			e := &out[i]
			e.Item, e.Seq, e.Checkpoint, e.Run, e.Epoch = "i", int64(i), "c", "r", "A"
		}
		FillBatch(out, at(0, "", "", "").Time)
		return out
	}
	first, second := write(), write()
	for i := range first {
		if first[i].ID != second[i].ID {
			t.Errorf("event %d has two identities", i)
		}
	}
	it := Fold(append(first, second...))
	if got := shown(it); got != "x=1 s running" || it.Err() != nil {
		t.Error(got)
	}
}

// B24: settings that are not the item's identity may change; it goes on.
func TestAnotherRunGoesOnWhereTheLastStopped(t *testing.T) {
	other := func(e Event) Event { e.Run, e.Attempt = "r2", 1; return e }
	it := Fold([]Event{at(0, "c0", "A", ItemCreated), setting(1, "c1", "A", "x", 1), at(2, "c1", "A", StepCompleted),
		other(setting(3, "c2", "B", "x", 2)), other(at(4, "c2", "B", StepCompleted))})
	if got := shown(it); got != "x=2 s-c1 s-c2 running" || it.Run != "r2" || it.Attempt != 1 || it.Err() != nil {
		t.Errorf("%s, run %s", got, it.Run)
	}
	f, _ := it.Field("x")
	if f.Values[0].From.Run != "r2" || f.Values[0].From.Epoch != "B" || f.Values[0].From.Seq != 3 {
		t.Errorf("the value is said to come from %+v", f.Values[0].From)
	}
}

// B25: an old process that comes back has the same run, but an old epoch.
func TestTheSameRunWithAnOldEpochIsAFault(t *testing.T) {
	it := Fold([]Event{at(0, "c0", "A", ItemCreated), at(1, "c1", "A", StepCompleted), at(2, "c2", "B", StepCompleted), at(3, "c3", "A", StepCompleted)})
	if err := it.Err(); err == nil || !strings.Contains(err.Error(), `"A"`) || !strings.Contains(err.Error(), `"B"`) {
		t.Errorf("%v does not name both writers", err)
	}
	if got := shown(it); !strings.HasPrefix(got, "s-c1 s-c2 running") {
		t.Errorf("the rest is not folded: %s", got)
	}
}

// B26: an event that a replay and a live tail both deliver counts once.
func TestReplayAndTailTogetherCountOnce(t *testing.T) {
	events := []Event{at(0, "c0", "A", ItemCreated), appending(1, "c1", "A", "x", 1), at(2, "c1", "A", StepCompleted), appending(3, "c2", "A", "x", 2), at(4, "c2", "A", StepCompleted)}
	var f Folder
	f.Add(events[:3]...)
	f.Item()
	for i := range events { // the tail began before the replay ended
		f.Add(events[i])
		if got := shown(f.Item()); strings.Count(got, "s-c1") != 1 {
			t.Fatal(got)
		}
	}
	if got := shown(f.Item()); got != "x=1,2 s-c1 s-c2 running" || len(f.Events()) != len(events) {
		t.Errorf("%s of %d events", got, len(f.Events()))
	}
}

// B28: an item of very many events is folded in one go, and goes on without
// beginning anew.
func TestManyEventsOfOneItem(t *testing.T) {
	const n = 20_000
	var f Folder
	f.Add(at(0, "c0", "A", ItemCreated))
	for i := range n {
		c := fmt.Sprint("c", i+1)
		f.Add(setting(int64(2*i+1), c, "A", "x", int64(i)), at(int64(2*i+2), c, "A", StepCompleted))
		if it := f.Item(); len(it.Steps) != i+1 {
			t.Fatalf("%d steps after %d", len(it.Steps), i+1)
		}
	}
	if it := f.Item(); it.LastSeq != 2*n || it.Fields[0].Value().Int != n-1 {
		t.Errorf("%d", it.LastSeq)
	}
}

// B30: the same contradiction is told the same way each time, and does not end up in
// a loop: reading again changes nothing.
func TestAContradictionIsTheSameEachTime(t *testing.T) {
	events := []Event{at(0, "c0", "A", ItemCreated), at(1, "c1", "A", StepCompleted), at(1, "d1", "B", StepCompleted)}
	first := Fold(events)
	for range 3 {
		var f Folder
		f.Add(events...)
		if d := itemDiff(first, f.Item()); d != "" {
			t.Error(d)
		}
		if d := itemDiff(first, f.Item()); d != "" {
			t.Error(d)
		}
		slices.Reverse(events)
	}
}
