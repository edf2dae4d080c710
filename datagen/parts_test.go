package datagen

import (
	"fmt"
	"iter"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/foldlog/foldlog/objstore"
)

// little is soon too much for memory.
var little = inMemory{weight: 4 << 10, sorted: 3, tallied: 3}

// withTemporaryFiles lets noTemporaryFiles see them.
func withTemporaryFiles(t *testing.T) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
}

// noTemporaryFiles are left.
func noTemporaryFiles(t *testing.T) {
	t.Helper()
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	if err != nil || len(left) > 0 {
		t.Errorf("left %v: %v", left, err)
	}
}

func TestPartsHaveAllEventsOfTheirItems(t *testing.T) {
	withTemporaryFiles(t)
	for name, items := range map[string]int{"nothing": 0, "in memory": 1, "one split": 200, "splits of splits": 5000} {
		t.Run(name, func(t *testing.T) {
			p := &parts{most: little.weight}
			defer p.close()
			const each = 3
			for i := range items * each {
				e := Event{ID: fmt.Sprint(i), Item: fmt.Sprint("item-", i%items), Seq: int64(i / items)}
				check(t, p.add(&e))
			}
			seen := map[string]bool{}
			most := 0
			check(t, p.each(func(events iter.Seq2[Event, error]) error {
				folders, err := foldersOf(events)
				for id, f := range folders {
					if seen[id] || len(f.Events()) != each {
						t.Errorf("%s has %d events, seen before %t", id, len(f.Events()), seen[id])
					}
					seen[id] = true
				}
				most = max(most, len(folders))
				return err
			}))
			if len(seen) != items || most > 8 {
				t.Errorf("%d items of %d, %d at once", len(seen), items, most)
			}
		})
	}
	noTemporaryFiles(t)
}

// TestAnItemThatIsTooMuchIsOnePart cannot be split.
func TestAnItemThatIsTooMuchIsOnePart(t *testing.T) {
	withTemporaryFiles(t)
	p := &parts{most: little.weight}
	defer p.close()
	for i := range 100 {
		check(t, p.add(&Event{ID: fmt.Sprint(i), Item: "large", Seq: int64(i), Tags: []byte(strings.Repeat("x", 2000))}))
	}
	n := 0
	check(t, p.each(func(events iter.Seq2[Event, error]) error {
		folders, err := foldersOf(events)
		n += len(folders["large"].Events())
		return err
	}))
	if n != 100 || p.file.end > 100*2000 {
		t.Errorf("%d events, %d bytes spilled", n, p.file.end)
	}
}

func TestWhatIsSpilledIsReadBackAsItWas(t *testing.T) {
	full := int64(7)
	whole := Event{
		ID: "id", Item: "i", Root: "r", Parent: "p", Seq: math.MaxInt64, Checkpoint: "c", Kind: FieldAppend, Attempt: math.MaxInt32, Run: "run", Epoch: "w",
		Step: &Step{"s", -1, "s#0", &full}, Tags: []byte("{}"), End: EndFiltered, Time: time.UnixMicro(-1).UTC(), Schema: 2,
		Field:   &Field{"f", "t", 3, Value{Kind: Float, Int: math.MinInt64, Float: math.Inf(-1), Bool: true, Str: "größer", JSON: []byte("null"), Blob: BlobRef{Event: "e", Size: 1, Checksum: "sum"}}},
		Failure: &Failure{"E", []byte("1"), "trace"}, Frame: &Frame{"a", "b", "c", "d"},
	}
	file, err := newSpillFile()
	check(t, err)
	defer file.close()
	rapid.Check(t, func(t *rapid.T) {
		want := append(drawHistory(t, "item").events, whole, Event{})
		s := &spilled{file: file}
		for i := range want {
			w := spillWriter(s.buf)
			w.event(&want[i])
			if s.buf = w; s.wrote() != nil {
				t.Fatal("not written")
			}
			if i%3 == 2 {
				_ = s.flush()
			}
		}
		var got []Event
		for e, err := range records(s, (*spillReader).event) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, e)
		}
		if !slices.EqualFunc(want, got, func(a, b Event) bool { return a.Equal(&b) }) {
			t.Fatal(cmp.Diff(want, got))
		}
	})
}

func TestDamagedSpillsAreErrors(t *testing.T) {
	file, err := newSpillFile()
	check(t, err)
	defer file.close()
	for n := range 40 {
		w := spillWriter{}
		w.event(&Event{ID: "id", Item: "item", Step: &Step{Name: "step"}, Tags: []byte("{}")})
		s := &spilled{file: file, buf: w[:min(n, len(w)-1)]}
		failed := n == 0
		for _, err := range records(s, (*spillReader).event) {
			failed = failed || err != nil
		}
		if !failed {
			t.Errorf("%d bytes of an event are read", n)
		}
	}
}

