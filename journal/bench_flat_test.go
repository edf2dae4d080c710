package journal

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/foldlog/foldlog/internal/fsx"
)

var priors = []int{10, 1000, 100_000, 1_000_000}

// BenchmarkRefresh measures what one new operation costs a reader that has all
// before it, which must not depend on how many those are.
func BenchmarkRefresh(b *testing.B) {
	for _, prior := range priors {
		b.Run(fmt.Sprintf("prior=%d", prior), func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "s.atj")
			writeHistory(b, path, prior, 100, 1)
			r, err := OpenReader(path, ReaderOptions{})
			if err != nil {
				b.Fatal(err)
			}
			defer r.Close()
			m := &nothing{}
			if err := r.Refresh(m); err != nil {
				b.Fatal(err)
			}
			w, err := OpenWriter(b.Context(), path, WriterOptions{FS: noSync{fsx.OS}}, &nothing{})
			if err != nil {
				b.Fatal(err)
			}
			defer w.Close()
			b.ResetTimer()
			for range b.N {
				b.StopTimer()
				appendOps(b, w, benchOp)
				b.StartTimer()
				if err := r.Refresh(m); err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			if m.applied != uint64(prior+b.N) {
				b.Fatal(m.applied)
			}
		})
	}
}

// BenchmarkRefreshIdle measures a refresh that finds nothing new.
func BenchmarkRefreshIdle(b *testing.B) {
	path := filepath.Join(b.TempDir(), "s.atj")
	writeHistory(b, path, 1000, 100, 1)
	r, err := OpenReader(path, ReaderOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	for b.Loop() {
		if err := r.Refresh(&nothing{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkAppendFlat measures a durable append after ever more operations.
func BenchmarkAppendFlat(b *testing.B) {
	for _, prior := range priors {
		b.Run(fmt.Sprintf("prior=%d", prior), func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "s.atj")
			writeHistory(b, path, prior, 100, 1)
			w, err := OpenWriter(b.Context(), path, WriterOptions{}, &nothing{})
			if err != nil {
				b.Fatal(err)
			}
			defer w.Close()
			for b.Loop() {
				appendOps(b, w, benchOp)
			}
		})
	}
}

// BenchmarkHandOver measures appends of two writers in turn, so that each waits
// for the lease of the other.
func BenchmarkHandOver(b *testing.B) {
	path := filepath.Join(b.TempDir(), "s.atj")
	a := benchWriter(b, path)
	other, err := OpenWriter(b.Context(), path, WriterOptions{}, &nothing{})
	if err != nil {
		b.Fatal(err)
	}
	defer other.Close()
	for b.Loop() {
		appendOps(b, a, benchOp)
		appendOps(b, other, benchOp)
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(2*b.N), "µs/append")
}
