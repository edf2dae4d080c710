package metrics

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestTextIsCutBetweenCharacters(t *testing.T) {
	emoji := "\U0001F600" // two UTF-16 units, four bytes
	for name, c := range map[string]struct {
		text string
		want int // bytes kept
	}{
		"at the limit":          {strings.Repeat("a", MaxAnnotation), MaxAnnotation},
		"one unit over":         {strings.Repeat("a", MaxAnnotation+1), MaxAnnotation},
		"emoji ends there":      {strings.Repeat("a", MaxAnnotation-2) + emoji, MaxAnnotation + 2},
		"emoji across the cut":  {strings.Repeat("a", MaxAnnotation-1) + emoji, MaxAnnotation - 1},
		"only emoji":            {strings.Repeat(emoji, MaxAnnotation), 2 * MaxAnnotation},
		"three bytes, one unit": {strings.Repeat("\u20ac", MaxAnnotation+1), 3 * MaxAnnotation},
	} {
		e, err := OtherNote(c.text, "").Event(0)
		if err != nil || len(e.Text) != c.want || !utf8.ValidString(e.Text) || units16(e.Text) > MaxAnnotation {
			t.Errorf("%s: kept %d bytes, want %d (%v)", name, len(e.Text), c.want, err)
		}
	}
}

