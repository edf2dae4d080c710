package lance

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/foldlog/foldlog/internal/lancetest"
	"github.com/foldlog/foldlog/objstore"
)

func TestTheRealLanceReadsWhatWeWrite(t *testing.T) {
	real, there := lancetest.Real(t)
	if !there {
		return
	}
	dir, s := lancetest.LocalTable(t)
	d := filled(t, s, 5000, 1300)
	same(t, "all", expect(0, 5000), real.Rows(t, "scan", lancetest.On(dir)))
	for v := uint64(2); v <= d.Version(); v++ {
		old, err := d.At(t.Context(), v)
		ok(t, err)
		same(t, fmt.Sprintf("version %d", v), collect(t, old.Scan(t.Context(), ScanOptions{})), real.Rows(t, "scan", lancetest.On(dir, "version", v)))
	}
	d, err := d.CreateIndex(t.Context(), "id")
	ok(t, err)
	where := fmt.Sprintf("id = '%s'", lancetest.ID(4711))
	var plan string
	real.Do(t, "plan", lancetest.On(dir, "where", where), &plan)
	if !strings.Contains(plan, "ScalarIndexQuery") {
		t.Errorf("our index is not used: %s", plan)
	}
	same(t, "by our index", expect(4711, 4712), real.Rows(t, "scan", lancetest.On(dir, "where", where)))
	if d, err = d.Delete(t.Context(), []Condition{{Column: "seq", Op: Less, Value: 2000}}); err != nil {
		t.Fatal(err)
	}
	if d, err = d.Delete(t.Context(), []Condition{{Column: "group", Op: Equal, Value: "group-5"}}); err != nil {
		t.Fatal(err)
	}
	left := collect(t, d.Scan(t.Context(), ScanOptions{}))
	same(t, "after our deletes", left, real.Rows(t, "scan", lancetest.On(dir)))
	if d, _, err = d.Compact(t.Context(), CompactOptions{}); err != nil {
		t.Fatal(err)
	}
	same(t, "after our compaction", left, real.Rows(t, "scan", lancetest.On(dir)))
	same(t, "by the index that we moved", expect(4711, 4712), real.Rows(t, "scan", lancetest.On(dir, "where", where)))
	if d, _, err = d.Merge(t.Context(), Merge{Rows: Batches(lancetest.Batch(4900, 5100))}); err != nil {
		t.Fatal(err)
	}
	left = collect(t, d.Scan(t.Context(), ScanOptions{}))
	same(t, "after our merge", sorted(left), sorted(real.Rows(t, "scan", lancetest.On(dir))))
	if _, err = d.CleanUp(t.Context(), CleanUpOptions{KeepVersions: 1, KeepAge: 1, AnyAge: true}); err != nil {
		t.Fatal(err)
	}
	same(t, "after our clean-up", sorted(left), sorted(real.Rows(t, "scan", lancetest.On(dir))))
}

func TestTheRealLanceGoesOnWithOurTable(t *testing.T) {
	real, there := lancetest.Real(t)
	if !there {
		return
	}
	dir, s := lancetest.LocalTable(t)
	d := filled(t, s, 3000, 500)
	latest := func() *Dataset {
		t.Helper()
		var err error
		d, err = d.Latest(t.Context())
		ok(t, err)
		return d
	}
	real.Do(t, "append", lancetest.On(dir, "rows", lancetest.WriteRows(t, lancetest.Batch(3000, 3600))), nil)
	same(t, "its append", expect(0, 3600), collect(t, latest().Scan(t.Context(), ScanOptions{})))
	real.Do(t, "index", lancetest.On(dir, "column", "id"), nil)
	real.Do(t, "delete", lancetest.On(dir, "where", "seq < 700"), nil)
	real.Do(t, "delete", lancetest.On(dir, "where", "seq % 10 = 3"), nil)
	var left []string
	for i := 700; i < 3600; i++ {
		if i%10 != 3 {
			left = append(left, expect(i, i+1)...)
		}
	}
	same(t, "its deletes", left, collect(t, latest().Scan(t.Context(), ScanOptions{})))
	one := ScanOptions{Filter: []Condition{{Column: "id", Op: Equal, Value: lancetest.ID(3141)}}}
	same(t, "by its index", expect(3141, 3142), collect(t, latest().Scan(t.Context(), one)))
	if x := d.Indexes(); len(x) != 1 || x[0].Kind != "btree" {
		t.Errorf("indexes %+v", x)
	}
	same(t, "verification", nil, faults(t, d))
	var done struct{ Removed, Added int }
	real.Do(t, "optimize", lancetest.On(dir), &done)
	if done.Removed == 0 {
		t.Error("it compacted nothing")
	}
	same(t, "its compaction", left, collect(t, latest().Scan(t.Context(), ScanOptions{})))
	same(t, "by the index that it moved", expect(3141, 3142), collect(t, latest().Scan(t.Context(), one)))
	next, err := latest().Append(t.Context(), Batches(lancetest.Batch(3600, 3700)))
	ok(t, err)
	next, _, err = next.Compact(t.Context(), CompactOptions{})
	ok(t, err)
	next, err = next.RefreshIndexes(t.Context())
	ok(t, err)
	left = append(left, expect(3600, 3700)...)
	same(t, "our compaction after its", left, real.Rows(t, "scan", lancetest.On(dir)))
	same(t, "verification", nil, faults(t, next))
	real.Do(t, "optimize", lancetest.On(dir, "cleanup", true), nil)
	same(t, "its clean-up", left, collect(t, latest().Scan(t.Context(), ScanOptions{})))
}

