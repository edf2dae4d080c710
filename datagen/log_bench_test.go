package datagen

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/foldlog/foldlog/objstore"
)

func diskLog(b *testing.B) *Log {
	s, err := objstore.OpenLocal(b.TempDir(), objstore.LocalOptions{})
	check(b, err)
	l, err := OpenOrCreate(b.Context(), s, "p", "e", Options{})
	check(b, err)
	return l
}

func fiveFields(i int) []Change {
	var changes []Change
	for k := range 5 {
		changes = append(changes, set(fmt.Sprintf("field-%d", k), int64(i)))
	}
	return changes
}

// BenchmarkCheckpoint is one durable checkpoint of five field events on disk, in turn
// with the bare writes and syncs of files of the same sizes and number.
func BenchmarkCheckpoint(b *testing.B) {
	l := diskLog(b)
	w, err := l.NewWriter(b.Context(), WriterOptions{MergeAfter: -1, MaxLive: -1})
	check(b, err)
	defer w.Close(context.Background())
	s, err := w.Open(b.Context(), "item", CreateOptions{})
	check(b, err)
	bare := bareWrites(b)
	var log, plain []time.Duration
	for i := 0; b.Loop(); i++ {
		start := time.Now()
		st := step(0)
		st.Instance = strconv.Itoa(i)
		check(b, s.Checkpoint(b.Context(), st, fiveFields(i)))
		between := time.Now()
		bare(i)
		log, plain = append(log, between.Sub(start)), append(plain, time.Since(between))
	}
	b.ReportMetric(float64(quantile(log, 0.5))/1e6, "p50-log-ms")
	b.ReportMetric(float64(quantile(plain, 0.5))/1e6, "p50-bare-ms")
	b.ReportMetric(float64(quantile(log, 0.5))/float64(quantile(plain, 0.5)), "ratio")
}

func quantile(d []time.Duration, q float64) time.Duration {
	d = slices.Sorted(slices.Values(d))
	return d[int(q*float64(len(d)-1))]
}

// bareWrites returns what makes the files of a generation and its manifest durable, as
// the store does it, without anything around it.
func bareWrites(b *testing.B) func(i int) {
	s, err := objstore.OpenLocal(b.TempDir(), objstore.LocalOptions{})
	check(b, err)
	return func(i int) {
		gen := fmt.Sprintf("shard/gen-%d/", i)
		commit, err := objstore.Stage(b.Context(), s, []objstore.Object{
			{Key: gen + "data/x.lance", Data: make([]byte, 16000)}, {Key: gen + "_versions/x.manifest", Data: make([]byte, 3000)},
			{Key: gen + "_pk_index/page_data.lance", Data: make([]byte, 1500)}, {Key: gen + "_pk_index/page_lookup.lance", Data: make([]byte, 1000)},
			{Key: gen + "bloom_filter.bin", Data: make([]byte, 32768)},
		}, objstore.Object{Key: fmt.Sprintf("shard/manifest/%d", i), Data: fmt.Appendf(nil, "manifest %d", i)})
		check(b, err)
		check(b, commit(b.Context()))
	}
}

// BenchmarkLatency is one checkpoint after another in a small log, in one of a million
// items, and in that while maintenance runs at its usual pace.
func BenchmarkLatency(b *testing.B) {
	items := 1_000_000
	if testing.Short() {
		items = 50_000
	}
	quiet := time.Duration(0)
	for _, c := range []struct {
		name     string
		items    int
		maintain bool
	}{{"small", 3, false}, {"large", items, false}, {"maintained", items, true}} {
		b.Run(c.name, func(b *testing.B) {
			l := bigLog(b, c.items)
			w, err := l.NewWriter(b.Context(), WriterOptions{})
			check(b, err)
			defer w.Close(context.Background())
			s, err := w.Open(b.Context(), "item", CreateOptions{})
			check(b, err)
			if c.maintain {
				go l.Maintain(b.Context(), MaintainOptions{Every: 100 * time.Millisecond, All: true})
			}
			var took []time.Duration
			for i := 0; b.Loop(); i++ {
				start := time.Now()
				st := step(0)
				st.Instance = strconv.Itoa(i)
				check(b, s.Checkpoint(b.Context(), st, fiveFields(i)))
				took = append(took, time.Since(start))
			}
			p99 := quantile(took, 0.99)
			if quiet == 0 {
				quiet = p99
			}
			b.ReportMetric(float64(quantile(took, 0.5))/1e6, "p50-ms")
			b.ReportMetric(float64(p99)/1e6, "p99-ms")
			b.ReportMetric(float64(p99)/float64(quiet), "p99-of-small")
			check(b, w.MergeError())
		})
	}
}

// BenchmarkManyItems is 64 items in one process, each with a checkpoint at a time.
func BenchmarkManyItems(b *testing.B) {
	l := diskLog(b)
	w, err := l.NewWriter(b.Context(), WriterOptions{})
	check(b, err)
	defer w.Close(context.Background())
	streams := make([]*Stream, 64)
	for i := range streams {
		streams[i], err = w.Open(b.Context(), fmt.Sprintf("item-%d", i), CreateOptions{})
		check(b, err)
	}
	next := make(chan int)
	var wg sync.WaitGroup
	b.ResetTimer()
	for _, s := range streams {
		wg.Go(func() {
			for i := range next {
				st := step(0)
				st.Instance = strconv.Itoa(i)
				check(b, s.Checkpoint(b.Context(), st, fiveFields(i)))
			}
		})
	}
	for i := range b.N {
		next <- i
	}
	close(next)
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "checkpoints/s")
	check(b, w.MergeError())
}

