package projection

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/foldlog/foldlog/metrics"
)

// wide is a stream that goes beyond every limit: by 5 processes, 50 names, 20 metadata,
// and annotations longer than what is kept.
func wide(t *testing.T) []byte {
	t.Helper()
	var b []byte
	add := func(e metrics.Event, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		b = e.Append(b)
	}
	for range MostSegments + 5 {
		add(metrics.NewOpen("run", strings.Repeat("d", 100), ""))
	}
	point := func(name, meta string) {
		add(metrics.Event{Kind: metrics.KindMetric, TSMS: 1, Step: int64(len(b)), Name: name, Value: metrics.Float(1), Metadata: metrics.Metadata(meta)}, nil)
	}
	for i := range MostNames + 50 {
		point(fmt.Sprintf("name-%d", i), "")
	}
	for i := range MostSeries + 20 {
		point("name-7", fmt.Sprintf(`{"i":%d}`, i))
	}
	point("name-7", `{"i":3}`)
	for i := range wideNotes - 1 {
		add(metrics.OtherNote("note", metrics.Meta("text", strings.Repeat("x", 200<<10))).Event(int64(i)))
	}
	add(metrics.Failed("at last").Event(0))
	return b
}

// wideNotes is how many annotations there are.
const wideNotes = 90

func TestWhatIsKeptOfAStreamIsBounded(t *testing.T) {
	w := newWorld(t)
	w.append("runs/run/a.jsonl", wide(t))
	w.update("runs/run/a.jsonl")
	check := func(when string) {
		t.Helper()
		r := w.store.Run("run")
		want := LeftOut{Points: 50, Metadata: 21, Marks: wideNotes - int64(r.Marks), Segments: 5}
		if diff := cmp.Diff(want, r.LeftOut); diff != "" {
			t.Errorf("%s: %s", when, diff)
		}
		if len(r.Curves) != MostNames || r.Segments != MostSegments || r.Events != int64(MostSegments+5+MostNames+50+MostSeries+20+1+wideNotes) {
			t.Errorf("%s: %d curves, %d segments, %d events", when, len(r.Curves), r.Segments, r.Events)
		}
		if r.Marks < 10 || r.Marks > MostText/(200<<10)+1 || r.Failure != "at last" {
			t.Errorf("%s: %d annotations, the newest failure is %q", when, r.Marks, r.Failure)
		}
		readings, _, err := w.store.Read(r, []string{"name-7", fmt.Sprint("name-", MostNames)}, Query{})
		if err != nil {
			t.Fatal(err)
		}
		if readings[1] != nil || len(readings[0].Points) != MostSeries+22 || len(readings[0].Series) != MostSeries {
			t.Errorf("%s: %d points, %d series", when, len(readings[0].Points), len(readings[0].Series))
		}
		if last := readings[0].Points[MostSeries+21]; readings[0].Series[last.Series] != `{"i":3}` {
			t.Errorf("%s: the last point has %s", when, readings[0].Series[last.Series])
		}
	}
	check("read")
	before := w.store.Run("run")
	w.reopen()
	if diff := cmp.Diff(before, w.store.Run("run"), cmpopts.IgnoreUnexported(Run{}), cmp.AllowUnexported(Digest{})); diff != "" {
		t.Errorf("after it was stored: %s", diff)
	}
	check("stored")
	w.anew(0)
	more, err := metrics.NewOpen("run", "", "")
	if err != nil {
		t.Fatal(err)
	}
	w.append("runs/run/a.jsonl", more.Append(nil))
	w.update("runs/run/a.jsonl")
	if got := w.store.Run("run"); got.LeftOut.Segments != 6 || got.Status != metrics.StatusRunning {
		t.Errorf("one process more: %+v, %s", got.LeftOut, got.Status)
	}
}

func TestListsKnowTheShorterMetadata(t *testing.T) {
	long := strings.Repeat("x", MostMetadata)
	for name, c := range map[string]struct{ given, want string }{
		"short":           {`{"b":1,"a":2}`, `{"b":1,"a":2}`},
		"sources":         {`{"b":1,"sources":[1],"a":2}`, `{"b":1,"a":2}`},
		"a long value":    {`{"b":1,"long":"` + long + `","a":{"c":2}}`, `{"b":1,"a":{"c":2}}`},
		"nothing is left": {`{"long":"` + long + `"}`, `{}`},
		"the longest of two": {`{"more":"` + long[:MostMetadata/2] + `x","less":"` + long[:MostMetadata/2-5] + `"}`,
			`{"less":"` + long[:MostMetadata/2-5] + `"}`},
	} {
		if got := listed(metrics.Metadata(c.given)); string(got) != c.want {
			t.Errorf("%s: %.100s", name, got)
		}
	}
}
