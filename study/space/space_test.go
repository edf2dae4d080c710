package space

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/internal/yamldoc"
	"github.com/foldlog/foldlog/study"
)

func TestParse(t *testing.T) {
	const text = `
# comment
lr:        {type: float, low: 1e-5, high: 0.1, log: true}
dropout:
  type: float
  low: 0
  high: 0.5
  step: 0.05
layers:    {type: int, low: 1, high: 8}
width:     {type: int, low: 16, high: 512, log: true}
optimizer: {type: categorical, choices: [adam, "1", 1, 1.5, true, null, [1, {a: b}], "<é>"]}
use bn:    {type: bool}
momentum:  {type: float, low: 0, high: 1, when: {optimizer: adam, layers: {low: 2}}}
eps:       {type: bool, when: {optimizer: [1, [1, {a: b}]], "use bn": true, lr: {low: 1e-4, high: 1e-2}}}
wide:      {type: bool, when: {optimizer: [1, {a: b}], layers: [3, 4]}}
`
	got, err := Parse("space.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`lr {"Float":{"low":0.00001,"high":0.1,"log":true,"step":null}}`,
		`dropout {"Float":{"low":0.0,"high":0.5,"log":false,"step":0.05}}`,
		`layers {"Int":{"low":1,"high":8,"log":false,"step":1}}`,
		`width {"Int":{"low":16,"high":512,"log":true,"step":1}}`,
		`optimizer {"Cat":{"choices":{"version":1,"choices":[{"label":"adam","value":{"type":"string","value":"adam"}},` +
			`{"label":"1","value":{"type":"string","value":"1"}},{"label":"1","value":{"type":"int","value":1}},` +
			`{"label":"1.5","value":{"type":"float","value":1.5}},{"label":"true","value":{"type":"bool","value":true}},` +
			`{"label":"null","value":{"type":"null","value":null}},{"label":"[1,{\"a\":\"b\"}]","value":{"type":"json","value":[1,{"a":"b"}]}},` +
			`{"label":"<é>","value":{"type":"string","value":"<é>"}}]}}}`,
		`use bn "Bool"`,
		`momentum {"Float":{"low":0.0,"high":1.0,"log":false,"step":null}},"when":[{"param":"optimizer","values":[{"Cat":0}]},{"param":"layers","low":{"I64":2},"high":null}]`,
		`eps "Bool","when":[{"param":"optimizer","values":[{"Cat":2},{"Cat":6}]},{"param":"use bn","values":[{"Bool":true}]},{"param":"lr","low":{"F64":0.0001},"high":{"F64":0.01}}]`,
		`wide "Bool","when":[{"param":"optimizer","values":[{"Cat":6}]},{"param":"layers","values":[{"I64":3},{"I64":4}]}]`,
	}
	if diff := cmp.Diff(want, spell(t, got)); diff != "" {
		t.Errorf("space (-want +got):\n%s", diff)
	}
}

func spell(t *testing.T, s *study.Space) []string {
	t.Helper()
	var list []string
	for _, p := range s.Params {
		b, err := study.AppendSpace(nil, &study.Space{Params: []study.SpaceParam{p}})
		if err != nil {
			t.Fatal(err)
		}
		dist := strings.TrimPrefix(string(b), `[{"name":"`+p.Name+`","dist":`)
		list = append(list, p.Name+" "+strings.TrimSuffix(dist, "}]"))
	}
	return list
}

