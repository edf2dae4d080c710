package lance

import (
	"runtime/metrics"
	"sync/atomic"
	"testing"
	"time"

	"github.com/foldlog/foldlog/internal/lancetest"
)

// heapPeak runs something and returns the most that live and dead objects took
// together meanwhile, in bytes.
func heapPeak(run func()) uint64 {
	var peak atomic.Uint64
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		for {
			select {
			case <-stop:
				return
			case <-time.After(2 * time.Millisecond):
				metrics.Read(sample)
				peak.Store(max(peak.Load(), sample[0].Value.Uint64()))
			}
		}
	}()
	run()
	close(stop)
	<-stopped
	return peak.Load()
}

// TestCompactionIsStreamed rewrites a table of large blobs that does not fit into the
// memory that it may take.
func TestCompactionIsStreamed(t *testing.T) {
	rows, step := 600, 20
	if testing.Short() {
		rows = 200
	}
	const blob, budget = 1_500_000, 256 << 20
	_, s := lancetest.LocalTable(t)
	d, err := Create(t.Context(), s, lancetest.Events)
	ok(t, err)
	for lo := 0; lo < rows; lo += step {
		d, err = d.Append(t.Context(), Batches(lancetest.EventBatch(lo, lo+step, 1, blob)))
		ok(t, err)
	}
	if d, err = d.CreateIndex(t.Context(), "event_id"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		var stats CompactStats
		peak := heapPeak(func() {
			d, stats, err = d.Compact(t.Context(), CompactOptions{TargetBytes: 1 << 40, DeletedFraction: 0.001})
			ok(t, err)
		})
		if stats.Added != 1 || stats.Rows != d.Rows() {
			t.Errorf("%+v", stats)
		}
		if peak > budget {
			t.Errorf("%d MiB of memory to compact %d MiB", peak>>20, rows*blob>>20)
		}
		t.Logf("%d MiB of memory to compact %d MiB", peak>>20, rows*blob>>20)
		d, err = d.Delete(t.Context(), []Condition{{Column: "event_id", Op: Equal, Value: lancetest.EventID(7)}})
		ok(t, err)
	}
	rec, err := d.Take(t.Context(), []uint64{d.Fragments()[0].ID<<32 | 11}, []string{"event_id"})
	ok(t, err)
	if got := lancetest.Text(rec)[0]; got != "event_id="+lancetest.EventID(11)+" " && got != "event_id="+lancetest.EventID(12)+" " {
		t.Errorf("row 11 is %s", got)
	}
}
