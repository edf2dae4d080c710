package memwal

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/foldlog/foldlog/internal/lancetest"
	"github.com/foldlog/foldlog/objstore"
)

// BenchmarkAppendDuringMerge appends to a store that takes 200 ms for each call: first
// alone, then while 64 generations are merged. It reports both 99th percentiles, their
// ratio, and how long the merge took.
func BenchmarkAppendDuringMerge(b *testing.B) {
	var slow atomic.Bool
	s := objstore.NewFault(objstore.NewMemory(), func(objstore.Call) objstore.Fate {
		if slow.Load() {
			time.Sleep(200 * time.Millisecond)
		}
		return objstore.Fate{}
	})
	table := newTable(b, s, lancetest.Events)
	w := newWriter(b, table, WriterOptions{MergeOptions: MergeOptions{KeepExisting: true}, MergeAfter: -1})
	n := 0
	add := func() time.Duration {
		start := time.Now()
		ok(b, w.Append(b.Context(), lancetest.EventBatch(6*n, 6*n+6, 1, 0)))
		n++
		return time.Since(start)
	}
	var quiet, busy []time.Duration
	var took time.Duration
	for b.Loop() {
		for w.Generations() < 64 {
			add()
		}
		slow.Store(true)
		for range 20 {
			quiet = append(quiet, add())
		}
		done := make(chan error, 1)
		start := time.Now()
		go func() {
			_, err := w.Merge(b.Context())
			took = time.Since(start)
			done <- err
		}()
		for merging := true; merging; {
			busy = append(busy, add())
			select {
			case err := <-done:
				ok(b, err)
				merging = false
			default:
			}
		}
		slow.Store(false)
	}
	p99 := func(d []time.Duration) float64 {
		median(d) // sorts
		return float64(d[(len(d)-1)*99/100].Milliseconds())
	}
	b.ReportMetric(p99(quiet), "quiet-p99-ms")
	b.ReportMetric(p99(busy), "busy-p99-ms")
	b.ReportMetric(p99(busy)/p99(quiet), "x-quiet")
	b.ReportMetric(float64(took.Milliseconds()), "merge-ms")
}

// TestAMergeMakesFewRequests counts those that merging 64 generations takes, of which
// hardly any may be one after the other.
func TestAMergeMakesFewRequests(t *testing.T) {
	var reads, writes atomic.Int32
	s := objstore.NewFault(objstore.NewMemory(), func(c objstore.Call) objstore.Fate {
		if c.Mutates() {
			writes.Add(1)
		} else {
			reads.Add(1)
		}
		return objstore.Fate{}
	})
	table := newTable(t, s, lancetest.Events)
	w := newWriter(t, table, WriterOptions{MergeOptions: MergeOptions{KeepExisting: true}, MergeAfter: -1})
	for i := range 64 {
		ok(t, w.Append(t.Context(), lancetest.EventBatch(6*i, 6*i+6, 1, 0)))
	}
	reads.Store(0)
	writes.Store(0)
	stats, err := w.Merge(t.Context())
	ok(t, err)
	if stats.Inserted != 64*6 {
		t.Errorf("%+v", stats)
	}
	if r, n := reads.Load(), writes.Load(); r > 2*64+16 || n > 8 {
		t.Errorf("%d requests that read and %d that write", r, n)
	}
}
