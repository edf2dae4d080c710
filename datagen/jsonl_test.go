package datagen

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/foldlog/foldlog/internal/serde"
)

func TestEventsSurviveJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for _, e := range drawHistory(t, rapid.StringN(1, 20, -1).Draw(t, "item")).events {
			line := AppendEvent(nil, &e)
			if !json.Valid(line) {
				t.Fatalf("not JSON: %s", line)
			}
			got, err := ParseEvent(line)
			if err != nil || !got.Equal(&e) {
				t.Fatalf("%s: %v", line, err)
			}
			if again := AppendEvent(nil, &got); !bytes.Equal(line, again) {
				t.Fatalf("%s became %s", line, again)
			}
		}
	})
}

func TestEventsSurviveRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := drawHistory(t, rapid.StringN(1, 20, -1).Draw(t, "item")).events
		rec, err := Record(events)
		if err != nil {
			t.Fatal(err)
		}
		i := 0
		for e, err := range Decode(rec) {
			if err != nil || !e.Equal(&events[i]) {
				t.Fatalf("%v: %+v, want %+v", err, e, events[i])
			}
			i++
		}
		if i != len(events) {
			t.Fatalf("%d events of %d", i, len(events))
		}
	})
}

const minimal = `"item_id":"i","item_seq":0,"checkpoint_id":"c"`

func TestLinesAreReadInAnySpelling(t *testing.T) {
	field := func(more string) string {
		return `{` + minimal + `,"event_type":"FIELD_SET","step_name":"s","step_index":0,"step_instance_id":"s","field_name":"f","field_type":"t","codec_version":1,` + more + `}`
	}
	for _, c := range []struct {
		name, line string
		check      func(e Event) bool
	}{
		{"keys in any order, white space, nulls", ` { "event_type" : "ITEM_CREATED", "parent_item_id": null, "item_seq":7,"checkpoint_id":"c","item_id":"i"}`,
			func(e Event) bool { return e.Seq == 7 && e.Parent == "" && e.Kind == ItemCreated }},
		{"tags become canonical", `{` + minimal + `,"event_type":"ITEM_CREATED","query_tags":{"b": 1.0, "a":"x"}}`,
			func(e Event) bool { return string(e.Tags) == `{"a":"x","b":1.0}` }},
		{"an integer keeps its digits", field(`"value":9223372036854775807,"value_kind":"int"`),
			func(e Event) bool { return e.Field.Value.Int == 9223372036854775807 }},
		{"a float that is NaN", field(`"value_kind":"float","value":"NaN"`), func(e Event) bool { return e.Field.Value.Float != e.Field.Value.Float }},
		{"a float without a point", field(`"value_kind":"float","value":3`), func(e Event) bool { return e.Field.Value.Float == 3 }},
		{"the JSON value null", field(`"value_kind":"json","value":null`), func(e Event) bool { return string(e.Field.Value.JSON) == "null" }},
		{"JSON becomes canonical", field(`"value_kind":"json","value":{"z":[ 1 ],"a":"\u0041"}`),
			func(e Event) bool { return string(e.Field.Value.JSON) == `{"a":"A","z":[1]}` }},
		{"an empty blob", field(`"value_kind":"blob","value":""`),
			func(e Event) bool {
				b := e.Field.Value.Blob
				return b.Bytes != nil && b.Size == 0 && b.Checksum == "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
			}},
		{"a blob that is elsewhere", field(`"value_kind":"blob","payload_size":4,"payload_checksum":"sha256:00"`),
			func(e Event) bool {
				b := e.Field.Value.Blob
				return b.Bytes == nil && b.Size == 4 && b.Checksum == "sha256:00"
			}},
		{"a time with a zone", `{` + minimal + `,"event_type":"ITEM_CREATED","event_ts":"2026-11-29T12:00:00.000001+01:00"}`,
			func(e Event) bool { return e.Time.Equal(time.Date(2026, 11, 29, 11, 0, 0, 1000, time.UTC)) }},
		{"version 2", `{` + minimal + `,"event_type":"STEP_STARTED","step_name":"s","step_kind":"loop","status":"running","schema_version":2}`,
			func(e Event) bool { return e.Kind == StepStarted && e.Frame.StepKind == "loop" && e.Schema == 2 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, err := ParseEvent([]byte(c.line))
			if err != nil || !c.check(e) {
				t.Errorf("%v: %+v", err, e)
			}
		})
	}
}

