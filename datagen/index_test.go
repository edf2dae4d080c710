package datagen

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/foldlog/foldlog/objstore"
)

// writeSome writes items through a writer: roots with tags, sub-items, failures, ends.
func writeSome(t *testing.T, w *Writer, from, to int, r *rand.Rand) {
	t.Helper()
	ctx := t.Context()
	for i := from; i < to; i++ {
		tags := []byte(fmt.Sprintf(`{"split":"%s"}`, []string{"train", "test"}[i%2]))
		s, err := w.Open(ctx, "item-"+strconv.Itoa(i), CreateOptions{Tags: tags})
		check(t, err)
		for k := range 1 + r.IntN(3) {
			check(t, s.Checkpoint(ctx, step(k), []Change{Set("n", IntValue(int64(i)))}))
		}
		switch i % 5 {
		case 0:
			st := step(3)
			check(t, s.Fail(ctx, &st, Failure{Type: "Err" + strconv.Itoa(i%3)}))
		case 1:
			check(t, s.End(ctx, EndCompleted))
		case 2:
			sub, err := s.Sub(ctx, "part", 0, CreateOptions{})
			check(t, err)
			check(t, sub.CheckpointEnd(ctx, step(0), nil, EndFiltered))
		}
		check(t, s.Close(ctx))
	}
}

func summaries(t *testing.T, v *View, f Filter) []ItemSummary {
	t.Helper()
	list := []ItemSummary{}
	for s, err := range v.Items(t.Context(), ItemQuery{Filter: f}) {
		check(t, err)
		list = append(list, s)
	}
	return list
}

func sameAsLog(t *testing.T, l *Log, x *Index) {
	t.Helper()
	v, err := l.View(t.Context())
	check(t, err)
	for name, f := range map[string]Filter{
		"all": {}, "failed": {Status: []Status{StatusFailed}}, "tagged": {Tags: map[string]string{"split": "test"}},
		"step": {Step: step(1).Name}, "error": {ErrorType: "Err1"}, "tree": {Root: "item-2"}, "prefix": {Prefix: "item-1"}, "suspect": {Suspect: true},
	} {
		got, total := x.List(ItemQuery{Filter: f})
		want := summaries(t, v, f)
		if d := cmp.Diff(want, got); d != "" || total != len(want) {
			t.Errorf("%s: (-log +index) %d\n%s", name, total, d)
		}
	}
	want, err := v.Overview(t.Context())
	check(t, err)
	if d := cmp.Diff(want, x.Overview()); d != "" {
		t.Errorf("overview (-log +index)\n%s", d)
	}
}

func TestAnIndexIsWhatTheLogSays(t *testing.T) {
	ctx := t.Context()
	store, err := objstore.OpenLocal(t.TempDir(), objstore.LocalOptions{NoSync: true})
	check(t, err)
	l, err := OpenOrCreate(ctx, store, "p", "e", Options{})
	check(t, err)
	r := rand.New(rand.NewPCG(1, 2))
	w, err := l.NewWriter(ctx, WriterOptions{MergeAfter: -1})
	check(t, err)
	writeSome(t, w, 0, 20, r)
	x := l.NewIndex()
	changed, err := x.Update(ctx)
	check(t, err)
	if !changed {
		t.Error("a full log is no change")
	}
	sameAsLog(t, l, x)
	before := x.Version()

	// More in generations, then merged unseen by a writer that ends, then more again.
	writeSome(t, w, 20, 30, r)
	_, err = x.Update(ctx)
	check(t, err)
	sameAsLog(t, l, x)
	if items, more := x.Changed(before, 100); len(items) != 12 || more {
		t.Errorf("%d items have changed, more %v", len(items), more)
	}
	if items, more := x.Changed(before, 5); len(items) != 5 || !more {
		t.Errorf("%d items have changed, more %v", len(items), more)
	}
	writeSome(t, w, 30, 40, r)
	check(t, w.Close(ctx))
	var stored bytes.Buffer
	check(t, x.Save(&stored))
	_, err = x.Update(ctx)
	check(t, err)
	sameAsLog(t, l, x)
	changed, err = x.Update(ctx)
	check(t, err)
	if changed {
		t.Error("nothing new is a change")
	}

	// What was stored goes on where it was, after a compaction too.
	_, err = l.Compact(ctx, MaintainOptions{AnyAge: true, All: true})
	check(t, err)
	y, err := l.LoadIndex(stored.Bytes())
	check(t, err)
	_, err = y.Update(ctx)
	check(t, err)
	sameAsLog(t, l, y)
}

func TestPagesOfAnIndexAreTheWholeList(t *testing.T) {
	ctx := t.Context()
	l, err := OpenOrCreate(ctx, objstore.NewMemory(), "p", "e", Options{})
	check(t, err)
	w, err := l.NewWriter(ctx, WriterOptions{})
	check(t, err)
	writeSome(t, w, 0, 30, rand.New(rand.NewPCG(3, 4)))
	x := l.NewIndex()
	_, err = x.Update(ctx)
	check(t, err)
	for _, order := range []ItemOrder{ByCreation, ByUpdate, ByID, ByEvents} {
		want, _ := x.List(ItemQuery{Order: order, Roots: true})
		var got []ItemSummary
		q := ItemQuery{Order: order, Roots: true, Limit: 7}
		for {
			page, total := x.List(q)
			if total != 30 {
				t.Errorf("%s: %d in all", order, total)
			}
			if got = append(got, page...); len(page) < 7 {
				break
			}
			p := order.Place(&page[6])
			q.After = &p
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-whole +pages)\n%s", order, d)
		}
		pagesByPlace(t, x, order, want)
	}
	all, _ := x.List(ItemQuery{})
	writeSome(t, w, 30, 33, rand.New(rand.NewPCG(5, 6)))
	_, err = x.Update(ctx)
	check(t, err)
	end := func() int { _, total := x.List(ItemQuery{Offset: len(all), Limit: 1}); return total }
	for deadline := time.Now().Add(time.Minute); end() == len(all); { // an order may be a moment old
		if time.Now().After(deadline) {
			t.Fatal("what is new never comes into the order")
		}
	}
}

