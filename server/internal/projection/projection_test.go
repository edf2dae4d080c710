package projection

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/foldlog/foldlog/metrics"
)

// world is a root with a store over it.
type world struct {
	t         *testing.T
	root, dir string
	store     *Store
	most      int // summaries in memory, of a stream, if not 0
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, root: t.TempDir(), dir: t.TempDir()}
	w.open()
	t.Cleanup(func() { w.store.Close() })
	return w
}

func (w *world) open() {
	w.t.Helper()
	store, err := Open(Options{Dir: w.dir, Open: func(path string) (*os.File, error) {
		return os.Open(filepath.Join(w.root, filepath.FromSlash(path)))
	}})
	if err != nil {
		w.t.Fatal(err)
	}
	if w.store = store; w.most > 0 {
		store.mostSummaries = w.most
	}
}

func (w *world) reopen() {
	w.t.Helper()
	if err := w.store.Close(); err != nil {
		w.t.Fatal(err)
	}
	w.open()
}

// anew checks how often a stream was read from its beginning again.
func (w *world) anew(want int64) {
	w.t.Helper()
	if got := w.store.Anew(); got != want {
		w.t.Errorf("read anew %d times, want %d", got, want)
	}
}

func (w *world) append(path string, b []byte) {
	w.t.Helper()
	full := filepath.Join(w.root, filepath.FromSlash(path))
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		w.t.Fatal(err)
	}
	f, err := os.OpenFile(full, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := f.Write(b); err != nil {
		w.t.Fatal(err)
	}
	f.Close()
}

func (w *world) update(path string) {
	w.t.Helper()
	for more := true; more; {
		var err error
		if more, err = w.store.Update(path); err != nil {
			w.t.Fatal(err)
		}
	}
}

