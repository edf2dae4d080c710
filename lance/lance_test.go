package lance

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/internal/lancetest"
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

// filled makes a table whose rows [0, hi) come in appends of so many rows.
func filled(t testing.TB, s objstore.Store, hi, step int) *Dataset {
	t.Helper()
	d, err := Create(t.Context(), s, lancetest.Schema)
	ok(t, err)
	for lo := 0; lo < hi; lo += step {
		d, err = d.Append(t.Context(), Batches(lancetest.Batch(lo, min(lo+step, hi))))
		ok(t, err)
	}
	return d
}

func collect(t testing.TB, rows iter.Seq2[arrow.RecordBatch, error]) []string {
	t.Helper()
	var out []string
	for rec, err := range rows {
		ok(t, err)
		out = append(out, lancetest.Text(rec)...)
	}
	return out
}

func same(t testing.TB, what string, want, got []string) {
	t.Helper()
	if len(want) != len(got) {
		t.Errorf("%s: %d rows, want %d", what, len(got), len(want))
	}
	bad := 0
	for i := range min(len(want), len(got)) {
		if want[i] != got[i] && bad < 3 {
			t.Errorf("%s: row %d: %s", what, i, cmp.Diff(strings.Fields(want[i]), strings.Fields(got[i])))
			bad++
		}
	}
}

func sorted(rows []string) []string { return slices.Sorted(slices.Values(rows)) }

// expect is rows [lo, hi) as text.
func expect(lo, hi int) []string { return lancetest.Text(lancetest.Batch(lo, hi)) }

func TestRowsAreReadAsAppended(t *testing.T) {
	d := filled(t, objstore.NewMemory(), 5000, 1700)
	if d.Version() != 4 || d.Rows() != 5000 || len(d.Fragments()) != 3 {
		t.Errorf("version %d, %d rows, %d fragments", d.Version(), d.Rows(), len(d.Fragments()))
	}
	for _, batch := range []int{0, 1, 100, 100_000} {
		same(t, fmt.Sprintf("batches of %d", batch), expect(0, 5000), collect(t, d.Scan(t.Context(), ScanOptions{BatchRows: batch})))
	}
}

func TestOldVersionsStayReadable(t *testing.T) {
	s := objstore.NewMemory()
	filled(t, s, 30, 10)
	for v := uint64(1); v <= 4; v++ {
		d, err := Open(t.Context(), s, OpenOptions{Version: v})
		ok(t, err)
		same(t, fmt.Sprintf("version %d", v), expect(0, int(v-1)*10), collect(t, d.Scan(t.Context(), ScanOptions{})))
	}
	_, err := Open(t.Context(), s, OpenOptions{Version: 5})
	want(t, err, ErrNotFound)
	_, err = Open(t.Context(), objstore.NewMemory(), OpenOptions{})
	want(t, err, ErrNotFound)
	_, err = Create(t.Context(), s, lancetest.Schema)
	want(t, err, ErrExists)
}

