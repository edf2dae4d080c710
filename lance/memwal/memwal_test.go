package memwal

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/internal/lancetest"
	"github.com/foldlog/foldlog/internal/proctest"
	"github.com/foldlog/foldlog/internal/s3test"
	"github.com/foldlog/foldlog/lance"
	"github.com/foldlog/foldlog/objstore"
)

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func want(t testing.TB, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("error %v, want %v", err, target)
	}
}

// small is a table of a key and a value, for tests of many small steps.
var small = arrow.NewSchema([]arrow.Field{
	{Name: "k", Type: arrow.BinaryTypes.String, Metadata: arrow.NewMetadata([]string{"lance-schema:unenforced-primary-key"}, []string{"true"})},
	{Name: "v", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
}, nil)

// kv makes a batch of alternating keys and values.
func kv(pairs ...any) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, small)
	for i := 0; i < len(pairs); i += 2 {
		b.Field(0).(*array.StringBuilder).Append(pairs[i].(string))
		b.Field(1).(*array.Int64Builder).Append(int64(pairs[i+1].(int)))
	}
	return b.NewRecordBatch()
}

// deleted makes a batch of tombstones.
func deleted(keys ...string) arrow.RecordBatch {
	k, v, d := array.NewStringBuilder(memory.DefaultAllocator), array.NewInt64Builder(memory.DefaultAllocator), array.NewBooleanBuilder(memory.DefaultAllocator)
	for _, key := range keys {
		k.Append(key)
		v.AppendNull()
		d.Append(true)
	}
	schema := arrow.NewSchema(append(small.Fields(), arrow.Field{Name: Tombstone, Type: arrow.FixedWidthTypes.Boolean}), nil)
	return array.NewRecordBatch(schema, []arrow.Array{k.NewArray(), v.NewArray(), d.NewArray()}, int64(len(keys)))
}

func newTable(t testing.TB, s objstore.Store, schema *arrow.Schema) *Table {
	t.Helper()
	_, err := lance.OpenOrCreate(t.Context(), s, schema)
	ok(t, err)
	table, err := Open(t.Context(), s)
	ok(t, err)
	return table
}

var manual = WriterOptions{MergeAfter: -1}

func newWriter(t testing.TB, table *Table, opts WriterOptions) *Writer {
	t.Helper()
	w, err := table.NewWriter(t.Context(), opts)
	ok(t, err)
	t.Cleanup(func() { _ = w.Close() })
	return w
}

func texts(t testing.TB, rows iter.Seq2[Batch, error]) []string {
	t.Helper()
	var out []string
	for b, err := range rows {
		ok(t, err)
		out = append(out, lancetest.Text(b.RecordBatch)...)
	}
	return slices.Sorted(slices.Values(out))
}

// read returns the rows of the small table as k=v.
func read(t testing.TB, table *Table, opts lance.ScanOptions) []string {
	t.Helper()
	v, err := table.View(t.Context())
	ok(t, err)
	return shorten(texts(t, v.Scan(t.Context(), opts)))
}

func shorten(rows []string) []string {
	for i, r := range rows {
		r = strings.TrimPrefix(strings.TrimSpace(r), "k=")
		rows[i] = strings.Replace(r, " v=", "=", 1)
	}
	return rows
}

func same(t testing.TB, what string, want, got []string) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s: %s", what, d)
	}
}

func TestAppendsAreSeenBeforeAndAfterTheirMerge(t *testing.T) {
	table := newTable(t, objstore.NewMemory(), lancetest.Schema)
	w := newWriter(t, table, manual)
	for lo := 0; lo < 600; lo += 200 {
		ok(t, w.Append(t.Context(), lancetest.Batch(lo, lo+200)))
	}
	expected := slices.Sorted(slices.Values(lancetest.Text(lancetest.Batch(0, 600))))
	check := func(when string, generations int) {
		t.Helper()
		v, err := table.View(t.Context())
		ok(t, err)
		if len(v.gens) != generations {
			t.Errorf("%s: %d generations", when, len(v.gens))
		}
		same(t, when, expected, texts(t, v.Scan(t.Context(), lance.ScanOptions{})))
		for b, err := range v.Lookup(t.Context(), []string{lancetest.ID(311)}, nil) {
			ok(t, err)
			n := int(b.NumCols()) - 1
			addrs := b.Column(n).(*array.Uint64).Uint64Values()
			rec, err := v.Take(t.Context(), b.Place, addrs, nil)
			ok(t, err)
			same(t, when+": one row", lancetest.Text(lancetest.Batch(311, 312)), lancetest.Text(rec))
		}
	}
	check("unmerged", 3)
	stats, err := w.Merge(t.Context())
	ok(t, err)
	if d := cmp.Diff(lance.MergeStats{Inserted: 600}, stats); d != "" {
		t.Error(d)
	}
	check("merged", 0)
	ok(t, w.Append(t.Context(), lancetest.Batch(600, 610)))
	expected = slices.Sorted(slices.Values(lancetest.Text(lancetest.Batch(0, 610))))
	check("and one more", 1)
	base, err := table.Base(t.Context())
	ok(t, err)
	if base.Rows() != 600 {
		t.Errorf("%d rows in the base", base.Rows())
	}
}

