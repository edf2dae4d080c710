package datagen

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/internal/lancetest"
	"github.com/foldlog/foldlog/lance"
	"github.com/foldlog/foldlog/lance/memwal"
	"github.com/foldlog/foldlog/objstore"
)

// rushed is maintenance as if nothing else used the log.
var rushed = MaintainOptions{Rate: -1, AnyAge: true, All: true}

func maintain(t testing.TB, l *Log) MaintainStats {
	t.Helper()
	stats, err := l.MaintainOnce(t.Context(), rushed)
	check(t, err)
	return stats
}

// realAgrees holds the rows that this package reads against those that the real Lance
// library reads.
func realAgrees(t *testing.T, dir string) {
	t.Helper()
	real, there := lancetest.Real(t)
	if !there {
		return
	}
	s, err := objstore.OpenLocal(dir, objstore.LocalOptions{})
	check(t, err)
	l, err := Open(t.Context(), s, "digits", "first", quick)
	check(t, err)
	m, err := l.table.View(t.Context())
	check(t, err)
	var ours []string
	for b, err := range m.Scan(t.Context(), lance.ScanOptions{}) {
		check(t, err)
		ours = append(ours, lancetest.Text(b.RecordBatch)...)
	}
	theirs := real.Rows(t, "scan", lancetest.Args{"dir": filepath.Join(dir, Directory, "digits", "first")})
	slices.Sort(ours)
	slices.Sort(theirs) // which has rows twice that lie in two shards
	if d := cmp.Diff(ours, slices.Compact(theirs)); d != "" {
		t.Errorf("the real Lance reads other rows: %s", d)
	}
}

func TestBlobsAreTheSameOnEveryPath(t *testing.T) {
	large := 50 << 20
	if testing.Short() {
		large = 1 << 20
	}
	dir := t.TempDir()
	s, err := objstore.OpenLocal(dir, objstore.LocalOptions{NoSync: true})
	check(t, err)
	l := newLog(t, s)
	w := newWriter(t, l)
	blobs := map[string][]byte{"empty": {}, "four": []byte("four"), "large": bytes.Repeat([]byte("0123456789abcdef"), large/16)}
	st, err := w.Open(t.Context(), "a", CreateOptions{})
	check(t, err)
	var changes []Change
	for _, name := range []string{"empty", "four", "large"} {
		changes = append(changes, Set(name, BlobValue(blobs[name])))
	}
	check(t, st.Checkpoint(t.Context(), step(0), changes))
	read := func(when string) {
		t.Helper()
		v, err := l.View(t.Context())
		check(t, err)
		it, err := v.Item(t.Context(), "a", AsOf{})
		check(t, err)
		for name, want := range blobs {
			f, _ := it.Field(name)
			ref := f.Value().Blob
			if ref.Bytes != nil {
				t.Errorf("%s: the fold of %s has the bytes", when, name)
			}
			got, err := v.Blob(t.Context(), ref)
			check(t, err)
			if !bytes.Equal(got, want) || got == nil {
				t.Errorf("%s: blob %s has %d bytes", when, name, len(got))
			}
			ref.Checksum = Checksum([]byte("another"))
			if _, err := v.Blob(t.Context(), ref); err == nil {
				t.Errorf("%s: a wrong checksum of %s passes", when, name)
			}
		}
	}
	read("in a generation")
	check(t, st.End(t.Context(), EndCompleted))
	check(t, w.Close(t.Context()))
	read("merged")
	other := newWriter(t, l)
	b, err := other.Open(t.Context(), "b", CreateOptions{})
	check(t, err)
	check(t, b.CheckpointEnd(t.Context(), step(0), []Change{Set("four", BlobValue(blobs["four"]))}, EndCompleted))
	check(t, other.Close(t.Context()))
	if stats := maintain(t, l); stats.Compacted.Removed == 0 || !stats.Indexed {
		t.Errorf("maintenance %+v", stats)
	}
	read("compacted and indexed")
	realAgrees(t, dir)
	stats, err := l.Verify(t.Context(), func(err error) { t.Error(err) })
	check(t, err)
	if stats.Blobs != 4 || stats.Items != 2 {
		t.Errorf("verified %+v", stats)
	}
}

