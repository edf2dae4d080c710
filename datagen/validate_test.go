package datagen

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// wholeBatch has every kind of event that a batch may have.
func wholeBatch() []Event {
	round := int64(1)
	step := func() *Step { return &Step{Name: "refine", Index: 2, Instance: "loop#1/refine", Iteration: &round} }
	events := []Event{
		{Kind: ItemCreated, Tags: json.RawMessage(`{"label":7}`)},
		{Kind: FieldSet, Step: step(), Field: &Field{Name: "score", Type: "float", Codec: 1, Value: Value{Kind: Float, Float: 0.5}}},
		{Kind: FieldAppend, Step: step(), Field: &Field{Name: "image", Type: "png", Codec: 1, Value: Value{Kind: Blob, Blob: NewBlob([]byte{1})}}},
		{Kind: StepCompleted, Step: step()},
		{Kind: StepFailed, Step: step(), Failure: &Failure{Type: "ValueError", Dump: json.RawMessage(`{"a":1}`), Traceback: "at line 1"}},
		{Kind: ItemEnded, End: EndFiltered},
	}
	for i := range events {
		e := &events[i]
		e.Item, e.Parent, e.Root, e.Seq, e.Checkpoint, e.Run, e.Epoch = "i/map:0", "i", "i", int64(i), "c", "r", "e"
	}
	FillBatch(events, time.Unix(1, 0))
	return events
}

