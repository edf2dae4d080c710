package memwal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/foldlog/foldlog/internal/lancetest"
	"github.com/foldlog/foldlog/internal/parallel"
	"github.com/foldlog/foldlog/lance"
	"github.com/foldlog/foldlog/objstore"
)

func BenchmarkAppend(b *testing.B) {
	for _, sync := range []bool{true, false} {
		b.Run(fmt.Sprintf("sync=%t", sync), func(b *testing.B) {
			s, err := objstore.OpenLocal(b.TempDir(), objstore.LocalOptions{NoSync: !sync})
			ok(b, err)
			w := newWriter(b, newTable(b, s, lancetest.Events), WriterOptions{MergeOptions: MergeOptions{KeepExisting: true}})
			batch := lancetest.EventBatch(0, 5, 1, 0)
			for b.Loop() {
				ok(b, w.Append(b.Context(), batch))
			}
		})
	}
}

// BenchmarkAppendOverBare alternates an append of five events with the same files
// written and synced with bare calls of the system, and reports both medians and their
// ratio.
func BenchmarkAppendOverBare(b *testing.B) {
	dir := b.TempDir()
	s, err := objstore.OpenLocal(filepath.Join(dir, "table"), objstore.LocalOptions{})
	ok(b, err)
	w := newWriter(b, newTable(b, s, lancetest.Events), WriterOptions{MergeOptions: MergeOptions{KeepExisting: true}})
	batch := lancetest.EventBatch(0, 5, 1, 0)
	ok(b, w.Append(b.Context(), batch))
	files := map[string][]byte{}
	for name := range generationFiles(b, s.Root()) {
		files[name] = make([]byte, 0)
	}
	for name := range files {
		data, err := os.ReadFile(filepath.Join(s.Root(), filepath.FromSlash(name)))
		ok(b, err)
		files[name] = data
	}
	var ours, bare []time.Duration
	for i := 0; b.Loop(); i++ {
		start := time.Now()
		ok(b, w.Append(b.Context(), batch))
		ours = append(ours, time.Since(start))
		start = time.Now()
		bareGeneration(b, filepath.Join(dir, "bare"), i, files)
		bare = append(bare, time.Since(start))
	}
	b.ReportMetric(float64(median(ours).Microseconds()), "append-p50-µs")
	b.ReportMetric(float64(median(bare).Microseconds()), "bare-p50-µs")
	b.ReportMetric(float64(median(ours))/float64(median(bare)), "x-bare")
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// generationFiles are the files of the one generation below a directory.
func generationFiles(b *testing.B, dir string) map[string]bool {
	names := map[string]bool{}
	err := fs.WalkDir(os.DirFS(dir), "_mem_wal", func(name string, e fs.DirEntry, err error) error {
		if err == nil && strings.Contains(name, "_gen_") && e.Type().IsRegular() {
			names[name] = true
		}
		return err
	})
	ok(b, err)
	return names
}

// bareGeneration writes and syncs, all at once, the files of a generation and their
// directories, and after them a manifest that is made beside its name and linked.
func bareGeneration(b *testing.B, dir string, i int, files map[string][]byte) {
	shard := filepath.Join(dir, "shard")
	gen := filepath.Join(shard, fmt.Sprint("gen-", i))
	ok(b, os.MkdirAll(filepath.Join(shard, "manifest"), 0o755))
	dirs := []string{shard, gen}
	for name := range files {
		sub := filepath.Join(gen, filepath.Base(filepath.Dir(name)))
		ok(b, os.MkdirAll(sub, 0o755))
		if !slices.Contains(dirs, sub) {
			dirs = append(dirs, sub)
		}
	}
	var open []*os.File
	write := func(name string, data []byte) {
		f, err := os.Create(name)
		ok(b, err)
		_, err = f.Write(data)
		ok(b, err)
		open = append(open, f)
	}
	for name, data := range files {
		write(filepath.Join(gen, filepath.Base(filepath.Dir(name)), filepath.Base(name)), data)
	}
	manifest := filepath.Join(shard, "manifest", fmt.Sprint(i))
	write(manifest+".tmp", make([]byte, 2000))
	for _, d := range dirs {
		f, err := os.Open(d)
		ok(b, err)
		open = append(open, f)
	}
	ok(b, parallel.Each(len(open), ioWorkers, func(k int) error { return errors.Join(open[k].Sync(), open[k].Close()) }))
	ok(b, os.Link(manifest+".tmp", manifest))
	f, err := os.Open(filepath.Dir(manifest))
	ok(b, err)
	ok(b, f.Sync())
	ok(b, f.Close())
	ok(b, os.Remove(manifest+".tmp"))
}

// BenchmarkAppend64 is 64 callers at once, each with a batch of six events: they share
// generations.
func BenchmarkAppend64(b *testing.B) {
	s, err := objstore.OpenLocal(b.TempDir(), objstore.LocalOptions{})
	ok(b, err)
	w := newWriter(b, newTable(b, s, lancetest.Events), WriterOptions{MergeOptions: MergeOptions{KeepExisting: true}})
	batches := make([]arrow.RecordBatch, 64)
	for i := range batches {
		batches[i] = lancetest.EventBatch(6*i, 6*i+6, 1, 0)
	}
	var left atomic.Int64
	left.Store(int64(b.N))
	b.ResetTimer()
	var wg sync.WaitGroup
	for _, batch := range batches {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if err := w.Append(b.Context(), batch); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
}

// BenchmarkRealFlush is the real library writing a generation: it has no call for one
// flush, so this is a merge and the close that flushes it.
func BenchmarkRealFlush(b *testing.B) {
	real, there := lancetest.Real(b)
	if !there {
		return
	}
	dir, s := lancetest.LocalTable(b)
	_, err := lance.Create(b.Context(), s, lancetest.Events)
	ok(b, err)
	real.Do(b, "spec", lancetest.On(dir, "set", true), nil)
	var files []string
	for i := range 10 {
		files = append(files, lancetest.WriteRows(b, lancetest.EventBatch(20*i, 20*i+20, 1, 0)))
	}
	var took struct{ MS float64 }
	for b.Loop() {
		real.Do(b, "timeFlush", lancetest.On(dir, "key", "event_id", "files", files, "times", 10), &took)
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
	w := newWriter(t, table, WriterOptions{MergeOptions: MergeOptions{KeepExisting: true}, MaxLive: 128})
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
	if n := len(v.gens); n > 128 {
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