// TestEverybodyAgreesWhateverMaintenanceDoes lets workers, one of which dies, readers
// and maintenance run at once.
func TestEverybodyAgreesWhateverMaintenanceDoes(t *testing.T) {
	dir := t.TempDir()
	s, err := objstore.OpenLocal(dir, objstore.LocalOptions{NoSync: true})
	check(t, err)
	l := newLog(t, s)
	dead := newWriter(t, logWith(t, s, quick))
	old, err := dead.Open(t.Context(), "source-0", CreateOptions{})
	check(t, err)
	check(t, old.Checkpoint(t.Context(), step(0), []Change{set("x", 0), {Append: true, Field: set("log", 0).Field}}))
	crash(dead)

	ctx, cancel := context.WithCancel(t.Context())
	var background sync.WaitGroup
	background.Go(func() {
		opts := MaintainOptions{Every: 10 * time.Millisecond, Rate: -1, All: true}
		opts.Report = func(_ MaintainStats, err error) {
			if err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		}
		if err := newLog(t, s).Maintain(ctx, opts); err != nil {
			t.Error(err)
		}
	})
	seen := map[string]int{}
	last := map[string]int64{}
	var quiet atomic.Int64
	background.Go(func() {
		opts := FollowOptions{Existing: true, Poll: 5 * time.Millisecond, Quiet: func() { quiet.Add(1) }}
		for e, err := range l.Follow(ctx, opts) {
			if err != nil {
				t.Error(err)
				return
			}
			seen[e.ID]++
			if n, ok := last[e.Item]; ok && e.Seq != n+1 || !ok && e.Seq != 0 {
				t.Errorf("item %s: %d follows %d", e.Item, e.Seq, n)
			}
			last[e.Item] = e.Seq
		}
	})
	keys := someKeys(24)
	var workers sync.WaitGroup
	for range 3 {
		workers.Go(func() {
			if err := newWorld().run(t.Context(), s, steady, keys, 3); err != nil {
				t.Error(err)
			}
		})
	}
	workers.Wait()
	for from := quiet.Load(); quiet.Load() < from+2 && !t.Failed(); { // one poll that began after now
		time.Sleep(time.Millisecond)
	}
	cancel()
	background.Wait()

	if d := cmp.Diff(outcomeOf(t, keys), outcome(t, s)); d != "" {
		t.Error(d)
	}
	realAgrees(t, dir)
	maintain(t, l)
	if d := cmp.Diff(outcomeOf(t, keys), outcome(t, s)); d != "" {
		t.Errorf("after maintenance: %s", d)
	}
	realAgrees(t, dir)
	v, err := l.View(t.Context())
	check(t, err)
	for e, err := range v.All(t.Context()) {
		check(t, err)
		if seen[e.ID] != 1 {
			t.Errorf("event %d of item %s was followed %d times", e.Seq, e.Item, seen[e.ID])
		}
	}
	if _, err := l.Verify(t.Context(), func(err error) { t.Error(err) }); err != nil {
		t.Error(err)
	}
}

func TestCoordinationFilesDoNotPileUp(t *testing.T) {
	mem := objstore.NewMemory()
	l := newLog(t, mem)
	for i := range 10 {
		w := newWriter(t, l)
		for k := range 10 {
			s, err := w.Open(t.Context(), fmt.Sprintf("%d-%d", i, k), CreateOptions{})
			check(t, err)
			check(t, s.CheckpointEnd(t.Context(), step(0), nil, EndCompleted))
		}
		check(t, w.Close(t.Context()))
	}
	maintain(t, l)
	maintain(t, l)
	files := 0
	for info, err := range mem.List(t.Context(), objstore.ListOptions{}) {
		check(t, err)
		files++
		_ = info
	}
	if files > 30 {
		t.Errorf("%d files", files)
	}
	if n := len(l.watches.by); n > 0 {
		t.Errorf("%d writers are watched of which nothing is left", n)
	}
}

