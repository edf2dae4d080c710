package lance

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/foldlog/foldlog/internal/lancetest"
	"github.com/foldlog/foldlog/internal/proctest"
	"github.com/foldlog/foldlog/internal/s3test"
	"github.com/foldlog/foldlog/objstore"
)

const benchRows = 1_000_000

var bench struct {
	once sync.Once
	dir  string
	d    *Dataset
	err  error
}

// benchTable makes a table of a million events once, and removes it with the process.
// FOLDLOG_BENCH_DIR keeps it for the next.
func benchTable(b *testing.B) (string, *Dataset) {
	b.Helper()
	bench.once.Do(func() { bench.err = makeBenchTable() })
	if bench.err != nil {
		b.Fatal(bench.err)
	}
	return bench.dir, bench.d
}

func makeBenchTable() error {
	ctx := context.Background()
	bench.dir = os.Getenv("FOLDLOG_BENCH_DIR")
	if bench.dir == "" {
		var err error
		if bench.dir, err = os.MkdirTemp("", "lance-bench-"); err != nil {
			return err
		}
	}
	s, err := objstore.OpenLocal(filepath.Join(bench.dir, "log.lance"), objstore.LocalOptions{NoSync: true})
	if err != nil {
		return err
	}
	d, err := OpenOrCreate(ctx, s, lancetest.Events)
	if err != nil {
		return err
	}
	for d.Rows() < benchRows {
		lo := int(d.Rows())
		if d, err = d.Append(ctx, Batches(lancetest.EventBatch(lo, lo+100_000, 1, 0))); err != nil {
			return err
		}
	}
	if d, err = d.CreateIndex(ctx, "event_id"); err != nil {
		return err
	}
	bench.d = d
	return nil
}

// TestMain removes the table of the benchmarks.
func TestMain(m *testing.M) {
	proctest.Role(committerEnv, committer)
	proctest.Alone()
	code := m.Run()
	s3test.Stop()
	if bench.dir != "" && os.Getenv("FOLDLOG_BENCH_DIR") == "" {
		_ = os.RemoveAll(bench.dir)
	}
	os.Exit(code)
}

var benchScans = []struct {
	name    string
	columns []string
}{
	{"few", []string{"item_id", "item_seq", "event_type", "value_i64"}},
	{"all", nil},
}

func BenchmarkScan(b *testing.B) {
	_, d := benchTable(b)
	for _, c := range benchScans {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				rows := int64(0)
				for rec, err := range d.Scan(b.Context(), ScanOptions{Columns: c.columns}) {
					if err != nil {
						b.Fatal(err)
					}
					rows += rec.NumRows()
				}
				if rows != benchRows {
					b.Fatalf("%d rows", rows)
				}
			}
			b.ReportMetric(benchRows*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
		})
	}
}

// BenchmarkRealScan is the real library on the same files.
func BenchmarkRealScan(b *testing.B) {
	dir, _ := benchTable(b)
	real, there := lancetest.Real(b)
	if !there {
		return
	}
	for _, c := range benchScans {
		b.Run(c.name, func(b *testing.B) {
			a := lancetest.On(dir, "times", 3)
			if c.columns != nil {
				a["select"] = c.columns
			}
			var took struct{ Rows, MS float64 }
			for b.Loop() {
				real.Do(b, "time", a, &took)
			}
			b.ReportMetric(took.Rows/took.MS/1e3, "Mrows/s")
		})
	}
}

func BenchmarkLookup(b *testing.B) {
	_, d := benchTable(b)
	for _, c := range []struct {
		name    string
		columns []string
	}{{"few", []string{"event_id", "item_id", "item_seq"}}, {"all", nil}} {
		b.Run(c.name, func(b *testing.B) {
			i := 0
			for b.Loop() {
				i = (i + 7919) % 5000 // warm: of some pages
				n := 0
				for rec, err := range d.Scan(b.Context(), ScanOptions{Columns: c.columns, Filter: []Condition{{Column: "event_id", Op: Equal, Value: lancetest.EventID(i)}}}) {
					if err != nil {
						b.Fatal(err)
					}
					n += int(rec.NumRows())
				}
				if n != 1 {
					b.Fatalf("%d rows", n)
				}
			}
		})
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, sync := range []bool{true, false} {
		b.Run(fmt.Sprintf("sync=%t", sync), func(b *testing.B) {
			s, err := objstore.OpenLocal(b.TempDir(), objstore.LocalOptions{NoSync: !sync})
			ok(b, err)
			d, err := Create(b.Context(), s, lancetest.Events)
			ok(b, err)
			rec := lancetest.EventBatch(0, 100, 1, 0)
			for b.Loop() {
				if d, err = d.Append(b.Context(), Batches(rec)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkRealAppend(b *testing.B) {
	real, there := lancetest.Real(b)
	if !there {
		return
	}
	dir, s := lancetest.LocalTable(b)
	_, err := Create(b.Context(), s, lancetest.Events)
	ok(b, err)
	rows := lancetest.WriteRows(b, lancetest.EventBatch(0, 100, 1, 0))
	var took struct{ MS float64 }
	for b.Loop() {
		real.Do(b, "timeAppend", lancetest.On(dir, "rows", rows, "times", 20), &took)
	}
	b.ReportMetric(took.MS*1e6, "ns/append")
}
