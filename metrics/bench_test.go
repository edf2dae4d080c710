package metrics

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// benchLines is n metric events of ten names, as a training run writes them.
func benchLines(n int) []byte {
	rng := rand.New(rand.NewPCG(1, 2))
	var b []byte
	open, err := NewOpen("bench", "bench: 1 step", "")
	if err != nil {
		panic(err)
	}
	b = open.Append(b)
	for i := range n {
		split := []string{"train", "eval"}[i%2]
		e := Event{Kind: KindMetric, TSMS: 1790189597015 + int64(i), Step: int64(i / 10), Name: fmt.Sprintf("%s/metric%d", split, i%10),
			Value: Float(rng.Float64() * 10), Metadata: Meta("split", split, "stage", "hard")}
		b = e.Append(b)
	}
	return b
}

func perSecond(b *testing.B, events int) {
	b.ReportMetric(float64(events)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

func BenchmarkEmitToFile(b *testing.B) {
	rt, err := Start(Options{Slug: "bench", Metadata: Meta("host", "a"), EmitterOptions: EmitterOptions{
		Targets: []Target{{Kind: TargetJSONL, Path: filepath.Join(b.TempDir(), "run.jsonl")}}}})
	if err != nil {
		b.Fatal(err)
	}
	run, meta := rt.Run(), Meta("split", "train")
	b.ReportAllocs()
	b.ResetTimer()
	i := int64(0)
	for b.Loop() {
		i++
		if err := run.Metric(i, "train/loss", Float(float64(i)*0.31), meta); err != nil {
			b.Fatal(err)
		}
	}
	// The end counts: what was emitted is written and synced.
	b.StartTimer()
	if r := rt.Done(); r.Lost() != 0 || r.Err() != nil {
		b.Fatal(r)
	}
	b.StopTimer()
	perSecond(b, 1)
}

func BenchmarkEncode(b *testing.B) {
	e := Event{Kind: KindMetric, TSMS: 1790189597015, Step: 4, Name: "train/loss", Metadata: Meta("split", "train", "stage", "hard")}
	buf := make([]byte, 0, 1024)
	b.ReportAllocs()
	i := 0.0
	for b.Loop() {
		i++
		e.Value = Float(i * 0.31)
		buf = e.Append(buf[:0])
	}
	perSecond(b, 1)
}

const benchEvents = 100_000

func BenchmarkParseAndFold(b *testing.B) {
	lines := benchLines(benchEvents)
	b.SetBytes(int64(len(lines)))
	b.ReportAllocs()
	for b.Loop() {
		var f Fold
		if err := ReadStream(bytes.NewReader(lines), func(it *Item) { f.Apply(&it.Event) }); err != nil || f.Metrics != benchEvents {
			b.Fatal(err, f.Metrics)
		}
	}
	perSecond(b, benchEvents)
}

func BenchmarkParse(b *testing.B) {
	lines := benchLines(benchEvents)
	b.SetBytes(int64(len(lines)))
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		if err := ReadStream(bytes.NewReader(lines), func(it *Item) { n++ }); err != nil || n != benchEvents+1 {
			b.Fatal(err, n)
		}
	}
	perSecond(b, benchEvents)
}

// BenchmarkParseSpaced is the spelling of Python's json.dumps.
func BenchmarkParseSpaced(b *testing.B) {
	lines := bytes.ReplaceAll(bytes.ReplaceAll(benchLines(benchEvents), []byte(`":`), []byte(`": `)), []byte(`,"`), []byte(`, "`))
	b.SetBytes(int64(len(lines)))
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		if err := ReadStream(bytes.NewReader(lines), func(it *Item) { n++ }); err != nil || n != benchEvents+1 {
			b.Fatal(err, n)
		}
	}
	perSecond(b, benchEvents)
}

// BenchmarkParseEncodingJSON is what the others are compared with.
func BenchmarkParseEncodingJSON(b *testing.B) {
	lines := benchLines(benchEvents)
	b.SetBytes(int64(len(lines)))
	b.ReportAllocs()
	type event struct {
		TSMS     int64           `json:"ts_ms"`
		Step     int64           `json:"step"`
		Kind     string          `json:"kind"`
		Name     string          `json:"name"`
		Value    float64         `json:"value"`
		Metadata json.RawMessage `json:"metadata"`
	}
	for b.Loop() {
		n := 0
		for line := range bytes.Lines(lines) {
			var e event
			if err := json.Unmarshal(line, &e); err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != benchEvents+1 {
			b.Fatal(n)
		}
	}
	perSecond(b, benchEvents)
}

func millionPoints() *Curve {
	var f Fold
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range int64(1_000_000) {
		f.Apply(&Event{Kind: KindMetric, TSMS: i, Step: i, Name: "loss", Value: Float(rng.Float64())})
	}
	return f.Curve("loss")
}

func BenchmarkDownsampleMillionTo1000(b *testing.B) {
	c := millionPoints()
	b.ReportAllocs()
	for b.Loop() {
		if r := c.Read(Query{Points: 1000}); !r.Sampled || r.Total != 1_000_000 {
			b.Fatal(r.Total)
		}
	}
}

// BenchmarkFollow is the cost of one new line, after so many others.
func BenchmarkFollow(b *testing.B) {
	for _, before := range []int{10, 1_000_000} {
		b.Run(fmt.Sprintf("after-%d", before), func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "run.jsonl")
			if err := os.WriteFile(path, benchLines(before), 0o644); err != nil {
				b.Fatal(err)
			}
			out, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				b.Fatal(err)
			}
			defer out.Close()
			f := NewFollower(path)
			defer f.Close()
			n := 0
			poll := func() {
				if err := f.Poll(func(*Item) { n++ }); err != nil {
					b.Fatal(err)
				}
			}
			poll()
			line := []byte(metricLine(1, "loss", "1") + "\n")
			b.ResetTimer()
			for b.Loop() {
				if _, err := out.Write(line); err != nil {
					b.Fatal(err)
				}
				poll()
			}
			if n != before+1+b.N {
				b.Fatal(n)
			}
		})
	}
}

// BenchmarkShowMillion reads and folds a file of a million points and sums
// up what a table of runs shows.
func BenchmarkShowMillion(b *testing.B) {
	lines := benchLines(1_000_000)
	b.SetBytes(int64(len(lines)))
	for b.Loop() {
		var f Fold
		if err := ReadStream(bytes.NewReader(lines), func(it *Item) { f.Apply(&it.Event) }); err != nil {
			b.Fatal(err)
		}
		for _, c := range f.Curves() {
			if c.Stats.Count != 100_000 {
				b.Fatal(c.Stats)
			}
		}
	}
}
