package metricscmd

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/logkind"
	"github.com/foldlog/foldlog/metrics"
)

// do does a command, whose output is discarded.
func do(args ...string) error {
	c := New(logkind.Finder{Env: &cli.Env{}, Kinds: logkind.Kinds()})
	c.SetArgs(args)
	return c.Execute()
}

func TestParquetHasEveryPoint(t *testing.T) {
	dir := t.TempDir()
	path, out := filepath.Join(dir, "r.jsonl"), filepath.Join(dir, "r.parquet")
	text := `{"ts_ms":1,"kind":"open","slug":"r","description":"","metadata":{}}
{"ts_ms":2,"step":1,"kind":"metric","name":"loss","value":"NaN"}
` + `{"ts_ms":3,"step":2,"kind":"metric","name":"n","value":9007199254740993,"metadata":{"k":1}}` + "\n"
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := do("export", path, "--out", out); err != nil {
		t.Fatal(err)
	}
	rows, err := parquet.ReadFile[pointRow](out)
	if err != nil || len(rows) != 2 || !math.IsNaN(rows[0].Value) {
		t.Fatalf("%v, %+v", err, rows)
	}
	whole := int64(9007199254740993)
	want := pointRow{Run: "r", Step: 2, TSMS: 3, Name: "n", Value: 9007199254740992, Integer: &whole, Metadata: `{"k":1}`}
	if rows[0].Value = 0; rows[0].Integer != nil || rows[0].Metadata != "{}" {
		t.Errorf("%+v", rows[0])
	}
	if diff := cmp.Diff(want, rows[1], cmp.AllowUnexported(metrics.Number{}, pointRow{})); diff != "" {
		t.Error(diff)
	}
}

// millionPoints writes a stream of a million points in ten metrics.
func millionPoints(tb testing.TB) string {
	tb.Helper()
	var b bytes.Buffer
	b.WriteString(`{"ts_ms":1,"kind":"open","slug":"big","description":"","metadata":{}}` + "\n")
	for i := range 1_000_000 {
		e := metrics.Event{Kind: metrics.KindMetric, TSMS: 1790189597015 + int64(i), Step: int64(i / 10), Name: fmt.Sprintf("train/m%d", i%10),
			Value: metrics.Float(math.Exp(-float64(i) / 3e5)), Metadata: `{"split":"train","stage":"easy"}`}
		b.Write(e.Append(nil))
	}
	path := filepath.Join(tb.TempDir(), "big.jsonl")
	if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
		tb.Fatal(err)
	}
	return path
}

func BenchmarkShowOfAMillionPoints(b *testing.B) {
	path := millionPoints(b)
	for b.Loop() {
		if err := do("show", path); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkExportOfAMillionPoints(b *testing.B) {
	path := millionPoints(b)
	a := &app{logkind.Finder{Env: nil}}
	for name, write := range map[string]func(io.Writer, pointSource) error{"csv": exportPointsCSV, "parquet": exportPointsParquet} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				err := write(io.Discard, func(emit func(*pointRow) error) error {
					return a.eachPoint(b.Context(), []string{path}, pointFilter{name: nameFilter(nil)}, emit)
				})
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
