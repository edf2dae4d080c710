package study

import (
	"bufio"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/foldlog/foldlog/journal"
)

// writeJournal writes a journal of format 6 with so many operations to an
// extent, in one data file, straight to disk: what a writer with syncs would
// take minutes for.
func writeJournal(tb testing.TB, path string, ops [][]byte, perExtent int) {
	const header = `{"record":"header","format":6,"atune":"bench","created_at_millis":1,"created_by":1}` + "\n"
	const name = "data-0000000000000001-00000000-0000000000000001"
	if err := os.Mkdir(path+".d", 0o777); err != nil {
		tb.Fatal(err)
	}
	f, err := os.Create(filepath.Join(path+".d", name))
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	tip, start, at := "null", len(header), 0
	for i := 0; i < len(ops); i += perExtent {
		group := ops[i:min(i+perExtent, len(ops))]
		var payload []byte
		for k, op := range group {
			payload = fmt.Appendf(payload, `{"record":"op","seq":%d,"worker":1,"at_millis":1790189597015,"op":%s}`+"\n", i+k+1, op)
		}
		sum := fnv.New64a()
		sum.Write(payload)
		line := fmt.Sprintf(`{"magic":"atune.extent/6","previous":%s,"first":%d,"last":%d,"start":%d,"payload_len":%d,"checksum":%d}`+"\n",
			tip, i+1, i+len(group), start, len(payload), sum.Sum64())
		w.WriteString(line)
		w.Write(payload)
		tip = fmt.Sprintf(`{"file":%q,"offset":%d,"len":%d}`, name, at, len(line)+len(payload))
		at += len(line) + len(payload)
		start += len(payload)
	}
	if err := w.Flush(); err != nil {
		tb.Fatal(err)
	}
	head := fmt.Sprintf(`%s{"tip":%s,"ops":%d,"bytes":%d}`+"\n", header, tip, len(ops), start)
	if err := os.WriteFile(path, []byte(head), 0o666); err != nil {
		tb.Fatal(err)
	}
}

// BenchmarkOpenJournal opens and replays journals of very different lengths from disk:
// what an operation takes must not grow with them.
func BenchmarkOpenJournal(b *testing.B) {
	for _, h := range histories {
		for _, trials := range []int{10_000, 200_000} {
			ops := h.of(b, trials)
			for _, perExtent := range []int{100, 1} {
				b.Run(fmt.Sprintf("%s/trials=%d/perExtent=%d", h.name, trials, perExtent), func(b *testing.B) {
					path := filepath.Join(b.TempDir(), "s.atj")
					writeJournal(b, path, ops, perExtent)
					perOperation(b, len(ops), func() { openAll(b, path, len(ops)) })
				})
			}
		}
	}
}

// openAll opens a journal and looks at its last operation.
func openAll(b *testing.B, path string, ops int) {
	r, err := OpenJournalReader(path, journal.ReaderOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	if got := r.Snapshot().Seq(); got != uint64(ops) {
		b.Fatalf("%d operations, want %d", got, ops)
	}
}

// BenchmarkFlat appends to a journal and refreshes a reader of it, beside
// histories of very different lengths.
func BenchmarkFlat(b *testing.B) {
	for _, trials := range []int{10, 1_000, 100_000} {
		path := filepath.Join(b.TempDir(), "s.atj")
		writeJournal(b, path, history(b, trials), 100)
		w, err := OpenJournal(b.Context(), path, journal.WriterOptions{})
		if err != nil {
			b.Fatal(err)
		}
		defer w.Close()
		r, err := OpenJournalReader(path, journal.ReaderOptions{})
		if err != nil {
			b.Fatal(err)
		}
		defer r.Close()
		appendOne := func() {
			err := w.Update(b.Context(), func(tx *Tx) error {
				_, err := tx.CreateTrial(0, nil)
				return err
			})
			if err != nil {
				b.Fatal(err)
			}
		}
		b.Run(fmt.Sprintf("append/trials=%d", trials), func(b *testing.B) {
			for b.Loop() {
				appendOne()
			}
		})
		b.Run(fmt.Sprintf("refresh/trials=%d", trials), func(b *testing.B) {
			var took time.Duration
			for b.Loop() {
				appendOne()
				start := time.Now()
				if err := r.Refresh(b.Context()); err != nil {
					b.Fatal(err)
				}
				took += time.Since(start)
			}
			b.ReportMetric(float64(took.Nanoseconds())/float64(b.N), "ns/refresh")
		})
	}
}
