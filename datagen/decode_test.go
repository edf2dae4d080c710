package datagen

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// schema2 are the columns of version 2.
func schema2() *arrow.Schema {
	fs := slices.DeleteFunc(slices.Clone(fields[:columns]), func(f arrow.Field) bool {
		return f.Name == "step_instance_id" || f.Name == "iteration" || f.Name == "terminal"
	})
	return arrow.NewSchema(append(fs, fields[columns+1:]...), nil)
}

// table makes rows of cells by column name; what a row does not have is null.
func table(t testing.TB, s *arrow.Schema, rows ...map[string]any) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, s)
	for _, row := range rows {
		for i, f := range s.Fields() {
			appendCell(t, b.Field(i), row[f.Name])
		}
	}
	return b.NewRecordBatch()
}

func appendCell(t testing.TB, b array.Builder, v any) {
	if v == nil {
		b.AppendNull()
		return
	}
	switch x := b.(type) {
	case *array.StringBuilder:
		x.Append(v.(string))
	case *array.LargeStringBuilder:
		x.Append(v.(string))
	case *array.BinaryBuilder:
		x.Append([]byte(v.(string)))
	case *array.Int64Builder:
		x.Append(int64(v.(int)))
	case *array.Int32Builder:
		x.Append(int32(v.(int)))
	case *array.Float64Builder:
		x.Append(v.(float64))
	case *array.BooleanBuilder:
		x.Append(v.(bool))
	case *array.TimestampBuilder:
		x.Append(arrow.Timestamp(v.(int)))
	default:
		t.Fatalf("no cells of %T", b)
	}
}

// decoded are the events of a batch.
func decoded(t testing.TB, rec arrow.RecordBatch) (events []Event) {
	t.Helper()
	for e, err := range Decode(rec) {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	return events
}

// row2 is a row of version 2.
func row2(seq int, checkpoint, kind string, more ...any) map[string]any {
	row := map[string]any{"event_id": checkpoint + "-" + kind, "item_id": "i", "root_item_id": "i", "item_seq": seq, "checkpoint_id": checkpoint,
		"event_type": kind, "attempt": 0, "run_id": "r", "writer_epoch": "e", "event_ts": 1_000_000 * seq, "schema_version": 2}
	for k := 0; k < len(more); k += 2 {
		row[more[k].(string)] = more[k+1]
	}
	return row
}

func TestVersion2IsRead(t *testing.T) {
	rec := table(t, schema2(),
		row2(0, "c0", "ITEM_CREATED", "status", "running"),
		row2(1, "c1", "STEP_STARTED", "step_name", "refine", "step_index", 0, "step_kind", "loop", "status", "running"),
		row2(2, "c2", "FIELD_SET", "step_name", "draw", "step_index", 1, "enclosing_step", "refine", "field_name", "x", "field_type", "int",
			"codec_version", 1, "value_kind", "int", "value_i64", 7),
		row2(3, "c2", "STEP_COMPLETED", "step_name", "draw", "step_index", 1, "step_kind", "step", "enclosing_step", "refine", "status", "completed"),
		row2(4, "c3", "STEP_COMPLETED", "step_name", "draw", "step_index", 1, "step_kind", "step", "enclosing_step", "refine", "status", "completed"),
		row2(5, "c4", "STEP_COMPLETED", "step_name", "refine", "step_index", 0, "step_kind", "loop", "status", "completed"),
	)
	events := decoded(t, rec)
	if v, err := CheckSchema(rec.Schema()); v != StepsSchemaVersion || err != nil {
		t.Errorf("version %d, %v", v, err)
	}
	it := Fold(events)
	if got := shown(it); got != "x=7 refine/draw refine/draw#1 refine running" || it.Err() != nil {
		t.Error(got)
	}
	if f := events[1].Frame; f == nil || *f != (Frame{StepKind: "loop", Status: "running"}) {
		t.Errorf("frame %+v", f)
	}
	ends := map[string]string{"completed": "completed", "filtered": "filtered", "failed": "failed"}
	for status, want := range ends {
		end := table(t, schema2(), row2(6, "c5", "TERMINAL", "status", status, "step_name", "refine", "error_type", "E"))
		it := Fold(append(slices.Clone(events), decoded(t, end)...))
		if string(it.Status) != want || it.Err() != nil || (it.Failure() != nil) != (want == "failed") {
			t.Errorf("%s became %s, %v", status, it.Status, it.Err())
		}
		s, c := new(Summary), new(Classes)
		for _, rec := range []arrow.RecordBatch{rec, end} {
			if err := errors.Join(s.Add(rec), c.Add(rec)); err != nil {
				t.Fatal(err)
			}
		}
		if sum, _ := s.item("i"); sum.Status != it.Status || c.Of("i") != classOf(it.Status) || sum.Suspect {
			t.Errorf("%s is summed up as %+v, %s", status, sum, c.Of("i"))
		}
	}
}

func TestNewerSchemasAreRefusedByName(t *testing.T) {
	row := row2(0, "c0", "ITEM_CREATED", "schema_version", 3)
	rec := table(t, Schema(), row2(0, "b", "ITEM_CREATED"), row)
	n := 0
	var last error
	for _, err := range Decode(rec) {
		n, last = n+1, err
	}
	if n != 2 || !errors.Is(last, ErrNewer) || !strings.Contains(last.Error(), "version 3") || !strings.Contains(last.Error(), "c0-ITEM_CREATED") {
		t.Errorf("%d rows, %v", n, last)
	}
	if err := new(Summary).Add(rec); !errors.Is(err, ErrNewer) {
		t.Error(err)
	}
	if err := new(Classes).Add(rec); !errors.Is(err, ErrNewer) {
		t.Error(err)
	}
}

func TestTablesThatAreNoLogsAreRefused(t *testing.T) {
	without := func(name string) *arrow.Schema {
		return arrow.NewSchema(slices.DeleteFunc(slices.Clone(fields[:columns]), func(f arrow.Field) bool { return f.Name == name }), nil)
	}
	other := slices.Clone(fields[:columns])
	other[colSeq].Type = arrow.BinaryTypes.String
	for name, s := range map[string]*arrow.Schema{"no column item_id": without("item_id"), "no column step_kind": without("terminal"),
		"column item_seq is utf8, not int64": arrow.NewSchema(other, nil)} {
		if _, err := CheckSchema(s); !errors.Is(err, ErrSchema) || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want %q", err, name)
		}
	}
	if v, err := CheckSchema(Schema()); v != SchemaVersion || err != nil {
		t.Errorf("version %d, %v", v, err)
	}
	rec := array.NewRecordBatch(arrow.NewSchema([]arrow.Field{{Name: "item_seq", Type: text}}, nil),
		[]arrow.Array{array.MakeArrayOfNull(memory.DefaultAllocator, text, 1)}, 1)
	for _, err := range Decode(rec) {
		if !errors.Is(err, ErrSchema) {
			t.Error(err)
		}
	}
	if err := new(Classes).Add(rec); !errors.Is(err, ErrSchema) {
		t.Error(err)
	}
	if err := new(Summary).Add(array.NewRecordBatch(arrow.NewSchema(nil, nil), nil, 0)); !errors.Is(err, ErrSchema) {
		t.Error(err)
	}
}

