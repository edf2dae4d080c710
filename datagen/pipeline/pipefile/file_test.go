package pipefile

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/datagen/pipeline"
)

// item is an item whose fields are set to these.
func item(changes ...datagen.Change) *datagen.Item {
	step := &datagen.Step{Name: "s", Instance: "s"}
	events := []datagen.Event{{Kind: datagen.ItemCreated}}
	for i := range changes {
		kind := datagen.FieldSet
		if changes[i].Append {
			kind = datagen.FieldAppend
		}
		events = append(events, datagen.Event{Kind: kind, Step: step, Field: &changes[i].Field})
	}
	events = append(events, datagen.Event{Kind: datagen.StepCompleted, Step: step})
	for i := range events {
		e := &events[i]
		e.Item, e.Root, e.Checkpoint, e.Seq, e.Run, e.Epoch, e.Schema = "a", "a", "c", int64(i), "r", "e", 1
		e.ID = datagen.EventID("a", "c", i)
	}
	return datagen.Fold(events)
}

func TestConditions(t *testing.T) {
	state := &pipeline.State{Iteration: 2, Item: item(
		datagen.Set("n", datagen.IntValue(7)), datagen.Set("f", datagen.FloatValue(0.5)), datagen.Set("nan", datagen.FloatValue(math.NaN())),
		datagen.Set("s", datagen.StrValue("cat")), datagen.Set("yes", datagen.BoolValue(true)), datagen.Set("a.b", datagen.IntValue(1)),
		datagen.Set("o", datagen.JSONValue(json.RawMessage(`{"x":{"y":[1,2],"z":3}}`))), datagen.Append("many", datagen.IntValue(1)),
		datagen.Append("many", datagen.IntValue(9)), datagen.Set("big", datagen.IntValue(math.MaxInt64)))}
	for text, want := range map[string]any{
		"n == 7": true, "n >= 7.0": true, "n < 7": false, "f > -1e3": true, "n != 8 and f <= .5": true,
		"s == 'cat'": true, `s == "dog" or s > 'bird'`: true, "not yes": false, "not (yes and n > 100)": true,
		"gone == null": true, "n == null": false, "s == 7": false, "s != 7": true, "nan == nan": false, "nan != nan": true, "nan < 1": false,
		"iteration >= 2": true, "a.b == 1": true, "o.x.z == 3": true, "o.x.q == null": true, "o.x == o.x": true, "o.x == n": false,
		"many == 9": true, "yes": true, "true": true, "big == 9223372036854775807": true, "big > 9223372036854775806": true,
		"yes or gone > 1": true,
		"n":               "n is a number, neither true nor false", "gone > 1": "null and a number have no order (>); a field that is not set is null",
		"s < 1": "a text and a number have no order (<)", "n and yes": "a number is neither true nor false",
	} {
		c, err := parseCond(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var got any
		if got, err = c(state); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s is %v, want %v", text, got, want)
		}
	}
}

func TestWrongConditionsAreToldWithTheirPlace(t *testing.T) {
	for text, want := range map[string]exprError{
		"":                       {0, "something is missing"},
		"n >":                    {3, "something is missing"},
		"n > 1 1":                {6, `"1" is not expected here`},
		"n = 1":                  {2, `"=" is not expected here`},
		"(n > 1":                 {6, "a ) is missing"},
		"n > 'a":                 {4, "the text has no end"},
		"n > 1x":                 {4, `"1x" is not a number`},
		"and n":                  {0, `"and" is not expected here`},
		strings.Repeat("(", 200): {101, "nested too deep"},
	} {
		_, err := parseCond(text)
		got, ok := err.(*exprError)
		if !ok || *got != want {
			t.Errorf("%.20q: %v, want %v", text, err, want)
		}
	}
}