func TestTheNewestRowOfAKeyCounts(t *testing.T) {
	table := newTable(t, objstore.NewMemory(), small)
	w := newWriter(t, table, manual)
	ok(t, w.Append(t.Context(), kv("a", 1, "b", 1, "c", 1, "a", 2)))
	same(t, "within a batch", []string{"a=2", "b=1", "c=1"}, read(t, table, lance.ScanOptions{}))
	ok(t, w.Append(t.Context(), kv("b", 2, "d", 2)))
	same(t, "in two generations", []string{"a=2", "b=2", "c=1", "d=2"}, read(t, table, lance.ScanOptions{}))
	_, err := w.Merge(t.Context())
	ok(t, err)
	ok(t, w.Append(t.Context(), kv("c", 3)))
	ok(t, w.Append(t.Context(), deleted("d")))
	rows := []string{"a=2", "b=2", "c=3"}
	same(t, "over the base", rows, read(t, table, lance.ScanOptions{}))
	old := lance.ScanOptions{Filter: []lance.Condition{{Column: "v", Op: lance.LessOrEqual, Value: 2}}}
	same(t, "a filter does not see what is hidden", []string{"a=2", "b=2"}, read(t, table, old))
	if n := len(read(t, table, lance.ScanOptions{Limit: 3})); n != 3 {
		t.Errorf("a limit of 3 gave %d rows", n)
	}
	stats, err := w.Merge(t.Context())
	ok(t, err)
	if d := cmp.Diff(lance.MergeStats{Replaced: 1, Deleted: 1}, stats); d != "" {
		t.Error(d)
	}
	same(t, "merged", rows, read(t, table, lance.ScanOptions{}))
}

func TestCallersShareGenerations(t *testing.T) {
	synctest.Test(t, callersShareGenerations)
}

