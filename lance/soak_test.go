package lance

import (
	"os"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/foldlog/foldlog/internal/lancetest"
	"github.com/foldlog/foldlog/objstore"
)

// TestSoakCompactionOfLargeValues compacts 6,000 rows of 1.5 MB, 9 GB, and cleans up; a
// fortieth of that unless FOLDLOG_SOAK is set. It logs the memory that this took and the
// size of the table afterwards.
func TestSoakCompactionOfLargeValues(t *testing.T) {
	rows, step := 6000, 20
	if os.Getenv("FOLDLOG_SOAK") == "" {
		rows = 150
	}
	const blob, budget = 1_500_000, 256 << 20
	_, s := lancetest.LocalTable(t)
	d, err := Create(t.Context(), s, lancetest.Events)
	ok(t, err)
	for lo := 0; lo < rows; lo += step {
		d, err = d.Append(t.Context(), Batches(lancetest.EventBatch(lo, min(lo+step, rows), 1, blob)))
		ok(t, err)
	}
	if d, err = d.CreateIndex(t.Context(), "event_id"); err != nil {
		t.Fatal(err)
	}
	before := treeBytes(t, s)
	var stats CompactStats
	peak := heapPeak(func() {
		d, stats, err = d.Compact(t.Context(), CompactOptions{TargetBytes: 1 << 40})
		ok(t, err)
	})
	if stats.Rows != int64(rows) || len(d.Fragments()) > rows*blob/maxFragmentBytes+1 {
		t.Errorf("%+v, %d fragments", stats, len(d.Fragments()))
	}
	if peak > budget {
		t.Errorf("%d MiB of memory, want at most %d", peak>>20, budget>>20)
	}
	cleaned, err := d.CleanUp(t.Context(), CleanUpOptions{KeepVersions: 1, AnyAge: true})
	ok(t, err)
	after := treeBytes(t, s)
	t.Logf("%d rows of %d bytes: %d MiB of memory to compact; the table has %d MiB, before %d; %d files removed",
		rows, blob, peak>>20, after>>20, before>>20, cleaned.Files)
	if after > before+before/50 {
		t.Errorf("%d MiB after clean-up, before %d", after>>20, before>>20)
	}
	for _, i := range []int{0, rows / 2, rows - 1} {
		n := 0
		where := []Condition{{Column: "event_id", Op: Equal, Value: lancetest.EventID(i)}}
		for rec, err := range d.Scan(t.Context(), ScanOptions{Filter: where, Columns: []string{"event_id", "value_blob"}}) {
			ok(t, err)
			n++
			same(t, "row", lancetest.Text(keyAndBlob(lancetest.EventBatch(i, i+1, 1, blob))), lancetest.Text(rec))
		}
		if n != 1 {
			t.Errorf("row %d is there %d times", i, n)
		}
	}
}

// treeBytes is the size of everything in a store.
func treeBytes(t *testing.T, s objstore.Store) (n int64) {
	t.Helper()
	for info, err := range s.List(t.Context(), objstore.ListOptions{}) {
		ok(t, err)
		n += info.Size
	}
	return n
}

// keyAndBlob is a batch of events with two columns left.
func keyAndBlob(rec arrow.RecordBatch) arrow.RecordBatch {
	schema, cols := []arrow.Field{}, []arrow.Array{}
	for _, name := range []string{"event_id", "value_blob"} {
		at := rec.Schema().FieldIndices(name)[0]
		schema, cols = append(schema, rec.Schema().Field(at)), append(cols, rec.Column(at))
	}
	return array.NewRecordBatch(arrow.NewSchema(schema, nil), cols, rec.NumRows())
}
