package datagen

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// lives makes the rows of items that are created, do one step and end, three
// events each, as batches of a table's scan.
func lives(b testing.TB, items int) []arrow.RecordBatch {
	b.Helper()
	now := time.UnixMicro(1_790_000_000_000_000).UTC()
	var batches []arrow.RecordBatch
	var events []Event
	for i := range items {
		id := fmt.Sprintf("source/%08d", i)
		e := Event{Item: id, Root: id, Checkpoint: "c", Run: "run-1", Epoch: fmt.Sprintf("epoch-%d", i%64), Time: now, Schema: 1}
		for seq, kind := range []Kind{ItemCreated, StepCompleted, ItemEnded} {
			e := e
			e.Seq, e.Kind, e.ID = int64(seq), kind, EventID(id, "c", seq)
			if kind == StepCompleted {
				e.Step = &Step{Name: "classify", Instance: "classify"}
			}
			if kind == ItemEnded {
				if i%8 == 7 {
					continue
				}
				e.End = EndCompleted
			}
			events = append(events, e)
		}
		if len(events) >= 8190 || i == items-1 {
			rec, err := Record(events)
			if err != nil {
				b.Fatal(err)
			}
			batches, events = append(batches, rec), events[:0]
		}
	}
	return batches
}

// project keeps some columns of batches.
func project(batches []arrow.RecordBatch, names []string) []arrow.RecordBatch {
	out := make([]arrow.RecordBatch, len(batches))
	for i, rec := range batches {
		var cols []arrow.Array
		var fields []arrow.Field
		for _, n := range names {
			k := rec.Schema().FieldIndices(n)[0]
			cols, fields = append(cols, rec.Column(k)), append(fields, rec.Schema().Field(k))
		}
		out[i] = array.NewRecordBatch(arrow.NewSchema(fields, nil), cols, rec.NumRows())
	}
	return out
}

func heapBytes() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

const benchItems = 1_000_000 / 4

func BenchmarkClasses(b *testing.B) {
	batches := project(lives(b, benchItems), ClassColumns(Schema()))
	keys := make([]string, benchItems)
	for i := range keys {
		keys[i] = fmt.Sprintf("source/%08d", i)
	}
	before := heapBytes()
	var c *Classes
	b.ReportAllocs()
	for b.Loop() {
		c = new(Classes)
		for _, rec := range batches {
			if err := c.Add(rec); err != nil {
				b.Fatal(err)
			}
		}
		n := map[Class]int{}
		for _, k := range keys {
			n[c.Of(k)]++
		}
		if n[Finished] != benchItems-benchItems/8 {
			b.Fatal(n)
		}
	}
	b.ReportMetric(float64(heapBytes()-before)/benchItems, "B/item")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchItems, "ns/item")
	runtime.KeepAlive([]any{c, batches, keys})
}

func BenchmarkSummary(b *testing.B) {
	batches := project(lives(b, benchItems), SummaryColumns(Schema()))
	before := heapBytes()
	var s *Summary
	b.ReportAllocs()
	for b.Loop() {
		s = new(Summary)
		for _, rec := range batches {
			if err := s.Add(rec); err != nil {
				b.Fatal(err)
			}
		}
		if o := s.Overview(); o.Items != benchItems || o.Suspects != 0 {
			b.Fatal(o)
		}
	}
	b.ReportMetric(float64(heapBytes()-before)/benchItems, "B/item")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchItems, "ns/item")
	runtime.KeepAlive([]any{s, batches})
}

func BenchmarkDecode(b *testing.B) {
	rec := lives(b, 2700)[0]
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range Decode(rec) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(rec.NumRows()), "ns/event")
}

func BenchmarkFold(b *testing.B) {
	for _, n := range []int{3, 100, 10_000} {
		var events []Event
		for i := range n {
			e := Event{ID: EventID("item", "c", i), Item: "item", Root: "item", Seq: int64(i), Checkpoint: fmt.Sprint("c", i), Epoch: "e", Kind: StepCompleted,
				Step: &Step{Name: "s", Instance: fmt.Sprint("s#", i)}}
			if i == 0 {
				e.Kind, e.Step = ItemCreated, nil
			}
			events = append(events, e)
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if it := Fold(events); len(it.Steps) != n-1 {
					b.Fatal(it.Faults)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/event")
		})
	}
}