func TestTheSchemaIsTheDocuments(t *testing.T) {
	want := `event_id item_id root_item_id parent_item_id item_seq checkpoint_id event_type step_name step_index step_instance_id iteration attempt
		run_id writer_epoch field_name field_type codec_version value_kind value_i64 value_f64 value_bool value_str value_json value_blob payload_size
		payload_checksum query_tags_json terminal error_type error_dump traceback event_ts schema_version`
	var got []string
	for _, f := range Schema().Fields() {
		got = append(got, f.Name)
	}
	if strings.Join(got, " ") != strings.Join(strings.Fields(want), " ") {
		t.Error(got)
	}
	if v, ok := Schema().Field(0).Metadata.GetValue("lance-schema:unenforced-primary-key"); !ok || v != "true" || Schema().Field(0).Nullable {
		t.Error("event_id is not the primary key")
	}
	if light := LightColumns(Schema()); len(light) != len(got)-1 || slices.Contains(light, BlobColumn) {
		t.Error(light)
	}
}

func TestBlobsAreReferencesWithoutTheirColumn(t *testing.T) {
	events := wholeBatch()
	rec, err := Record(events)
	if err != nil {
		t.Fatal(err)
	}
	with, without := decoded(t, rec), decoded(t, project([]arrow.RecordBatch{rec}, LightColumns(rec.Schema()))[0])
	b := without[2].Field.Value.Blob
	if b.Bytes != nil || b.Size != 1 || b.Event != events[2].ID || !with[2].Equal(&without[2]) || string(with[2].Field.Value.Blob.Bytes) != "\x01" {
		t.Errorf("%+v and %+v", b, with[2].Field.Value.Blob)
	}
	it := Fold(with)
	if f, ok := it.Field("image"); !ok || f.Value().Blob.Bytes != nil || f.Value().Blob.Event != events[2].ID {
		t.Error("the fold keeps the bytes of blobs, or loses the reference")
	}
	empty := decoded(t, table(t, Schema(), row2(0, "c", "FIELD_SET", "schema_version", 1, "field_name", "f", "value_kind", "blob", "value_blob", "", "payload_size", 0)))
	if b := empty[0].Field.Value.Blob; b.Bytes == nil || b.Size != 0 {
		t.Errorf("an empty blob is %+v", b)
	}
}

