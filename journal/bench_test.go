package journal

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/foldlog/foldlog/internal/fsx"
)

const benchOp = `{"kind":"report","trial":12345,"step":17,"values":[0.123456789]}`

// nothing is a machine that keeps nothing.
type nothing struct{ applied uint64 }

func (m *nothing) Apply(rec *Record) error { m.applied = rec.Seq; return nil }
func (m *nothing) Reset()                  {}
func (m *nothing) Settle(bool)             {}

func benchWriter(b *testing.B, path string) *Writer {
	w, err := Create(b.Context(), path, WriterOptions{}, &nothing{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { w.Close() })
	return w
}

// BenchmarkAppend compares durable appends with a bare loop that makes the same
// writes, syncs and rename, and with many callers of one writer.
func BenchmarkAppend(b *testing.B) {
	b.Run("bare", benchBare)
	b.Run("callers=1", func(b *testing.B) {
		w := benchWriter(b, filepath.Join(b.TempDir(), "s.atj"))
		for b.Loop() {
			appendOps(b, w, benchOp)
		}
	})
	b.Run("callers=64", func(b *testing.B) {
		w := benchWriter(b, filepath.Join(b.TempDir(), "s.atj"))
		b.ResetTimer()
		var wg sync.WaitGroup
		for i := range 64 {
			wg.Go(func() {
				for k := i; k < b.N; k += 64 {
					appendOps(b, w, benchOp)
				}
			})
		}
		wg.Wait()
	})
}

func benchBare(b *testing.B) {
	dir := b.TempDir()
	data := filepath.Join(dir, "d")
	if err := os.Mkdir(data, 0o777); err != nil {
		b.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(data, "data"), os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	extent, head := make([]byte, 350), make([]byte, 203)
	at := int64(0)
	for b.Loop() {
		f.WriteAt(extent, at)
		at += int64(len(extent))
		f.Sync()
		ticket := filepath.Join(data, "ticket")
		t, err := os.OpenFile(ticket, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
		if err != nil {
			b.Fatal(err)
		}
		t.Write(head)
		t.Sync()
		t.Close()
		if err := os.Rename(ticket, filepath.Join(dir, "head")); err != nil {
			b.Fatal(err)
		}
		if err := fsx.OS.SyncDir(dir); err != nil {
			b.Fatal(err)
		}
	}
}

// writeHistory makes a journal of n operations without syncing each extent.
func writeHistory(b testing.TB, path string, n, perExtent, files int) {
	w, err := Create(b.Context(), path, WriterOptions{}, &nothing{})
	if err != nil {
		b.Fatal(err)
	}
	w.Close()
	l, err := newLayout(fsx.OS, path)
	if err != nil {
		b.Fatal(err)
	}
	snap, err := l.readHead()
	if err != nil {
		b.Fatal(err)
	}
	head := snap.start()
	bulks := make([]*bulk, files)
	for i := range bulks {
		if bulks[i], err = newBulk(l, fmt.Sprintf("data-%016x-00000000-0000000000000000", i), head); err != nil {
			b.Fatal(err)
		}
	}
	for seq, k := 1, 0; seq <= n; k++ {
		bk := bulks[k%files]
		bk.head = head
		for range min(perExtent, n-seq+1) {
			line := appendRecord(nil, uint64(seq), 7, 1790189597015, []byte(benchOp))
			bk.Apply(&Record{Line: line})
			seq++
		}
		if err := bk.flush(); err != nil {
			b.Fatal(err)
		}
		head = bk.head
	}
	for _, bk := range bulks {
		if files == 1 {
			bk.f.Sync() // what is not yet on disk would slow the next syncs down
		}
		bk.f.Close()
	}
	if err := os.WriteFile(path, appendHead(append([]byte(nil), snap.headerLine...), head), 0o666); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkOpen measures reading a whole history, without folding it.
func BenchmarkOpen(b *testing.B) {
	for _, c := range []struct{ ops, perExtent, files int }{
		{1_000_000, 100, 1}, {1_000_000, 1, 1}, {1_000_000, 1, 8}, {100_000, 1, 10_000},
	} {
		b.Run(fmt.Sprintf("ops=%d/perExtent=%d/files=%d", c.ops, c.perExtent, c.files), func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "s.atj")
			writeHistory(b, path, c.ops, c.perExtent, c.files)
			for b.Loop() {
				r, err := OpenReader(path, ReaderOptions{})
				if err != nil {
					b.Fatal(err)
				}
				m := &nothing{}
				if err := r.Refresh(m); err != nil || m.applied != uint64(c.ops) {
					b.Fatal(m.applied, err)
				}
				r.Close()
			}
			b.ReportMetric(float64(c.ops)*float64(b.N)/b.Elapsed().Seconds(), "ops/s")
		})
	}
}