// TestListsAreTheSameInWhateverParts asks in every order, from the beginning and from
// the middle.
func TestListsAreTheSameInWhateverParts(t *testing.T) {
	l := newLog(t, objstore.NewMemory())
	w := newWriter(t, l)
	for i := range 30 {
		s, err := w.Open(t.Context(), fmt.Sprint("item-", i), CreateOptions{Tags: []byte(fmt.Sprintf(`{"third":%d}`, i%3))})
		check(t, err)
		for k := range 1 + i%4 {
			check(t, s.Checkpoint(t.Context(), step(k), nil))
		}
		if i%2 == 0 {
			sub, err := s.Sub(t.Context(), "part", int64(i), CreateOptions{})
			check(t, err)
			check(t, sub.Create(t.Context()))
			check(t, s.End(t.Context(), EndCompleted))
		}
	}
	v, err := l.View(t.Context())
	check(t, err)
	list := func(q ItemQuery) (items []ItemSummary) {
		for s, err := range v.Items(t.Context(), q) {
			check(t, err)
			items = append(items, s)
		}
		return items
	}
	var queries []ItemQuery
	for _, order := range []ItemOrder{"", ByCreation, ByUpdate, ByID, ByEvents} {
		for _, q := range []ItemQuery{{}, {Roots: true}, {Limit: 7}, {Filter: Filter{Status: []Status{StatusCompleted}}},
			{Filter: Filter{Tags: map[string]string{"third": "1"}}, Limit: 5}} {
			q.Order = order
			queries = append(queries, q)
			if some := list(q); len(some) > 3 {
				place := order.Place(&some[2])
				q.After = &place
				queries = append(queries, q)
			}
		}
	}
	var want [][]ItemSummary
	for _, q := range queries {
		want = append(want, list(q))
	}
	withTemporaryFiles(t)
	l.most = little
	for i, q := range queries {
		if d := cmp.Diff(want[i], list(q)); d != "" {
			t.Errorf("%+v (-in memory +in parts)\n%s", q, d)
		}
	}
	if len(want[0]) != 45 || len(want[2]) != 30 {
		t.Errorf("%d items, %d roots", len(want[0]), len(want[2]))
	}
	noTemporaryFiles(t)
}

func TestEventsAreYieldedByItem(t *testing.T) {
	withTemporaryFiles(t)
	const items, each = 300, 5
	n, last := 0, map[string]int64{}
	at := ""
	for e, err := range byItem(func(yield func(Event, error) bool) {
		for i := range items * each {
			i = i * 7 % (items * each)
			if !yield(Event{ID: fmt.Sprint(i), Item: fmt.Sprint("item-", i%items), Seq: int64(i / items)}, nil) {
				return
			}
		}
	}, little.weight) {
		check(t, err)
		if e.Item != at && e.Seq != 0 || e.Item == at && e.Seq != last[at]+1 {
			t.Fatalf("%s at %d after %s at %d", e.Item, e.Seq, at, last[at])
		}
		at, last[e.Item] = e.Item, e.Seq
		n++
	}
	if n != items*each || len(last) != items {
		t.Errorf("%d events of %d items", n, len(last))
	}
	noTemporaryFiles(t)
}

// TestOldVersionsAreVerifiedIfTheyAreAskedFor takes a file away that only those name.
func TestOldVersionsAreVerifiedIfTheyAreAskedFor(t *testing.T) {
	mem := objstore.NewMemory()
	l, w := scattered(t, mem, 8)
	check(t, w.Close(t.Context()))
	old, err := l.table.Base(t.Context())
	check(t, err)
	gone := old.Fragments()[0].Files[0]
	_, err = l.Compact(t.Context(), MaintainOptions{})
	check(t, err)
	for info, err := range mem.List(t.Context(), objstore.ListOptions{}) {
		check(t, err)
		if strings.HasSuffix(info.Key, gone) {
			check(t, mem.Delete(t.Context(), info.Key))
		}
	}
	for limit, want := range map[int]bool{0: true, 1: false} {
		faults := 0
		stats, err := newLog(t, mem).VerifyVersions(t.Context(), limit, func(err error) {
			if faults++; !strings.Contains(err.Error(), gone) {
				t.Error(err)
			}
		})
		if err != nil || (faults > 0) != want || stats.Events != 32 || stats.Items != 8 {
			t.Errorf("%d versions: %d faults in %+v: %v", limit, faults, stats, err)
		}
	}
}