// fold is what package metrics makes of the whole lines of a file.
func fold(t *testing.T, b []byte) *metrics.Fold {
	t.Helper()
	f := &metrics.Fold{}
	err := metrics.ReadStream(bytes.NewReader(b), func(it *metrics.Item) {
		if it.Kind == metrics.ItemEvent {
			f.Apply(&it.Event)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// gen makes streams that hold everything there can be.
type gen struct {
	*rand.Rand
	ts   int64
	step int64
}

func (g *gen) lines(n int, opened bool) []byte {
	var b []byte
	for i := range n {
		g.ts += int64(g.IntN(50))
		var e metrics.Event
		switch k := g.IntN(1000); {
		case i == 0 && !opened || k == 0:
			e, _ = metrics.NewOpen("run", "a run", metrics.Meta("seed", fmt.Sprint(g.IntN(3))))
			g.step -= int64(g.IntN(200))
		case k == 1:
			e, _ = metrics.Failed("no more").Event(g.step)
		case k == 2:
			e = metrics.NewDone("run")
		case k == 3:
			e, _ = metrics.Checkpoint("/ckpt", 0.5).Event(g.step)
		case k == 4:
			b = append(b, "{\"ts_ms\":1,\"st{\"ts_ms\":3,\"kind\":\"done\",\"slug\":\"run\"}\n"...)
			continue
		case k == 5:
			b = append(b, "no event\n\n"...)
			continue
		default:
			name := [...]string{"loss", "rate", "wild"}[g.IntN(3)]
			v := metrics.Float(g.NormFloat64())
			if g.IntN(20) == 0 {
				v = metrics.Float([...]float64{math.NaN(), math.Inf(1), math.Inf(-1)}[g.IntN(3)])
			}
			step := g.step
			if name == "wild" {
				step = int64(g.Uint64())
			}
			meta := metrics.Meta("split", [...]string{"train", "eval"}[g.IntN(2)])
			if name == "rate" {
				meta = metrics.Meta("stage", fmt.Sprint(i/5000))
			}
			e, _ = metrics.NewMetric(step, name, v, meta)
			g.step += int64(g.IntN(3))
		}
		e.TSMS = g.ts
		b = e.Append(b)
	}
	return b
}

var queries = map[string]Query{
	"everything":      {},
	"one series":      {Where: map[string]string{"split": "eval"}},
	"no series":       {Where: map[string]string{"split": "nothing"}},
	"a range of step": {Ranged: true, From: 500, To: 2_000},
	"a range of time": {Ranged: true, Axis: metrics.ByTime, From: 30_000, To: 90_000},
	"the newest only": {NewestOnly: true},
	"all at once":     {NewestOnly: true, Ranged: true, From: 100, To: 3_000, Where: map[string]string{"split": "train"}},
}

// compare holds the store against the fold.
func (w *world) compare(want *metrics.Fold) {
	w.t.Helper()
	run := w.store.Run("run")
	if run == nil {
		w.t.Fatal("no run")
	}
	if run.Events != want.Events || run.Status != want.Status || run.Segments != len(want.Segments) || run.Metadata != want.Metadata {
		w.t.Fatalf("run is %+v, want %+v", run.Digest, want.Outline)
	}
	outlines, err := w.store.Outlines(run)
	if err != nil {
		w.t.Fatal(err)
	}
	if diff := cmp.Diff(want.Outline, outlines[0].Outline, cmpopts.EquateEmpty()); diff != "" {
		w.t.Fatal(diff)
	}
	for _, c := range want.Curves() {
		for name, q := range queries {
			w.compareCurve(run, c, name, q)
		}
	}
}

func (w *world) read(run *Run, name string, q Query) (*Reading, error) {
	list, _, err := w.store.Read(run, []string{"nothing", name}, q)
	if err != nil {
		return nil, err
	}
	return list[1], nil
}

func (w *world) compareCurve(run *Run, c *metrics.Curve, name string, q Query) {
	w.t.Helper()
	full := c.Read(metrics.Query{Where: q.Where, Ranged: q.Ranged, Axis: q.Axis, From: q.From, To: q.To, NewestOnly: q.NewestOnly})
	got, err := w.read(run, c.Name, q)
	if err != nil {
		w.t.Fatal(err)
	}
	if diff := cmp.Diff(readingOf(got), full, cmpopts.EquateNaNs(), cmpopts.EquateEmpty()); diff != "" {
		w.t.Fatalf("%s, %s: %s", c.Name, name, diff)
	}
	for _, n := range []int{1, 20, 100, 5000} {
		q.Points = n
		sampled, err := w.read(run, c.Name, q)
		if err != nil {
			w.t.Fatal(err)
		}
		checkSample(w.t, got, sampled, max(n, metrics.MinPoints))
	}
}

func readingOf(r *Reading) metrics.Reading {
	out := metrics.Reading{Total: int(r.Total), Sampled: r.Sampled, Older: r.Older}
	for _, p := range r.Points {
		out.Steps, out.Times = append(out.Steps, p.Step), append(out.Times, p.Time)
		out.Values, out.Segments = append(out.Values, p.Value), append(out.Segments, p.Segment)
	}
	return out
}

// checkSample wants the ends, the extremes and a non-finite mark of all points
// among the sample, in their order, and nothing else.
func checkSample(t *testing.T, all, sample *Reading, most int) {
	t.Helper()
	if sample.Total != all.Total || len(sample.Points) > max(most, 0) && sample.Sampled {
		t.Fatalf("%d of %d points, at most %d", len(sample.Points), sample.Total, most)
	}
	if len(all.Points) == 0 {
		return
	}
	same := func(a, b Point) bool {
		return a.Step == b.Step && a.Time == b.Time && a.Series == b.Series && a.Segment == b.Segment &&
			math.Float64bits(a.Value) == math.Float64bits(b.Value)
	}
	at := 0
	for i, p := range sample.Points {
		for at < len(all.Points) && !same(all.Points[at], p) {
			at++
		}
		if at == len(all.Points) {
			t.Fatalf("point %d, %+v, is not among all, or out of order", i, p)
		}
		if sample.Older[i] != all.Older[at] {
			t.Fatalf("point %d is older: %v", i, sample.Older[i])
		}
	}
	type sums struct {
		low, high float64
		odd       bool
	}
	sum := func(r *Reading) (s sums) {
		s = sums{math.Inf(1), math.Inf(-1), false}
		for _, p := range r.Points {
			if !p.finite() {
				s.odd = true
				continue
			}
			s.low, s.high = min(s.low, p.Value), max(s.high, p.Value)
		}
		return s
	}
	if sum(all) != sum(sample) || !same(all.Points[0], sample.Points[0]) || !same(all.Points[len(all.Points)-1], sample.Points[len(sample.Points)-1]) {
		t.Fatalf("ends or extremes are missing: %+v of %+v", sum(sample), sum(all))
	}
}

func TestAProjectionIsWhatTheFoldIs(t *testing.T) {
	for seed := range uint64(2) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newWorld(t)
			g := &gen{Rand: rand.New(rand.NewPCG(seed, 1))}
			var all []byte
			const path = "runs/run/0123456789abcdef.jsonl"
			for round := range 4 {
				lines := g.lines(1+g.IntN(6000), round > 0)
				cut := g.IntN(len(lines))
				for _, piece := range [][]byte{lines[:cut], lines[cut:]} {
					all = append(all, piece...)
					w.append(path, piece)
					w.update(path)
				}
				if round%2 == 1 {
					w.reopen()
					w.update(path)
				}
				w.compare(fold(t, all))
			}
			w.anew(0)
		})
	}
}

// TestALongStreamIsReadFromFewSummaries has memory for so few that each stands for very
// many points.
func TestALongStreamIsReadFromFewSummaries(t *testing.T) {
	const path, most = "run.jsonl", 300
	w := newWorld(t)
	w.most = most
	w.reopen()
	g := &gen{Rand: rand.New(rand.NewPCG(3, 4))}
	var all []byte
	for round := range 6 {
		lines := g.lines(15_000, round > 0)
		all = append(all, lines...)
		w.append(path, lines)
		w.update(path)
	}
	want := fold(t, all)
	for _, again := range []bool{false, true} {
		if again {
			w.reopen()
			w.update(path)
		}
		w.compare(want)
		st := w.store.stream(path).state
		if len(all) < 8*blockSource || st.stride < 4*chunkPoints || st.summaries > 2*most {
			t.Errorf("of %d bytes %d summaries of up to %d points", len(all), st.summaries, st.stride)
		}
	}
	w.anew(0)
}

// TestSamplesOfALongStreamAreEven looks at the gaps between the points that are kept.
func TestSamplesOfALongStreamAreEven(t *testing.T) {
	const path, points = "run.jsonl", 300_000
	w := newWorld(t)
	w.most = 1200
	w.reopen()
	open, _ := metrics.NewOpen("run", "", "")
	lines := open.Append(nil)
	for i := range int64(points) {
		e, _ := metrics.NewMetric(i, "loss", metrics.Float(float64(i%1000)), "")
		lines = e.Append(lines)
	}
	w.append(path, lines)
	w.update(path)
	if st := w.store.stream(path).state; st.stride < 4*chunkPoints {
		t.Fatalf("%d summaries of up to %d points", st.summaries, st.stride)
	}
	for _, q := range []Query{{Points: 300}, {Points: 300, Ranged: true, From: 100_001, To: 199_999}, {Points: 300, Ranged: true, From: 1001, To: 11_000}} {
		got, err := w.read(w.store.Run("run"), "loss", q)
		if err != nil {
			t.Fatal(err)
		}
		from, to := int64(0), int64(points-1)
		if q.Ranged {
			from, to = q.From, q.To
		}
		if got.Total != to-from+1 || !got.Sampled {
			t.Errorf("%+v: %d points", q, got.Total)
		}
		for i := 1; i < len(got.Points); i++ {
			if gap := got.Points[i].Step - got.Points[i-1].Step; gap > 4*(to-from)/100 {
				t.Errorf("%+v: a gap of %d steps", q, gap)
			}
		}
	}
}

func TestAStoreThatRestsIsLoadedAgain(t *testing.T) {
	w := newWorld(t)
	g := &gen{Rand: rand.New(rand.NewPCG(1, 2))}
	lines := g.lines(30_000, false)
	w.append("a.jsonl", lines)
	w.update("a.jsonl")
	if err := w.store.flush(0); err != nil {
		t.Fatal(err)
	}
	if w.store.streams["a.jsonl"].state != nil {
		t.Error("the state is still there")
	}
	if _, _, err := w.store.read(w.store.Run("run"), []string{"loss"}, Query{}); err != nil {
		t.Errorf("it is not loaded but made anew: %v", err)
	}
	w.compare(fold(t, lines))
	w.anew(0)
}

func TestAFileThatWasRewrittenIsReadAnew(t *testing.T) {
	g := &gen{Rand: rand.New(rand.NewPCG(3, 2))}
	lines, other := g.lines(12_000, false), g.lines(12_000, false)
	short := lines[:bytes.LastIndexByte(lines[:len(lines)/2], '\n')+1]
	for name, next := range map[string][]byte{"truncated": short, "replaced": other, "replaced by a longer one": append(other, lines...)} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.append("a.jsonl", lines)
			w.update("a.jsonl")
			w.reopen()
			if err := os.WriteFile(filepath.Join(w.root, "a.jsonl"), next, 0o644); err != nil {
				t.Fatal(err)
			}
			w.update("a.jsonl")
			w.compare(fold(t, next))
			w.anew(1)
		})
	}
}