func TestJSONIsReadToo(t *testing.T) {
	got, err := Parse("space.json", []byte(`{"x": {"type": "float", "low": -1, "high": 1}}`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{`x {"Float":{"low":-1.0,"high":1.0,"log":false,"step":null}}`}, spell(t, got)); diff != "" {
		t.Errorf("space (-want +got):\n%s", diff)
	}
}

func TestFaultsNameTheLine(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		line int
		want string
	}{
		"not YAML":               {"a: [1", 1, ""},
		"empty":                  {"", 0, "no parameters"},
		"a list":                 {"- a", 1, "mapping"},
		"no type":                {"x: {low: 1}", 1, `"type" is missing`},
		"unknown type":           {"y: {type: bool}\nx: {type: real}", 2, `"real"`},
		"unknown field":          {"x: {type: bool, low: 1}", 1, `no "low"`},
		"missing bound":          {"x:\n  type: float\n  low: 1\n", 2, `"high" is missing`},
		"bounds reversed":        {"x: {type: int, low: 2, high: 1}", 1, "above"},
		"log of zero":            {"x: {type: float, low: 0, high: 1, log: true}", 1, "above 0"},
		"step and log":           {"x: {type: int, low: 1, high: 9, log: true, step: 2}", 1, "exclude"},
		"negative step":          {"x: {type: float, low: 1, high: 9, step: -2}", 1, "step"},
		"bound is text":          {"x: {type: float, low: a, high: 1}", 1, "finite"},
		"bound is infinite":      {"x: {type: float, low: 0, high: .inf}", 1, "finite"},
		"integer is a float":     {"x: {type: int, low: 0.5, high: 1}", 1, "integer"},
		"integer too large":      {"x: {type: int, low: 0, high: 9223372036854775808}", 1, "64 bits"},
		"no choices":             {"x: {type: categorical, choices: []}", 1, "choices"},
		"same choice twice":      {"x: {type: categorical, choices: [a, a]}", 1, "twice"},
		"choice is no JSON":      {"x: {type: categorical, choices: [.nan]}", 1, "plain"},
		"same parameter twice":   {"x: {type: bool}\nx: {type: bool}", 2, ""},
		"parameter is a number":  {"1: {type: bool}", 1, "text"},
		"anchors and aliases":    {"x: {type: categorical, choices: [&a [1], *a]}", 1, "plain"},
		"second document":        {"x: {type: bool}\n---\ny: {type: bool}", 3, "document"},
		"parameter is no object": {"x: 3", 1, "mapping"},
		"condition before":       {"x: {type: bool, when: {y: true}}\ny: {type: bool}", 1, `"y", which it depends on`},
		"condition of no value":  {"y: {type: categorical, choices: [a]}\nx:\n  type: bool\n  when: {y: b}", 4, `no value of "y"`},
		"condition is empty":     {"x: {type: bool, when: {}}", 1, "names no parameter"},
		"range of a truth value": {"y: {type: bool}\nx: {type: bool, when: {y: {low: 1}}}", 2, "list of values"},
		"range of the unknown":   {"y: {type: int, low: 1, high: 2}\nx: {type: bool, when: {y: {min: 1}}}", 2, `no "min"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("s.yaml", []byte(c.text))
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("error %v, want an *Error", err)
			}
			if e.Line != c.line || !strings.Contains(e.Error(), c.want) || strings.Contains(e.Error(), "\n") {
				t.Errorf("error %q at line %d, want %q at %d", e, e.Line, c.want, c.line)
			}
		})
	}
}

func TestHugeFileIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "space.yaml")
	if err := os.WriteFile(path, make([]byte, yamldoc.MaxBytes+1), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("error %v", err)
	}
}

func TestDeepNestingCostsNothing(t *testing.T) {
	for name, text := range map[string]string{
		"brackets": strings.Repeat("[", 300_000), "braces": strings.Repeat("{a: ", 70_000), "dashes": strings.Repeat("- ", 150_000),
		"questions": strings.Repeat("? ", 15_000), "indentation": "a:\n" + strings.Repeat(" ", 30_000) + "b: 1",
		"closed": strings.Repeat("[", 9000) + strings.Repeat("]", 9000), "a bracket on every line": "x:\n" + strings.Repeat(" [\n", 1000),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("deep.yaml", []byte(text))
			var e *Error
			if !errors.As(err, &e) || e.Line == 0 {
				t.Errorf("error %v", err)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"x: {type: bool}", "x: {type: categorical, choices: [a, {b: 1}]}", "- a", "x: &a [*a]", "? {}\n: 1"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := Parse("f", text)
		var e *Error
		if err != nil && !errors.As(err, &e) {
			t.Errorf("error %T", err)
		}
		if err == nil && len(s.Params) == 0 {
			t.Error("an empty space without an error")
		}
	})
}

func TestSpacesTravelAsJSON(t *testing.T) {
	want, err := Parse("space", []byte("lr: {type: float, low: 1, high: 2}\nopt: {type: categorical, choices: [a, '<é>']}\nb: {type: bool, when: {opt: a, lr: {high: 1.5}}}"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*study.Space{nil, want} {
		raw, err := study.AppendSpace(nil, s)
		if err != nil {
			t.Fatal(err)
		}
		got, err := study.ParseSpace(raw)
		if err != nil || !reflect.DeepEqual(got, s) {
			t.Errorf("%s reads as %+v, %v", raw, got, err)
		}
	}
	for _, raw := range []string{"", "{}", "[1]", `[{"name":"x"}]`, `[{"name":"x","dist":{"New":1}}]`, "[]x", "nul"} {
		if got, err := study.ParseSpace([]byte(raw)); err == nil {
			t.Errorf("%s reads as %+v", raw, got)
		}
	}
}

func TestAConditionOnAMistakenNameSaysWhichIsMeant(t *testing.T) {
	_, err := Parse("s.yaml", []byte("penalty: {type: bool}\nratio: {type: bool, when: {penality: true}}"))
	var at *Error
	if !errors.As(err, &at) || !strings.HasSuffix(at.Advice, `did you mean "penalty"?`) {
		t.Errorf("error %+v", err)
	}
}