// TestMaintenanceTellsThatClaimsCannotBeRead fails the reading of a claim file.
func TestMaintenanceTellsThatClaimsCannotBeRead(t *testing.T) {
	broken := errors.New("broken")
	var failing atomic.Bool
	l := newLog(t, objstore.NewFault(objstore.NewMemory(), func(c objstore.Call) objstore.Fate {
		if failing.Load() && c.Op == "get" && strings.Contains(c.Key, claimsDir) {
			return objstore.Fate{Err: broken}
		}
		return objstore.Fate{}
	}))
	w := newWriter(t, l)
	_, err := w.Open(t.Context(), "one", CreateOptions{}) // claimed, and nothing written
	check(t, err)
	failing.Store(true)
	if _, err := l.MaintainOnce(t.Context(), MaintainOptions{Rate: -1}); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

// TestRawEventsAreWrittenOnce appends events that say themselves what they are.
func TestRawEventsAreWrittenOnce(t *testing.T) {
	mem := objstore.NewMemory()
	l := newLog(t, mem)
	st := step(0)
	batch := func(x int64) []Event {
		c := set("x", x)
		return []Event{
			{Item: "a", Checkpoint: "one", Seq: 0, Kind: ItemCreated},
			{Item: "a", Checkpoint: "two", Seq: 1, Kind: FieldSet, Step: &st, Field: &c.Field},
			{Item: "a", Checkpoint: "two", Seq: 2, Kind: StepCompleted, Step: &st},
		}
	}
	for range 2 {
		w := newWriter(t, l)
		check(t, w.Append(t.Context(), batch(1)))
		check(t, w.Append(t.Context(), batch(1)))
		if err := w.Append(t.Context(), batch(2)); err == nil {
			t.Error("other contents of the same events were taken")
		}
		late := []Event{{Item: "a", Checkpoint: "three", Seq: 1, Kind: ItemEnded, End: EndCompleted}}
		if err := w.Append(t.Context(), late); err == nil {
			t.Error("a sequence was taken twice")
		}
		check(t, w.Close(t.Context()))
	}
	v, err := l.View(t.Context())
	check(t, err)
	events, err := v.Events(t.Context(), "a")
	check(t, err)
	if len(events) != 3 {
		t.Errorf("%d events", len(events))
	}
	outcome(t, mem)
}

// TestMaintenanceMayStopAnywhere crashes it at every change that it makes.
func TestMaintenanceMayStopAnywhere(t *testing.T) {
	for n := 1; ; n++ {
		mem := objstore.NewMemory()
		l, err := OpenOrCreate(t.Context(), mem, "digits", "first", hurried)
		check(t, err)
		for i := range 3 {
			w, err := l.NewWriter(t.Context(), WriterOptions{MergeAfter: -1})
			check(t, err)
			for k := range 2 {
				s, err := w.Open(t.Context(), fmt.Sprintf("%d-%d", i, k), CreateOptions{})
				check(t, err)
				check(t, s.CheckpointEnd(t.Context(), step(0), []Change{set("x", int64(i))}, EndCompleted))
			}
			if i == 0 {
				check(t, w.Close(t.Context()))
			} else {
				crash(w)
			}
		}
		want := outcome(t, mem)
		broken, err := Open(t.Context(), crashing(mem, n, n%2 == 0), "digits", "first", hurried)
		check(t, err)
		for err == nil { // until it crashes, or has nothing left to do
			var stats MaintainStats
			if stats, err = broken.MaintainOnce(t.Context(), rushed); err == nil && stats.Adopted == 0 {
				time.Sleep(hurried.LeaseTerm)
				if stats, err = broken.MaintainOnce(t.Context(), rushed); err == nil && stats.Adopted == 0 {
					break
				}
			}
		}
		if d := cmp.Diff(want, outcome(t, mem)); d != "" {
			t.Fatalf("stopped at change %d: %s", n, d)
		}
		again, openErr := Open(t.Context(), mem, "digits", "first", hurried)
		check(t, openErr)
		maintain(t, again)
		if d := cmp.Diff(want, outcome(t, mem)); d != "" {
			t.Fatalf("stopped at change %d, and done again: %s", n, d)
		}
		if _, err := again.Verify(t.Context(), func(err error) { t.Errorf("stopped at change %d: %v", n, err) }); err != nil {
			t.Fatal(err)
		}
		if err == nil {
			t.Logf("%d changes", n)
			return
		}
	}
}

// TestCopiesThatDifferAreAFault puts one identity with two contents into two shards, past
// what our writers check.
func TestCopiesThatDifferAreAFault(t *testing.T) {
	l := logWith(t, objstore.NewMemory(), quick)
	at := time.UnixMicro(1_700_000_000_000_000)
	for run := range 2 {
		events := []Event{
			{Item: "a", Checkpoint: "one", Kind: ItemCreated, Run: "same", Epoch: "foreign"},
			{Item: "b", Checkpoint: "one", Kind: ItemCreated, Run: fmt.Sprint("run-", run), Epoch: "foreign"},
		}
		FillBatch(events[:1], at)
		FillBatch(events[1:], at)
		rows, err := Record(events)
		check(t, err)
		w, err := l.table.NewWriter(t.Context(), memwal.WriterOptions{MergeAfter: -1})
		check(t, err)
		check(t, w.Append(t.Context(), rows))
		check(t, w.Close())
	}
	atFault(t, l)
	shards, err := l.table.Shards(t.Context())
	check(t, err)
	for i, s := range shards { // one is in the table then, and the other is not
		_, err := l.table.Adopt(t.Context(), s.ID, l.merging)
		check(t, err)
		if atFault(t, l); i == 1 {
			_, err := l.MaintainOnce(t.Context(), MaintainOptions{All: true, Rate: -1})
			check(t, err)
			atFault(t, l)
		}
	}
	w := newWriter(t, l)
	s := eventually(t, w, "a") // once the shard without a lease has stood still
	check(t, s.End(t.Context(), EndCompleted))
}

// atFault checks that item b has a fault and item a has none, whoever looks.
func atFault(t *testing.T, l *Log) {
	t.Helper()
	v, err := l.View(t.Context())
	check(t, err)
	for item, faults := range map[string]bool{"a": false, "b": true} {
		it, err := v.Item(t.Context(), item, AsOf{})
		check(t, err)
		if len(it.Faults) > 0 != faults {
			t.Errorf("item %s: %v", item, it.Faults)
		}
	}
	for it, err := range v.Folds(t.Context()) {
		check(t, err)
		if len(it.Faults) > 0 != (it.ID == "b") {
			t.Errorf("item %s of all: %v", it.ID, it.Faults)
		}
	}
	o, err := v.Overview(t.Context())
	check(t, err)
	if o.Items != 2 || o.Events != 3 || o.Suspects != 1 {
		t.Errorf("overview %+v", o)
	}
	found := 0
	stats, err := l.Verify(t.Context(), func(err error) {
		if errors.Is(err, ErrFault) && strings.Contains(err.Error(), `"b"`) {
			found++
		}
	})
	check(t, err)
	if found == 0 || stats.Events != 3 {
		t.Errorf("verified %+v, found %d", stats, found)
	}
}
