package memwal

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/internal/lancetest"
	"github.com/foldlog/foldlog/lance"
	"github.com/foldlog/foldlog/objstore"
)

func sortedText(batches ...arrow.RecordBatch) []string {
	var out []string
	for _, b := range batches {
		out = append(out, lancetest.Text(b)...)
	}
	return slices.Sorted(slices.Values(out))
}

func realRows(t testing.TB, real *lancetest.Oracle, a lancetest.Args) []string {
	t.Helper()
	return slices.Sorted(slices.Values(real.Rows(t, "scan", a)))
}

func ourRows(t testing.TB, s objstore.Store) []string {
	t.Helper()
	table, err := Open(t.Context(), s)
	ok(t, err)
	v, err := table.View(t.Context())
	ok(t, err)
	return texts(t, v.Scan(t.Context(), lance.ScanOptions{}))
}

// unsharded is the shard that LanceDB's writers use for tables without shards.
const unsharded = "aa48498d-ac91-59e2-8452-69f46010ace2"

func TestTheRealLanceReadsOurShards(t *testing.T) {
	real, there := lancetest.Real(t)
	if !there {
		return
	}
	dir, s := lancetest.LocalTable(t)
	table := newTable(t, s, lancetest.Schema)
	d, err := table.Base(t.Context())
	ok(t, err)
	_, err = d.Append(t.Context(), lance.Batches(lancetest.Batch(0, 2000)))
	ok(t, err)
	one, two := newWriter(t, table, manual), newWriter(t, table, manual)
	ok(t, one.Append(t.Context(), lancetest.Batch(1990, 2200)))
	ok(t, one.Append(t.Context(), lancetest.Batch(2190, 2300)))
	ok(t, two.Append(t.Context(), lancetest.Batch(2300, 2301)))
	all := sortedText(lancetest.Batch(0, 2301))
	same(t, "ours", all, ourRows(t, s))
	same(t, "the union", all, realRows(t, real, lancetest.On(dir)))
	same(t, "the base", sortedText(lancetest.Batch(0, 2000)), realRows(t, real, lancetest.On(dir, "lsm", false)))
	same(t, "a key", sortedText(lancetest.Batch(2195, 2196)), realRows(t, real, lancetest.On(dir, "where", fmt.Sprintf("id = '%s'", lancetest.ID(2195)))))
	var spec map[string]any
	real.Do(t, "spec", lancetest.On(dir), &spec)
	if spec["specType"] != "unsharded" {
		t.Errorf("spec %v", spec)
	}
	_, err = one.Merge(t.Context())
	ok(t, err)
	same(t, "half merged", all, realRows(t, real, lancetest.On(dir)))
	_, err = table.Adopt(t.Context(), two.Shard(), MergeOptions{KeepExisting: true})
	ok(t, err)
	same(t, "adopted", all, realRows(t, real, lancetest.On(dir)))
	same(t, "the base has all", all, realRows(t, real, lancetest.On(dir, "lsm", false)))
	real.Do(t, "optimize", lancetest.On(dir, "cleanup", true), nil)
	ok(t, one.Append(t.Context(), lancetest.Batch(2301, 2310)))
	all = sortedText(lancetest.Batch(0, 2310))
	same(t, "after its clean-up", all, realRows(t, real, lancetest.On(dir)))
	same(t, "ours after its clean-up", all, ourRows(t, s))
	_, err = table.Collect(t.Context(), CollectOptions{AnyAge: true})
	ok(t, err)
	same(t, "after our clean-up", all, realRows(t, real, lancetest.On(dir)))
}

func TestBloomFiltersAreThoseOfLance(t *testing.T) {
	real, there := lancetest.Real(t)
	if !there {
		return
	}
	dir, s := realShard(t, real, lancetest.Batch(0, 100))
	id, err := ParseID(unsharded)
	ok(t, err)
	st, err := latestState(t.Context(), s, id)
	ok(t, err)
	theirs, err := s.Get(t.Context(), shardDir(id)+st.generations[0].dir+"/bloom_filter.bin", 1<<20)
	ok(t, err)
	filter := newBloom()
	for i := range 100 {
		filter.add(keyHash([]byte(lancetest.ID(i))))
	}
	if !bytes.Equal(theirs, filter.bytes()) {
		t.Errorf("the filter of %s differs", dir)
	}
}

// realShard makes a table in which the real library has written rows into a shard.
func realShard(t *testing.T, real *lancetest.Oracle, batches ...arrow.RecordBatch) (string, objstore.Store) {
	t.Helper()
	dir, s := lancetest.LocalTable(t)
	_, err := lance.Create(t.Context(), s, lancetest.Schema)
	ok(t, err)
	real.Do(t, "spec", lancetest.On(dir, "set", true), nil)
	for _, b := range batches {
		real.Do(t, "merge", lancetest.On(dir, "key", "id", "rows", lancetest.WriteRows(t, b)), nil)
	}
	real.Do(t, "close", lancetest.On(dir), nil)
	return dir, s
}

