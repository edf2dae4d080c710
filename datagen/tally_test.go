package datagen

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func tallied(t interface {
	Helper()
	Fatal(...any)
}, most int, events []Event) Overview {
	t.Helper()
	y := newTally(most)
	defer y.close()
	for i := range events {
		if err := y.event(&events[i]); err != nil {
			t.Fatal(err)
		}
	}
	o, err := y.overview()
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestATallyInPartsCountsAsOneInMemory has items whose states are in the file several
// times, in an order that has nothing to do with that of their events.
func TestATallyInPartsCountsAsOneInMemory(t *testing.T) {
	withTemporaryFiles(t)
	rapid.Check(t, func(t *rapid.T) {
		all, _ := drawLog(t)
		s := new(Summary)
		for i := range all {
			s.AddEvent(&all[i])
		}
		if d := cmp.Diff(s.Overview(), tallied(t, rapid.IntRange(1, 3).Draw(t, "in memory"), all)); d != "" {
			t.Fatalf("(-in memory +in parts)\n%s", d)
		}
	})
	noTemporaryFiles(t)
}

func TestATallyOfManyItemsIsSplitUntilPartsAreSmall(t *testing.T) {
	withTemporaryFiles(t)
	const items = 5000
	var events []Event
	for seq := range int64(2) {
		for i := range items {
			kind := []Kind{ItemCreated, StepCompleted}[seq]
			e := Event{Kind: kind, Item: fmt.Sprint("item-", i), Root: fmt.Sprint("item-", i), Seq: seq}
			if kind == StepCompleted {
				e.Step = &Step{Name: fmt.Sprint("step-", i%2)}
			}
			events = append(events, e)
		}
	}
	o := tallied(t, 3, events)
	if o.Items != items || o.Roots != items || o.Events != 2*items || o.Suspects != 0 || o.Status != (StatusCounts{Running: items}) ||
		len(o.Steps) != 2 || o.Steps[0].Items != items/2 || o.Steps[1].Completed != items/2 {
		t.Errorf("%+v", o)
	}
	noTemporaryFiles(t)
}

func TestATallyWithoutRoomForItsFileFails(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()+"/none")
	y := newTally(1)
	defer y.close()
	var err error
	for i := range 3 {
		if err == nil {
			err = y.event(&Event{Kind: ItemCreated, Item: fmt.Sprint(i)})
		}
	}
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a tally without a folder for its file: %v", err)
	}
}