// BenchmarkOpen is opening new items, 64 at a time.
func BenchmarkOpen(b *testing.B) {
	l := diskLog(b)
	w, err := l.NewWriter(b.Context(), WriterOptions{})
	check(b, err)
	defer w.Close(context.Background())
	next := make(chan int)
	var wg sync.WaitGroup
	b.ResetTimer()
	for range 64 {
		wg.Go(func() {
			for i := range next {
				s, err := w.openAt(b.Context(), fmt.Sprintf("item-%d", i), CreateOptions{}, 0)
				check(b, err)
				check(b, s.CheckpointEnd(b.Context(), step(0), fiveFields(i), EndCompleted))
			}
		})
	}
	for i := range b.N {
		next <- i
	}
	close(next)
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "items/s")
}

// bulk makes the rows of many items: created, one step, its end.
func bulk(items int) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		const each = 4096
		at := time.UnixMicro(1_700_000_000_000_000).UTC()
		epoch := "0f0e0d0c-0b0a-4908-8706-050403020100.1.1"
		for lo := 0; lo < items; lo += each {
			var events []Event
			for i := lo; i < min(lo+each, items); i++ {
				id, cp, st, x := itemKey(i), fmt.Sprintf("checkpoint-%d", i), step(1), set("x", int64(i))
				for k, e := range []Event{{Kind: ItemCreated}, {Kind: FieldSet, Step: &st, Field: &x.Field}, {Kind: StepCompleted, Step: &st}} {
					e.ID, e.Item, e.Root, e.Checkpoint, e.Seq = EventID(id, cp, k), id, id, cp, int64(k)
					e.Run, e.Epoch, e.Time, e.Schema = "run", epoch, at, SchemaVersion
					events = append(events, e)
				}
			}
			rec, err := Record(events)
			if !yield(rec, err) || err != nil {
				return
			}
		}
	}
}

func itemKey(i int) string { return fmt.Sprintf("source-%08d", i) }

// bigLog is a log of many items, indexed.
func bigLog(b *testing.B, items int) *Log {
	s, err := objstore.OpenLocal(b.TempDir(), objstore.LocalOptions{NoSync: true})
	check(b, err)
	l, err := OpenOrCreate(b.Context(), s, "p", "e", Options{})
	check(b, err)
	d, err := l.table.Base(b.Context())
	check(b, err)
	_, err = d.Append(b.Context(), bulk(items))
	check(b, err)
	_, err = l.MaintainOnce(b.Context(), MaintainOptions{All: true, Rate: -1})
	check(b, err)
	return l
}

// BenchmarkManyEvents is reading a log of a million items, three million events.
func BenchmarkManyEvents(b *testing.B) {
	items := 1_000_000
	if testing.Short() {
		items = 50_000
	}
	l := bigLog(b, items)
	w, err := l.NewWriter(b.Context(), WriterOptions{})
	check(b, err)
	defer w.Close(context.Background())
	s, err := w.Open(b.Context(), "new", CreateOptions{})
	check(b, err)
	for i := range 20 {
		st := step(i)
		check(b, s.Checkpoint(b.Context(), st, fiveFields(i)))
	}
	b.Run("fold", func(b *testing.B) {
		v, err := l.View(b.Context())
		check(b, err)
		i := 0
		for b.Loop() {
			it, err := v.Item(b.Context(), itemKey(i*7919%1000), AsOf{})
			check(b, err)
			if it.LastSeq != 2 {
				b.Fatal(it)
			}
			i++
		}
	})
	b.Run("view-and-fold", func(b *testing.B) {
		for b.Loop() {
			v, err := l.View(b.Context())
			check(b, err)
			_, err = v.Item(b.Context(), itemKey(7), AsOf{})
			check(b, err)
		}
	})
	b.Run("classify", func(b *testing.B) {
		for b.Loop() {
			v, err := l.View(b.Context())
			check(b, err)
			c, err := v.Classes(b.Context())
			check(b, err)
			n := 0
			for i := range items {
				if c.Of(itemKey(i)) == Resumable {
					n++
				}
			}
			if n != items {
				b.Fatal(n)
			}
		}
	})
	b.Run("overview", func(b *testing.B) {
		for b.Loop() {
			v, err := l.View(b.Context())
			check(b, err)
			o, err := v.Overview(b.Context())
			check(b, err)
			if o.Items != items+1 {
				b.Fatal(o)
			}
		}
	})
	for name, pass := range map[string]func(*View) int{
		"items": func(v *View) (n int) {
			for _, err := range v.Items(b.Context(), ItemQuery{}) {
				check(b, err)
				n++
			}
			return n
		},
		"folds": func(v *View) (n int) {
			for _, err := range v.Folds(b.Context()) {
				check(b, err)
				n++
			}
			return n
		},
	} {
		b.Run(name, func(b *testing.B) {
			before, peak := heapBytes(), newPeak()
			for b.Loop() {
				v, err := l.View(b.Context())
				check(b, err)
				if n := pass(v); n != items+1 {
					b.Fatal(n)
				}
			}
			b.ReportMetric(float64(peak.stop()-before)/(1<<20), "peak-MiB")
		})
	}
}

// peak samples how much memory is allocated.
type peak struct {
	quit chan struct{}
	most chan int64
}

func newPeak() *peak {
	p := &peak{make(chan struct{}), make(chan int64)}
	go func() {
		most := int64(0)
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most = max(most, int64(m.HeapAlloc))
			select {
			case <-p.quit:
				p.most <- most
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	return p
}

func (p *peak) stop() int64 {
	close(p.quit)
	return <-p.most
}
