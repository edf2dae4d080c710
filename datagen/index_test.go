package datagen

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
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
	y, err := load(l, stored.Bytes())
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
	for cut := range b.Len() {
		if _, err := load(l, b.Bytes()[:cut]); !errors.Is(err, ErrIndex) {
			t.Errorf("cut at %d: %v", cut, err)
		}
	}
	for at := range b.Len() {
		bad := bytes.Clone(b.Bytes())
		bad[at] ^= 0x40
		if _, err := load(l, bad); !errors.Is(err, ErrIndex) {
			t.Errorf("changed at %d: %v", at, err)
		}
	}
	if _, err := load(l, append(b.Bytes(), 0)); !errors.Is(err, ErrIndex) {
		t.Errorf("with more behind it: %v", err)
	}
}

// load reads a stored index.
func load(l *Log, b []byte) (*Index, error) {
	return l.LoadIndex(bytes.NewReader(b), int64(len(b)))
}

// storedWith is a stored index with this head, and these blocks behind it.
func storedWith(t testing.TB, head indexHead, blocks ...[]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	b.WriteString(indexFormat)
	raw, err := json.Marshal(head)
	check(t, err)
	w := &blockWriter{&b}
	for _, block := range append([][]byte{raw}, blocks...) {
		check(t, w.block(block))
	}
	return b.Bytes()
}

// TestAnIndexThatClaimsTooMuchIsRefused has right checksums and wrong contents.
func TestAnIndexThatClaimsTooMuchIsRefused(t *testing.T) {
	l, err := OpenOrCreate(t.Context(), objstore.NewMemory(), "p", "e", Options{})
	check(t, err)
	row := func(change func(x *Index)) []byte {
		x := l.NewIndex()
		e := Event{Item: "a", Root: "b", Parent: "c", Kind: ItemCreated, Epoch: "w"}
		x.event(&e)
		change(x)
		return x.appendRows(nil, 0, 1)
	}
	same := func(*Index) {}
	tags := []byte{0}
	for name, c := range map[string]struct {
		head   indexHead
		blocks [][]byte
		ok     bool
	}{
		"a row":             {indexHead{Items: 1, Tags: 1}, [][]byte{tags, row(same)}, true},
		"none":              {indexHead{Tags: 1}, [][]byte{tags}, true},
		"no tags":           {indexHead{}, nil, false},
		"very many tags":    {indexHead{Tags: math.MaxInt}, [][]byte{tags}, false},
		"very many items":   {indexHead{Items: math.MaxInt, Tags: 1}, [][]byte{tags, row(same)}, false},
		"negative":          {indexHead{Items: -1, Tags: 1}, [][]byte{tags}, false},
		"a block too many":  {indexHead{Items: 1, Tags: 1}, [][]byte{tags, row(same), row(same)}, false},
		"two rows of one":   {indexHead{Items: 1, Tags: 1}, [][]byte{tags, append(row(same), row(same)...)}, false},
		"half a row":        {indexHead{Items: 1, Tags: 1}, [][]byte{tags, row(same)[:20]}, false},
		"tags not there":    {indexHead{Items: 1, Tags: 1}, [][]byte{tags, row(func(x *Index) { x.rows.at(0).tags = 1 })}, false},
		"a step not there":  {indexHead{Items: 1, Tags: 1}, [][]byte{tags, row(func(x *Index) { x.sum.at(0).step = 1 })}, false},
		"a fault not there": {indexHead{Items: 1, Tags: 1}, [][]byte{tags, row(func(x *Index) { x.sum.at(0).failure = math.MaxUint32 })}, false},
		"no shard":          {indexHead{Tags: 1, UpTo: map[string]uint64{"x": 1}}, [][]byte{tags}, false},
	} {
		x, err := load(l, storedWith(t, c.head, c.blocks...))
		if (err == nil) != c.ok || err != nil && !errors.Is(err, ErrIndex) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil && x.Len() != c.head.Items {
			t.Errorf("%s: %d items", name, x.Len())
		}
	}
}