func TestScanProjectsFiltersAndLimits(t *testing.T) {
	d := filled(t, objstore.NewMemory(), 2000, 700)
	all := lancetest.Batch(0, 2000)
	for _, c := range []struct {
		name string
		opts ScanOptions
		keep func(i int) bool
	}{
		{"everything", ScanOptions{}, func(int) bool { return true }},
		{"equal", ScanOptions{Filter: []Condition{{Column: "group", Op: Equal, Value: "group-3"}}}, func(i int) bool { return i%7 == 3 }},
		{"range", ScanOptions{Filter: []Condition{{Column: "seq", Op: GreaterOrEqual, Value: 690}, {Column: "seq", Op: Less, Value: 710}}}, func(i int) bool { return i >= 690 && i < 710 }},
		{"few of many", ScanOptions{Filter: []Condition{{Column: "id", Op: In, Values: []any{lancetest.ID(3), lancetest.ID(1999), "none"}}}}, func(i int) bool { return i == 3 || i == 1999 }},
		{"not equal", ScanOptions{Filter: []Condition{{Column: "group", Op: NotEqual, Value: "group-3"}}}, func(i int) bool { return i%7 != 3 }},
		{"null", ScanOptions{Filter: []Condition{{Column: "none", Op: IsNull}}}, func(int) bool { return true }},
		{"not null", ScanOptions{Filter: []Condition{{Column: "none", Op: NotNull}}}, func(int) bool { return false }},
		{"satisfies", ScanOptions{Filter: []Condition{{Column: "id", Op: Satisfies, Holds: func(a arrow.Array, i int) bool { return strings.HasSuffix(a.ValueStr(i), "5") }}}}, func(i int) bool { return i%10 == 5 }},
		{"equal to null", ScanOptions{Filter: []Condition{{Column: "none", Op: Equal}}}, func(int) bool { return false }},
	} {
		t.Run(c.name, func(t *testing.T) {
			var rows []int
			for i := range 2000 {
				if c.keep(i) {
					rows = append(rows, i)
				}
			}
			cols := make([]arrow.Array, all.NumCols())
			for k := range cols {
				a, err := pick(all.Column(k), rows)
				ok(t, err)
				cols[k] = a
			}
			text := lancetest.Text(array.NewRecordBatch(all.Schema(), cols, int64(len(rows))))
			same(t, "scan", text, collect(t, d.Scan(t.Context(), c.opts)))
			c.opts.Limit = 5
			same(t, "limit", text[:min(5, len(text))], collect(t, d.Scan(t.Context(), c.opts)))
		})
	}
	got := collect(t, d.Scan(t.Context(), ScanOptions{Columns: []string{"seq", "id"}, Filter: []Condition{{Column: "group", Op: Equal, Value: "group-1"}}, Limit: 2, WithRowAddress: true}))
	same(t, "projection", []string{"seq=1 id=ev-00000001 _rowaddr=1 ", "seq=8 id=ev-00000008 _rowaddr=8 "}, got)
	for _, filter := range []Condition{{Column: "no"}, {Column: "seq", Value: "text"}, {Column: "id", Value: 5}, {Column: "seq", Op: 99}, {Column: "seq", Op: Satisfies}} {
		for _, err := range d.Scan(t.Context(), ScanOptions{Filter: []Condition{filter}}) {
			if err == nil {
				t.Errorf("%v was accepted", filter)
			}
		}
	}
}

func TestTakeReadsRowsByAddress(t *testing.T) {
	d := filled(t, objstore.NewMemory(), 3000, 1000)
	var addrs []uint64
	var text []string
	for _, i := range []int{2999, 0, 1503, 1503, 3, 4, 5, 1000} {
		addrs = append(addrs, uint64(i/1000)<<32|uint64(i%1000))
		text = append(text, expect(i, i+1)...)
	}
	rec, err := d.Take(t.Context(), addrs, nil)
	ok(t, err)
	same(t, "take", text, lancetest.Text(rec))
	for _, bad := range []uint64{1000, 3 << 32} {
		if _, err := d.Take(t.Context(), []uint64{bad}, nil); err == nil {
			t.Errorf("row %#x was found", bad)
		}
	}
	rec, err = d.Take(t.Context(), nil, []string{"id"})
	ok(t, err)
	if rec.NumRows() != 0 {
		t.Errorf("%d rows for no address", rec.NumRows())
	}
}

func TestIndexesFindRows(t *testing.T) {
	s := objstore.NewMemory()
	d := filled(t, s, 6000, 2000)
	d, err := d.CreateIndex(t.Context(), "id")
	ok(t, err)
	if d, err = d.CreateIndex(t.Context(), "group"); err != nil {
		t.Fatal(err)
	}
	if d, err = d.Append(t.Context(), Batches(lancetest.Batch(6000, 6500))); err != nil {
		t.Fatal(err)
	}
	check := func(name string, d *Dataset) {
		t.Helper()
		for _, i := range []int{0, 1999, 2000, 5999, 6000, 6499} {
			got := collect(t, d.Scan(t.Context(), ScanOptions{Filter: []Condition{{Column: "id", Op: Equal, Value: lancetest.ID(i)}}}))
			same(t, fmt.Sprintf("%s: row %d", name, i), expect(i, i+1), got)
		}
		opts := ScanOptions{Columns: []string{"id"}, Filter: []Condition{{Column: "group", Op: Equal, Value: "group-2"}, {Column: "seq", Op: Less, Value: 6100}}}
		byIndex := sorted(collect(t, d.Scan(t.Context(), opts)))
		opts.NoIndex = true
		same(t, name+": group", sorted(collect(t, d.Scan(t.Context(), opts))), byIndex)
	}
	check("partly covered", d)
	fresh, err := d.RefreshIndexes(t.Context())
	ok(t, err)
	check("covered", fresh)
	for _, x := range fresh.Indexes() {
		if x.Kind != "btree" || x.Unindexed != 0 || x.Fragments != 4 {
			t.Errorf("index %+v", x)
		}
	}
	again, err := fresh.RefreshIndexes(t.Context())
	ok(t, err)
	if again.Version() != fresh.Version() {
		t.Error("a fresh index was built again")
	}
	same(t, "verification", nil, faults(t, fresh))
}