func TestWeReadTheFormatsOfTheRealLance(t *testing.T) {
	real, there := lancetest.Real(t)
	if !there {
		return
	}
	for _, format := range []string{"2.0", "2.1", "2.2", ""} {
		t.Run("format "+format, func(t *testing.T) {
			dir := t.TempDir()
			s, err := objstore.OpenLocal(filepath.Join(dir, "log.lance"), objstore.LocalOptions{})
			ok(t, err)
			real.Do(t, "create", lancetest.On(dir, "format", format, "rows", lancetest.WriteRows(t, lancetest.Batch(0, 9000))), nil)
			real.Do(t, "append", lancetest.On(dir, "rows", lancetest.WriteRows(t, lancetest.Batch(9000, 9100))), nil)
			d, err := Open(t.Context(), s, OpenOptions{})
			ok(t, err)
			same(t, "all", expect(0, 9100), collect(t, d.Scan(t.Context(), ScanOptions{})))
			same(t, "some", expect(8990, 9010), collect(t, d.Scan(t.Context(), ScanOptions{Filter: []Condition{{Column: "seq", Op: GreaterOrEqual, Value: 8990}, {Column: "seq", Op: Less, Value: 9010}}})))
			rec, err := d.Take(t.Context(), []uint64{8999, 1 << 32, 4095, 4096, 3}, nil)
			ok(t, err)
			var text []string
			for _, i := range []int{8999, 9000, 4095, 4096, 3} {
				text = append(text, expect(i, i+1)...)
			}
			same(t, "taken", text, lancetest.Text(rec))
			real.Do(t, "index", lancetest.On(dir, "column", "id"), nil)
			real.Do(t, "delete", lancetest.On(dir, "where", "seq >= 4000 and seq < 8000"), nil)
			if d, err = d.Latest(t.Context()); err != nil {
				t.Fatal(err)
			}
			same(t, "its delete", append(expect(0, 4000), expect(8000, 9100)...), collect(t, d.Scan(t.Context(), ScanOptions{})))
			one := ScanOptions{Filter: []Condition{{Column: "id", Op: Equal, Value: lancetest.ID(8001)}}}
			same(t, "by its index", expect(8001, 8002), collect(t, d.Scan(t.Context(), one)))
			same(t, "verification", nil, faults(t, d))
		})
	}
}

