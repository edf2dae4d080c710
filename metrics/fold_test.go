package metrics

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func foldOf(t *testing.T, lines ...string) *Fold {
	t.Helper()
	var f Fold
	err := ReadStream(strings.NewReader(strings.Join(lines, "\n")+"\n"), func(it *Item) {
		if it.Kind != ItemEvent {
			t.Fatalf("line %d: %v", it.Number, it.Err)
		}
		f.Apply(&it.Event)
	})
	if err != nil {
		t.Fatal(err)
	}
	return &f
}

// Lines of a run, all at the same time but for what a test says.
func openLine(meta string) string {
	return `{"ts_ms":1,"kind":"open","slug":"r","description":"d","metadata":` + meta + `}`
}
func metricLine(step int, name, value string) string {
	return `{"ts_ms":2,"step":` + itoa(int64(step)) + `,"kind":"metric","name":"` + name + `","value":` + value + `,"metadata":{}}`
}
func noteLine(step int, n Note) string {
	e, err := n.Event(int64(step))
	if err != nil {
		panic(err)
	}
	e.TSMS = 3
	return strings.TrimSuffix(string(e.Append(nil)), "\n")
}

const doneLine = `{"ts_ms":9,"kind":"done","slug":"r"}`

func TestStatusIsWhatTheStreamTells(t *testing.T) {
	open, failed := openLine("{}"), noteLine(1, Failed("boom"))
	interrupted := noteLine(1, Interrupted("SIGTERM", 1))
	for name, c := range map[string]struct {
		lines       []string
		want        Status
		interrupted string
	}{
		"opened":                        {[]string{open}, StatusRunning, ""},
		"killed":                        {[]string{open, metricLine(1, "l", "1")}, StatusRunning, ""},
		"done":                          {[]string{open, doneLine}, StatusDone, ""},
		"failed":                        {[]string{open, failed, doneLine}, StatusFailed, ""},
		"failure without done":          {[]string{open, failed}, StatusRunning, ""},
		"failure and then a metric":     {[]string{open, failed, metricLine(1, "l", "1"), doneLine}, StatusDone, ""},
		"interrupted":                   {[]string{open, interrupted}, StatusRunning, "SIGTERM"},
		"resumed after an interruption": {[]string{open, interrupted, open}, StatusRunning, ""},
		"opened again after done":       {[]string{open, doneLine, open}, StatusRunning, ""},
		"failed before, done now":       {[]string{open, failed, doneLine, open, doneLine}, StatusDone, ""},
		"failure of the segment before": {[]string{open, failed, open, doneLine}, StatusDone, ""},
	} {
		f := foldOf(t, c.lines...)
		if f.Status != c.want || f.Interrupted() != c.interrupted {
			t.Errorf("%s: %s, interrupted %q", name, f.Status, f.Interrupted())
		}
	}
}

func TestNewestOpenIsTheIdentityAndDifferencesAreKept(t *testing.T) {
	f := foldOf(t, openLine(`{"run":{"steps":8},"device":"cpu"}`), noteLine(8, Checkpoint("/c/8", 0.5)), noteLine(8, Stage("easy", "hard")),
		openLine(`{"device":"cpu","run":{"steps":16}}`), noteLine(8, Resumed("/c/8", nil)), metricLine(9, "loss", "1"), noteLine(9, Failed("boom")), doneLine)
	want := []Segment{
		{Opened: true, FirstTSMS: 1, LastTSMS: 3},
		{Opened: true, FirstTSMS: 1, LastTSMS: 9, FirstStep: 9, LastStep: 9, Metrics: 1, Resumed: "/c/8", Done: true, Failed: true,
			Changes: []Change{{"run/steps", "8", "16"}}},
	}
	if diff := cmp.Diff(want, f.Segments); diff != "" {
		t.Errorf("segments: -want +got:\n%s", diff)
	}
	if f.Slug != "r" || f.Metadata.Text("device") != "cpu" || f.Stage() != "hard" || f.Status != StatusFailed {
		t.Errorf("%+v", f)
	}
	for class, n := range map[NoteClass]int{NoteCheckpoint: 1, NoteStage: 1, NoteResumed: 1, NoteFailed: 1, NoteOther: 0} {
		if got := f.MarksOf(class); len(got) != n {
			t.Errorf("%s: %v", class, got)
		}
	}
}

