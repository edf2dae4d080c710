package memwal

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/foldlog/foldlog/lance"
	"github.com/foldlog/foldlog/objstore"
)

// grouped is a table of a key, a group and a value.
var grouped = arrow.NewSchema([]arrow.Field{
	{Name: "k", Type: arrow.BinaryTypes.String, Metadata: arrow.NewMetadata([]string{"lance-schema:unenforced-primary-key"}, []string{"true"})},
	{Name: "g", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "v", Type: arrow.PrimitiveTypes.Int64},
}, nil)

// model is what a table of groups should hold.
type model map[string]struct {
	g string
	v int64
}

func (m model) batch(keys []string) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(append(grouped.Fields(), arrow.Field{Name: Tombstone, Type: arrow.FixedWidthTypes.Boolean}), nil))
	for _, k := range keys {
		r, there := m[k]
		b.Field(0).(*array.StringBuilder).Append(k)
		if r.g == "" {
			b.Field(1).AppendNull()
		} else {
			b.Field(1).(*array.StringBuilder).Append(r.g)
		}
		b.Field(2).(*array.Int64Builder).Append(r.v)
		b.Field(3).(*array.BooleanBuilder).Append(!there)
	}
	return b.NewRecordBatch()
}

// change puts and deletes keys, and returns which.
func (m model) change(r *rand.Rand, n, of int) []string {
	touched := map[string]bool{}
	for range n {
		k := fmt.Sprintf("key-%05d", r.IntN(of))
		touched[k] = true
		if r.IntN(8) == 0 {
			delete(m, k)
			continue
		}
		row := m[k]
		row.g, row.v = fmt.Sprintf("group-%d", r.IntN(40)), int64(r.IntN(1000))
		if r.IntN(10) == 0 {
			row.g = ""
		}
		m[k] = row
	}
	return slices.Sorted(maps.Keys(touched))
}

// lines are the rows for which a condition holds.
func (m model) lines(holds func(k, g string, v int64) bool) []string {
	var out []string
	for k, r := range m {
		if holds(k, r.g, r.v) {
			g := r.g
			if g == "" {
				g = "null"
			}
			out = append(out, fmt.Sprintf("k=%s g=%s v=%d ", k, g, r.v))
		}
	}
	slices.Sort(out)
	return out
}

// TestScansAgreeWithAModel scans with all kinds of filters a table whose generations
// replace and delete rows of the base and of each other, with an index on the key, on
// the group, or on none, and through views that have cached the generations and not.
func TestScansAgreeWithAModel(t *testing.T) {
	for seed, indexes := range [][]string{{}, {"k"}, {"k", "g"}, {"g"}} {
		t.Run(fmt.Sprint(indexes), func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(seed), 1))
			s := objstore.NewMemory()
			table := newTable(t, s, grouped)
			w := newWriter(t, table, manual)
			m := model{}
			ok(t, w.Append(t.Context(), m.batch(m.change(r, 5000, 4000))))
			_, err := w.Merge(t.Context())
			ok(t, err)
			d, err := table.Base(t.Context())
			ok(t, err)
			for _, column := range indexes {
				d, err = d.CreateIndex(t.Context(), column)
				ok(t, err)
			}
			for range 12 {
				agree(t, table, m)
				ok(t, w.Append(t.Context(), m.batch(m.change(r, 4, 4100))))
			}
			fresh, err := Open(t.Context(), s)
			ok(t, err)
			agree(t, fresh, m)
			ok(t, w.Append(t.Context(), m.batch(m.change(r, 3000, 4100)))) // more keys than lookups pay for
			agree(t, table, m)
		})
	}
}