func FuzzCondition(f *testing.F) {
	for _, s := range []string{"n >= 7 and not (s == 'x' or o.x.y < 1e9)", "((", "not not", "'", "n == -"} {
		f.Add(s)
	}
	state := &pipeline.State{Item: item(datagen.Set("n", datagen.IntValue(7)), datagen.Set("o", datagen.JSONValue(json.RawMessage(`[1]`))))}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parseCond(text)
		var at *exprError
		if err == nil {
			c(state)
		} else if !errors.As(err, &at) || at.offset < 0 || at.offset > len(text) {
			t.Errorf("%q: %#v", text, err)
		}
	})
}

const wholeFile = `
pipeline: digits
experiment: v1
items: in/items.jsonl
steps:
  - step: draw
    run: [sh, draw.sh]
    blobs: [image]
    retry: {attempts: 3, backoff: 10ms, max_backoff: 1s}
    timeout: 1m30s
    env: {MODE: fast, N: 3}
  - loop: refine
    until: score >= 0.9
    max: 5
    steps:
      - step: improve
        run: |
          echo '{"score": 1.0}'
        retry: 2
  - branch: way
    cases:
      - {name: good, when: score > 0.5, steps: [{filter: keep, keep: yes == true}]}
      - steps: []
  - map: parts
    over: 3
    with: [score]
    parallel: 2
    keep_going: true
    steps: [{step: each, run: "true"}]
    reduce: {run: ["true"], retry: 4}
`

func TestAWholeFile(t *testing.T) {
	f, err := Parse("p.yaml", []byte(wholeFile), "/dir")
	if err != nil {
		t.Fatal(err)
	}
	if f.Pipeline != "digits" || f.Experiment != "v1" || filepath.ToSlash(f.Items) != "/dir/in/items.jsonl" || len(f.Steps.Steps) != 4 {
		t.Errorf("file %+v", f)
	}
	step, _ := f.Steps.Steps[0].(*pipeline.Step)
	loop, _ := f.Steps.Steps[1].(*pipeline.Loop)
	branch, _ := f.Steps.Steps[2].(*pipeline.Branch)
	m, _ := f.Steps.Steps[3].(*pipeline.Map)
	if step == nil || step.Retry.Attempts != 3 || step.Retry.Backoff.String() != "10ms" || step.Retry.MaxBackoff.String() != "1s" {
		t.Errorf("step %+v", step)
	}
	if loop == nil || loop.Max != 5 || loop.Until == nil || len(loop.Steps) != 1 {
		t.Errorf("loop %+v", loop)
	}
	if branch == nil || len(branch.Cases) != 2 || branch.Cases[0].Name != "good" || branch.Cases[1].When != nil {
		t.Errorf("branch %+v", branch)
	}
	if m == nil || m.Parallel != 2 || !m.KeepGoing || m.Reduce == nil || m.Retry.Attempts != 4 {
		t.Errorf("map %+v", m)
	}
}

