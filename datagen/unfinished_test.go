package datagen

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"pgregory.net/rapid"

	"github.com/foldlog/foldlog/objstore"
)

// unfinished folds what is to be resumed.
func unfinished(t interface{ Fatal(...any) }, u *Unfinished) map[string]*Item {
	items := map[string]*Item{}
	for it, err := range u.Folds() {
		if err != nil || items[it.ID] != nil {
			t.Fatal(it, err)
		}
		items[it.ID] = it
	}
	return items
}

// TestUnfinishedItemsAreThoseOfTheirClassFoldedFromAllTheirEvents has rows of the base in
// any order, whatever they say.
func TestUnfinishedItemsAreThoseOfTheirClassFoldedFromAllTheirEvents(t *testing.T) {
	withTemporaryFiles(t)
	rapid.Check(t, func(rt *rapid.T) {
		all, items := drawLog(rt)
		started := func(e Event) bool { return e.Kind == StepStarted } // of no table of version 1
		all = slices.DeleteFunc(all, started)
		l := newLog(t, objstore.NewMemory())
		if rapid.Bool().Draw(rt, "spill") {
			l.most = little
		}
		base, err := l.Table().Base(t.Context())
		check(t, err)
		rows, err := Record(all)
		check(t, err)
		_, err = base.Append(t.Context(), one(rows))
		check(t, err)
		v, err := l.View(t.Context())
		check(t, err)
		u, err := v.Unfinished(t.Context())
		check(t, err)
		defer u.Close()
		got := unfinished(rt, u)
		for id, events := range items {
			events = slices.DeleteFunc(events, started)
			if len(events) == 0 {
				continue
			}
			folded, it := Fold(events), got[id]
			class := classOf(folded.Status)
			if is := u.Classes().Of(id); is != class || (it != nil) != (is == Resumable) {
				rt.Fatalf("item %s is %s and not %s: %v", id, is, class, it)
			}
			if d := itemDiff(folded, it); it != nil && d != "" {
				rt.Fatal(d)
			}
			delete(got, id)
		}
		if len(got) > 0 {
			rt.Fatalf("not in the log: %v", got)
		}
	})
	noTemporaryFiles(t)
}

func one(rows arrow.RecordBatch) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) { yield(rows, nil) }
}

// TestUnfinishedItemsOfGenerationsAndTheBase has items with events in both, and sub-items.
func TestUnfinishedItemsOfGenerationsAndTheBase(t *testing.T) {
	l, w := scattered(t, objstore.NewMemory(), 6)
	early := newWriter(t, l)
	for i := range 3 {
		s, err := early.Open(t.Context(), fmt.Sprint("begun-", i), CreateOptions{})
		check(t, err)
		check(t, s.Checkpoint(t.Context(), step(0), []Change{set("x", 1)}))
		check(t, s.Close(t.Context()))
	}
	check(t, early.Close(t.Context()))
	s, err := w.Open(t.Context(), "begun-0", CreateOptions{})
	check(t, err)
	check(t, s.Checkpoint(t.Context(), step(1), []Change{set("x", 2)}))
	sub, err := s.Sub(t.Context(), "views", 0, CreateOptions{})
	check(t, err)
	check(t, sub.Checkpoint(t.Context(), step(0), nil))
	s, err = w.Open(t.Context(), "begun-2", CreateOptions{})
	check(t, err)
	check(t, s.End(t.Context(), EndFiltered))

	v, err := l.View(t.Context())
	check(t, err)
	u, err := v.Unfinished(t.Context())
	check(t, err)
	defer u.Close()
	items := unfinished(t, u)
	if ids := slices.Sorted(maps.Keys(items)); !slices.Equal(ids, []string{"begun-0", "begun-0/views:0", "begun-1"}) {
		t.Fatalf("%q are to be resumed", ids)
	}
	if n := len(items["begun-0"].Steps); n != 2 || len(items["begun-1"].Steps) != 1 {
		t.Errorf("%d steps, %v", n, items["begun-1"].Steps)
	}
	want := map[Class]int{Resumable: 2, Finished: 6, Filtered: 1}
	if got := u.Classes().Roots(); !maps.Equal(got, want) {
		t.Errorf("roots: %v", got)
	}
}