func TestWeTakeOverAShardOfTheRealLance(t *testing.T) {
	real, there := lancetest.Real(t)
	if !there {
		return
	}
	dir, s := realShard(t, real, lancetest.Batch(0, 300), lancetest.Batch(300, 350))
	same(t, "its shard", sortedText(lancetest.Batch(0, 350)), ourRows(t, s))
	id, err := ParseID(unsharded)
	ok(t, err)
	table, err := Open(t.Context(), s)
	ok(t, err)
	w := newWriter(t, table, WriterOptions{Shard: id, MergeAfter: -1})
	ok(t, w.Append(t.Context(), lancetest.Batch(340, 400)))
	all := sortedText(lancetest.Batch(0, 400))
	same(t, "with ours", all, ourRows(t, s))
	same(t, "with ours, to it", all, realRows(t, real, lancetest.On(dir)))
	_, err = w.Merge(t.Context())
	ok(t, err)
	same(t, "merged", all, realRows(t, real, lancetest.On(dir, "lsm", false)))
	real.Do(t, "merge", lancetest.On(dir, "key", "id", "rows", lancetest.WriteRows(t, lancetest.Batch(400, 420))), nil)
	want(t, w.Append(t.Context(), lancetest.Batch(420, 421)), ErrFenced)
	real.Do(t, "close", lancetest.On(dir), nil)
	same(t, "and back", sortedText(lancetest.Batch(0, 420)), ourRows(t, s))
}

// putWAL leaves an entry in the log of a shard, as a writer that died would.
func putWAL(t *testing.T, s objstore.Store, id ID, position, epoch uint64, rec arrow.RecordBatch) {
	t.Helper()
	meta := arrow.NewMetadata([]string{metaEpoch}, []string{strconv.FormatUint(epoch, 10)})
	schema := arrow.NewSchema(rec.Schema().Fields(), &meta)
	var b bytes.Buffer
	w := ipc.NewWriter(&b, ipc.WithSchema(schema))
	ok(t, w.Write(array.NewRecordBatch(schema, rec.Columns(), rec.NumRows())))
	ok(t, w.Close())
	ok(t, s.PutIfAbsent(t.Context(), walKey(id, position), b.Bytes()))
}

func TestEntriesOfALogAreReplayed(t *testing.T) {
	s := objstore.NewMemory()
	table := newTable(t, s, lancetest.Schema)
	w := newWriter(t, table, manual)
	ok(t, w.Append(t.Context(), lancetest.Batch(0, 10)))
	putWAL(t, s, w.Shard(), 1, 1, lancetest.Batch(10, 20))
	putWAL(t, s, w.Shard(), 2, 1, lancetest.Batch(15, 30))
	same(t, "before", sortedText(lancetest.Batch(0, 10)), ourRows(t, s))
	again := newWriter(t, table, WriterOptions{Shard: w.Shard(), MergeAfter: -1})
	same(t, "replayed", sortedText(lancetest.Batch(0, 30)), ourRows(t, s))
	if n := again.Generations(); n != 3 {
		t.Errorf("%d generations, want one per entry and the first", n)
	}
	st, err := latestState(t.Context(), s, w.Shard())
	ok(t, err)
	if d := cmp.Diff([]uint64{3, 3}, []uint64{st.replayAfter, st.lastSeen}); d != "" {
		t.Errorf("the cursor is not past the sentinel: %s", d)
	}
	third := newWriter(t, table, WriterOptions{Shard: w.Shard(), MergeAfter: -1})
	if n := third.Generations(); n != 3 {
		t.Errorf("%d generations after a claim without entries", n)
	}
}

func TestTheRealLanceReplaysALogAndWeFindIt(t *testing.T) {
	real, there := lancetest.Real(t)
	if !there {
		return
	}
	dir, s := realShard(t, real, lancetest.Batch(0, 50))
	id, err := ParseID(unsharded)
	ok(t, err)
	st, err := latestState(t.Context(), s, id)
	ok(t, err)
	at := st.replayAfter + 1
	for {
		if _, err := s.Stat(t.Context(), walKey(id, at)); err != nil {
			break
		}
		at++
	}
	putWAL(t, s, id, at, st.epoch, lancetest.Batch(50, 60))
	real.Do(t, "merge", lancetest.On(dir, "key", "id", "rows", lancetest.WriteRows(t, lancetest.Batch(60, 70))), nil)
	real.Do(t, "close", lancetest.On(dir), nil)
	same(t, "its view", sortedText(lancetest.Batch(0, 70)), realRows(t, real, lancetest.On(dir)))
	same(t, "ours", sortedText(lancetest.Batch(0, 70)), ourRows(t, s))
}

func TestOurLeftoversDoNotDisturbTheRealLance(t *testing.T) {
	real, there := lancetest.Real(t)
	if !there {
		return
	}
	dir, s := lancetest.LocalTable(t)
	fail := false
	faulty := objstore.NewFault(s, func(c objstore.Call) objstore.Fate {
		if fail && strings.Contains(c.Key, "bloom") {
			return objstore.Fate{Err: objstore.ErrAmbiguous}
		}
		return objstore.Fate{}
	})
	table := newTable(t, faulty, lancetest.Schema)
	w := newWriter(t, table, manual)
	fail = true
	want(t, w.Append(t.Context(), lancetest.Batch(0, 5)), objstore.ErrAmbiguous)
	fail = false
	ok(t, w.Append(t.Context(), lancetest.Batch(5, 10)))
	same(t, "beside a failed flush", sortedText(lancetest.Batch(5, 10)), realRows(t, real, lancetest.On(dir)))
}