// C4: killed at 212, resumed at 200.
func TestRepeatedStepsKeepBothCopiesTheOlderDimmed(t *testing.T) {
	lines := []string{openLine("{}")}
	for step := 1; step <= 212; step++ {
		lines = append(lines, metricLine(step, "loss", itoa(int64(step))))
	}
	lines = append(lines, openLine("{}"), noteLine(200, Resumed("/c/200", nil)))
	for step := 201; step <= 220; step++ {
		lines = append(lines, metricLine(step, "loss", itoa(int64(1000+step))))
	}
	f := foldOf(t, lines...)
	c := f.Curve("loss")
	r := c.Read(Query{})
	for i, step := range r.Steps {
		if want := r.Segments[i] == 0 && step >= 201; r.Older[i] != want {
			t.Errorf("point %d at step %d of segment %d: older %v", i, step, r.Segments[i], r.Older[i])
		}
	}
	if r.Total != 232 || r.Sampled {
		t.Errorf("%d points", r.Total)
	}
	newest := c.Read(Query{NewestOnly: true})
	for i, step := range newest.Steps {
		if step != int64(i+1) {
			t.Fatalf("step %d at %d: the axis has a gap or a copy", step, i)
		}
	}
	if newest.Len() != 220 {
		t.Errorf("%d newest points", newest.Len())
	}
}

func TestCurveJoinsSeriesInStreamOrderAndFilters(t *testing.T) {
	point := func(step int, meta string) string {
		return strings.Replace(metricLine(step, "loss", itoa(int64(step))), `"metadata":{}`, `"metadata":`+meta, 1)
	}
	f := foldOf(t, openLine("{}"), point(1, `{"stage":"easy","split":"a"}`), point(2, `{"split":"b","stage":"easy"}`),
		point(3, `{"split": "a", "stage": "easy"}`), point(4, `{"stage":"hard"}`))
	c := f.Curve("loss")
	if len(c.Series) != 3 || c.Series[0].Stats.Count != 2 || c.Series[0].Metadata != `{"split":"a","stage":"easy"}` {
		t.Errorf("series: %+v", c.Series[0])
	}
	for want, where := range map[string]map[string]string{
		"1 2 3 4": nil, "1 3": {"split": "a"}, "1 2 3": {"stage": "easy"}, "2": {"stage": "easy", "split": "b"}, "": {"no": ""},
	} {
		if got := stepsOf(c.Read(Query{Where: where})); got != want {
			t.Errorf("%v: %s", where, got)
		}
	}
	for want, series := range map[string][]int{"1 3 4": {0, 2}, "2": {1}, "": {}} {
		if got := stepsOf(c.Read(Query{Series: series})); got != want {
			t.Errorf("series %v: %s", series, got)
		}
	}
	if got := stepsOf(c.Read(Query{Ranged: true, From: 2, To: 3})); got != "2 3" {
		t.Errorf("by step: %s", got)
	}
	if got := stepsOf(c.Read(Query{Ranged: true, Axis: ByTime, From: 3, To: 9})); got != "" {
		t.Errorf("by time: %s", got)
	}
}

func stepsOf(r Reading) string {
	var parts []string
	for _, s := range r.Steps {
		parts = append(parts, itoa(s))
	}
	return strings.Join(parts, " ")
}

// C8: NaN every fifth point, all NaN, first point infinite, the largest floats.
func TestNonFinitePointsAreKeptAndMarked(t *testing.T) {
	for name, value := range map[string]func(i int) float64{
		"every fifth is NaN": func(i int) float64 {
			if i%5 == 0 {
				return math.NaN()
			}
			return float64(i)
		},
		"all are NaN": func(int) float64 { return math.NaN() },
		"the first is infinite": func(i int) float64 {
			if i == 0 {
				return math.Inf(1)
			}
			return float64(i)
		},
		"the largest there are": func(i int) float64 { return math.Copysign(1e308, float64(i%2)-0.5) },
	} {
		var f Fold
		odd := int64(0)
		for i := range 1000 {
			v := value(i)
			if v-v != 0 {
				odd++
			}
			f.Apply(&Event{Kind: KindMetric, Step: int64(i), Name: "l", Value: Float(v)})
		}
		c := f.Curve("l")
		if c.Stats.NonFinite != odd || c.Stats.Min-c.Stats.Min != 0 || c.Stats.Max-c.Stats.Max != 0 {
			t.Errorf("%s: %+v", name, c.Stats)
		}
		r := c.Read(Query{Points: 50})
		marks := 0
		for _, v := range r.Values {
			if v-v != 0 {
				marks++
			}
		}
		if r.Len() > 50 || !r.Sampled || (marks > 0) != (odd > 0) {
			t.Errorf("%s: %d points, %d marks", name, r.Len(), marks)
		}
	}
}