// pagesByPlace asks for the middle of a list, from both ends.
func pagesByPlace(t *testing.T, x *Index, order ItemOrder, want []ItemSummary) {
	t.Helper()
	back := slices.Clone(want)
	slices.Reverse(back)
	for _, c := range []struct {
		list    []ItemSummary
		from    int
		reverse bool
	}{{want, 1, false}, {want, 13, false}, {want, 28, false}, {want, 30, false}, {want, 99, false}, {back, 0, true}, {back, 11, true}, {back, 29, true}} {
		got, total := x.List(ItemQuery{Order: order, Roots: true, Offset: c.from, Reverse: c.reverse, Limit: 4})
		from := min(c.from, len(c.list))
		if d := cmp.Diff(c.list[from:min(from+4, len(c.list))], got, cmpopts.EquateEmpty()); d != "" || total != len(want) {
			t.Errorf("%s from %d, reverse %v, %d in all (-want +got)\n%s", order, c.from, c.reverse, total, d)
		}
	}
}

func TestADamagedIndexIsRefused(t *testing.T) {
	ctx := t.Context()
	l, err := OpenOrCreate(ctx, objstore.NewMemory(), "p", "e", Options{})
	check(t, err)
	w, err := l.NewWriter(ctx, WriterOptions{})
	check(t, err)
	writeSome(t, w, 0, 3, rand.New(rand.NewPCG(5, 6)))
	x := l.NewIndex()
	_, err = x.Update(ctx)
	check(t, err)
	var b bytes.Buffer
	check(t, x.Save(&b))
	for _, cut := range []int{0, 5, len(indexFormat) + 2, b.Len() / 2, b.Len() - 1} {
		if _, err := l.LoadIndex(b.Bytes()[:cut]); err == nil {
			t.Errorf("cut at %d: it is taken", cut)
		}
	}
	stored := x.stored()
	_, err = stored.encode()
	check(t, err)
	for i := range stored.Sizes {
		bad := stored.indexHead
		bad.Sizes = slices.Clone(bad.Sizes)
		bad.Sizes[i] = -1
		head, err := json.Marshal(bad)
		check(t, err)
		_, body, _ := bytes.Cut(b.Bytes()[len(indexFormat):b.Len()-4], []byte("\n"))
		whole := slices.Concat([]byte(indexFormat), head, []byte("\n"), body)
		if _, err := l.LoadIndex(binary.LittleEndian.AppendUint32(whole, crc32.ChecksumIEEE(whole))); !errors.Is(err, ErrIndex) {
			t.Errorf("column %d of -1 values: %v", i, err)
		}
	}
	for at := 0; at < b.Len(); at += 7 {
		bad := bytes.Clone(b.Bytes())
		bad[at] ^= 0x40
		if _, err := l.LoadIndex(bad); err == nil {
			t.Errorf("changed at %d: it is taken", at)
		}
	}
}

// bigIndex has many items without a log behind them.
func bigIndex(b *testing.B, n int) *Index {
	l, err := OpenOrCreate(b.Context(), objstore.NewMemory(), "p", "e", Options{})
	check(b, err)
	x := l.NewIndex()
	x.version, x.frags = 1, map[uint64]bool{}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i := range n {
		id := "digit-" + strconv.Itoa(i)
		at = at.Add(time.Millisecond)
		e := Event{Item: id, Root: id, Kind: ItemCreated, Time: at, Epoch: "w", Tags: []byte(`{"label":` + strconv.Itoa(i%10) + `}`)}
		x.event(&e)
		for k := range 3 {
			st := step(k)
			done := Event{Item: id, Root: id, Kind: StepCompleted, Seq: int64(k + 1), Time: at, Epoch: "w", Step: &st}
			x.event(&done)
		}
	}
	return x
}

func BenchmarkIndexOfAMillionItems(b *testing.B) {
	x := bigIndex(b, 1_000_000)
	for name, q := range map[string]ItemQuery{
		"middle":  {Order: ByUpdate, Offset: 500_000},
		"created": {}, "updated": {Order: ByUpdate}, "item": {Order: ByID}, "events": {Order: ByEvents},
		"tags": {Filter: Filter{Tags: map[string]string{"label": "3"}}}, "prefix": {Filter: Filter{Prefix: "digit-99"}},
	} {
		q.Limit = 100
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if items, total := x.List(q); len(items) != 100 || total < 1000 {
					b.Fatal(len(items), total)
				}
			}
		})
	}
	b.Run("overview", func(b *testing.B) {
		for b.Loop() {
			x.overview = nil
			if x.Overview().Items != 1_000_000 {
				b.Fatal("items are missing")
			}
		}
	})
	var stored bytes.Buffer
	b.Run("save", func(b *testing.B) {
		for b.Loop() {
			stored.Reset()
			check(b, x.Save(&stored))
		}
		b.ReportMetric(float64(stored.Len())/1e6, "MB")
	})
	b.Run("load", func(b *testing.B) {
		for b.Loop() {
			if _, err := x.log.LoadIndex(stored.Bytes()); err != nil {
				b.Fatal(err)
			}
		}
	})
}
