package datagen

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/internal/lancetest"
	"github.com/foldlog/foldlog/internal/serde"
	"github.com/foldlog/foldlog/lance"
	"github.com/foldlog/foldlog/objstore"
)

// example is the worked example of docs/format/datagen.md: an image is perturbed in
// a loop, one attempt fails, another writer goes on and keeps a copy as a sub-item.
func example() []Event {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	round := func(n int64) *int64 { return &n }
	perturb := &Step{Name: "perturb", Index: 0, Instance: "refine#0/perturb", Iteration: round(0)}
	classify := &Step{Name: "classify", Index: 1, Instance: "refine#0/classify", Iteration: round(0)}
	keep := &Step{Name: "keep", Index: 0, Instance: "keep"}
	field := func(kind Kind, s *Step, name, codec string, v Value) Event {
		return Event{Kind: kind, Step: s, Field: &Field{Name: name, Type: codec, Codec: 1, Value: v}}
	}
	var all []Event
	seqs := map[string]int64{}
	batch := func(item, parent, checkpoint, epoch string, attempt int32, events ...Event) {
		now = now.Add(1500 * time.Millisecond)
		for i := range events {
			e := &events[i]
			e.Item, e.Parent, e.Root, e.Checkpoint, e.Epoch, e.Attempt, e.Run = item, parent, "digit-7", checkpoint, epoch, attempt, "run-1"
			e.Seq, seqs[item] = seqs[item], seqs[item]+1
		}
		FillBatch(events, now)
		all = append(all, events...)
	}
	batch("digit-7", "", "c1", "w1.3", 0,
		Event{Kind: ItemCreated, Tags: json.RawMessage(`{"label":7}`)},
		field(FieldSet, perturb, "angle", "float", Value{Kind: Float, Float: 12.5}),
		field(FieldAppend, perturb, "image", "png", Value{Kind: Blob, Blob: NewBlob([]byte{0x89, 'P', 'N', 'G'})}),
		Event{Kind: StepCompleted, Step: perturb})
	batch("digit-7", "", "c2", "w1.3", 0, Event{Kind: StepFailed, Step: classify,
		Failure: &Failure{Type: "TimeoutError", Dump: json.RawMessage(`{"seconds":30}`), Traceback: "classify.py, line 12"}})
	batch("digit-7", "", "c3", "w2.1", 1,
		field(FieldSet, classify, "label", "int", Value{Kind: Int, Int: 7}),
		Event{Kind: StepCompleted, Step: classify})
	batch("digit-7/keep:0", "digit-7", "c4", "w2.1", 0,
		Event{Kind: ItemCreated},
		field(FieldSet, keep, "note", "str", Value{Kind: Str, Str: "größer"}),
		Event{Kind: StepCompleted, Step: keep},
		Event{Kind: ItemEnded, End: EndCompleted})
	batch("digit-7", "", "c5", "w2.1", 1, Event{Kind: ItemEnded, End: EndFiltered})
	return all
}

// FOLDLOG_BLESS=1 writes the golden anew; the page has its lines.
func TestTheExampleIsTheGolden(t *testing.T) {
	events := example()
	var lines bytes.Buffer
	for i := range events {
		lines.Write(append(AppendEvent(nil, &events[i]), '\n'))
	}
	golden := filepath.Join("testdata", "example.jsonl")
	if os.Getenv("FOLDLOG_BLESS") != "" {
		if err := os.WriteFile(golden, lines.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), lines.String()); d != "" {
		t.Error(d)
	}
	page, err := os.ReadFile(filepath.Join("..", "docs", "format", "datagen.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(page, want) {
		t.Error("docs/format/datagen.md does not have the lines of the example")
	}
	for _, events := range batchesOf(events) {
		if err := CheckBatch(events); err != nil {
			t.Error(err)
		}
	}
	for i, line := range slices.Collect(strings.Lines(string(want))) {
		if e, err := ParseEvent([]byte(line)); err != nil || !e.Equal(&events[i]) {
			t.Errorf("line %d: %v", i+1, err)
		}
	}
}

func TestTheExampleFoldsAsThePageSays(t *testing.T) {
	events := example()
	byItem := map[string][]Event{}
	for _, e := range events {
		byItem[e.Item] = append(byItem[e.Item], e)
	}
	it, sub := Fold(byItem["digit-7"]), Fold(byItem["digit-7/keep:0"])
	if it.Status != StatusFiltered || it.Attempt != 1 || len(it.Failures) != 1 || it.LastSeq != 7 || !it.Done("refine#0/classify") {
		t.Errorf("%+v", it)
	}
	page, err := os.ReadFile(filepath.Join("..", "docs", "format", "datagen.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, fields := range []string{fieldsJSON(it), fieldsJSON(sub)} {
		if !bytes.Contains(page, []byte("`"+fields+"`")) {
			t.Errorf("docs/format/datagen.md does not have %s", fields)
		}
	}
	tree := Tree([]*Item{sub, it})
	if len(tree) != 1 || tree[0].Item != it || len(tree[0].Children) != 1 || tree[0].Children[0].Item != sub {
		t.Errorf("%+v", tree)
	}
}

func TestTheRealLanceReadsTheExample(t *testing.T) {
	real, there := lancetest.Real(t)
	if !there {
		return
	}
	dir := t.TempDir()
	store, err := objstore.OpenLocal(filepath.Join(dir, "log.lance"), objstore.LocalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d, err := lance.Create(t.Context(), store, Schema())
	if err != nil {
		t.Fatal(err)
	}
	rec, err := Record(example())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Append(t.Context(), lance.Batches(rec)); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(lancetest.Text(rec), real.Rows(t, "scan", lancetest.Args{"dir": dir})); d != "" {
		t.Error(d)
	}
	var columns []string
	real.Do(t, "schema", lancetest.Args{"dir": dir}, &columns)
	if len(columns) != 33 || columns[0] != "event_id:Utf8" || columns[3] != "parent_item_id:Utf8?" || columns[23] != "value_blob:LargeBinary?" {
		t.Error(columns)
	}
	path := lancetest.WriteRows(t, rec)
	other := t.TempDir()
	real.Do(t, "create", lancetest.Args{"dir": other, "rows": path}, nil)
	theirs, err := objstore.OpenLocal(filepath.Join(other, "log.lance"), objstore.LocalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if d, err = lance.Open(t.Context(), theirs, lance.OpenOptions{}); err != nil {
		t.Fatal(err)
	}
	if v, err := CheckSchema(d.Schema()); v != SchemaVersion || err != nil {
		t.Errorf("version %d, %v", v, err)
	}
	want, i := example(), 0
	for rec, err := range d.Scan(t.Context(), lance.ScanOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range decoded(t, rec) {
			if !e.Equal(&want[i]) {
				t.Errorf("row %d: %s", i, cmp.Diff(want[i], e))
			}
			i++
		}
	}
	if i != len(want) {
		t.Errorf("%d rows of %d", i, len(want))
	}
}

// fieldsJSON spells the fields of an item as the page does: what was set as AppendValue
// spells it, what was appended as an array.
func fieldsJSON(it *Item) string {
	var dst []byte
	dst = append(dst, '{')
	for i := range it.Fields {
		f := &it.Fields[i]
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(serde.AppendString(dst, f.Name), ':')
		if !f.Appended {
			dst = AppendValue(dst, &f.Values[0].Value)
			continue
		}
		dst = append(dst, '[')
		for k := range f.Values {
			if k > 0 {
				dst = append(dst, ',')
			}
			dst = AppendValue(dst, &f.Values[k].Value)
		}
		dst = append(dst, ']')
	}
	return string(append(dst, '}'))
}