// callersShareGenerations has a store that takes a moment, in which every caller comes.
func callersShareGenerations(t *testing.T) {
	store := objstore.NewFault(objstore.NewMemory(), func(c objstore.Call) objstore.Fate {
		if c.Op == "put" {
			time.Sleep(time.Millisecond)
		}
		return objstore.Fate{}
	})
	table := newTable(t, store, small)
	w := newWriter(t, table, manual)
	const callers = 200
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			if err := w.Append(t.Context(), kv(fmt.Sprintf("key-%03d", i), i)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := len(read(t, table, lance.ScanOptions{})); n != callers {
		t.Errorf("%d rows", n)
	}
	if n := w.Generations(); n > 2 {
		t.Errorf("%d generations for %d callers at once", n, callers)
	}
}

// TestMain ends the S3 server and removes the table of the benchmarks.
func TestMain(m *testing.M) {
	proctest.Alone()
	code := m.Run()
	s3test.Stop()
	if benchDir != "" {
		_ = os.RemoveAll(benchDir)
	}
	os.Exit(code)
}

// TestReadersSeeEveryAcknowledgedRow reads while shards are written, merged,
// compacted and cleaned up.
func TestReadersSeeEveryAcknowledgedRow(t *testing.T) {
	table := newTable(t, objstore.NewMemory(), small)
	var mu sync.Mutex
	acked := map[string]bool{}
	stop := make(chan struct{})
	var writers, others sync.WaitGroup
	for w := range 3 {
		w := newWriter(t, table, WriterOptions{MergeAfter: 4, MergeOptions: MergeOptions{KeepExisting: true}, Shard: ID{byte(w + 1), 6: 0x40, 8: 0x80}})
		writers.Go(func() {
			for i := range 40 {
				key := fmt.Sprintf("%x-%d", w.Shard()[0], i)
				if err := w.Append(context.Background(), kv(key, i)); err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				acked[fmt.Sprintf("%s=%d", key, i)] = true
				mu.Unlock()
			}
			if err := w.MergeError(); err != nil {
				t.Error(err)
			}
		})
	}
	running := func() bool {
		select {
		case <-stop:
			return false
		default:
			return true
		}
	}
	others.Go(func() {
		for running() {
			d, err := table.Base(context.Background())
			if err == nil {
				_, _, err = d.Compact(context.Background(), lance.CompactOptions{})
			}
			if err == nil {
				_, err = table.Collect(context.Background(), CollectOptions{Now: time.Now().Add(2 * time.Hour)})
			}
			if err != nil {
				t.Error(err)
			}
		}
	})
	for range 2 {
		others.Go(func() {
			for running() {
				mu.Lock()
				must := make([]string, 0, len(acked))
				for r := range acked {
					must = append(must, r)
				}
				mu.Unlock()
				there := map[string]int{}
				for _, r := range read(t, table, lance.ScanOptions{}) {
					there[r]++
				}
				for _, r := range must {
					if there[r] != 1 {
						t.Errorf("%s was seen %d times", r, there[r])
					}
				}
			}
		})
	}
	writers.Wait()
	close(stop)
	others.Wait()
	if n := len(read(t, table, lance.ScanOptions{})); n != 120 {
		t.Errorf("%d rows in the end", n)
	}
}

func TestAppendsWaitForMergesAtTheBound(t *testing.T) {
	table := newTable(t, objstore.NewMemory(), small)
	w := newWriter(t, table, WriterOptions{MergeAfter: 2, MaxLive: 5})
	for i := range 30 {
		ok(t, w.Append(t.Context(), kv(fmt.Sprintf("key-%02d", i), i)))
		if n := w.Generations(); n > 5 {
			t.Errorf("%d live generations", n)
		}
	}
	ok(t, w.Close())
	ok(t, w.MergeError())
	if n := len(read(t, table, lance.ScanOptions{})); n != 30 {
		t.Errorf("%d rows", n)
	}
	want(t, w.Append(t.Context(), kv("late", 1)), ErrClosed)
}

func TestFaultyBatchesAreTheirCallersFault(t *testing.T) {
	table := newTable(t, objstore.NewMemory(), small)
	w := newWriter(t, table, manual)
	if err := w.Append(t.Context(), lancetest.Batch(0, 1)); err == nil {
		t.Error("a batch of another schema was accepted")
	}
	ok(t, w.Append(t.Context(), kv()))
	ok(t, w.Append(t.Context(), kv("a", 1)))
	keyless := newTable(t, objstore.NewMemory(), arrow.NewSchema([]arrow.Field{{Name: "v", Type: arrow.PrimitiveTypes.Int64}}, nil))
	_, err := keyless.NewWriter(t.Context(), manual)
	want(t, err, ErrNoKey)
}

// TestBrokenGenerationsAreNamed breaks every file of a generation in turn.
func TestBrokenGenerationsAreNamed(t *testing.T) {
	start := objstore.NewMemory()
	w := newWriter(t, newTable(t, start, small), manual)
	ok(t, w.Append(t.Context(), kv("a", 1, "b", 2)))
	ok(t, w.Close())
	verify := func(s objstore.Store) (found []error) {
		t.Helper()
		_, err := newTable(t, s, small).Verify(t.Context(), func(err error) { found = append(found, err) })
		ok(t, err)
		return found
	}
	if found := verify(start); len(found) > 0 {
		t.Errorf("a whole table: %v", found)
	}
	for info, err := range start.List(t.Context(), objstore.ListOptions{Prefix: shardDir(w.Shard())}) {
		ok(t, err)
		if !strings.Contains(info.Key, "_gen_") {
			continue
		}
		s := start.Clone()
		ok(t, s.Delete(t.Context(), info.Key))
		if found := verify(s); len(found) != 1 || !strings.Contains(found[0].Error(), "gen_1") && !strings.Contains(found[0].Error(), "generation 1") {
			t.Errorf("without %s: %v", info.Key, found)
		}
	}
}
