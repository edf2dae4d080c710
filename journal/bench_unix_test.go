//go:build unix

package journal

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkProcesses measures transactions per second of all processes together
// that append to one journal.
func BenchmarkProcesses(b *testing.B) {
	for _, n := range []int{1, 2, 8, 50} {
		b.Run(fmt.Sprintf("processes=%d", n), func(b *testing.B) {
			path := emptyJournal(b)
			var all []*child
			for i := range n {
				all = append(all, start(b, "appender", path, fmt.Sprint("p", i), "2s", "0s"))
			}
			total := func() (sum int) {
				for _, c := range all {
					sum += c.count()
				}
				return sum
			}
			for _, c := range all {
				waitFor(b, func() bool { return c.count() > 0 })
			}
			before := total()
			b.ResetTimer()
			for total() < before+b.N {
				time.Sleep(500 * time.Microsecond)
			}
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "transactions/s")
			for _, c := range all {
				c.kill()
			}
		})
	}
}

// BenchmarkTakeOver measures an append that has to take the lease from a process
// that was killed while it held it.
func BenchmarkTakeOver(b *testing.B) {
	b.StopTimer()
	for range b.N {
		path := emptyJournal(b)
		holder := start(b, "stopper", path, "rename", "/s.atj$", "1")
		<-holder.lines
		w, err := OpenWriter(b.Context(), path, WriterOptions{}, &nothing{})
		if err != nil {
			b.Fatal(err)
		}
		holder.kill()
		b.StartTimer()
		appendOps(b, w, benchOp)
		b.StopTimer()
		w.Close()
	}
}