func TestWholeBatchesAreTaken(t *testing.T) {
	all := wholeBatch()
	if err := CheckBatch(all); err != nil {
		t.Error(err)
	}
	for _, part := range [][]int{{0}, {3}, {4}, {5}, {0, 3}, {1, 2, 3}, {0, 1, 3, 5}, {0, 4}, {3, 4}, {4, 5}} {
		var events []Event
		for _, i := range part {
			events = append(events, all[i])
		}
		if err := CheckBatch(events); err != nil {
			t.Errorf("%v: %v", part, err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		for _, events := range batchesOf(drawHistory(t, "item").events) {
			if err := CheckBatch(events); err != nil && !strings.Contains(err.Error(), "bytes are missing") {
				t.Fatal(err)
			}
		}
	})
}

// batchesOf takes the events of an item apart by checkpoint.
func batchesOf(events []Event) (out [][]Event) {
	for i := 0; i < len(events); {
		j := i + 1
		for j < len(events) && events[j].Checkpoint == events[i].Checkpoint {
			j++
		}
		out = append(out, events[i:j])
		i = j
	}
	return out
}

func TestBatchesThatCannotBeWritten(t *testing.T) {
	all := func(change func(e []Event)) []Event {
		events := wholeBatch()
		change(events)
		return events
	}
	pick := func(which ...int) []Event {
		var events []Event
		for _, i := range which {
			events = append(events, wholeBatch()[i])
		}
		for i := range events {
			events[i].Seq, events[i].ID = int64(i), EventID("i/map:0", "c", i)
		}
		return events
	}
	for _, c := range []struct {
		name   string
		events []Event
		index  int
		column string
		want   string
	}{
		{"nothing", nil, 0, "", "empty"},
		{"no identity", all(func(e []Event) { e[1].ID = "" }), 1, "event_id", "missing"},
		{"an identity twice", all(func(e []Event) { e[3].ID = e[0].ID }), 3, "event_id", "that of an event before"},
		{"no item", all(func(e []Event) { e[0].Item = "" }), 0, "item_id", "missing"},
		{"a NUL in the item", all(func(e []Event) { e[0].Item = "a\x00" }), 0, "item_id", "NUL"},
		{"a NUL in the checkpoint", all(func(e []Event) { e[0].Checkpoint = "a\x00" }), 0, "checkpoint_id", "NUL"},
		{"text that is not UTF-8", all(func(e []Event) { e[0].Run = "\xff" }), 0, "run_id", "UTF-8"},
		{"text without end", all(func(e []Event) { e[0].Epoch = strings.Repeat("x", MaxTextBytes+1) }), 0, "writer_epoch", "more than"},
		{"two items", all(func(e []Event) { e[2].Item = "i/map:1" }), 2, "item_id", `"i/map:0" in the first`},
		{"two checkpoints", all(func(e []Event) { e[2].Checkpoint = "d" }), 2, "checkpoint_id", "first event"},
		{"two attempts", all(func(e []Event) { e[2].Attempt = 1 }), 2, "attempt", "first event"},
		{"two writers", all(func(e []Event) { e[2].Epoch = "f" }), 2, "writer_epoch", "first event"},
		{"its own parent", all(func(e []Event) { e[0].Parent = e[0].Item }), 0, "parent_item_id", "neither"},
		{"a root with another root", all(func(e []Event) { e[0].Parent = "" }), 0, "root_item_id", "own root"},
		{"a negative sequence", all(func(e []Event) { e[0].Seq = -1 }), 0, "item_seq", "negative"},
		{"a sequence beyond all", all(func(e []Event) { e[5].Seq = MaxSeq + 1 }), 5, "item_seq", "more than"},
		{"a sequence that repeats", all(func(e []Event) { e[2].Seq = 1 }), 2, "item_seq", "does not come after 1"},
		{"a negative attempt", all(func(e []Event) { e[0].Attempt = -1 }), 0, "attempt", "negative"},
		{"no time", all(func(e []Event) { e[0].Time = time.Time{} }), 0, "event_ts", "missing"},
		{"nanoseconds", all(func(e []Event) { e[0].Time = e[0].Time.Add(1) }), 0, "event_ts", "microseconds"},
		{"a year of five digits", all(func(e []Event) { e[0].Time = time.Date(10000, 1, 2, 0, 0, 0, 0, time.UTC) }), 0, "event_ts", "range"},
		{"another version", all(func(e []Event) { e[0].Schema = 2 }), 0, "schema_version", "not what is written"},
		{"a frame", all(func(e []Event) { e[0].Frame = &Frame{} }), 0, "schema_version", "no frames"},
		{"a kind that is read only", all(func(e []Event) { e[0].Kind = StepStarted }), 0, "event_type", "not what is written"},
		{"a change without a step", all(func(e []Event) { e[1].Step = nil }), 1, "step_name", "missing"},
		{"a step without an instance", all(func(e []Event) { e[3].Step.Instance = "" }), 3, "step_instance_id", "missing"},
		{"a negative place", all(func(e []Event) { e[3].Step.Index = -1 }), 3, "step_index", "negative"},
		{"a negative round", all(func(e []Event) { n := int64(-1); e[3].Step.Iteration = &n }), 3, "iteration", "negative"},
		{"another step at the end", all(func(e []Event) { e[3].Step.Instance = "other" }), 3, "step_instance_id", "changes before"},
		{"a change without a field", all(func(e []Event) { e[1].Field = nil }), 1, "field_name", "needs it"},
		{"a field of an end", all(func(e []Event) { e[5].Field = &Field{} }), 5, "field_name", "has none"},
		{"a field without a name", all(func(e []Event) { e[1].Field.Name = "" }), 1, "field_name", "missing"},
		{"a field without a codec", all(func(e []Event) { e[1].Field.Type = "" }), 1, "field_type", "missing"},
		{"a negative codec", all(func(e []Event) { e[1].Field.Codec = -1 }), 1, "codec_version", "negative"},
		{"no value", all(func(e []Event) { e[1].Field.Value = Value{} }), 1, "value_kind", "no kind"},
		{"JSON with white space", all(func(e []Event) { e[1].Field.Value = Value{Kind: JSON, JSON: json.RawMessage(`[1, 2]`)} }), 1, "value_json", "canonical"},
		{"JSON that is none", all(func(e []Event) { e[1].Field.Value = Value{Kind: JSON} }), 1, "value_json", "not valid JSON"},
		{"a string that is not UTF-8", all(func(e []Event) { e[1].Field.Value = Value{Kind: Str, Str: "\xff"} }), 1, "value_str", "UTF-8"},
		{"a blob without bytes", all(func(e []Event) { e[2].Field.Value.Blob.Bytes = nil }), 2, "value_blob", "missing"},
		{"a blob of another size", all(func(e []Event) { e[2].Field.Value.Blob.Size = 2 }), 2, "payload_size", "1 bytes"},
		{"a blob of another checksum", all(func(e []Event) { e[2].Field.Value.Blob.Checksum = "x" }), 2, "payload_checksum", "sha256:"},
		{"tags that are no object", all(func(e []Event) { e[0].Tags = json.RawMessage(`[]`) }), 0, "query_tags_json", "object"},
		{"tags of an end", all(func(e []Event) { e[5].Tags = json.RawMessage(`{}`) }), 5, "query_tags_json", "has none"},
		{"a failure without a type", all(func(e []Event) { e[4].Failure.Type = "" }), 4, "error_type", "missing"},
		{"a failure of an end", all(func(e []Event) { e[5].Failure = &Failure{} }), 5, "error_type", "has none"},
		{"a dump that is no JSON", all(func(e []Event) { e[4].Failure.Dump = json.RawMessage(`{`) }), 4, "error_dump", "not valid JSON"},
		{"an end of a failure", all(func(e []Event) { e[4].End = EndCompleted }), 4, "terminal", "has none"},
		{"an end without a way", all(func(e []Event) { e[5].End = "" }), 5, "terminal", "needs it"},
		{"an unknown end", all(func(e []Event) { e[5].End = "lost" }), 5, "terminal", "neither"},
		{"changes without a step's end", pick(0, 1, 2), 2, "event_type", "STEP_COMPLETED"},
		{"changes, then a failure", pick(1, 4), 1, "event_type", "FAILED cannot come here"},
		{"changes after the step's end", pick(3, 1), 1, "event_type", "FIELD_SET cannot come here"},
		{"two steps", pick(3, 3), 1, "event_type", "STEP_COMPLETED cannot come here"},
		{"a creation late", pick(3, 0), 1, "event_type", "ITEM_CREATED cannot come here"},
		{"a failure after the end", pick(5, 4), 1, "event_type", "FAILED cannot come here"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := CheckBatch(c.events)
			var at *EventError
			if !errors.As(err, &at) || !errors.Is(err, ErrEvent) {
				t.Fatal(err)
			}
			if at.Index != c.index || at.Column != c.column || !strings.Contains(at.Error(), c.want) {
				t.Errorf("event %d, column %q: %v", at.Index, at.Column, err)
			}
			if len(c.events) > 0 && at.ID != c.events[c.index].ID {
				t.Errorf("event %q", at.ID)
			}
		})
	}
}

func TestBatchesWithoutEnd(t *testing.T) {
	e := wholeBatch()[3]
	if err := CheckBatch(slices.Repeat([]Event{e}, MaxBatchEvents+1)); !errors.Is(err, ErrEvent) || !strings.Contains(err.Error(), "100001") {
		t.Error(err)
	}
}