func TestLinesThatAreNoEventsAreRefused(t *testing.T) {
	field := func(more string) string {
		return `{` + minimal + `,"event_type":"FIELD_SET","field_name":"f",` + more + `}`
	}
	for _, c := range []struct {
		name, line, want string
		is               error
	}{
		{"nothing", ``, "column 1: not valid JSON", serde.ErrSyntax},
		{"a torn line", `{"item_id":"i","item_se`, "column 24", serde.ErrSyntax},
		{"no object", `[1]`, "column 1: wrong type", serde.ErrType},
		{"two objects", `{` + minimal + `,"event_type":"TERMINAL"}{}`, "column 73", serde.ErrSyntax},
		{"a key twice", `{"item_id":"i","item_id":null}`, "item_id: duplicate key", serde.ErrDuplicateKey},
		{"an unknown key", `{"item":"i"}`, "column 9: item: unknown key", ErrEvent},
		{"a wrong type", `{"item_id":1}`, "column 12: item_id: wrong type", serde.ErrType},
		{"a sequence with a point", `{"item_seq":1.5}`, "item_seq: wrong type", serde.ErrType},
		{"an attempt of 40 bits", `{"attempt":1099511627776}`, "attempt: number out of range", serde.ErrRange},
		{"no item", `{"item_seq":0,"checkpoint_id":"c","event_type":"TERMINAL"}`, "item_id: it is missing", ErrEvent},
		{"an iteration without a step", `{` + minimal + `,"event_type":"TERMINAL","iteration":1}`, "step_name: it is missing", ErrEvent},
		{"a time that is none", `{"event_ts":"yesterday"}`, "event_ts: parsing time", ErrEvent},
		{"nanoseconds", `{"event_ts":"2026-11-29T12:00:00.000000001Z"}`, "event_ts: it is not in whole microseconds", ErrEvent},
		{"a value of another kind", field(`"value_kind":"int","value":"1"`), "value: wrong type", serde.ErrType},
		{"a value without a kind", field(`"value":1`), `value: "" is no kind of value`, ErrEvent},
		{"a kind without a value", field(`"value_kind":"int"`), "value: it is missing", ErrEvent},
		{"an infinity that is bare", field(`"value_kind":"float","value":Infinity`), "value: non-finite number", serde.ErrNonFinite},
		{"JSON with a key twice", field(`"value_kind":"json","value":{"a":1,"a":2}`), "value: duplicate key", serde.ErrDuplicateKey},
		{"a blob that is not base64", field(`"value_kind":"blob","value":"*"`), "value: not base64", ErrEvent},
		{"a blob of another size", field(`"value_kind":"blob","value":"AAAA","payload_size":4`), "value: payload_size is 4, and there are 3 bytes", ErrEvent},
		{"a blob of another checksum", field(`"value_kind":"blob","value":"AAAA","payload_checksum":"sha256:00"`), "value: payload_checksum", ErrEvent},
		{"a payload of an integer", field(`"value_kind":"int","value":1,"payload_size":4`), "value: only a blob has a payload", ErrEvent},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ParseEvent([]byte(c.line))
			var at *LineError
			if !errors.As(err, &at) || !errors.Is(err, c.is) || !errors.Is(err, ErrEvent) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

func FuzzParseEvent(f *testing.F) {
	f.Add([]byte(`{` + minimal + `,"event_type":"FIELD_SET","step_name":"s","field_name":"f","field_type":"t","codec_version":1,"value_kind":"float","value":"NaN"}`))
	f.Add([]byte(`{` + minimal + `,"event_type":"FAILED","error_type":"E","error_dump":{"b":1,"a":[]},"traceback":"x"}`))
	f.Add([]byte(`{` + minimal + `,"event_type":"FIELD_APPEND","field_name":"f","value_kind":"blob","value":"AAAA","event_ts":"2026-11-29T12:00:00Z"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		e, err := ParseEvent(line)
		if err != nil {
			if !errors.Is(err, ErrEvent) {
				t.Fatalf("%v is no ErrEvent", err)
			}
			return
		}
		if e.Time.IsZero() {
			e.Time = time.Unix(0, 0).UTC()
		}
		out := AppendEvent(nil, &e)
		again, err := ParseEvent(out)
		if err != nil || !again.Equal(&e) {
			t.Fatalf("%s became %s: %v\n%s", line, out, err, cmp.Diff(e, again))
		}
	})
}

func TestFillingInABatch(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 123456789, time.UTC)
	events := []Event{{Item: "i", Checkpoint: "c", Kind: ItemCreated, Seq: 0, Run: "r", Epoch: "e"},
		{Item: "i", Checkpoint: "c", Kind: ItemEnded, End: EndFiltered, Seq: 1, Run: "r", Epoch: "e"}}
	FillBatch(events, now)
	if err := CheckBatch(events); err != nil {
		t.Fatal(err)
	}
	want := Event{ID: EventID("i", "c", 1), Item: "i", Root: "i", Seq: 1, Checkpoint: "c", Kind: ItemEnded, Run: "r", Epoch: "e", End: EndFiltered,
		Time: time.Date(2026, 11, 29, 12, 0, 0, 123456000, time.UTC), Schema: 1}
	if d := cmp.Diff(want, events[1]); d != "" {
		t.Error(d)
	}
	before := append([]Event(nil), events...)
	FillBatch(events, now.Add(time.Hour))
	if d := cmp.Diff(before, events); d != "" {
		t.Errorf("what is there was filled in again: %s", d)
	}
}