func faults(t testing.TB, d *Dataset) []string {
	t.Helper()
	var out []string
	_, err := d.Verify(t.Context(), func(err error) { out = append(out, err.Error()) })
	ok(t, err)
	return out
}

func TestDeletedRowsAreGone(t *testing.T) {
	d := filled(t, objstore.NewMemory(), 3000, 1000)
	before := d
	d, err := d.CreateIndex(t.Context(), "id")
	ok(t, err)
	if d, err = d.Delete(t.Context(), []Condition{{Column: "seq", Op: Less, Value: 1500}}); err != nil {
		t.Fatal(err)
	}
	if d, err = d.Delete(t.Context(), []Condition{{Column: "group", Op: Equal, Value: "group-0"}}); err != nil {
		t.Fatal(err)
	}
	var left []string
	for i := 1500; i < 3000; i++ {
		if i%7 != 0 {
			left = append(left, expect(i, i+1)...)
		}
	}
	same(t, "scan", left, collect(t, d.Scan(t.Context(), ScanOptions{})))
	if d.Rows() != int64(len(left)) || len(d.Fragments()) != 2 {
		t.Errorf("%d rows in %d fragments", d.Rows(), len(d.Fragments()))
	}
	same(t, "lookup", nil, collect(t, d.Scan(t.Context(), ScanOptions{Filter: []Condition{{Column: "id", Op: In, Values: []any{lancetest.ID(3), lancetest.ID(1498), lancetest.ID(1505)}}}})))
	if _, err := d.Take(t.Context(), []uint64{1<<32 | 499}, nil); err == nil {
		t.Error("a deleted row was taken")
	}
	same(t, "the version before", expect(0, 3000), collect(t, before.Scan(t.Context(), ScanOptions{})))
	none, err := d.Delete(t.Context(), []Condition{{Column: "seq", Op: Less, Value: 0}})
	ok(t, err)
	if none.Version() != d.Version() {
		t.Error("deleting nothing made a version")
	}
	if _, err := d.Delete(t.Context(), nil); err == nil {
		t.Error("an empty filter was accepted")
	}
	if _, err := d.Delete(t.Context(), []Condition{{Column: "seq", Op: Satisfies, Holds: func(arrow.Array, int) bool { return true }}}); err == nil {
		t.Error("rows were deleted by a function")
	}
	same(t, "verification", nil, faults(t, d))
}

func TestCompactionKeepsRowsAndIndexes(t *testing.T) {
	d := filled(t, objstore.NewMemory(), 4000, 400)
	d, err := d.CreateIndex(t.Context(), "id")
	ok(t, err)
	if d, err = d.Delete(t.Context(), []Condition{{Column: "group", Op: Equal, Value: "group-4"}}); err != nil {
		t.Fatal(err)
	}
	if d, err = d.Append(t.Context(), Batches(lancetest.Batch(4000, 4100))); err != nil {
		t.Fatal(err)
	}
	if d, err = d.Append(t.Context(), Batches(lancetest.Batch(4100, 4200))); err != nil {
		t.Fatal(err)
	}
	before := collect(t, d.Scan(t.Context(), ScanOptions{}))
	d, stats, err := d.Compact(t.Context(), CompactOptions{})
	ok(t, err)
	if stats.Removed != 12 || stats.Added != 2 || len(d.Fragments()) != 2 { // two, for the index covers one part
		t.Errorf("%+v, %d fragments", stats, len(d.Fragments()))
	}
	same(t, "scan", before, collect(t, d.Scan(t.Context(), ScanOptions{})))
	for _, i := range []int{0, 399, 400, 3999, 4150} {
		got := collect(t, d.Scan(t.Context(), ScanOptions{Filter: []Condition{{Column: "id", Op: Equal, Value: lancetest.ID(i)}}}))
		if i%7 == 4 {
			same(t, "deleted", nil, got)
		} else {
			same(t, fmt.Sprintf("row %d", i), expect(i, i+1), got)
		}
	}
	if x := d.Indexes(); len(x) != 1 || x[0].Fragments != 1 {
		t.Errorf("indexes %+v", x)
	}
	same(t, "verification", nil, faults(t, d))
	again, stats, err := d.Compact(t.Context(), CompactOptions{})
	ok(t, err)
	if again.Version() != d.Version() || stats.Removed != 0 {
		t.Errorf("compacted again: %+v", stats)
	}
}