func TestLongLoweringBlockLosesGraphLinesFromTheEnd(t *testing.T) {
	block := LoweringBlock{Head: "cuda, 3 graphs", Tail: []string{"peak 3 GiB", "end"}}
	for i := range 1000 {
		block.Graphs = append(block.Graphs, fmt.Sprintf("graph %d %s", i, strings.Repeat("\U0001F600", 20)))
	}
	text := Lowering(block, "cuda").Text
	lines := strings.Split(text, "\n")
	n := len(lines)
	kept := n - 4
	want := []string{"lowering: cuda, 3 graphs", fmt.Sprintf("... %d more lines", 1000-kept), "peak 3 GiB", "end"}
	if diff := cmp.Diff(want, append(lines[:1:1], lines[n-3:]...)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(block.Graphs[:kept], lines[1:n-3]); diff != "" {
		t.Error(diff)
	}
	next := units16("\n" + block.Graphs[kept])
	if u := units16(text); u > MaxAnnotation || u+next <= MaxAnnotation {
		t.Errorf("%d units, and %d would have been the next line", u, next)
	}
	whole := "lowering: " + block.Head + "\n" + strings.Join(block.Graphs, "\n") + "\npeak 3 GiB\nend"
	if got := OtherNote(whole, Meta("device", "cuda")).Text; got != text {
		t.Errorf("taken from its text: %q", got[len(got)-80:])
	}
	long := LoweringBlock{Head: strings.Repeat("x", MaxAnnotation), Graphs: []string{"graph"}, Tail: []string{"tail"}}
	if got := units16(Lowering(long, "cuda").Text); got != MaxAnnotation {
		t.Errorf("a head alone too long: %d units", got)
	}
}

func TestOpenMetadataAtItsLimit(t *testing.T) {
	// fill makes metadata of exactly n bytes of compact JSON.
	fill := func(n int) Metadata {
		const frame = `{"sources":[{"path":"a","sha256":"b"},{"path":"c","sha256":"d"}],"knobs":{"x":""}}`
		return Metadata(strings.Replace(frame, `"x":""`, `"x":"`+strings.Repeat("k", n-len(frame))+`"`, 1))
	}
	e, err := NewOpen("r", "", fill(MaxOpenMetadata))
	if err != nil || len(e.Metadata) != MaxOpenMetadata {
		t.Fatalf("at the limit: %d bytes, %v", len(e.Metadata), err)
	}
	if e, err = NewOpen("r", "", fill(MaxOpenMetadata+1)); err != nil || e.Metadata.Text("sources") != "2 files, too large to record" {
		t.Fatalf("one byte over: %q, %v", e.Metadata.Text("sources"), err)
	}
	if _, sentence := ReadSources(e.Metadata); sentence != "2 files, too large to record" {
		t.Errorf("sentence %q", sentence)
	}
	var limit *LimitError
	_, err = NewOpen("r", "", fill(MaxOpenMetadata+200))
	if !errors.As(err, &limit) || !errors.Is(err, ErrTooLarge) || limit.Limit != MaxOpenMetadata {
		t.Errorf("too large without sources: %v", err)
	}
	spaced := Metadata(strings.Replace(string(fill(MaxOpenMetadata)), ":", ": ", 2))
	if e, err = NewOpen("r", "", spaced); err != nil || len(e.Metadata) != MaxOpenMetadata {
		t.Errorf("white space counted: %d, %v", len(e.Metadata), err)
	}
}

func TestNoEventWithinTheLimitsIsTooLongForReaders(t *testing.T) {
	worst := strings.Repeat("\x01", MaxAnnotation)
	e, err := Resumed(worst, []string{worst, worst}).Event(1)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(e.Append(nil)); n > MaxLine {
		t.Errorf("resumed: %d bytes", n)
	}
	if e, err = Failed(worst + worst).Event(1); err != nil || len(e.Append(nil)) > MaxLine {
		t.Errorf("failed: %v", err)
	}
	if len(ReadNote(&e).Error) != MaxAnnotation {
		t.Errorf("error of %d bytes", len(ReadNote(&e).Error))
	}
}

func TestNamesAndMetadataAreChecked(t *testing.T) {
	for name, c := range map[string]struct {
		name string
		meta Metadata
		want error
	}{
		"empty name":      {"", "", ErrName},
		"longest name":    {strings.Repeat("n", MaxName), "", nil},
		"too long a name": {strings.Repeat("n", MaxName+1), "", ErrName},
		"name not UTF-8":  {"\xff", "", ErrName},
		"array":           {"n", "[]", ErrMetadata},
		"not JSON":        {"n", `{"a":NaN}`, ErrMetadata},
		"two objects":     {"n", `{}{}`, ErrMetadata},
		"huge":            {"n", Meta("k", strings.Repeat("v", MaxOpenMetadata)), ErrTooLarge},
	} {
		if _, err := NewMetric(1, c.name, Int(1), c.meta); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOpenMetadataIsSpelledAsTheDocumentDoes(t *testing.T) {
	m, err := OpenMetadata{
		SexpGPU: "0.1", Entry: "a.lisp", Knobs: map[string]any{"lr": Float(1), "steps": Int(8), "x": Float(inf)},
		Run:     &RunSettings{Steps: 8, Evals: []EvalPass{{"eval", 4, 2}}, Seed: 1},
		Sources: []Source{{"a.lisp", "ff"}}, Device: "cuda", Devices: []int{0, 1}, Other: map[string]any{"host": "<h>"},
	}.Metadata()
	if err != nil {
		t.Fatal(err)
	}
	want := `{"host":"<h>","sexpgpu":"0.1","entry":"a.lisp","variant":null,"knobs":{"lr":1.0,"steps":8,"x":"Infinity"},` +
		`"run":{"steps":8,"evals":[{"name":"eval","every":4,"batches":2}],"seed":1},"sources":[{"path":"a.lisp","sha256":"ff"}],"device":"cuda","devices":[0,1]}`
	if diff := cmp.Diff(want, string(m)); diff != "" {
		t.Error(diff)
	}
}

var inf = func() float64 { n, _, _ := nonFinite("inf"); return n }()

func TestMetadataMergesWithTheRuntimeWinning(t *testing.T) {
	for _, c := range []struct{ mine, runtime, want Metadata }{
		{"", "", ""},
		{"{}", `{"a":1}`, `{"a":1}`},
		{`{"a":1}`, "{}", `{"a":1}`},
		{`{"a":1,"b":2}`, `{"a":"x","c":{}}`, `{"a":"x","b":2,"c":{}}`},
		{`{"a":1,"a":2}`, `{"c":3}`, `{"a":2,"c":3}`},
	} {
		if got := c.mine.Merge(c.runtime); got != c.want {
			t.Errorf("%s with %s: %s", c.mine, c.runtime, got)
		}
	}
}

func TestDiffMetadataNamesWhatMoved(t *testing.T) {
	a := Metadata(`{"knobs":{"lr":0.10,"gone":true},"sources":[{"path":"a","sha256":"1"},{"path":"b","sha256":"2"}],"device":"cpu"}`)
	b := Metadata(`{"device":"cuda","sources":[{"path":"b","sha256":"2"},{"path":"a","sha256":"9"}],"knobs":{"lr":1e-1,"new":null}}`)
	want := []Change{{"device", "cpu", "cuda"}, {"knobs/gone", "true", ""}, {"knobs/new", "", "null"}, {"sources/a", "1", "9"}}
	if diff := cmp.Diff(want, DiffMetadata(a, b)); diff != "" {
		t.Error(diff)
	}
}

func TestSlugsStayInTheirFolder(t *testing.T) {
	for slug, want := range map[string]string{
		"my-run_1.2": "my-run_1.2", "a b": "a%20b", "...": "%2E.%2E", ".x": "%2Ex", "x.": "x%2E", "a.b": "a.b",
		`c:\x`: "c%3A%5Cx", "100%": "100%25", "größe": "größe", "日本😀": "日本😀", "con": "%63on", "COM1.txt": "%43OM1.txt",
	} {
		name := EncodeSlug(slug)
		back, err := DecodeSlug(name)
		if name != want || back != slug || err != nil {
			t.Errorf("%q: %q, back %q, %v", slug, name, back, err)
		}
		if path := StreamPath("root", slug, "0123456789abcdef"); filepath.Dir(filepath.Dir(path)) != filepath.Join("root", "runs") {
			t.Errorf("%q leads to %s", slug, path)
		}
	}
	for _, slug := range []string{"", ".", "..", "a/b", "a\x00", "a\n", "\u0085", "\xff", strings.Repeat("x", MaxSlug+1)} {
		if err := CheckSlug(slug); !errors.Is(err, ErrSlug) {
			t.Errorf("%q: %v", slug, err)
		}
	}
	long := strings.Repeat(" ", MaxSlug)
	if name := EncodeSlug(long); len(name) > longestEncoded || name == EncodeSlug(long[:MaxSlug-1]+"!") {
		t.Errorf("long slug: %q", name)
	}
	for _, name := range []string{"a%2", "a%zz", "%61", EncodeSlug(long), "..", "%2E%2E", "%2E"} {
		if slug, err := DecodeSlug(name); err == nil {
			t.Errorf("%q decoded to %q", name, slug)
		}
	}
}

func FuzzSlug(f *testing.F) {
	f.Add("a/../b")
	f.Add("..")
	f.Fuzz(func(t *testing.T, slug string) {
		if CheckSlug(slug) != nil {
			return
		}
		name := EncodeSlug(slug)
		if name != filepath.Base(name) || name == "." || name == ".." || len(name) > 255 || strings.ContainsAny(name, `/\:*?"<>|`) {
			t.Fatalf("%q is spelled %q", slug, name)
		}
		if back, err := DecodeSlug(name); err == nil && back != slug {
			t.Fatalf("%q came back as %q", slug, back)
		}
	})
}

func TestStreamIsKnownByItsContent(t *testing.T) {
	long, err := json.Marshal(map[string]any{"k": strings.Repeat("x", 8000)})
	if err != nil {
		t.Fatal(err)
	}
	open, err := NewOpen("r", "", Metadata(long))
	if err != nil {
		t.Fatal(err)
	}
	done := NewDone("r")
	for name, c := range map[string]struct {
		start string
		want  bool
	}{
		"an event":          {string(done.Append(nil)), true},
		"after other lines": {"log\n{\"loss\":1}\n" + string(done.Append(nil)), true},
		"a long open, cut":  {string(open.Append(nil)[:4096]), true},
		"nothing":           {"", false},
		"a journal":         {`{"record":"header","version":6}` + "\n", false},
		"text":              {"hello\nworld\n", false},
	} {
		if got := IsStream([]byte(c.start)); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