func TestWrongFilesAreToldWithTheirPlaceAndAHint(t *testing.T) {
	for _, tc := range []struct{ name, text, want, hint string }{
		{"empty", "", "p.yaml: nothing in it", "a pipeline has"},
		{"not YAML", "pipeline: p\nsteps: [\n- 1", "p.yaml:3:1: while parsing", ""},
		{"no name", "steps: []", "p.yaml:1:1: the pipeline has no name", "begin with"},
		{"a bad name", "pipeline: a/b\nsteps: []", "p.yaml:1:11: ", ""},
		{"no steps", "pipeline: p", "p.yaml:1:1: the pipeline has no steps", "steps:"},
		{"empty steps", "pipeline: p\nsteps: []", "p.yaml:1:1: it has no steps", ""},
		{"an unknown key", "pipeline: p\nstep: 1", `p.yaml:2:1: a pipeline has no key "step"`, "there are pipeline, experiment, items, key, steps"},
		{"an unknown kind", "pipeline: p\nsteps:\n  - do: x", "p.yaml:3:5: it does not say what it is", "step: NAME"},
		{"a step without run", "pipeline: p\nsteps:\n  - step: x", "p.yaml:3:5: run is missing", "run: [python3"},
		{"a condition", "pipeline: p\nsteps:\n  - filter: x\n    keep: n >> 2", `p.yaml:4:14: condition "n >> 2": ">" is not expected here`, "conditions are such as"},
		{"a loop without an end", "pipeline: p\nsteps:\n  - loop: x\n    steps: [{step: s, run: 'true'}]", "p.yaml:3:5: the loop would never end", ""},
		{"a name twice", "pipeline: p\nsteps:\n  - {step: s, run: 'true'}\n  - {step: s, run: 'true'}", "p.yaml:4:5: the name stands twice", ""},
		{"a time", "pipeline: p\nsteps:\n  - {step: s, run: 'true', timeout: 5}", `p.yaml:3:37: timeout: "5" is not a time`, "500ms"},
		{"an unknown program", "pipeline: p\nsteps:\n  - {step: s, run: [no-such-program]}", `p.yaml:3:20: the program "no-such-program" is not found`, "path"},
		{"a case after the last", "pipeline: p\nsteps:\n  - {branch: b, cases: [{steps: []}, {when: a, steps: []}]}", "p.yaml:3:25: the cases after one without a condition", "last"},
		{"retry", "pipeline: p\nsteps:\n  - {step: s, run: 'true', retry: 0}", "p.yaml:3:35: retry must be a whole number, at least 1", ""},
		{"two documents", "pipeline: p\n---\na: 1", "p.yaml:3:1: more than one document", ""},
		{"too deep", "pipeline: " + strings.Repeat("[", 100) + strings.Repeat("]", 100), "p.yaml:1:75: nested too deep", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Parse("p.yaml", []byte(tc.text), "/dir")
			var e *Error
			if !errors.As(err, &e) || !strings.HasPrefix(err.Error(), tc.want) || !strings.Contains(e.Hint(), tc.hint) {
				t.Errorf("got %v (hint %v), want %s (%s)", err, e, tc.want, tc.hint)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(wholeFile))
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 4<<10 {
			return
		}
		_, err := Parse("p", text, ".")
		var e *Error
		if err != nil && !errors.As(err, &e) {
			t.Errorf("%#v", err)
		}
	})
}

func TestValuesRoundTrip(t *testing.T) {
	for text, want := range map[string]datagen.Value{
		"7": datagen.IntValue(7), "-9223372036854775808": datagen.IntValue(math.MinInt64), "7.0": datagen.FloatValue(7), "1e300": datagen.FloatValue(1e300),
		`"é"`: datagen.StrValue("é"), "true": datagen.BoolValue(true), "null": datagen.JSONValue(json.RawMessage("null")),
		`[1,{"a":2}]`: datagen.JSONValue(json.RawMessage(`[1,{"a":2}]`)), "18446744073709551616": datagen.JSONValue(json.RawMessage("18446744073709551616")),
		`{"$float":"Infinity"}`: datagen.FloatValue(math.Inf(1)), `{"$json":7}`: datagen.JSONValue(json.RawMessage("7")),
	} {
		got, err := parseValue(json.RawMessage(text), "")
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
		if back := string(ValueJSON(got, "")); back != text && !strings.Contains(text, "$json") && !strings.Contains(text, "1e300") {
			t.Errorf("%s became %s", text, back)
		}
	}
}

