package memwal

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/foldlog/foldlog/internal/lancetest"
	"github.com/foldlog/foldlog/lance"
	"github.com/foldlog/foldlog/objstore"
)

// benchRows is the size of the base of the benchmarks' table; benchGens generations of
// benchGenRows rows each come on top of it.
const (
	benchRows    = 3_000_000
	benchGens    = 36
	benchGenRows = 60
)

var bench struct {
	once  sync.Once
	store objstore.Store
	err   error
}

// benchStore makes the table once. FOLDLOG_BENCH_DIR keeps it for the next run.
func benchStore(b *testing.B) objstore.Store {
	b.Helper()
	bench.once.Do(func() { bench.err = makeBenchStore(context.Background()) })
	ok(b, bench.err)
	return bench.store
}

func makeBenchStore(ctx context.Context) error {
	dir := os.Getenv("FOLDLOG_BENCH_DIR")
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "memwal-bench-"); err != nil {
			return err
		}
		benchDir = dir
	}
	s, err := objstore.OpenLocal(filepath.Join(dir, "memwal.lance"), objstore.LocalOptions{NoSync: true})
	if err != nil {
		return err
	}
	bench.store = s
	d, err := lance.OpenOrCreate(ctx, s, lancetest.Events)
	if err != nil {
		return err
	}
	for d.Rows() < benchRows {
		lo := int(d.Rows())
		if d, err = d.Append(ctx, lance.Batches(lancetest.EventBatch(lo, lo+100_000, 1, 0))); err != nil {
			return err
		}
	}
	for _, column := range []string{"event_id", "item_id"} {
		if d, err = d.CreateIndex(ctx, column); err != nil {
			return err
		}
	}
	return makeBenchGenerations(ctx, s)
}

func makeBenchGenerations(ctx context.Context, s objstore.Store) error {
	table, err := Open(ctx, s)
	if err != nil {
		return err
	}
	v, err := table.View(ctx)
	if err != nil || len(v.gens) >= benchGens {
		return err
	}
	w, err := table.NewWriter(ctx, WriterOptions{MergeAfter: -1, MergeOptions: MergeOptions{KeepExisting: true}})
	if err != nil {
		return err
	}
	defer w.Close()
	for i := len(v.gens); i < benchGens; i++ {
		lo := benchRows + i*benchGenRows
		if err := w.Append(ctx, lancetest.EventBatch(lo, lo+benchGenRows, 1, 0)); err != nil {
			return err
		}
	}
	return nil
}

// benchDir is what TestMain removes.
var benchDir string

// BenchmarkViewScan streams a few columns of the whole union.
func BenchmarkViewScan(b *testing.B) {
	table, err := Open(b.Context(), benchStore(b))
	ok(b, err)
	for _, procs := range []int{1, runtime.NumCPU()} {
		b.Run(fmt.Sprintf("procs=%d", procs), func(b *testing.B) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			rows := int64(0)
			for b.Loop() {
				v, err := table.View(b.Context())
				ok(b, err)
				rows = 0
				for batch, err := range v.Scan(b.Context(), lance.ScanOptions{Columns: []string{"item_seq", "event_type", "value_i64"}}) {
					ok(b, err)
					rows += batch.NumRows()
				}
			}
			if rows != benchRows+benchGens*benchGenRows {
				b.Fatalf("%d rows", rows)
			}
			b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
		})
	}
}

// BenchmarkViewFind reads the events of one item, out of the base by its index and out of
// the generations, of a view that is there and of a new one each time.
func BenchmarkViewFind(b *testing.B) {
	table, err := Open(b.Context(), benchStore(b))
	ok(b, err)
	v, err := table.View(b.Context())
	ok(b, err)
	find := func(b *testing.B, v *View, i int) {
		item := fmt.Sprintf("pipeline/experiment/item-%07d", i)
		where := []lance.Condition{{Column: "item_id", Value: item}}
		n := int64(0)
		for batch, err := range v.Scan(b.Context(), lance.ScanOptions{Columns: []string{"event_id", "item_seq", "event_type", "value_i64"}, Filter: where}) {
			ok(b, err)
			n += batch.NumRows()
		}
		if n != 12 {
			b.Fatalf("%d events of item %d", n, i)
		}
	}
	b.Run("base", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			find(b, v, i*7919%100)
		}
	})
	b.Run("generation", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			find(b, v, benchRows/12+i%100)
		}
	})
	b.Run("new-view", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			v, err := table.View(b.Context())
			ok(b, err)
			find(b, v, i*7919%100)
		}
	})
	b.Run("key", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			n := int64(0)
			for batch, err := range v.Lookup(b.Context(), []string{lancetest.EventID(i * 7919 % 1000)}, []string{"item_id", "item_seq"}) {
				ok(b, err)
				n += batch.NumRows()
			}
			if n != 1 {
				b.Fatalf("%d rows of one key", n)
			}
		}
	})
}