func TestADamagedProjectionIsMadeAnew(t *testing.T) {
	g := &gen{Rand: rand.New(rand.NewPCG(4, 2))}
	lines := g.lines(40_000, false)
	damage := map[string]func(t *testing.T, w *world){
		"points gone": func(t *testing.T, w *world) {
			if err := os.RemoveAll(filepath.Join(w.store.dir, "points")); err != nil {
				t.Fatal(err)
			}
		},
		"points overwritten": func(t *testing.T, w *world) { scribble(t, w.store.stream("a.jsonl").pointsPath()) },
		"catalog overwritten": func(t *testing.T, w *world) {
			w.store.Close()
			scribble(t, filepath.Join(w.store.dir, "catalog"))
			w.open()
		},
		"everything gone": func(t *testing.T, w *world) {
			w.store.Close()
			if err := os.RemoveAll(w.dir); err != nil {
				t.Fatal(err)
			}
			w.open()
		},
		"another version": func(t *testing.T, w *world) {
			w.store.Close()
			if err := os.Rename(w.store.dir, filepath.Join(w.dir, "projection-v0")); err != nil {
				t.Fatal(err)
			}
			w.open()
			if _, err := os.Stat(filepath.Join(w.dir, "projection-v0")); err == nil {
				t.Error("the other version is still there")
			}
		},
	}
	for name, break_ := range damage {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.append("a.jsonl", lines)
			w.update("a.jsonl")
			w.reopen()
			break_(t, w)
			w.update("a.jsonl")
			w.compare(fold(t, lines))
		})
	}
}

