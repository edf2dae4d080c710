package metrics

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// describe says in one line what a reader made of a line.
func describe(it *Item) string {
	out := fmt.Sprintf("%d ", it.Number)
	switch it.Kind {
	case ItemText:
		out += fmt.Sprintf("text %q", it.Line)
	case ItemEvent:
		out += fmt.Sprintf("%s %d %d %s %s %s", it.Event.Kind, it.Event.TSMS, it.Event.Step, it.Event.Name, it.Event.Value, it.Event.Slug+it.Event.Text)
	case ItemValues, ItemSummary:
		out += map[ItemKind]string{ItemValues: "values", ItemSummary: "summary"}[it.Kind]
		for _, v := range it.Values {
			if v.IsNumber {
				out += fmt.Sprintf(" %s=%s", v.Name, v.Number)
			} else {
				out += fmt.Sprintf(" %s:%s", v.Name, v.Text)
			}
		}
	case ItemBad:
		out += "bad " + it.Err.Error()
	}
	if it.Cut {
		out += " (cut)"
	}
	if it.Torn {
		out += " (torn)"
	}
	return out
}

func readMixed(text string, piece, maxLine int) []string {
	var got []string
	m := NewMixed(maxLine, func(it *Item) { got = append(got, describe(it)) })
	for len(text) > piece {
		fmt.Fprint(m, text[:piece])
		text = text[piece:]
	}
	fmt.Fprint(m, text)
	m.Close()
	return got
}

func TestMixedTellsEventsValuesAndText(t *testing.T) {
	text := strings.Join([]string{
		`loading data`,
		``,
		`{"ts_ms":1,"kind":"open","slug":"r","description":"d","metadata":{}}`,
		`{"ts_ms":2,"step":4,"kind":"metric","name":"loss","value":0.25,"metadata":{"split":"train"}}`,
		`{"ts_ms":3,"step":4,"kind":"metric","name":"loss","value":NaN,"metadata":{"split":"train"}}`,
		`{"ts_ms": 4, "step": 5, "kind": "metric", "name": "loss", "value": 3}`,
		`{"loss":0.3,"step":4,"note":"hi","opt":{"lr":1e-3,"deep":{"x":2}},"bad":NaN,"flags":[1,2]}`,
		"\rstep=1 loss=1\rstep=4 loss=0.31, lr=1e-3 eta=now\r",
		`{"kind":"eval","acc":1}`,
		`{"kind":"metric","ts_ms":1,"step":1,"name":5,"value":1,"metadata":{}}`,
		`{"kind":"metric","ts_ms":1,"step":1,"value":1}`,
		`{"ts_ms":5,"kind":"done","slug":"r"}`,
		`{"kind":"summary","loss":0.1}`,
		`{"kind":"met`,
	}, "\n")
	want := []string{
		`1 text "loading data"`,
		`2 text ""`,
		`3 open 1 0  0.0 r`,
		`4 metric 2 4 loss 0.25 `,
		`5 metric 3 4 loss NaN `,
		`6 metric 4 5 loss 3 `,
		`7 values loss=0.3 step=4 note:hi opt/lr=0.001 opt/deep/x=2 bad=NaN flags:[1,2]`,
		`8 values step=4 loss=0.31 lr=0.001`,
		`9 values kind:eval acc=1`,
		`10 bad line 10, column 44: name: wrong type of value: a string expected, not '5'`,
		`11 bad line 11, column 1: missing field: name of metric`,
		`12 done 5 0  0.0 r`,
		`13 summary kind:summary loss=0.1`,
		`14 text "{\"kind\":\"met" (torn)`,
	}
	for _, piece := range []int{1, 7, 64, len(text)} {
		if diff := cmp.Diff(want, readMixed(text, piece, 0)); diff != "" {
			t.Errorf("in pieces of %d: -want +got:\n%s", piece, diff)
		}
	}
}

func TestMixedCutsALongLineAndGoesOn(t *testing.T) {
	text := strings.Repeat("x", 1000) + "\nshort\n" + strings.Repeat("y", 30)
	want := []string{`1 text "xxxxxxxx" (cut)`, `2 text "short"`, `3 text "yyyyyyyy" (cut) (torn)`}
	for _, piece := range []int{1, 100, 5000} {
		if diff := cmp.Diff(want, readMixed(text, piece, 8)); diff != "" {
			t.Errorf("in pieces of %d: -want +got:\n%s", piece, diff)
		}
	}
}