func agree(t *testing.T, table *Table, m model) {
	t.Helper()
	v, err := table.View(t.Context())
	ok(t, err)
	for _, c := range []struct {
		filter []lance.Condition
		holds  func(k, g string, v int64) bool
	}{
		{nil, func(string, string, int64) bool { return true }},
		{[]lance.Condition{{Column: "g", Value: "group-7"}}, func(_, g string, _ int64) bool { return g == "group-7" }},
		{[]lance.Condition{{Column: "g", Op: lance.In, Values: []any{"group-1", "none", "group-39"}}}, func(_, g string, _ int64) bool { return g == "group-1" || g == "group-39" }},
		{[]lance.Condition{{Column: "k", Value: "key-00017"}}, func(k, _ string, _ int64) bool { return k == "key-00017" }},
		{[]lance.Condition{{Column: "v", Value: 17}}, func(_, _ string, v int64) bool { return v == 17 }},
		{[]lance.Condition{{Column: "v", Op: lance.Less, Value: 100}}, func(_, _ string, v int64) bool { return v < 100 }},
		{[]lance.Condition{{Column: "g", Op: lance.IsNull}}, func(_, g string, _ int64) bool { return g == "" }},
		{[]lance.Condition{{Column: "g", Value: "group-7"}, {Column: "v", Op: lance.GreaterOrEqual, Value: 500}}, func(_, g string, v int64) bool { return g == "group-7" && v >= 500 }},
	} {
		want := m.lines(c.holds)
		same(t, fmt.Sprint(c.filter), want, texts(t, v.Scan(t.Context(), lance.ScanOptions{Filter: c.filter})))
		limited := texts(t, v.Scan(t.Context(), lance.ScanOptions{Filter: c.filter, Limit: 3}))
		if len(limited) != min(3, len(want)) {
			t.Errorf("%v: %d rows with a limit of 3", c.filter, len(limited))
		}
		without := texts(t, v.Scan(t.Context(), lance.ScanOptions{Filter: c.filter, Columns: []string{"v"}}))
		if len(without) != len(want) {
			t.Errorf("%v: %d rows without the key, want %d", c.filter, len(without), len(want))
		}
	}
}

// TestGenerationsAreDecodedOnce counts what a second scan reads of generations, and that
// what is forgotten gives its memory back.
func TestGenerationsAreDecodedOnce(t *testing.T) {
	var reads atomic.Int32
	mem := objstore.NewMemory()
	hooked := objstore.NewFault(mem, func(objstore.Call) objstore.Fate {
		reads.Add(1)
		return objstore.Fate{}
	})
	writing := newTable(t, mem, grouped)
	w := newWriter(t, writing, manual)
	m, r := model{}, rand.New(rand.NewPCG(3, 3))
	for range 10 {
		ok(t, w.Append(t.Context(), m.batch(m.change(r, 5, 100))))
	}
	table, err := Open(t.Context(), hooked)
	ok(t, err)
	v, err := table.View(t.Context())
	ok(t, err)
	none := lance.ScanOptions{Filter: []lance.Condition{{Column: "g", Value: "nowhere"}}}
	texts(t, v.Scan(t.Context(), none))
	if table.cached.Load() == 0 {
		t.Error("nothing is kept")
	}
	reads.Store(0)
	texts(t, v.Scan(t.Context(), none))
	if n := reads.Load(); n > 0 {
		t.Errorf("a second scan makes %d calls", n)
	}
	_, err = w.Merge(t.Context())
	ok(t, err)
	_, err = table.View(t.Context())
	ok(t, err)
	if n := table.cached.Load(); n != 0 {
		t.Errorf("%d bytes are kept of generations that are gone", n)
	}
}

// TestGenerationsThatGoDuringAVerificationAreNoFault: the base takes long, and meanwhile
// they are merged and removed.
func TestGenerationsThatGoDuringAVerificationAreNoFault(t *testing.T) {
	mem := objstore.NewMemory()
	table := newTable(t, mem, small)
	w := newWriter(t, table, manual)
	ok(t, w.Append(t.Context(), kv("a", 1)))
	_, err := w.Merge(t.Context())
	ok(t, err)
	ok(t, w.Append(t.Context(), kv("b", 2)))
	maintained := false
	hooked, err := Open(t.Context(), objstore.NewFault(mem, func(c objstore.Call) objstore.Fate {
		if !maintained && strings.HasPrefix(c.Key, "data/") {
			maintained = true
			_, err := table.Adopt(t.Context(), w.Shard(), MergeOptions{})
			ok(t, err)
			for range 2 {
				_, err = table.Collect(t.Context(), CollectOptions{AnyAge: true, Now: time.Now().Add(time.Minute)})
				ok(t, err)
			}
		}
		return objstore.Fate{}
	}))
	ok(t, err)
	_, err = hooked.Verify(t.Context(), func(err error) { t.Errorf("found %v", err) })
	ok(t, err)
	if !maintained {
		t.Error("nothing went meanwhile")
	}
}
