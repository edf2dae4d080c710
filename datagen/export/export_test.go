package export

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"github.com/foldlog/foldlog/datagen"
)

// items are the items of the worked example of the format page, and one with every
// kind of value.
func items(t *testing.T) iter.Seq2[*datagen.Item, error] {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "testdata", "example.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	byItem := map[string][]datagen.Event{}
	for line := range strings.Lines(string(text)) {
		e, err := datagen.ParseEvent([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		if byItem[e.Item] == nil {
			order = append(order, e.Item)
		}
		byItem[e.Item] = append(byItem[e.Item], e)
	}
	order = append(order, "all")
	byItem["all"] = everyKind()
	return func(yield func(*datagen.Item, error) bool) {
		for _, id := range order {
			if !yield(datagen.Fold(byItem[id]), nil) {
				return
			}
		}
	}
}

func everyKind() []datagen.Event {
	step := &datagen.Step{Name: "s", Instance: "s"}
	events := []datagen.Event{{Kind: datagen.ItemCreated}}
	for name, v := range map[string]datagen.Value{
		"i": {Kind: datagen.Int, Int: math.MinInt64}, "f": {Kind: datagen.Float, Float: math.Inf(-1)}, "b": {Kind: datagen.Bool},
		"s": {Kind: datagen.Str, Str: ""}, "j": {Kind: datagen.JSON, JSON: json.RawMessage(`null`)}, "e": {Kind: datagen.Blob, Blob: datagen.NewBlob(nil)},
	} {
		events = append(events, datagen.Event{Kind: datagen.FieldSet, Step: step, Field: &datagen.Field{Name: name, Type: name, Codec: 2, Value: v}})
	}
	events = append(events, datagen.Event{Kind: datagen.StepCompleted, Step: step})
	for i := range events {
		e := &events[i]
		e.Item, e.Seq, e.Checkpoint, e.Run, e.Epoch = "all", int64(i), "c", "r", "w"
	}
	datagen.FillBatch(events, time.Unix(1_790_000_000, 0))
	return events
}

func blobs(_ context.Context, ref datagen.BlobRef) ([]byte, error) {
	if ref.Size == 0 {
		return nil, nil
	}
	return []byte{0x89, 'P', 'N', 'G'}, nil
}

func TestItemsAsJSONLines(t *testing.T) {
	var b bytes.Buffer
	stats, err := JSONL(t.Context(), &b, Having(items(t), datagen.StatusCompleted, datagen.StatusFiltered), Options{})
	if err != nil || stats != (Stats{2, 4}) {
		t.Fatal(stats, err)
	}
	golden := filepath.Join("testdata", "items.jsonl")
	if os.Getenv("FOLDLOG_BLESS") != "" {
		if err := os.WriteFile(golden, b.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), b.String()); d != "" {
		t.Error(d)
	}
	b.Reset()
	if _, err = JSONL(t.Context(), &b, items(t), Options{Blobs: blobs, NoProvenance: true}); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		var it struct {
			Fields     map[string]any
			Provenance any
		}
		if err := json.Unmarshal([]byte(line), &it); err != nil || it.Provenance != nil || len(it.Fields) == 0 {
			t.Errorf("%v: %s", err, line)
		}
	}
	for _, part := range []string{`"image":[{"size":4,"checksum":"sha256:0f46`, `"base64":"iVBORw=="}]`, `"i":-9223372036854775808`, `"f":"-Infinity"`,
		`"j":null`, `"e":{"size":0,"checksum":"sha256:e3b0`, `"base64":""}`} {
		if !strings.Contains(b.String(), part) {
			t.Errorf("no %s in %s", part, b.String())
		}
	}
}

func TestItemsAsParquet(t *testing.T) {
	var b bytes.Buffer
	stats, err := Parquet(t.Context(), &b, items(t), Options{Blobs: blobs})
	if err != nil || stats != (Stats{3, 10}) {
		t.Fatal(stats, err)
	}
	rows, err := parquet.Read[Row](bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil || len(rows) != 10 {
		t.Fatal(len(rows), err)
	}
	image := rows[1]
	if image.Item != "digit-7" || *image.Field != "image" || !*image.Appended || *image.Place != 0 || string(*image.Blob) != "\x89PNG" || *image.Size != 4 ||
		*image.Step != "perturb" || *image.Iteration != 0 || *image.Epoch != "w1.3" || image.Tags != `{"label":7}` || image.Int != nil {
		t.Errorf("%+v", image)
	}
	found := 0
	for _, r := range rows[4:] {
		found++
		switch *r.Kind {
		case "int":
			found -= boolInt(r.Int == nil || *r.Int != math.MinInt64)
		case "float":
			found -= boolInt(r.Float == nil || !math.IsInf(*r.Float, -1))
		case "bool":
			found -= boolInt(r.Bool == nil || *r.Bool)
		case "str":
			found -= boolInt(r.Str == nil || *r.Str != "")
		case "json":
			found -= boolInt(r.JSON == nil || *r.JSON != "null")
		case "blob":
			found -= boolInt(r.Blob == nil || len(*r.Blob) != 0 || *r.Size != 0)
		}
	}
	if found != 6 {
		t.Errorf("%d values survived of 6", found)
	}
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestWhatCannotBeReadOrWrittenIsTold(t *testing.T) {
	broken := errors.New("broken")
	bad := func(yield func(*datagen.Item, error) bool) { yield(nil, broken) }
	unread := func(context.Context, datagen.BlobRef) ([]byte, error) { return nil, broken }
	for name, do := range map[string]func(io.Writer, iter.Seq2[*datagen.Item, error], Options) error{
		"jsonl": func(w io.Writer, s iter.Seq2[*datagen.Item, error], o Options) error {
			_, err := JSONL(t.Context(), w, s, o)
			return err
		},
		"parquet": func(w io.Writer, s iter.Seq2[*datagen.Item, error], o Options) error {
			_, err := Parquet(t.Context(), w, s, o)
			return err
		},
	} {
		if err := do(io.Discard, Having(bad, datagen.StatusCompleted), Options{}); !errors.Is(err, broken) {
			t.Errorf("%s of a broken log: %v", name, err)
		}
		if err := do(io.Discard, items(t), Options{Blobs: unread}); !errors.Is(err, broken) || !strings.Contains(err.Error(), `"digit-7"`) {
			t.Errorf("%s of a blob that cannot be read: %v", name, err)
		}
		if err := do(full{}, items(t), Options{}); !errors.Is(err, errFull) {
			t.Errorf("%s to a full disk: %v", name, err)
		}
	}
}

var errFull = errors.New("disk is full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }
