package metrics

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// checked lists what Check has to say, faults with "!" and warnings with "?".
func checked(t *testing.T, text string, opts CheckOptions) ([]string, CheckStats) {
	t.Helper()
	var got []string
	sum, err := Check(strings.NewReader(text), opts, func(f Finding) {
		mark := "!"
		if f.Warning {
			mark = "?"
		}
		got = append(got, fmt.Sprintf("%s %d:%d %v", mark, f.Line, f.Column, f.Err))
	})
	if err != nil {
		t.Fatal(err)
	}
	return got, sum
}

func TestCheckFindsEveryFaultWithItsPlace(t *testing.T) {
	open := openLine("{}")
	metric := metricLine(1, "l", "1")
	long := `{"ts_ms":3,"step":1,"kind":"annotation","annotation":"` + strings.Repeat("x", MaxAnnotation+1) + `","metadata":{}}`
	for name, c := range map[string]struct {
		lines []string
		want  []string
	}{
		"nothing at all":          {nil, []string{"! 1:1 missing field: no open"}},
		"sound":                   {[]string{open, metric, doneLine, open, metric, doneLine, ""}, nil},
		"no done":                 {[]string{open, metric, ""}, nil},
		"torn end":                {[]string{open, metric}, []string{"! 2:72 torn last line"}},
		"event before open":       {[]string{metric, open, ""}, []string{"! 1:1 event out of place: metric before the first open"}},
		"event after done":        {[]string{open, doneLine, metric, ""}, []string{"! 3:1 event out of place: metric after done"}},
		"torn end before an open": {[]string{open, `{"ts_ms":1,"st`, open, ""}, []string{`? 2:15 not valid JSON: string without end`}},
		"bad line before a metric": {[]string{open, `{"ts_ms":1,"st`, metric, ""},
			[]string{`! 2:15 not valid JSON: string without end`}},
		"two bad lines before an open": {[]string{open, "a", "b", open, ""},
			[]string{`! 2:1 not valid JSON: an object expected, not 'a'`, `? 3:1 not valid JSON: an object expected, not 'b'`}},
		"a record glued to a torn one": {[]string{open, `{"ts_ms":1,"st` + metric, ""},
			[]string{`! 2:17 not valid JSON: ':' expected, not 't'`}},
		"an open glued to a torn line": {[]string{open, `{"ts_ms":1,"st` + open, ""},
			[]string{`? 2:17 not valid JSON: ':' expected, not 't'`}},
		"unknown kind": {[]string{open, `{"kind":"x"}`, ""}, []string{`! 2:9 unknown kind of event: "x"`}},
		"summary line": {[]string{open, `{"kind":"summary"}`, ""}, []string{`! 2:9 unknown kind of event: "summary"`}},
		"empty line":   {[]string{open, "", metric, ""}, []string{"! 2:1 empty line"}},
		"missing and lenient fields": {[]string{`{"ts_ms":1,"kind":"open","slug":"r"}`,
			`{"ts_ms":1.0,"step":1,"step":2,"kind":"metric","name":"l","value":NaN,"metadata":{}}`, ""},
			[]string{"! 1:1 missing field: metadata", "! 1:1 missing field: description of open",
				`? 2:67 value: non-finite number: not spelled "NaN", "Infinity" or "-Infinity"`,
				"? 2:1 wrong type of value: an integer is spelled as a float", "? 2:1 duplicate key"}},
		"another slug": {[]string{open, `{"ts_ms":9,"kind":"done","slug":"q"}`, ""},
			[]string{`! 2:33 bad slug: "q" in the stream of "r"`}},
		"bad slug":        {[]string{`{"ts_ms":1,"kind":"open","slug":"a/b","description":"","metadata":{}}`, ""}, []string{`! 1:1 bad slug: '/' in "a/b"`}},
		"long annotation": {[]string{open, long, ""}, []string{"! 2:1 annotation: too large: 16001 UTF-16 units, at most 16000"}},
		"open metadata": {[]string{openLine(`{"sexpgpu":1,"variant":null,"knobs":[],"run":{"steps":"8","seed":18446744073709551615,"evals":null},"sources":"3 files, too large to record","devices":[0],"more":1}`), ""},
			[]string{"! 1:67 metadata sexpgpu: wrong type of value: a string expected",
				"! 1:94 metadata knobs: wrong type of value: an object expected",
				"! 1:112 metadata steps: wrong type of value: an integer or null expected"}},
	} {
		got, sum := checked(t, strings.Join(c.lines, "\n"), CheckOptions{})
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
		if int(sum.Faults+sum.Warnings) != len(got) {
			t.Errorf("%s: %+v", name, sum)
		}
	}
}

func TestCheckOfAMixedOutputLetsOtherLinesBe(t *testing.T) {
	text := strings.Join([]string{"starting", "", openLine("{}"), `{"loss":1}`, metricLine(1, "l", "1"), doneLine, `{"kind":"summary"}`, `{"ts_ms":1,"kind`, ""}, "\n")
	got, sum := checked(t, text, CheckOptions{Mixed: true})
	want := []string{`! 8:17 not valid JSON: string without end`}
	if diff := cmp.Diff(want, got); diff != "" || sum.Other != 4 || sum.Events != 3 || !sum.Ended {
		t.Errorf("%s%+v", diff, sum)
	}
}