func TestCommitsRaceWithTheRealLance(t *testing.T) {
	if _, there := lancetest.Real(t); !there {
		return
	}
	dir, s := lancetest.LocalTable(t)
	filled(t, s, 10, 10)
	rows := lancetest.WriteRows(t, lancetest.Batch(0, 5))
	real := lancetest.Another(t)
	const each, ours = 20, 3
	var wg sync.WaitGroup
	wg.Go(func() { real.Do(t, "append", lancetest.On(dir, "rows", rows, "times", each), nil) })
	for w := range ours {
		wg.Go(func() {
			d, err := Open(t.Context(), s, OpenOptions{})
			for i := 0; i < each && err == nil; i++ {
				at := 1000 * (w + 1)
				d, err = d.Append(t.Context(), Batches(lancetest.Batch(at+5*i, at+5*i+5)))
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	d, err := Open(t.Context(), s, OpenOptions{})
	ok(t, err)
	if want := int64(10 + 5*each*(ours+1)); d.Rows() != want || d.Version() != 2+each*(ours+1) {
		t.Errorf("version %d with %d rows, want %d", d.Version(), d.Rows(), want)
	}
	same(t, "all", sorted(collect(t, d.Scan(t.Context(), ScanOptions{}))), sorted(real.Rows(t, "scan", lancetest.On(dir))))
}

// TestIndexesOfEveryTypeAnswerTheRealLance asks it, through our indexes, for values,
// ranges and nulls, and us through its.
func TestIndexesOfEveryTypeAnswerTheRealLance(t *testing.T) {
	real, there := lancetest.Real(t)
	if !there {
		return
	}
	questions := []struct {
		column string
		where  string
		ours   []Condition
	}{
		{"seq", "seq = 4242", []Condition{{Column: "seq", Op: Equal, Value: 4242}}},
		{"seq", "seq >= 8990 AND seq < 9003", []Condition{{Column: "seq", Op: GreaterOrEqual, Value: 8990}, {Column: "seq", Op: Less, Value: 9003}}},
		{"i16", "i16 = 2 AND seq < 900", []Condition{{Column: "i16", Op: Equal, Value: 2}, {Column: "seq", Op: Less, Value: 900}}},
		{"i16", "i16 IS NULL AND seq < 300", []Condition{{Column: "i16", Op: IsNull}, {Column: "seq", Op: Less, Value: 300}}},
		{"u32", "u32 = 77", []Condition{{Column: "u32", Op: Equal, Value: 77}}},
		{"str", "str = '' AND seq < 100", []Condition{{Column: "str", Op: Equal, Value: ""}, {Column: "seq", Op: Less, Value: 100}}},
		{"str", "str IN ('value 9001', 'value 17')", []Condition{{Column: "str", Op: In, Values: []any{"value 9001", "value 17"}}}},
		{"f64", "f64 = 1e308 AND seq < 700", []Condition{{Column: "f64", Op: Equal, Value: 1e308}, {Column: "seq", Op: Less, Value: 700}}},
		{"day", "day = date '2020-01-05'", []Condition{{Column: "day", Op: Equal, Value: time.Date(2020, 1, 5, 0, 0, 0, 0, time.UTC)}}},
	}
	for _, whose := range []string{"ours", "theirs"} {
		t.Run(whose, func(t *testing.T) {
			dir, s := lancetest.LocalTable(t)
			d := filled(t, s, 9500, 5000)
			made := map[string]bool{}
			for _, q := range questions {
				if made[q.column] {
					continue
				}
				made[q.column] = true
				if whose == "theirs" {
					real.Do(t, "index", lancetest.On(dir, "column", q.column), nil)
					continue
				}
				var err error
				d, err = d.CreateIndex(t.Context(), q.column)
				ok(t, err)
			}
			d, err := d.Latest(t.Context())
			ok(t, err)
			for _, q := range questions {
				truth := sorted(collect(t, d.Scan(t.Context(), ScanOptions{Columns: []string{"id"}, Filter: q.ours, NoIndex: true})))
				same(t, "our answer to "+q.where, truth, sorted(collect(t, d.Scan(t.Context(), ScanOptions{Columns: []string{"id"}, Filter: q.ours}))))
				same(t, "its answer to "+q.where, truth, sorted(real.Rows(t, "scan", lancetest.On(dir, "where", q.where, "select", []string{"id"}))))
				if len(truth) == 0 && q.column != "day" {
					t.Errorf("nothing answers to %s", q.where)
				}
			}
			same(t, "verification", nil, faults(t, d))
		})
	}
}

// TestEventsOfEveryFormatAreRead reads the wide schema with its repetitive strings and
// sparse blobs, for which the real library chooses every encoding that it has.
func TestEventsOfEveryFormatAreRead(t *testing.T) {
	real, there := lancetest.Real(t)
	if !there {
		return
	}
	rec := lancetest.EventBatch(0, 20_000, 97, 60_000)
	for _, format := range []string{"2.0", "2.1", "2.2"} {
		dir, s := lancetest.LocalTable(t)
		real.Do(t, "create", lancetest.On(dir, "format", format, "rows", lancetest.WriteRows(t, rec)), nil)
		d, err := Open(t.Context(), s, OpenOptions{})
		ok(t, err)
		same(t, "format "+format, lancetest.Text(rec), collect(t, d.Scan(t.Context(), ScanOptions{})))
	}
	dir, s := lancetest.LocalTable(t)
	d, err := Create(t.Context(), s, lancetest.Events)
	ok(t, err)
	_, err = d.Append(t.Context(), Batches(rec))
	ok(t, err)
	same(t, "ours", lancetest.Text(rec), real.Rows(t, "scan", lancetest.On(dir)))
}

// TestTheRealLanceLeavesPinsAlone reads, compacts and cleans up a table that a reader of
// ours has pinned.
func TestTheRealLanceLeavesPinsAlone(t *testing.T) {
	real, there := lancetest.Real(t)
	if !there {
		return
	}
	dir, s := lancetest.LocalTable(t)
	d := filled(t, s, 400, 100)
	pin, err := d.Pin(t.Context())
	ok(t, err)
	defer pin.Release()
	same(t, "with a pin", expect(0, 400), real.Rows(t, "scan", lancetest.On(dir)))
	real.Do(t, "optimize", lancetest.On(dir, "cleanup", true), nil)
	same(t, "after its clean-up", expect(0, 400), real.Rows(t, "scan", lancetest.On(dir)))
	if n := len(pinKeys(t, s)); n != 2 {
		t.Errorf("%d objects of the pin are left", n)
	}
}