// FuzzLoadIndex reads stored indexes whose checksums are right.
func FuzzLoadIndex(f *testing.F) {
	l, err := OpenOrCreate(f.Context(), objstore.NewMemory(), "p", "e", Options{})
	check(f, err)
	x := bigIndexOf(f, l, 3)
	f.Add([]byte(`{"Items":3,"Tags":1}`), []byte{0}, []byte(x.appendRows(nil, 0, 3)))
	f.Fuzz(func(t *testing.T, head, tags, rows []byte) {
		var b bytes.Buffer
		b.WriteString(indexFormat)
		w := &blockWriter{&b}
		check(t, errors.Join(w.block(head), w.block(tags), w.block(rows)))
		x, err := load(l, b.Bytes())
		if err != nil {
			if !errors.Is(err, ErrIndex) {
				t.Error(err)
			}
			return
		}
		x.Overview()
		if items, total := x.List(ItemQuery{Filter: Filter{Tags: map[string]string{"a": "b"}}}); len(items) != total || total > x.Len() {
			t.Errorf("%d items, %d in all, of %d", len(items), total, x.Len())
		}
		var again bytes.Buffer
		check(t, x.Save(&again))
		if y, err := load(l, again.Bytes()); err != nil || y.Len() != x.Len() {
			t.Error("what was loaded is not stored as it was", err)
		}
	})
}

// gate is a writer that waits in its first row block until it may go on.
type gate struct {
	blocks  int
	reached chan struct{}
	pass    chan struct{}
}

func (g *gate) Write(b []byte) (int, error) {
	if g.blocks++; g.blocks == 6 { // the format, and lengths and contents of the head, tags and rows
		close(g.reached)
		<-g.pass
	}
	return len(b), nil
}

// TestStoringAnIndexKeepsNobodyWaiting: while one is stored, questions are answered, a
// look that finds nothing new does not wait, and news ends the storing.
func TestStoringAnIndexKeepsNobodyWaiting(t *testing.T) {
	ctx := t.Context()
	l, err := OpenOrCreate(ctx, objstore.NewMemory(), "p", "e", Options{})
	check(t, err)
	w, err := l.NewWriter(ctx, WriterOptions{MergeAfter: -1})
	check(t, err)
	x := bigIndexOf(t, l, 3*chunk)
	items := x.Len()
	_, err = x.Update(ctx)
	check(t, err)
	g := &gate{reached: make(chan struct{}), pass: make(chan struct{})}
	stored := make(chan error, 1)
	go func() { stored <- x.Save(g) }()
	<-g.reached
	if changed, err := x.Update(ctx); err != nil || changed {
		t.Errorf("nothing new: %v %v", changed, err)
	}
	writeSome(t, w, 0, 1, rand.New(rand.NewPCG(1, 2)))
	updated := make(chan error, 1)
	go func() { _, err := x.Update(ctx); updated <- err }()
	for x.wanted.Load() == 0 {
		runtime.Gosched()
	}
	if _, total := x.List(ItemQuery{Limit: 1}); total != items || x.Overview().Items != items {
		t.Errorf("%d items, want %d", total, items)
	}
	close(g.pass)
	if err := <-stored; !errors.Is(err, ErrIndexMoved) {
		t.Errorf("storing ends with %v", err)
	}
	check(t, <-updated)
	if x.Len() != items+1 {
		t.Errorf("%d items, want %d", x.Len(), items+1)
	}
	var b bytes.Buffer
	check(t, x.Save(&b))
	y, err := load(l, b.Bytes())
	check(t, err)
	want, _ := x.List(ItemQuery{})
	got, _ := y.List(ItemQuery{})
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-stored +loaded)\n%s", d)
	}
}

// bigIndex has many items without a log behind them.
func bigIndex(b *testing.B, n int) *Index {
	l, err := OpenOrCreate(b.Context(), objstore.NewMemory(), "p", "e", Options{})
	check(b, err)
	return bigIndexOf(b, l, n)
}

func bigIndexOf(b testing.TB, l *Log, n int) *Index {
	b.Helper()
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
			x.overview, x.counts = nil, nil
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
			if _, err := load(x.log, stored.Bytes()); err != nil {
				b.Fatal(err)
			}
		}
	})
}