// C1: a stream cut at every byte of its last three lines.
func TestStreamCutAnywhereGivesEveryCompleteLine(t *testing.T) {
	whole := strings.Join([]string{openLine("{}"), metricLine(1, "l", "1"), metricLine(2, "l", `"NaN"`), doneLine, ""}, "\n")
	from := len(openLine("{}")) + 1
	for cut := from; cut <= len(whole); cut++ {
		complete := int64(strings.Count(whole[:cut], "\n"))
		torn := whole[cut-1] != '\n'
		_, sum := checked(t, whole[:cut], CheckOptions{})
		if sum.Events != complete || (sum.Faults == 1) != torn {
			t.Fatalf("cut at %d: %+v", cut, sum)
		}
		var live, bad int64
		must(t, ReadStream(strings.NewReader(whole[:cut]), func(it *Item) {
			if it.Kind == ItemEvent {
				live++
			} else if bad++; !errors.Is(it.Err, ErrTorn) {
				t.Fatalf("cut at %d: %v", cut, it.Err)
			}
		}))
		if live != complete || (bad == 1) != torn {
			t.Fatalf("cut at %d: %d events, %d bad", cut, live, bad)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// longLine is a reader of one line of n bytes between two events.
func longLine(n int64) io.Reader {
	return io.MultiReader(strings.NewReader(openLine("{}")+"\n"), io.LimitReader(endless('x'), n), strings.NewReader("\n"+doneLine+"\n"))
}

type endless byte

func (e endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(e)
	}
	return len(b), nil
}

func TestLineOfHundredMegabytesIsReportedInBoundedMemory(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var got []string
	must(t, ReadStream(longLine(100_000_000), func(it *Item) {
		if it.Kind == ItemEvent {
			got = append(got, fmt.Sprintf("%d %s", it.Number, it.Event.Kind))
		} else {
			got = append(got, it.Err.Error())
		}
	}))
	runtime.ReadMemStats(&after)
	want := []string{"1 open", "line 2, column 1048577: line too long: 100000001 bytes", "3 done"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 16<<20 {
		t.Errorf("%d bytes allocated", used)
	}
}

func TestJunkBetweenEventsIsReportedLineByLine(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var text bytes.Buffer
	lines, events := int64(0), int64(0)
	for i := range 2000 {
		if i%3 != 0 {
			fmt.Fprintln(&text, metricLine(i, "l", "1"))
			lines, events = lines+1, events+1
			continue
		}
		junk := make([]byte, rng.IntN(200))
		for j := range junk {
			junk[j] = byte(rng.Uint32())
		}
		text.Write(append(junk, '\n'))
		lines += int64(bytes.Count(junk, newline)) + 1
	}
	var good, all int64
	must(t, ReadStream(&text, func(it *Item) {
		all++
		if it.Kind == ItemEvent {
			good++
		} else if at := (*LineError)(nil); !errors.As(it.Err, &at) || at.Line != it.Number {
			t.Fatalf("%v", it.Err)
		}
	}))
	if good != events || all != lines {
		t.Errorf("%d events of %d, %d lines of %d", good, events, all, lines)
	}
}

func TestThousandsOfNamesAndMetadataStayBounded(t *testing.T) {
	var d Decoder
	var e Event
	for i := range 100_000 {
		line := strings.Replace(metricLine(i, "name"+itoa(int64(i)), "1"), "{}", `{"i":`+itoa(int64(i))+`}`, 1)
		must(t, d.Decode([]byte(line), &e))
		if e.Name != "name"+itoa(int64(i)) || e.Metadata.Text("i") != itoa(int64(i)) {
			t.Fatalf("%+v", e)
		}
	}
	if len(d.names.m) > internEntries || len(d.metas.m) > internEntries {
		t.Errorf("%d names, %d metadata kept", len(d.names.m), len(d.metas.m))
	}
}

// FuzzReaders feeds any bytes in pieces to every reader.
func FuzzReaders(f *testing.F) {
	f.Add([]byte(openLine("{}")+"\n{\"ts_ms\":1,\"st"+openLine("{}")+"\n"+doneLine), uint8(3))
	f.Add([]byte("{\"loss\":NaN}\nstep=4 loss=1\r\n\x00\n"), uint8(1))
	f.Fuzz(func(t *testing.T, text []byte, piece uint8) {
		lines := int64(bytes.Count(text, newline))
		if len(text) > 0 && text[len(text)-1] != '\n' {
			lines++
		}
		mixed := int64(0)
		m := NewMixed(64, func(it *Item) { mixed++ })
		for rest := text; len(rest) > 0; {
			n := min(len(rest), int(piece)+1)
			m.Write(rest[:n])
			rest = rest[n:]
		}
		m.Close()
		last, events := int64(0), int64(0)
		must(t, ReadStream(bytes.NewReader(text), func(it *Item) {
			last = it.Number
			if it.Kind == ItemEvent {
				events++
			}
		}))
		sum, err := Check(bytes.NewReader(text), CheckOptions{}, func(f Finding) {
			if f.Line < 1 || f.Column < 1 {
				t.Fatalf("%+v", f)
			}
		})
		if err != nil || mixed != lines || last != lines || sum.Events != events {
			t.Fatalf("%d lines: mixed %d, stream %d, events %d and %d, %v", lines, mixed, last, events, sum.Events, err)
		}
	})
}
