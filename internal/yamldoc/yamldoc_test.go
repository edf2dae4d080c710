package yamldoc

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func mustParse(t *testing.T, text string) Node {
	t.Helper()
	n, err := Parse("f", []byte(text))
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return n
}

func TestFaultsAreToldWithTheirPlace(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "f: nothing in it",
		"# only a comment\n":     "f: nothing in it",
		"---\n":                  "f: nothing in it",
		"a: 1\n---\nb: 2\n":      "f:3:1: more than one document",
		"a: &x 1\n":              "f:1:4: anchors and aliases are not plain values",
		"a: [1, *x]\n":           "f:1:8: ", // whoever notices first
		"&x a: 1\nb: *x\n":       "f:1:1: anchors and aliases are not plain values",
		"a: {b: &y [1]}\n":       "f:1:8: anchors and aliases are not plain values",
		"a: !!str 1\n":           "f:1:4: a tag (!!str) makes it no plain value",
		"a: !mine {b: 1}\n":      "f:1:4: a tag (!mine) makes it no plain value",
		"a: 1\nb: 2\na: 3\n":     "f:3:1: \"a\" stands twice",
		"{a: 1, b: 2, \"a\": 3}": "f:1:14: \"a\" stands twice",
		"1: 2\n":                 "f:1:1: a key must be a text",
		"true: 2\n":              "f:1:1: a key must be a text",
		"\"\": 2\n":              "f:1:1: a key must be a text",
		"~: 2\n":                 "f:1:1: a key must be a text",
		"[1]: 2\n":               "f:1:1: a key must be a text",
		"? {a: b}\n: 2\n":        "f:1:3: a key must be a text",
		"- 1\n":                  "f:1:1: it must be a mapping",
		"just a text":            "f:1:1: it must be a mapping",
	} {
		n, err := Parse("f", []byte(text))
		if err == nil {
			_, err = n.Map("it")
		}
		var e *Error
		if !errors.As(err, &e) || !strings.HasPrefix(e.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestSyntaxErrorsHaveALine(t *testing.T) {
	for text, line := range map[string]int{
		"a: 1\nb: [1, 2\nc: 3\n":  2,
		"a: 1\nb: \"open\nc: 3\n": 2,
		"a: 1\n\tb: 2\n":          1,
		"a: b: c\n":               1,
		"a: 1\nb\n":               2,
		"a: 'it''s\n":             1,
		"a: }\n":                  1,
		"a: \x00\n":               1,
		"a: \"\\xZZ\"\n":          1,
	} {
		_, err := Parse("f", []byte(text))
		var e *Error
		if !errors.As(err, &e) || e.Line < line || e.Line > line+1 || strings.Contains(e.Error(), "\n") {
			t.Errorf("%q: %v, want one line about line %d", text, err, line)
		}
	}
}

func TestPlacesAreThoseOfTheFile(t *testing.T) {
	root := mustParse(t, "# é\na: 1\n\"ключ\": {b: [x, 'y'], c: ~}\nd: |\n  text\n")
	at := map[string]string{}
	list, err := root.Map("it")
	if err != nil {
		t.Fatal(err)
	}
	place := func(n Node) string {
		var e *Error
		errors.As(n.Failf("x"), &e)
		return fmt.Sprintf("%d:%d", e.Line, e.Column)
	}
	for _, e := range list {
		at[e.Key] = place(e.At) + " " + place(e.Value)
	}
	inner, err := list[1].Value.Map("it")
	if err != nil {
		t.Fatal(err)
	}
	items, ok := inner[0].Value.Items()
	at["items"] = fmt.Sprintf("%v %s %s", ok, place(items[0]), place(items[1]))
	want := map[string]string{"a": "2:1 2:4", "ключ": "3:1 3:9", "d": "4:1 4:4", "items": "true 3:14 3:17"}
	if diff := cmp.Diff(want, at); diff != "" {
		t.Errorf("places (-want +got):\n%s", diff)
	}
}

func TestScalarsAreWhatYAMLSays(t *testing.T) {
	for text, want := range map[string]any{
		"~": nil, "null": nil, "true": true, "False": false, "yes": "yes", "off": "off",
		"0": int64(0), "-7": int64(-7), "0x1F": int64(31), "0o17": int64(15),
		"9223372036854775807": int64(math.MaxInt64), "-9223372036854775808": int64(math.MinInt64),
		"9223372036854775808": uint64(1 << 63), "18446744073709551615": uint64(math.MaxUint64),
		"1.5": 1.5, "1e3": 1000.0, "-.5": -0.5, ".inf": math.Inf(1),
		`"1"`: "1", "'true'": "true", "text": "text", "2020-01-01": "2020-01-01", "a b": "a b",
		"[]": compound{}, "{}": compound{},
	} {
		got := mustParse(t, "["+text+"]")
		items, _ := got.Items()
		if diff := cmp.Diff(want, items[0].Scalar(), cmp.AllowUnexported(compound{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

func TestNumbersOutOfRangeAreRefused(t *testing.T) {
	for _, tc := range []struct {
		text             string
		float, int, uint bool
	}{
		{"1", true, true, true}, {"-1", true, true, false}, {"1.0", true, false, false},
		{"18446744073709551615", true, false, true}, {"18446744073709551616", true, false, false},
		{"-9223372036854775809", true, false, false}, {"1e400", false, false, false}, {".nan", false, false, false},
		{"-.inf", false, false, false}, {"~", false, false, false}, {"[1]", false, false, false}, {"{a: 1}", false, false, false},
		{"true", false, false, false}, {"''", false, false, false}, {"1e-5", true, false, false}, {"5e-324", true, false, false},
	} {
		items, _ := mustParse(t, "["+tc.text+"]").Items()
		_, float := items[0].Float()
		_, int := items[0].Int()
		_, uint := items[0].Uint()
		if (float == nil) != tc.float || (int == nil) != tc.int || (uint == nil) != tc.uint {
			t.Errorf("%s: float %v, int %v, uint %v", tc.text, float, int, uint)
		}
	}
}

func TestValuesAreSpelledAsJSON(t *testing.T) {
	for text, want := range map[string]string{
		"{b: [1, 0x10, 1e3, ~, true], a: {c: 'x'}}":  `{"b":[1,16,1000.0,null,true],"a":{"c":"x"}}`,
		"- \"q\\\"\\u2028\"\n- 18446744073709551615": `["q\"` + "\u2028" + `",18446744073709551615]`,
		"a: |\n  two\n  lines\n":                     `{"a":"two\nlines\n"}`,
		"[]":                                         "[]", "{}": "{}",
	} {
		got, err := mustParse(t, text).JSON()
		if err != nil || string(got) != want {
			t.Errorf("%q: %s, want %s: %v", text, got, want, err)
		}
	}
	for _, text := range []string{"[.nan]", "a: .inf", "{1: 2}", "{a: 1, a: 2}", "[{a: {b: .nan}}]"} {
		if got, err := mustParse(t, text).JSON(); err == nil || !strings.Contains(err.Error(), "not a plain JSON value") {
			t.Errorf("%q: %s, %v", text, got, err)
		}
	}
}

func TestTextsAreToldFromOtherValues(t *testing.T) {
	for text, want := range map[string]bool{"text": true, "'1'": true, "1": false, "~": false, "''": false, "[a]": false} {
		items, _ := mustParse(t, "["+text+"]").Items()
		if _, err := items[0].Text(); (err == nil) != want {
			t.Errorf("%s: %v", text, err)
		}
	}
	items, _ := mustParse(t, "[1e3, 'a', \"b\", c d, [x]]").Items()
	var got []string
	for _, n := range items {
		got = append(got, fmt.Sprintf("%s %v", n.Source(), n.Unquoted()))
	}
	if diff := cmp.Diff([]string{"1e3 true", "a false", "b false", "c d true", " false"}, got); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
}

// hostile are texts that have brought YAML readers down, by what they do.
func hostile() map[string]string {
	bomb := "a0: &a0 [x, x]\n"
	for i := range 30 {
		bomb += fmt.Sprintf("a%d: &a%d [*a%d, *a%d]\n", i+1, i+1, i, i)
	}
	steps := &strings.Builder{}
	for i := range 600 {
		steps.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return map[string]string{
		"aliases that double":     bomb,
		"open brackets":           strings.Repeat("[", 100_000),
		"open braces":             strings.Repeat("{", 100_000),
		"braces with keys":        strings.Repeat("{a: ", 100_000),
		"hyphens":                 strings.Repeat("- ", 100_000),
		"question marks":          strings.Repeat("? ", 100_000),
		"stairs":                  steps.String(),
		"closed brackets":         strings.Repeat("[", 70) + strings.Repeat("]", 70),
		"documents":               strings.Repeat("---\n", 50_000),
		"a key that has no end":   strings.Repeat("x", 500_000) + ": 1",
		"colons":                  strings.Repeat("a: ", 50_000),
		"quotes":                  strings.Repeat("\"", 100_001),
		"a number of many digits": "a: " + strings.Repeat("9", 300_000) + "\n---\nb: 1",
		"a long tag":              "a: !" + strings.Repeat("t", 100_000) + " 1",
		"anchors":                 strings.Repeat("&a ", 50_000),
		"bytes that are no text":  "a: \xff\xfe",
		"half a rune":             "a: \"\xe2\x82\"",
		"another encoding":        "\xff\xfea\x00:\x00 \x00&\x00",
		"too long":                strings.Repeat("# a comment\n", 100_000),
	}
}

func TestHostileTextsAreRefused(t *testing.T) {
	for name, text := range hostile() {
		t.Run(name, func(t *testing.T) {
			n, err := Parse("f", []byte(text))
			if err == nil {
				_, err = n.Map("it")
			}
			var e *Error
			if !errors.As(err, &e) {
				t.Errorf("error %v", err)
			} else if len(e.Error()) > 500 {
				t.Errorf("error of %d bytes: %.200s", len(e.Error()), e)
			}
		})
	}
}

func TestNestingHasABound(t *testing.T) {
	for depth, ok := range map[int]bool{maxDepth: true, maxDepth + 2: false} {
		_, err := Parse("f", []byte(strings.Repeat("[", depth)+strings.Repeat("]", depth)))
		if (err == nil) != ok {
			t.Errorf("depth %d: %v", depth, err)
		}
	}
}

func TestFilesAreReadAsTexts(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f.yaml")
	if _, err := Load(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if _, err := Load(dir); err == nil {
		t.Error("a directory was read")
	}
	for text, want := range map[string]bool{"a: 1\r\nb: 2\r\n": true, "\ufeffa: 1\n": true, strings.Repeat("#", MaxBytes+1): false} {
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(path); (err == nil) != want {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}

func TestNearestNameIsProposed(t *testing.T) {
	known := []string{"trials", "trial_timeout", "runs"}
	for name, want := range map[string]string{
		"trails": `did you mean "trials"?`, "TRIALS": `did you mean "trials"?`, "trialtimeout": `did you mean "trial_timeout"?`,
		"run": `did you mean "runs"?`, "x": "there are trials, trial_timeout, runs", strings.Repeat("t", 1<<20): "there are trials, trial_timeout, runs",
	} {
		if got := Nearest(name, known); got != want {
			t.Errorf("%.20s: %s, want %s", name, got, want)
		}
	}
}

// FuzzParse: whatever is read has JSON that says the same, or a place where it has
// none; whatever is refused has one too.
func FuzzParse(f *testing.F) {
	for _, text := range hostile() {
		if len(text) < 1000 {
			f.Add(text)
		}
	}
	for _, text := range []string{"a: 1", "a: [1, 'x', {b: ~}]\n", "- 0x1F\n- 1e400\n", "a: |\n x\n", "? a\n: b\n", "\"\\u00e9\": .5", "{a: 1, a: 2}"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := Parse("f", []byte(text))
		var e *Error
		if err != nil {
			if !errors.As(err, &e) || e.Line < 0 || e.Line > strings.Count(text, "\n")+strings.Count(text, "\r")+strings.Count(text, "\u0085")+strings.Count(text, "\u2028")+strings.Count(text, "\u2029")+2 {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		b, err := n.JSON()
		if err != nil {
			if !errors.As(err, &e) || e.Line == 0 {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if !json.Valid(b) {
			t.Fatalf("%q gave %s", text, b)
		}
		again, err := Parse("g", b)
		if err != nil {
			t.Fatalf("%q gave %s, which is refused: %v", text, b, err)
		}
		if c, err := again.JSON(); err != nil || string(c) != string(b) {
			t.Fatalf("%q gave %s and then %s: %v", text, b, c, err)
		}
	})
}