func scribble(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := len(b) / 3; i < len(b); i += len(b)/7 + 1 {
		b[i] ^= 0x55
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestStreamsOfASlugAreOneRun(t *testing.T) {
	w := newWorld(t)
	event := func(ts int64, e metrics.Event) []byte { e.TSMS = ts; return e.Append(nil) }
	open := func(ts int64, note string) []byte {
		e, _ := metrics.NewOpen("run", note, metrics.Meta("note", note))
		return event(ts, e)
	}
	point := func(ts, step int64, v float64) []byte {
		e, _ := metrics.NewMetric(step, "loss", metrics.Float(v), "")
		return event(ts, e)
	}
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	first := join(open(1, "first"), point(2, 0, 3), point(3, 1, 2), point(4, 2, 1))
	w.append("runs/run/a.jsonl", first)
	w.append("copies/loose.jsonl", first[:len(first)-20])
	w.append("elsewhere/b.jsonl", join(open(10, "second"), point(11, 1, 9), event(12, metrics.NewDone("run"))))
	for _, path := range []string{"runs/run/a.jsonl", "copies/loose.jsonl", "elsewhere/b.jsonl"} {
		w.update(path)
	}
	run := w.store.Run("run")
	if len(run.Streams) != 2 || run.Description != "second" || run.Status != metrics.StatusDone || run.Segments != 2 || run.Metrics != 4 {
		t.Fatalf("%+v", run)
	}
	r, err := w.read(run, "loss", Query{})
	if err != nil {
		t.Fatal(err)
	}
	want := metrics.Reading{Steps: []int64{0, 1, 2, 1}, Times: []int64{2, 3, 4, 11}, Values: []float64{3, 2, 1, 9},
		Segments: []int32{0, 0, 0, 1}, Older: []bool{false, true, true, false}, Total: 4}
	if diff := cmp.Diff(want, readingOf(r)); diff != "" {
		t.Error(diff)
	}
	w.append("runs/run/a.jsonl", open(20, "third"))
	w.update("runs/run/a.jsonl")
	if run := w.store.Run("run"); run.Status != metrics.StatusRunning || run.Description != "third" {
		t.Errorf("after a new open: %+v", run.Digest)
	}
	for _, path := range []string{"runs/run/a.jsonl", "copies/loose.jsonl", "elsewhere/b.jsonl"} {
		w.store.Remove(path)
	}
	if w.store.Run("run") != nil || len(w.store.Runs()) != 0 {
		t.Error("a run without streams is still there")
	}
}

func TestEndlessLinesTakeNoMemory(t *testing.T) {
	w := newWorld(t)
	g := &gen{Rand: rand.New(rand.NewPCG(5, 2))}
	lines := g.lines(100, false)
	w.append("a.jsonl", lines)
	for range 5 {
		w.append("a.jsonl", bytes.Repeat([]byte("x"), 5<<20))
		w.update("a.jsonl")
	}
	if got := w.store.Run("run").Bytes; got != int64(len(lines)) {
		t.Errorf("%d bytes of whole lines, want %d", got, len(lines))
	}
	more := append([]byte("\n"), g.lines(100, true)...)
	w.append("a.jsonl", more)
	w.update("a.jsonl")
	want := fold(t, append(bytes.Clone(lines), more[1:]...))
	w.compare(want)
	if run := w.store.Run("run"); run.Bad == 0 {
		t.Error("the long line is not counted")
	}
}

func TestACatalogIsCompacted(t *testing.T) {
	w := newWorld(t)
	g := &gen{Rand: rand.New(rand.NewPCG(6, 2))}
	lines := g.lines(20_000, false)
	w.append("a.jsonl", lines)
	w.append("b.jsonl", bytes.ReplaceAll(lines, []byte(`"run"`), []byte(`"other"`)))
	for range 5 {
		w.update("a.jsonl")
		w.update("b.jsonl")
		for _, s := range w.store.streams {
			s.dirty = true
		}
		if err := w.store.flush(0); err != nil {
			t.Fatal(err)
		}
		os.Chtimes(filepath.Join(w.root, "a.jsonl"), time.Time{}, time.Now())
	}
	w.store.Remove("b.jsonl")
	before := w.store.catalog.end
	if err := w.store.compact(); err != nil {
		t.Fatal(err)
	}
	if w.store.catalog.end >= before {
		t.Errorf("%d bytes after %d", w.store.catalog.end, before)
	}
	w.compare(fold(t, lines))
	w.reopen()
	w.compare(fold(t, lines))
	w.anew(0)
}