// C12 and C15: any spacing of steps, also none.
func TestSamplingKeepsTheEnvelope(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(-1e6, 1e6), 1, 400).Draw(t, "values")
		step := rapid.Int64Range(-2, 1000).Draw(t, "stride")
		n := rapid.IntRange(1, 120).Draw(t, "points")
		var f Fold
		for i, v := range values {
			f.Apply(&Event{Kind: KindMetric, Step: int64(i) * step, Name: "l", Value: Float(v)})
		}
		c := f.Curve("l")
		r := c.Read(Query{Points: n})
		if r.Len() > max(n, MinPoints) || r.Total != len(values) || r.Sampled != (r.Len() < r.Total) {
			t.Fatalf("%d points of %d, sampled %v", r.Len(), r.Total, r.Sampled)
		}
		if r.Values[0] != values[0] || r.Values[r.Len()-1] != values[len(values)-1] {
			t.Fatal("an end is missing")
		}
		if slices.Max(r.Values) != slices.Max(values) || slices.Min(r.Values) != slices.Min(values) {
			t.Fatal("an extreme is missing")
		}
		if c.Stats.Max != slices.Max(values) || c.Stats.Min != slices.Min(values) || c.Stats.Last.Float64() != values[len(values)-1] {
			t.Fatalf("stats %+v", c.Stats)
		}
	})
}

func TestFoldHoldsForAnySequence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var f Fold
		opens, notes, status := 0, 0, StatusRunning
		points := map[string][]int64{}
		failed := false
		n := rapid.IntRange(0, 60).Draw(t, "events")
		for i := range n {
			e := Event{TSMS: int64(i), Step: rapid.Int64().Draw(t, "step")}
			wasFailed := failed
			failed = false
			switch rapid.SampledFrom([]string{"open", "metric", "metric", "metric", "note", "fail", "done"}).Draw(t, "kind") {
			case "open":
				e.Kind, e.Slug = KindOpen, "r"
				opens++
				status = StatusRunning
			case "metric":
				e.Kind, e.Name = KindMetric, rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name")
				e.Metadata = rapid.SampledFrom([]Metadata{"", "{}", `{"x":1,"y":2}`, `{"y":2,"x":1}`}).Draw(t, "metadata")
				points[e.Name] = append(points[e.Name], e.Step)
			case "note":
				e.Kind, e.Text = KindAnnotation, "hello"
				notes++
			case "fail":
				e.Kind, e.Text = KindAnnotation, "failed: x"
				notes++
				failed = true
			case "done":
				e.Kind, e.Slug = KindDone, "r"
				if status = StatusDone; wasFailed {
					status = StatusFailed
				}
			}
			f.Apply(&e)
		}
		if f.Status != status || len(f.Marks) != notes || f.Events != int64(n) {
			t.Fatalf("status %s not %s, %d marks not %d", f.Status, status, len(f.Marks), notes)
		}
		if got := len(f.Segments); got != opens && got != opens+1 {
			t.Fatalf("%d segments of %d opens", got, opens)
		}
		for name, steps := range points {
			checkCurve(t, f.Curve(name), steps)
		}
	})
}

func checkCurve(t *rapid.T, c *Curve, steps []int64) {
	r := c.Read(Query{})
	if !slices.Equal(r.Steps, steps) {
		t.Fatalf("%s: points dropped, doubled or moved", c.Name)
	}
	if len(c.Series) > 2 {
		t.Fatalf("%d series of two metadata", len(c.Series))
	}
	first := map[int32]int64{}
	for i, seg := range r.Segments {
		if _, ok := first[seg]; !ok {
			first[seg] = r.Steps[i]
		}
	}
	newest := 0
	for i, seg := range r.Segments {
		older := false
		for later, step := range first {
			older = older || later > seg && r.Steps[i] >= step
		}
		if r.Older[i] != older {
			t.Fatalf("point %d: older is %v", i, r.Older[i])
		}
		if !older {
			newest++
		}
	}
	if n := c.Read(Query{NewestOnly: true}).Len(); n != newest {
		t.Fatalf("%d newest points, not %d", n, newest)
	}
}