// Strings of other widths are those of other writers.
func TestWidthsOfStringsDoNotCount(t *testing.T) {
	fs := slices.Clone(fields[:columns])
	for i := range fs {
		switch fs[i].Type.ID() {
		case arrow.STRING:
			fs[i].Type = largeText
		case arrow.LARGE_STRING:
			fs[i].Type = text
		case arrow.LARGE_BINARY:
			fs[i].Type = arrow.BinaryTypes.Binary
		}
	}
	s := arrow.NewSchema(fs, nil)
	if _, err := CheckSchema(s); err != nil {
		t.Fatal(err)
	}
	events := decoded(t, table(t, s, row2(0, "c", "FIELD_SET", "schema_version", 1, "field_name", "f", "value_kind", "str", "value_str", "s")))
	if e := events[0]; e.Item != "i" || e.Field.Value.Str != "s" || !e.Time.Equal(time.Unix(0, 0)) {
		t.Errorf("%+v", e)
	}
}

// hostile draws rows of any columns with any cells.
func hostile(t *rapid.T) arrow.RecordBatch {
	var fs []arrow.Field
	for i := range fields {
		if f := fields[i]; f.Name != "" && rapid.IntRange(0, 9).Draw(t, "column") > 0 {
			fs = append(fs, f)
		}
	}
	s := arrow.NewSchema(fs, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, s)
	words := rapid.SampledFrom([]string{"", "i", "j", "c", "ITEM_CREATED", "FIELD_SET", "FIELD_APPEND", "STEP_STARTED", "STEP_COMPLETED", "FAILED",
		"TERMINAL", "completed", "filtered", "failed", "int", "float", "bool", "str", "json", "blob", "\xff", "{}"})
	ints := rapid.SampledFrom([]int64{0, 1, 2, 3, -1, math.MaxInt64, math.MinInt64, math.MaxInt32, math.MinInt32})
	for range rapid.IntRange(0, 20).Draw(t, "rows") {
		for i := range fs {
			if rapid.IntRange(0, 5).Draw(t, "null") == 0 {
				b.Field(i).AppendNull()
				continue
			}
			switch x := b.Field(i).(type) {
			case *array.StringBuilder:
				x.Append(words.Draw(t, "word"))
			case *array.LargeStringBuilder:
				x.Append(words.Draw(t, "word"))
			case *array.BinaryBuilder:
				x.Append([]byte(words.Draw(t, "word")))
			case *array.Int64Builder:
				x.Append(ints.Draw(t, "int"))
			case *array.Int32Builder:
				x.Append(int32(ints.Draw(t, "int")) % 4)
			case *array.Float64Builder:
				x.Append(math.NaN())
			case *array.BooleanBuilder:
				x.Append(true)
			case *array.TimestampBuilder:
				x.Append(arrow.Timestamp(ints.Draw(t, "time")))
			}
		}
	}
	return b.NewRecordBatch()
}

// readAll does everything that is done with rows.
func readAll(t *rapid.T) {
	rec := hostile(t)
	var events []Event
	for e, err := range Decode(rec) {
		if err != nil {
			if !errors.Is(err, ErrNewer) {
				t.Fatal(err)
			}
			return
		}
		events = append(events, e)
	}
	it := Fold(events)
	if d := itemDiff(it, Fold(shuffledOrNone(t, events))); d != "" {
		t.Fatal(d)
	}
	Trajectory(events)
	if it != nil {
		Tree([]*Item{it})
	}
	_, all := rec.Schema().FieldsByName("item_id")
	s, c := new(Summary), new(Classes)
	err1, err2 := s.Add(rec), c.Add(rec)
	if (err1 == nil) != (err2 == nil) || err1 != nil && !errors.Is(err1, ErrSchema) || err1 != nil && all && errors.Is(err1, ErrNewer) {
		t.Fatal(err1, err2)
	}
	byEvent := new(Summary)
	for i := range events {
		byEvent.AddEvent(&events[i])
	}
	if d := cmp.Diff(byEvent.Overview(), s.Overview()); err1 == nil && d != "" {
		t.Fatal(d)
	}
	for _, e := range events {
		line := AppendEvent(nil, &e)
		if got, err := ParseEvent(line); err == nil && got.Item != e.Item {
			t.Fatalf("%s became another item", line)
		}
		if err1 == nil {
			sum, ok := s.item(e.Item)
			if !ok || c.Of(e.Item) != classOf(sum.Status) {
				t.Fatalf("%+v is %s", sum, c.Of(e.Item))
			}
		}
	}
}

func shuffledOrNone(t *rapid.T, events []Event) []Event {
	if len(events) == 0 {
		return nil
	}
	return shuffled(t, events)
}

func TestAnyRowsAreRead(t *testing.T) { rapid.Check(t, readAll) }

func FuzzDecode(f *testing.F) { f.Fuzz(rapid.MakeFuzz(readAll)) }