func TestMergeInsertsAndReplaces(t *testing.T) {
	changed := func(lo, hi int) arrow.RecordBatch { // rows lo.. with the values of rows 10000+lo..
		keys, values := lancetest.Batch(lo, hi), lancetest.Batch(10000+lo, 10000+hi)
		cols := slices.Clone(values.Columns())
		cols[0] = keys.Column(0)
		return array.NewRecordBatch(values.Schema(), cols, values.NumRows())
	}
	base := filled(t, objstore.NewMemory(), 2000, 600)
	base, err := base.CreateIndex(t.Context(), "id")
	ok(t, err)
	base, err = base.Append(t.Context(), Batches(lancetest.Batch(2000, 2300)))
	ok(t, err)
	rows := Batches(changed(2400, 2500), changed(1900, 2200), lancetest.Batch(2400, 2401))
	d, stats, err := base.Merge(t.Context(), Merge{Rows: rows})
	ok(t, err)
	if d := cmp.Diff(MergeStats{Inserted: 100, Replaced: 300}, stats); d != "" {
		t.Error(d)
	}
	var text []string
	text = append(text, expect(0, 1900)...)
	text = append(text, lancetest.Text(changed(1900, 2200))...)
	text = append(text, expect(2200, 2300)...)
	text = append(text, expect(2400, 2401)...)
	text = append(text, lancetest.Text(changed(2401, 2500))...)
	same(t, "replaced", sorted(text), sorted(collect(t, d.Scan(t.Context(), ScanOptions{}))))
	same(t, "verification", nil, faults(t, d))

	d, stats, err = base.Merge(t.Context(), Merge{Rows: Batches(lancetest.Batch(1900, 2600)), KeepExisting: true})
	want(t, err, nil)
	if d := cmp.Diff(MergeStats{Inserted: 200, Kept: 500}, stats); d != "" {
		t.Error(d) // the merge fitted itself on top of the one before
	}
	if d.Rows() != 2600 {
		t.Errorf("%d rows", d.Rows())
	}
}

func TestVersionsAreListedAndCleanedUp(t *testing.T) {
	s := objstore.NewMemory()
	d := filled(t, s, 300, 10)
	d, _, err := d.Compact(t.Context(), CompactOptions{})
	ok(t, err)
	stats, err := d.CleanUp(t.Context(), CleanUpOptions{KeepVersions: 2})
	ok(t, err)
	if stats.Versions != 0 || stats.Files != 0 {
		t.Errorf("the young went: %+v", stats)
	}
	_, err = d.CleanUp(t.Context(), CleanUpOptions{SafetyAge: 1, KeepAge: time.Hour})
	if err == nil {
		t.Error("a dangerous age was accepted")
	}
	if _, err = d.CleanUp(t.Context(), CleanUpOptions{KeepAge: 1}); err == nil {
		t.Error("a dangerous age was accepted")
	}
	stats, err = d.CleanUp(t.Context(), CleanUpOptions{KeepVersions: 2, Now: time.Now().Add(2 * time.Hour)})
	ok(t, err)
	if stats.Versions != 31 || stats.Files == 0 {
		t.Errorf("%+v", stats)
	}
	left, err := d.Versions(t.Context())
	ok(t, err)
	if len(left) != 2 || left[0].Version != 33 {
		t.Errorf("left %+v", left)
	}
	same(t, "scan", expect(0, 300), collect(t, d.Scan(t.Context(), ScanOptions{})))
	same(t, "verification", nil, faults(t, d))
}

func TestForeignFlagsAndFormatsAreRefusedByName(t *testing.T) {
	s := objstore.NewMemory()
	filled(t, s, 10, 10)
	for _, c := range []struct {
		what   string
		change func(*Dataset)
	}{
		{"reader feature flags 0x80", func(d *Dataset) { d.m.ReaderFlags = 128 }},
		{"reader feature flags 0x2", func(d *Dataset) { d.m.ReaderFlags = 2 }},
		{"writer feature flags 0x40", func(d *Dataset) { d.m.WriterFlags = 64 }},
		{`writing data format "2.1"`, func(d *Dataset) { d.m.FileVersion = "2.1" }},
	} {
		d, err := Open(t.Context(), s, OpenOptions{Version: 2})
		ok(t, err)
		c.change(d)
		d.m.Version = 3
		other := objstore.NewMemory()
		ok(t, other.Put(t.Context(), manifestKey(3), d.m.File()))
		got, err := Open(t.Context(), other, OpenOptions{})
		if err == nil {
			_, err = got.Append(t.Context(), Batches(lancetest.Batch(0, 1)))
		}
		var unsupported *UnsupportedError
		if !errors.As(err, &unsupported) || unsupported.What != c.what {
			t.Errorf("error %v, want %s", err, c.what)
		}
	}
}