func TestChangesOfACommand(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "b"), []byte("bytes"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, filter, err := Changes([]byte(`{"a": 1, "l": {"$append": "x"}} {"b": {"$blob": "b"}, "$filter": true}`), dir)
	want := []datagen.Change{datagen.Set("a", datagen.IntValue(1)), datagen.Append("l", datagen.StrValue("x")), datagen.Set("b", datagen.BlobValue([]byte("bytes")))}
	if diff := cmp.Diff(want, got); diff != "" || !filter || err != nil {
		t.Errorf("%v, %v (-want +got):\n%s", filter, err, diff)
	}
	if got, filter, err := Changes(nil, dir); got != nil || filter || err != nil {
		t.Errorf("no output: %v %v %v", got, filter, err)
	}
	for text, want := range map[string]string{
		"hello":                             "it is not JSON",
		"7":                                 "it is 7 and not an object",
		`{"a":1,"a":2}`:                     `"a" stands twice`,
		`{"$set":1}`:                        `the key "$set" is not known`,
		`{"a":{"$blob":"gone"}}`:            `field "a": read blob`,
		`{"a":{"$blob":"b","x":1}}`:         "must have no other",
		`{"a":{"$float":"x"}}`:              "is not a float",
		`{"a":{"$what":"x"}}`:               `the key "$what" is not known`,
		`{"a":{"b":{"c":1,"c":2}}}`:         "duplicate key",
		`{"a":` + strings.Repeat("[", 2000): "it is not JSON",
	} {
		if _, _, err := Changes([]byte(text), dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.30s: %v, want %s", text, err, want)
		}
	}
}

func FuzzChanges(f *testing.F) {
	f.Add([]byte(`{"a": 1, "l": {"$append": "x"}} {"b": {"$float": "NaN"}, "$filter": true}`))
	f.Fuzz(func(t *testing.T, text []byte) { Changes(text, "/nowhere") })
}

func TestSources(t *testing.T) {
	text := "\"a\"\n\n17\n{\"key\": \"b\", \"fields\": {\"x\": 1}, \"tags\": {\"t\": \"u\"}}\n"
	var got []string
	for s, err := range Sources("f", strings.NewReader(text), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		line := s.Key + " " + string(s.Tags)
		if s.Fields != nil {
			changes, err := s.Fields()
			if err != nil {
				t.Fatal(err)
			}
			line += changes[0].Name
		}
		got = append(got, line)
	}
	if diff := cmp.Diff([]string{"a ", "17 ", `b {"t":"u"}x`}, got); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
	for text, want := range map[string]string{
		"\"a\"\nb":               "f:2: a key is a text or a whole number",
		"1.5":                    "f:1: a key is a text or a whole number",
		"{}":                     "f:1: the key is missing",
		`{"key":""}`:             "f:1: the key is empty",
		`{"key":"a","x":1}`:      `f:1: there is no member "x"; there are key, fields and tags`,
		`{"key":"a","fields":1}`: "f:1: fields must be an object",
		`{"key":"a","tags":1}`:   "f:1: tags must be an object",
	} {
		var last error
		for _, err := range Sources("f", strings.NewReader(text), "", "") {
			last = err
		}
		var hinted interface{ Hint() string }
		if last == nil || last.Error() != want || !errors.As(last, &hinted) {
			t.Errorf("%s: %v, want %s", text, last, want)
		}
	}
}

func TestSourcesWhoseFieldIsTheKey(t *testing.T) {
	text := `{"id": 7, "prompt": "a cat", "key": "k"}` + "\n\"b\"\n"
	var got []string
	for s, err := range Sources("f", strings.NewReader(text), "", "id") {
		if err != nil {
			t.Fatal(err)
		}
		line := s.Key
		if s.Fields != nil {
			changes, err := s.Fields()
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range changes {
				line += " " + c.Name
			}
		}
		got = append(got, line)
	}
	if diff := cmp.Diff([]string{"7 id prompt key", "b"}, got); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
	for text, want := range map[string]string{
		`{"key":"a"}`:       `f:1: the field "id", which is the key, is missing`,
		`{"id":1.5}`:        "f:1: a key is a text or a whole number",
		`{"id":1,"id":2}`:   `f:1: "id" stands twice`,
		`{"id":1,"prompt":`: "f:1: the JSON ends too early",
	} {
		var last error
		for _, err := range Sources("f", strings.NewReader(text), "", "id") {
			last = err
		}
		if last == nil || last.Error() != want {
			t.Errorf("%s: %v, want %s", text, last, want)
		}
	}
}
