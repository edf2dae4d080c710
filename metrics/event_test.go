package metrics

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/internal/serde"
)

var byNumber = cmp.Comparer(func(a, b Number) bool { return a.String() == b.String() && a.IsInteger() == b.IsInteger() })

func TestDocumentLinesReadAndWriteUnchanged(t *testing.T) {
	golden, err := os.ReadFile("testdata/document.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var events []Event
	var out []byte
	err = ReadStream(bytes.NewReader(golden), func(it *Item) {
		if it.Kind != ItemEvent {
			t.Fatalf("line %d: %v", it.Number, it.Err)
		}
		events = append(events, it.Event)
		out = it.Event.Append(out)
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(golden), string(out)); diff != "" {
		t.Errorf("-golden +written:\n%s", diff)
	}
	want := []Event{
		{Kind: KindMetric, TSMS: 1790189597015, Step: 4, Name: "eval/loss", Value: Float(3.2047), Metadata: `{"pass":"eval","split":"eval","stage":"easy"}`},
		{Kind: KindAnnotation, TSMS: 1790189597016, Step: 4, Text: "stage easy -> hard", Metadata: `{"from":"easy","to":"hard"}`},
		{Kind: KindMetric, TSMS: 1790189597025, Step: 4, Name: "train/loss", Value: Float(2.7658), Metadata: `{"split":"train","stage":"hard"}`},
		{Kind: KindMetric, TSMS: 1790189597025, Step: 4, Name: "rate/tokens", Value: Float(14530.17), Metadata: `{"split":"train","stage":"hard"}`},
		{Kind: KindAnnotation, TSMS: 1790189597055, Step: 8, Text: "checkpoint /tmp/ckpt/step-00000008", Metadata: `{"checkpoint":"/tmp/ckpt/step-00000008","seconds":0.041}`},
		{Kind: KindDone, TSMS: 1790189597074, Slug: "my-run"},
	}
	if diff := cmp.Diff(want, events, byNumber); diff != "" {
		t.Errorf("events: -want +got:\n%s", diff)
	}
}

func TestTypedAnnotationsAreSpelledAsTheDocumentDoes(t *testing.T) {
	for want, n := range map[string]Note{
		`"stage easy -> hard","metadata":{"from":"easy","to":"hard"}`:                                                                            Stage("easy", "hard"),
		`"checkpoint /c/8","metadata":{"checkpoint":"/c/8","seconds":0.041}`:                                                                     Checkpoint("/c/8", 0.041),
		`"resumed from /c/8","metadata":{"checkpoint":"/c/8","changed":[]}`:                                                                      Resumed("/c/8", nil),
		`"resumed from /c/8\nsource a: 1 -> 2\nknob lr is new","metadata":{"checkpoint":"/c/8","changed":["source a: 1 -> 2","knob lr is new"]}`: Resumed("/c/8", []string{SourceChanged("a", "1", "2"), KnobChanged("lr", "", "3")}),
		`"interrupted by SIGTERM at step 7","metadata":{"signal":"SIGTERM"}`:                                                                     Interrupted("SIGTERM", 7),
		`"failed: out of \"luck\"","metadata":{"error":"out of \"luck\""}`:                                                                       Failed(`out of "luck"`),
		`"memory: allocation failed at step 7; retried","metadata":{}`:                                                                           MemoryRetry(7, "retried"),
		`"memory: peak 1 GiB of 2 GiB planned","metadata":{}`:                                                                                    MemoryPeak("1 GiB", "2 GiB"),
		`"memory: plan","metadata":{"weights":3}`:                                                                                                MemoryPlan("plan", `{"weights":3}`),
		`"stacking 4","metadata":{"degree":4}`:                                                                                                   Stacking("4", `{"degree":4}`),
		`"lowering: head\ngraph a\ntail","metadata":{"device":"cuda"}`:                                                                           Lowering(LoweringBlock{"head", []string{"graph a"}, []string{"tail"}}, "cuda"),
		`"anything","metadata":{"a":1}`:                                                                                                          OtherNote("anything", `{"a": 1}`),
	} {
		e, err := n.Event(7)
		if err != nil {
			t.Fatal(err)
		}
		line := string(e.Append(nil))
		if !strings.HasPrefix(line, `{"ts_ms":0,"step":7,"kind":"annotation","annotation":`+want) {
			t.Errorf("want ... %s\ngot      %s", want, line)
		}
		if diff := cmp.Diff(n, ReadNote(&e)); diff != "" && n.Class != NoteOther {
			t.Errorf("%s: -made +read:\n%s", n.Class, diff)
		}
	}
}

func TestAnnotationsOfOtherWritersAreRecognised(t *testing.T) {
	for text, want := range map[string]Note{
		"stage a -> b":                    {Class: NoteStage, From: "a", To: "b"},
		"stage fright":                    {Class: NoteOther},
		"checkpoint s3://b/8":             {Class: NoteCheckpoint, Checkpoint: "s3://b/8"},
		"resumed from /c\nknob x: 1 -> 2": {Class: NoteResumed, Checkpoint: "/c", Changed: []string{"knob x: 1 -> 2"}},
		"interrupted by SIGINT at step 3": {Class: NoteInterrupted, Signal: "SIGINT"},
		"failed: boom":                    {Class: NoteFailed, Error: "boom"},
		"hello":                           {Class: NoteOther},
	} {
		want.Text = text
		if diff := cmp.Diff(want, ReadNote(&Event{Text: text})); diff != "" {
			t.Errorf("%q: -want +got:\n%s", text, diff)
		}
	}
}

func TestNumbersKeepTheirKindAndSpelling(t *testing.T) {
	var d Decoder
	for in, want := range map[string]string{
		"4": "4", "-4": "-4", "4.0": "4.0", "0": "0", "-0": "-0.0", "-0.0": "-0.0", "1e3": "1000.0", "5e-324": "5e-324",
		"1.7976931348623157e308": "1.7976931348623157e308", "9223372036854775807": "9223372036854775807",
		"18446744073709551615": "18446744073709551615", "-9223372036854775808": "-9223372036854775808",
		"18446744073709551616": "1.8446744073709552e19", "0.1": "0.1", "0.30000000000000004": "0.30000000000000004",
		"123456789012345678": "123456789012345678", "1.5e-7": "1.5e-7",
		`"NaN"`: "NaN", `"Infinity"`: "Infinity", `"-Infinity"`: "-Infinity",
	} {
		for range 2 { // the second time on the fast path
			var e Event
			if err := d.Decode([]byte(`{"ts_ms":1,"step":2,"kind":"metric","name":"n","value":`+in+`,"metadata":{}}`), &e); err != nil {
				t.Fatalf("%s: %v", in, err)
			}
			if got := e.Value.String(); got != want || e.Lenient != 0 {
				t.Errorf("%s: got %s, want %s, lenient %d", in, got, want, e.Lenient)
			}
		}
	}
}

func TestNonFiniteIsReadInEverySpelling(t *testing.T) {
	var d Decoder
	for in, want := range map[string]float64{
		"NaN": math.NaN(), "nan": math.NaN(), "NAN": math.NaN(), "-nan": math.NaN(), `"nan"`: math.NaN(), "null": math.NaN(),
		"Infinity": math.Inf(1), "+Infinity": math.Inf(1), "-Infinity": math.Inf(-1), "inf": math.Inf(1), "-inf": math.Inf(-1),
		"Inf": math.Inf(1), "-Inf": math.Inf(-1), `"inf"`: math.Inf(1), `"+Inf"`: math.Inf(1), `"-INFINITY"`: math.Inf(-1),
	} {
		var e Event
		err := d.Decode([]byte(`{"ts_ms":1, "step":2, "kind":"metric", "name":"n", "value": `+in+` , "metadata":{}}`), &e)
		got := e.Value.Float64()
		if err != nil || e.Lenient != LenientNumber || got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Errorf("%s: %v, lenient %d, %v", in, got, e.Lenient, err)
		}
	}
}

func TestUnknownFieldsAreKept(t *testing.T) {
	var d Decoder
	var e Event
	line := `{"host":"a","ts_ms":1,"kind":"done","slug":"r","x\n":{"y":[1, 2]}}`
	if err := d.Decode([]byte(line), &e); err != nil {
		t.Fatal(err)
	}
	want := `{"ts_ms":1,"kind":"done","slug":"r","host":"a","x\n":{"y":[1, 2]}}` + "\n"
	if got := string(e.Append(nil)); got != want {
		t.Errorf("got %s", got)
	}
}

func TestManyUnknownFieldsCostTimeInProportion(t *testing.T) {
	line := []byte(`{"ts_ms":1,"kind":"done","slug":"r"`)
	for i := range 50_000 {
		line = append(line, `,"k`+itoa(int64(i))+`":1`...)
	}
	line = append(line, '}')
	var d Decoder
	var e Event
	if err := d.Decode(line, &e); err != nil || strings.Count(e.Extra, ":") != 50_000 {
		t.Fatalf("%v, %d", err, strings.Count(e.Extra, ":"))
	}
	if err := d.Decode([]byte(`{"ts_ms":1,"kind":"done","slug":"r"}`), &e); err != nil || e.Extra != "" {
		t.Fatalf("the line after: %v %q", err, e.Extra)
	}
}

func TestBadLinesAreTypedAndPlaced(t *testing.T) {
	for in, want := range map[string]struct {
		err    error
		column int
	}{
		"":                                   {ErrEmpty, 1},
		"  \r":                               {ErrEmpty, 1},
		"[]":                                 {serde.ErrType, 1},
		"loss 3":                             {serde.ErrSyntax, 1},
		`{"ts_ms":1,"kind":"metric"`:         {serde.ErrSyntax, 27},
		`{"ts_ms":1}`:                        {ErrKind, 1},
		`{"ts_ms":1,"kind":"x"}`:             {ErrKind, 19},
		`{"ts_ms":1,"kind":7}`:               {ErrKind, 19},
		`{"kind":"done","slug":"r"}`:         {ErrMissing, 1},
		`{"ts_ms":"1","kind":"done"}`:        {serde.ErrType, 10},
		`{"ts_ms":1.5,"kind":"done"}`:        {serde.ErrType, 10},
		`{"ts_ms":1,"kind":"done"}`:          {ErrMissing, 1},
		`{"ts_ms":1,"kind":"done","slug":7}`: {serde.ErrType, 33},
		`{"ts_ms":1,"step":1,"kind":"metric","name":"n","value":"7"}`:               {serde.ErrType, 56},
		`{"ts_ms":1,"step":1,"kind":"metric","name":"n","value":1e999}`:             {serde.ErrRange, 56},
		`{"ts_ms":1,"step":1,"kind":"metric","name":"n","value":true}`:              {serde.ErrType, 56},
		`{"ts_ms":1,"step":1,"kind":"metric","name":"n","value":1,"metadata":[]}`:   {serde.ErrType, 69},
		`{"ts_ms":1,"step":1,"kind":"metric","name":"n","value":1,"metadata":null}`: {serde.ErrType, 69},
		`{"ts_ms":1,"kind":"done","slug":"r"}{}`:                                    {serde.ErrSyntax, 37},
		"{\"ts_ms\":1,\"kind\":\"done\",\"slug\":\"\xff\"}":                         {serde.ErrUTF8, 34},
		`{"ts_ms":1,"kind":"done","slug":NaN}`:                                      {serde.ErrNonFinite, 33},
	} {
		var d Decoder
		e := Event{Slug: "left over"}
		err := d.Decode([]byte(in), &e)
		var line *LineError
		if !errors.As(err, &line) || !errors.Is(err, want.err) || line.Column != want.column || e != (Event{}) {
			t.Errorf("%q: %v (want %v at %d)", in, err, want.err, want.column)
		}
	}
}

// FuzzDecode compares with encoding/json and reads what was written.
func FuzzDecode(f *testing.F) {
	golden, err := os.ReadFile("testdata/document.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	for line := range bytes.Lines(golden) {
		f.Add(line)
	}
	f.Add([]byte(`{"ts_ms":1,"kind":"open","slug":"r","description":"\ud83d\ude00","metadata":{"a":[1e400,-0]},"x":null}`))
	f.Add([]byte(`{"ts_ms":1.0,"step":-2e3,"kind":"metric","name":"\"","value":NaN}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		var d Decoder
		var e, again Event
		err := d.Decode(line, &e)
		line = bytes.TrimSuffix(line, newline)
		if err != nil {
			var at *LineError
			if !errors.As(err, &at) || at.Column < 1 || at.Column > len(line)+1 {
				t.Fatalf("error without a place: %v", err)
			}
			if errors.Is(err, serde.ErrSyntax) && json.Valid(line) {
				t.Fatalf("refused valid JSON: %v", err)
			}
			return
		}
		bare := false
		for _, m := range d.members {
			bare = bare || m.lenient
		}
		if !bare {
			agree(t, line, &e)
		}
		if err := d.Decode(line, &again); err != nil || again.Append(nil) == nil {
			t.Fatalf("second time: %v", err)
		}
		sameEvent(t, &e, &again)
		written := e.Append(nil)
		if !json.Valid(written) {
			t.Fatalf("wrote what is no JSON: %s", written)
		}
		if err := d.Decode(written, &again); err != nil {
			t.Fatalf("cannot read what was written: %v\n%s", err, written)
		}
		sameEvent(t, &e, &again)
	})
}

func sameEvent(t *testing.T, a, b *Event) {
	t.Helper()
	x, y := *a, *b
	x.Lenient, y.Lenient = 0, 0
	if x.Metadata == "" {
		x.Metadata = y.Metadata
	}
	if diff := cmp.Diff(x, y, byNumber); diff != "" {
		t.Fatalf("-first +then:\n%s", diff)
	}
}

// agree compares an event with what encoding/json makes of its line.
func agree(t *testing.T, line []byte, e *Event) {
	t.Helper()
	var m map[string]json.RawMessage
	if err := json.Unmarshal(line, &m); err != nil {
		t.Fatalf("took what encoding/json refuses: %v", err)
	}
	str := func(key string) (s string) {
		if err := json.Unmarshal(m[key], &s); err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		return s
	}
	num := func(key string) float64 {
		var f float64
		if err := json.Unmarshal(m[key], &f); err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		return f
	}
	if got := num("ts_ms"); got != float64(e.TSMS) {
		t.Fatalf("ts_ms %v, not %v", e.TSMS, got)
	}
	switch e.Kind {
	case KindMetric:
		if str("name") != e.Name || num("step") != float64(e.Step) {
			t.Fatalf("%+v", e)
		}
		if e.Value.IsFinite() && num("value") != e.Value.Float64() {
			t.Fatalf("value %v", e.Value)
		}
	case KindAnnotation:
		if str("annotation") != e.Text || num("step") != float64(e.Step) {
			t.Fatalf("%+v", e)
		}
	case KindOpen, KindDone:
		if str("slug") != e.Slug {
			t.Fatalf("%+v", e)
		}
	}
}
