package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/logkind"
	"github.com/foldlog/foldlog/lance"
	"github.com/foldlog/foldlog/lance/memwal"
	"github.com/foldlog/foldlog/objstore"
)

var tableSchema = arrow.NewSchema([]arrow.Field{
	{Name: "id", Type: arrow.BinaryTypes.String, Metadata: arrow.NewMetadata([]string{"lance-schema:unenforced-primary-key"}, []string{"true"})},
	{Name: "n", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "x", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
	{Name: "raw", Type: arrow.BinaryTypes.Binary, Nullable: true},
	{Name: "at", Type: arrow.FixedWidthTypes.Timestamp_us, Nullable: true},
	{Name: "day", Type: arrow.PrimitiveTypes.Date32, Nullable: true},
}, nil)

// numbered are rows whose ids are r and a number from first on.
func numbered(first, n int) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, tableSchema)
	for i := first; i < first+n; i++ {
		b.Field(0).(*array.StringBuilder).Append(fmt.Sprint("r", i))
		b.Field(1).(*array.Int64Builder).Append(int64(i))
		for c := 2; c < 6; c++ {
			b.Field(c).AppendNull()
		}
	}
	return b.NewRecordBatch()
}

// numberedLines are what cat prints of them.
func numberedLines(first, n int) string {
	var s strings.Builder
	for i := first; i < first+n; i++ {
		fmt.Fprintf(&s, `{"id":"r%d","n":%d,"x":null,"raw":null,"at":null,"day":null}`+"\n", i, i)
	}
	return s.String()
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// withTable makes the dataset t.lance of rows 1 to 4, in two fragments, in a
// directory of the test's own, and makes that the working directory.
func withTable(t *testing.T) *lance.Dataset {
	t.Helper()
	t.Chdir(t.TempDir())
	store := must[*objstore.Local](t)(objstore.OpenLocal("t.lance", objstore.LocalOptions{NoSync: true}))
	d := must[*lance.Dataset](t)(lance.Create(t.Context(), store, tableSchema))
	d = must[*lance.Dataset](t)(d.Append(t.Context(), lance.Batches(numbered(1, 3))))
	return must[*lance.Dataset](t)(d.Append(t.Context(), lance.Batches(numbered(4, 1))))
}

// withShard adds row 5 to a new shard of the MemWAL.
func withShard(t *testing.T, d *lance.Dataset) memwal.ID {
	t.Helper()
	table := must[*memwal.Table](t)(memwal.Open(t.Context(), d.Store()))
	w := must[*memwal.Writer](t)(table.NewWriter(t.Context(), memwal.WriterOptions{MergeAfter: -1}))
	defer w.Close()
	if err := w.Append(t.Context(), numbered(5, 1)); err != nil {
		t.Fatal(err)
	}
	return w.Shard()
}

func TestLanceDatasetIsFoundOnceAndByItsParts(t *testing.T) {
	d := withTable(t)
	shard := withShard(t, d)
	out := mustDo(t, "ls", "--json")
	if strings.Count(out, "\n") != 1 || !strings.Contains(out, `"path":"t.lance","kind":"lance dataset","state":"good"`) ||
		!strings.Contains(out, `, 4 rows, 1 row to be merged"`) {
		t.Errorf("ls printed %s", out)
	}
	generations, err := filepath.Glob("t.lance/_mem_wal/" + shard.String() + "/*/_versions/*.manifest")
	if err != nil || len(generations) != 1 {
		t.Fatalf("generations %v: %v", generations, err)
	}
	abs := must[string](t)(filepath.Abs("t.lance"))
	here := logkind.Finder{Env: &cli.Env{}, Kinds: logkind.Kinds()}
	for _, tc := range []struct{ path, want string }{
		{"t.lance", "t.lance"}, {"t.lance/data", "t.lance"}, {"t.lance/_versions", "t.lance"},
		{generations[0], "t.lance"}, {filepath.Dir(filepath.Dir(generations[0])), "t.lance"},
		{filepath.Join(abs, "data"), abs}, {abs, abs}, {"t.lance/gone", ""}, {".", ""}, {abs + "/..", ""},
	} {
		got, err := here.Find(t.Context(), tc.path)
		if (err == nil) != (tc.want != "") || got.Path != filepath.FromSlash(tc.want) {
			t.Errorf("%s is of %q (%v), want %q", tc.path, got.Path, err, tc.want)
		}
	}
	t.Chdir("t.lance")
	if got := mustDo(t, "cat", "data"); got != numberedLines(1, 4) {
		t.Errorf("from inside cat printed %s", got)
	}
}

func TestLanceRowsAsJSON(t *testing.T) {
	d := withTable(t)
	b := array.NewRecordBuilder(memory.DefaultAllocator, tableSchema)
	for i, x := range []float64{0.5, math.NaN(), math.Inf(-1)} {
		b.Field(0).(*array.StringBuilder).Append(fmt.Sprintf("<%d>\n", i))
		b.Field(1).(*array.Int64Builder).Append(math.MaxInt64)
		b.Field(2).(*array.Float64Builder).Append(x)
		b.Field(3).(*array.BinaryBuilder).Append([]byte{0, 255})
		b.Field(4).(*array.TimestampBuilder).Append(1_700_000_000_250_000)
		b.Field(5).(*array.Date32Builder).Append(19675)
	}
	d = must[*lance.Dataset](t)(d.Append(t.Context(), lance.Batches(b.NewRecordBatch())))
	must[*lance.Dataset](t)(d.Delete(t.Context(), []lance.Condition{{Column: "id", Op: lance.Equal, Value: "r2"}}))
	line := func(i int, x string) string {
		return fmt.Sprintf(`{"id":"<%d>\n","n":9223372036854775807,"x":%s,"raw":"AP8=","at":"2023-11-14T22:13:20.25Z","day":"2023-11-14"}`+"\n", i, x)
	}
	special := line(0, "0.5") + line(1, `"NaN"`) + line(2, `"-Infinity"`)
	whole := numberedLines(1, 1) + numberedLines(3, 2) + special
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"cat", "t.lance"}, whole},
		{[]string{"cat", "t.lance", "--from", "1"}, whole},
		{[]string{"cat", "t.lance", "--from", "3"}, numberedLines(4, 1) + special},
		{[]string{"cat", "t.lance", "--from", "7"}, ""},
		{[]string{"tail", "t.lance"}, whole},
		{[]string{"tail", "t.lance", "-n", "4"}, numberedLines(4, 1) + special},
		{[]string{"tail", "t.lance", "-n", "0"}, ""},
	} {
		t.Run(strings.Join(tc.args, " "), func(t *testing.T) {
			if diff := cmp.Diff(tc.want, mustDo(t, tc.args...)); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLanceRowsOfManyBatches(t *testing.T) {
	d := withTable(t)
	must[*lance.Dataset](t)(d.Append(t.Context(), lance.Batches(numbered(5, 20_000))))
	if mustDo(t, "cat", "t.lance", "--from", "9001") != numberedLines(9001, 11_004) {
		t.Error("cat did not print rows 9001 to 20004")
	}
	if mustDo(t, "tail", "t.lance", "-n", "10000") != numberedLines(10_005, 10_000) {
		t.Error("tail did not print the last 10000 rows")
	}
}

// lineWriter cancels a tail once it has written as many lines.
type lineWriter struct {
	bytes.Buffer
	most  int
	first chan struct{}
	done  context.CancelFunc
}

func (w *lineWriter) Write(b []byte) (int, error) {
	n, err := w.Buffer.Write(b)
	if w.first != nil {
		close(w.first)
		w.first = nil
	}
	if bytes.Count(w.Bytes(), []byte("\n")) >= w.most {
		w.done()
	}
	return n, err
}

func TestLanceTailFollowsAppends(t *testing.T) {
	d := withTable(t)
	ctx, cancel := context.WithTimeout(t.Context(), longEnough)
	defer cancel()
	first := make(chan struct{})
	w := &lineWriter{most: 3, first: first, done: cancel}
	ended := make(chan error, 1)
	at := must[logkind.Located](t)(logkind.Finder{Env: &cli.Env{}, Kinds: logkind.Kinds()}.Find(ctx, "t.lance"))
	go func() { ended <- at.Kind.Tail(ctx, at.Path, w, logkind.TailOptions{Last: 1, Follow: true}) }()
	<-first
	_, err := d.Append(t.Context(), lance.Batches(numbered(5, 2)))
	if got := <-ended; err != nil || got != context.Canceled {
		t.Errorf("append: %v; tail ended with %v", err, got)
	}
	if diff := cmp.Diff(numberedLines(4, 3), w.String()); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

func TestLanceInspect(t *testing.T) {
	d := withTable(t)
	d = must[*lance.Dataset](t)(d.CreateIndex(t.Context(), "n"))
	d = must[*lance.Dataset](t)(d.Delete(t.Context(), []lance.Condition{{Column: "id", Op: lance.Equal, Value: "r2"}}))
	shard := withShard(t, d)
	before := hashTree(t, ".")
	out := mustDo(t, "inspect", "t.lance", "--json")
	if diff := cmp.Diff(before, hashTree(t, ".")); diff != "" {
		t.Error("inspecting changed the dataset")
	}
	var found struct {
		Kind, Format string
		Bytes, Files int64
		Events       int64
		FirstMS      int64 `json:"first_ms"`
		LastMS       int64 `json:"last_ms"`
		Counts       map[string]int64
		Notes        []string
		Detail       logkind.LanceDetail
	}
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		t.Fatal(err)
	}
	if found.Kind != "lance dataset" || found.Format != "v2.0" || found.Events != 3 || found.FirstMS == 0 || found.LastMS < found.FirstMS {
		t.Errorf("got %+v", found)
	}
	size := int64(0)
	for _, content := range before {
		size += int64(len(content))
	}
	if found.Bytes != size || found.Files != int64(len(before)) {
		t.Errorf("%d bytes in %d files, want %d in %d", found.Bytes, found.Files, size, len(before))
	}
	if want := "1 row in 1 generation of shards are not merged"; len(found.Notes) != 1 || !strings.HasPrefix(found.Notes[0], want) {
		t.Errorf("notes %q, want %q", found.Notes, want)
	}
	got := found.Detail
	if len(got.Indexes) != 2 || got.Indexes[0].Name != "n_idx" || got.Indexes[0].Kind != "btree" || got.Indexes[1].Kind != "mem_wal" {
		t.Errorf("indexes %+v", got.Indexes)
	}
	if got.Version != 6 || got.Versions != int(got.Version) || got.Writer == "" {
		t.Errorf("versions %+v", got)
	}
	got.Indexes, got.Version, got.Versions, got.Writer = nil, 0, 0, ""
	want := logkind.LanceDetail{
		Schema: []string{"id: utf8", "n: int64, nullable", "x: float64, nullable", "raw: binary, nullable",
			"at: timestamp[us, tz=UTC], nullable", "day: date32, nullable"},
		PrimaryKey: "id", Fragments: 2, Rows: 3, DeletedRows: 1,
		Shards: []logkind.LanceShard{{ID: shard.String(), Epoch: 1, Generations: 1, Unmerged: 1, Rows: 1}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("detail (-want +got):\n%s", diff)
	}
}

func TestLanceVerifyNamesTheFile(t *testing.T) {
	for _, tc := range []struct {
		name, pattern string
		damage        func(path string) error
	}{
		{"a data file is gone", "t.lance/data/*.lance", os.Remove},
		{"a data file is cut", "t.lance/data/*.lance", func(path string) error { return os.Truncate(path, 10) }},
		{"a generation's data is gone", "t.lance/_mem_wal/*/*/data/*.lance", os.Remove},
		{"a generation's sidecar is gone", "t.lance/_mem_wal/*/*/bloom_filter.bin", os.Remove},
		{"the latest manifest is cut", "t.lance/_versions/*.manifest", func(path string) error { return os.Truncate(path, 10) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			withShard(t, withTable(t))
			if out := mustDo(t, "verify", "t.lance"); !strings.HasPrefix(out, "ok      t.lance  lance dataset v2.0, 5 events, ") {
				t.Fatalf("sound: %s", out)
			}
			paths, err := filepath.Glob(tc.pattern)
			if err != nil || len(paths) == 0 {
				t.Fatalf("files %v: %v", paths, err)
			}
			if err := tc.damage(paths[0]); err != nil {
				t.Fatal(err)
			}
			got := inJournals(t.Context(), "verify", "t.lance", "--json")
			var v logkind.Verification
			if err := json.Unmarshal([]byte(got.stdout), &v); err != nil {
				t.Fatal(err)
			}
			if got.status != 1 || v.OK || len(v.Faults) != 1 || v.Faults[0].File != paths[0] || v.Faults[0].What == "" {
				t.Errorf("%s: status %d, faults %+v", paths[0], got.status, v.Faults)
			}
			if strings.Contains(got.stderr, "salvage") {
				t.Errorf("the hint %q cannot be followed", got.stderr)
			}
		})
	}
}

// TestLanceVerifyCoversOldVersions damages a file that the latest version does not have
// any more.
func TestLanceVerifyCoversOldVersions(t *testing.T) {
	d := withTable(t)
	old := d.Fragments()[0].Files[0]
	_, _, err := d.Compact(t.Context(), lance.CompactOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if out := mustDo(t, "verify", "t.lance"); !strings.HasPrefix(out, "ok      t.lance  lance dataset v2.0, 4 events, ") {
		t.Fatalf("sound: %s", out)
	}
	if err := os.Truncate(filepath.Join("t.lance", "data", old), 10); err != nil {
		t.Fatal(err)
	}
	got := inJournals(t.Context(), "verify", "t.lance")
	if got.status != 1 || strings.Count(got.stdout, "fault:") != 1 || !strings.Contains(got.stdout, old) {
		t.Errorf("status %d: %s", got.status, got.stdout)
	}
	mustDo(t, "verify", "t.lance", "--versions", "1")
	if got := inJournals(t.Context(), "verify", "t.lance", "--versions", "-1"); got.status == 0 {
		t.Errorf("a negative number is taken: %+v", got)
	}
}

func TestLanceCopyHasTheLatestVersionAndTheShards(t *testing.T) {
	d := withTable(t)
	d = must[*lance.Dataset](t)(d.CreateIndex(t.Context(), "n"))
	d = must[*lance.Dataset](t)(d.Delete(t.Context(), []lance.Condition{{Column: "id", Op: lance.Equal, Value: "r2"}}))
	shard := withShard(t, d)
	got := inJournals(t.Context(), "cp", "t.lance", "copy.lance")
	if got.status != 0 || !strings.Contains(got.stderr, "copied 3 events, ") {
		t.Fatalf("%+v", got)
	}
	if out := mustDo(t, "verify", "copy.lance"); !strings.HasPrefix(out, "ok      copy.lance  lance dataset v2.0, 4 events, ") {
		t.Errorf("the copy is %s", out)
	}
	if diff := cmp.Diff(mustDo(t, "cat", "t.lance"), mustDo(t, "cat", "copy.lance")); diff != "" {
		t.Error(diff)
	}
	if out := mustDo(t, "inspect", "copy.lance", "--json"); !strings.Contains(out, `"versions": 1,`) || !strings.Contains(out, shard.String()) {
		t.Errorf("inspect printed %s", out)
	}
	if pins, _ := filepath.Glob("t.lance/_pins/*"); len(pins) != 0 {
		t.Errorf("copying left %v", pins)
	}
	if got := inJournals(t.Context(), "cp", "t.lance", "copy.lance/copy.lance"); got.status != 0 {
		t.Errorf("into a directory: %+v", got)
	}
}

func TestLanceCopyThatFailsLeavesNothing(t *testing.T) {
	d := withTable(t)
	if err := os.Remove(filepath.Join("t.lance", "data", d.Fragments()[1].Files[0])); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ flag, want string }{
		{"--salvage=false", "data/" + d.Fragments()[1].Files[0]},
		{"--salvage", "cannot be salvaged\nhint: foldlog verify lists every fault"},
	} {
		got := inJournals(t.Context(), "cp", "t.lance", "copy", tc.flag)
		if _, err := os.Stat("copy"); got.status != 1 || !strings.Contains(got.stderr, tc.want) || !os.IsNotExist(err) {
			t.Errorf("%s: got %+v, %v", tc.flag, got, err)
		}
	}
}
