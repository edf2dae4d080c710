package memwal

import (
	"fmt"
	"testing"
	"time"

	"github.com/foldlog/foldlog/lance"
	"github.com/foldlog/foldlog/lance/internal/lancetest"
	"github.com/foldlog/foldlog/objstore"
)

func BenchmarkAppend(b *testing.B) {
	for _, sync := range []bool{true, false} {
		b.Run(fmt.Sprintf("sync=%t", sync), func(b *testing.B) {
			s, err := objstore.OpenLocal(b.TempDir(), objstore.LocalOptions{NoSync: !sync})
			ok(b, err)
			w := newWriter(b, newTable(b, s, lancetest.Events), WriterOptions{KeepExisting: true})
			i := 0
			for b.Loop() {
				ok(b, w.Append(b.Context(), lancetest.EventBatch(i, i+20, 1, 0)))
				i += 20
			}
		})
	}
}

// BenchmarkBareWrites is what an append costs the disk: the files of a generation, its
// manifest and their directories, written and synced.
func BenchmarkBareWrites(b *testing.B) {
	s, err := objstore.OpenLocal(b.TempDir(), objstore.LocalOptions{})
	ok(b, err)
	names := []string{"data/x.lance", "_versions/x.manifest", "_pk_index/page_data.lance", "_pk_index/page_lookup.lance", "bloom_filter.bin"}
	sizes := []int{16000, 3000, 1500, 1000, bloomBytes}
	i := 0
	for b.Loop() {
		err := parallel(len(names), func(k int) error {
			return s.Put(b.Context(), fmt.Sprintf("gen-%d/%s", i, names[k]), make([]byte, sizes[k]))
		})
		ok(b, err)
		ok(b, s.PutIfAbsent(b.Context(), fmt.Sprintf("manifest/%d", i), []byte(fmt.Sprint("manifest", i))))
		i++
	}
}

// BenchmarkRealFlush is the real library writing a generation: it has no call for one
// flush, so this is a merge and the close that flushes it.
func BenchmarkRealFlush(b *testing.B) {
	real, there := lancetest.Real(b)
	if !there {
		return
	}
	dir, s := localTable(b)
	_, err := lance.Create(b.Context(), s, lancetest.Events)
	ok(b, err)
	real.Do(b, "spec", args(dir, "set", true), nil)
	var files []string
	for i := range 10 {
		files = append(files, lancetest.WriteRows(b, lancetest.EventBatch(20*i, 20*i+20, 1, 0)))
	}
	var took struct{ MS float64 }
	for b.Loop() {
		real.Do(b, "timeFlush", args(dir, "key", "event_id", "files", files, "times", 10), &took)
	}
	b.ReportMetric(took.MS*1e6, "ns/flush")
}

// TestManyGenerationsStayFew appends ten thousand generations while they are merged
// and cleaned up: neither files nor what a reader must open grow with them.
func TestManyGenerationsStayFew(t *testing.T) {
	generations := 10_000
	if testing.Short() {
		generations = 500
	}
	s := objstore.NewMemory()
	table := newTable(t, s, small)
	w := newWriter(t, table, WriterOptions{KeepExisting: true, MaxLive: 128})
	for i := range generations {
		ok(t, w.Append(t.Context(), kv(fmt.Sprintf("key-%06d", i), i)))
		if i%1000 == 999 {
			ok(t, w.MergeError())
			tidy(t, table)
		}
	}
	ok(t, w.Close())
	ok(t, w.MergeError())
	tidy(t, table)
	v, err := table.View(t.Context())
	ok(t, err)
	if n := v.Generations(); n > 128 {
		t.Errorf("a reader opens %d generations", n)
	}
	files := 0
	for _, err := range s.List(t.Context(), objstore.ListOptions{}) {
		ok(t, err)
		files++
	}
	if files > 128*5+200 {
		t.Errorf("%d files", files)
	}
	if n := len(texts(t, v.Scan(t.Context(), lance.ScanOptions{}))); n != generations {
		t.Errorf("%d rows", n)
	}
}

// tidy does what maintenance does, as if it were long after.
func tidy(t *testing.T, table *Table) {
	t.Helper()
	d, err := table.Base(t.Context())
	ok(t, err)
	d, _, err = d.Compact(t.Context(), lance.CompactOptions{})
	ok(t, err)
	later := time.Now().Add(2 * time.Hour)
	_, err = table.Collect(t.Context(), CollectOptions{Now: later})
	ok(t, err)
	_, err = d.CleanUp(t.Context(), lance.CleanUpOptions{KeepVersions: 2, Now: later})
	ok(t, err)
}
