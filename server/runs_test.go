package server

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/metrics"
	"github.com/foldlog/foldlog/server/internal/wire"
)

// population writes runs that differ in everything a list can look at.
func population(s *site, n int) {
	for i := range n {
		slug := fmt.Sprintf("run-%03d", i)
		text := openLine(slug, fmt.Sprintf(`{"knobs":{"lr":%g},"name":"n%d"}`, float64(i%7)/10, i%3))
		for p := range i % 5 {
			text += pointLine(p)
		}
		if i%4 == 0 {
			text += fmt.Sprintf(`{"ts_ms":%d,"kind":"done","slug":%q}`+"\n", 1_790_000_100_000+i, slug)
		}
		s.write("runs/"+slug+"/0123456789abcdef.jsonl", text)
	}
	s.find.scan()
	s.eventually("all runs are there", func() bool { return len(s.store.Runs()) == n && s.index.pending() == 0 })
}

func (s *site) slugs(query string) (list []string, total int) {
	s.t.Helper()
	next := ""
	for {
		var page wire.RunPage
		s.get("/api/v1/runs?limit=7&"+query+"&cursor="+url.QueryEscape(next), &page)
		for _, it := range page.Items {
			list = append(list, it.Slug)
		}
		total = page.Total
		if next = page.Next; next == "" {
			return list, total
		}
	}
}

func TestListsFilterSortAndPage(t *testing.T) {
	s := newSite(t, Options{})
	population(s, 40)
	s.post("/api/v1/runs/run-005/tags", map[string]any{"add": []string{"best", "a"}}, nil)
	s.post("/api/v1/runs/run-006/tags", map[string]any{"add": []string{"best"}}, nil)
	cases := []struct {
		query string
		total int
		first string
	}{
		{"sort=slug", 40, "run-000"},
		{"sort=-slug", 40, "run-039"},
		{"", 40, "run-036"},
		{"status=done", 10, "run-036"},
		{"status=done&status=running&sort=slug", 40, "run-000"},
		{"q=RUN-01&sort=slug", 10, "run-010"},
		{"q=%5Erun-0[01]5%24&sort=slug", 2, "run-005"},
		{"q=%5Ebest%24&sort=slug", 2, "run-005"},
		{"tag=best&sort=slug", 2, "run-005"},
		{"tag=best&tag=a", 1, "run-005"},
		{"where=knobs/lr%3D0.3&sort=slug", 6, "run-003"},
		{"where=knobs/lr%3E%3D0.5&where=name%3Dn1&sort=slug", 3, "run-013"},
		{"where=name!%3Dn1&sort=slug", 27, "run-000"},
		{"where=metric:loss:count%3E3&sort=slug", 8, "run-004"},
		{"where=metric:loss&sort=metric:loss", 32, "run-004"},
		{"where=slug~02&sort=slug", 11, "run-002"},
		{"sort=-metric:loss:min", 40, "run-001"},
		{"sort=knobs/lr&where=nothing", 0, ""},
	}
	for _, c := range cases {
		got, total := s.slugs(c.query)
		if total != c.total || len(got) != total {
			t.Errorf("%s: %d runs in pages, %d in all, want %d", c.query, len(got), total, c.total)
			continue
		}
		seen := map[string]bool{}
		for _, slug := range got {
			if seen[slug] {
				t.Errorf("%s: %s comes twice", c.query, slug)
			}
			seen[slug] = true
		}
		if total > 0 && got[0] != c.first {
			t.Errorf("%s begins with %s, want %s", c.query, got[0], c.first)
		}
	}
	for _, query := range []string{"cursor=x", "where=%3D1", "where=a!1", "limit=5000", "limit=-1"} {
		if a := s.do("GET", "/api/v1/runs?"+query, nil); a.status != 400 && a.status != 422 {
			t.Errorf("%s: %d %s", query, a.status, a.body)
		}
	}
	var page wire.RunPage
	s.get("/api/v1/runs?where=slug%3Drun-004&metric=loss&metric=gone&meta=knobs/lr&meta=gone", &page)
	if it := page.Items[0]; string(it.Metadata) != `{"knobs/lr":0.4}` || len(it.Metrics) != 1 || it.Metrics[0].Count != 4 || *it.Metrics[0].Min != 0.25 {
		t.Errorf("%+v", it)
	}
}

func TestARunIsTold(t *testing.T) {
	s := newSite(t, Options{})
	text := openLine("run", `{"knobs":{"lr":0.1},"sources":[{"path":"a.scm","sha256":"00"}]}`) + pointLine(0)
	for _, n := range []metrics.Note{metrics.Stage("easy", "hard"), metrics.Checkpoint("/c", 0.5), metrics.Failed("out of memory")} {
		e, err := n.Event(3)
		if err != nil {
			t.Fatal(err)
		}
		text += string(e.Append(nil))
	}
	text += `{"ts_ms":9,"kind":"done","slug":"run"}` + "\n" + openLine("run", `{"knobs":{"lr":0.2}}`) + pointLine(1) + "no event\n"
	s.write("sub/run.jsonl", text)
	s.hasRun("run", 8)
	var d wire.RunDetail
	s.get("/api/v1/runs/run", &d)
	if d.Status != "running" || len(d.Processes) != 2 || !d.Processes[0].Failed || d.BadLines != 1 || string(d.Open) != `{"knobs":{"lr":0.2}}` {
		t.Errorf("%+v", d)
	}
	want := []wire.RunChange{{Path: "knobs/lr", From: "0.1", To: "0.2"}, {Path: "sources/a.scm", From: "00", To: ""}}
	if diff := cmp.Diff(want, d.Processes[1].Changes); diff != "" {
		t.Error(diff)
	}
	var notes wire.AnnotationPage
	s.get("/api/v1/runs/run/annotations?class=checkpoint&class=failed&limit=1", &notes)
	if notes.Total != 2 || notes.Items[0].Checkpoint != "/c" || notes.Next == "" {
		t.Errorf("%+v", notes)
	}
	s.get("/api/v1/runs/run/annotations?class=checkpoint&class=failed&limit=1&cursor="+notes.Next, &notes)
	if notes.Items[0].Error != "out of memory" || notes.Next != "" {
		t.Errorf("%+v", notes)
	}
	s.get("/api/v1/runs/run/annotations?newest=true&limit=2", &notes)
	if notes.Total != 3 || notes.Items[0].Error != "out of memory" || notes.Items[1].Checkpoint != "/c" || notes.Next == "" {
		t.Errorf("%+v", notes)
	}
	s.get("/api/v1/runs/run/annotations?newest=true&limit=2&cursor="+notes.Next, &notes)
	if len(notes.Items) != 1 || notes.Items[0].To != "hard" || notes.Next != "" {
		t.Errorf("%+v", notes)
	}
	var answer wire.SeriesAnswer
	s.post("/api/v1/series", map[string]any{"runs": []string{"run", "gone"}, "names": []string{"loss", "gone"}}, &answer)
	c := answer.Runs[0].Curves[0]
	if diff := cmp.Diff(wire.Integers{0, 1}, c.Steps); diff != "" || len(answer.Missing) != 1 || len(c.Spans) != 2 || c.Total != 2 || c.Sampled {
		t.Errorf("%s %+v", diff, answer)
	}
	if st := answer.Runs[0].Stages; len(st) != 1 || st[0].Stage != "hard" || st[0].Step != 3 {
		t.Errorf("%+v", st)
	}
	var diff wire.DiffAnswer
	s.write("other.jsonl", openLine("other", `{"knobs":{"lr":0.2,"wd":1}}`))
	s.hasRun("other", 1)
	s.get("/api/v1/diff?run=run&run=other&run=gone", &diff)
	if len(diff.Rows) != 1 || diff.Rows[0].Path != "knobs/wd" || diff.Rows[0].Has[0] || !diff.Rows[0].Has[1] || len(diff.Missing) != 1 {
		t.Errorf("%+v", diff)
	}
}

func TestManyRunsAndNamesComeInOneCallDownsampled(t *testing.T) {
	s := newSite(t, Options{})
	var slugs []string
	for i := range 5 {
		slugs = append(slugs, fmt.Sprintf("r%d", i))
		s.write(slugs[i]+".jsonl", stream(slugs[i], 3000))
	}
	for _, slug := range slugs {
		s.hasRun(slug, 3001)
	}
	var answer wire.SeriesAnswer
	s.post("/api/v1/series", map[string]any{"runs": slugs, "names": []string{"loss"}, "points": 100}, &answer)
	for _, r := range answer.Runs {
		c := r.Curves[0]
		if n := len(c.Steps); n > 100 || n < 50 || !c.Sampled || c.Total != 3000 || c.Steps[0] != 0 || c.Steps[n-1] != 2999 {
			t.Errorf("%s: %d points of %d", r.Slug, n, c.Total)
		}
	}
	from, to := 10, 20
	s.post("/api/v1/series", map[string]any{"runs": slugs[:1], "names": []string{"loss"}, "from": from, "to": to}, &answer)
	if c := answer.Runs[0].Curves[0]; len(c.Steps) != 11 || c.Steps[0] != 10 {
		t.Errorf("%v", c.Steps)
	}
	if a := s.do("POST", "/api/v1/series", map[string]any{"runs": slugs, "names": slugs, "points": 1_000_000}); a.status != 422 {
		t.Errorf("%d", a.status)
	}
}

func TestLabelsAreALogOfTheirOwn(t *testing.T) {
	s := newSite(t, Options{})
	s.write("loose.jsonl", stream("run", 1))
	s.hasRun("run", 2)
	s.post("/api/v1/runs/run/tags", map[string]any{"add": []string{"b", "a", "b"}}, nil)
	s.post("/api/v1/runs/run/tags", map[string]any{"remove": []string{"b"}}, nil)
	s.read(s.do("PUT", "/api/v1/runs/run/note", map[string]string{"note": "first\nsecond <b>"}), nil)
	file := filepath.Join(s.root, "runs", "run", labelsFile)
	b, err := os.ReadFile(file)
	if err != nil || strings.Count(string(b), "\n") != 3 {
		t.Fatalf("%v %s", err, b)
	}
	// A crash leaves a torn line; the projection goes.
	if err := os.WriteFile(file, append(b, `{"ts_ms":1,"kind":"ta`...), 0o644); err != nil {
		t.Fatal(err)
	}
	s.end()
	if err := os.RemoveAll(filepath.Join(s.root, CacheDir)); err != nil {
		t.Fatal(err)
	}
	again := newSite(t, Options{Root: s.root})
	again.hasRun("run", 2)
	again.post("/api/v1/runs/run/tags", map[string]any{"add": []string{"c"}}, nil)
	var d wire.RunDetail
	again.get("/api/v1/runs/run", &d)
	if diff := cmp.Diff([]string{"a", "c"}, d.Tags); diff != "" || d.Note != "first\nsecond <b>" || d.NoteMS == 0 {
		t.Errorf("%s %+v", diff, d)
	}
	for _, tag := range []string{"", " x", "a\nb", strings.Repeat("x", 101)} {
		if a := again.do("POST", "/api/v1/runs/run/tags", map[string]any{"add": []string{tag}}); a.status != 422 {
			t.Errorf("tag %q: %d", tag, a.status)
		}
	}
	if a := again.do("POST", "/api/v1/runs/gone/tags", map[string]any{"add": []string{"x"}}); a.status != 404 {
		t.Errorf("%d", a.status)
	}
}

// TestFilesThatChangeAreFollowed is about what other processes do to files.
func TestFilesThatChangeAreFollowed(t *testing.T) {
	s := newSite(t, Options{})
	text := stream("run", 100)
	half := len(stream("run", 50))
	s.write("deep/er/run.jsonl", text[:half+9])
	s.hasRun("run", 51)
	s.write("deep/er/run.jsonl", text[half+9:])
	s.hasRun("run", 101)
	path := filepath.Join(s.root, "deep", "er", "run.jsonl")
	if err := os.WriteFile(path, []byte(stream("run", 10)), 0o644); err != nil {
		t.Fatal(err)
	}
	s.hasRun("run", 11)
	if err := os.WriteFile(path+".new", []byte(stream("renamed", 5)), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	s.hasRun("renamed", 6)
	if s.store.Run("run") != nil {
		t.Error("the old run is still there")
	}
	if err := os.RemoveAll(filepath.Join(s.root, "deep")); err != nil {
		t.Fatal(err)
	}
	s.eventually("the run is gone", func() bool { return s.store.Run("renamed") == nil })
}

func TestARestartKnowsEverythingAgain(t *testing.T) {
	s := newSite(t, Options{})
	s.write("a.jsonl", stream("a", 20_000))
	s.write("b.jsonl", stream("b", 10))
	s.hasRun("a", 20_001)
	s.hasRun("b", 11)
	s.end()
	s.write("a.jsonl", pointLine(20_000))
	if err := os.Remove(filepath.Join(s.root, "b.jsonl")); err != nil {
		t.Fatal(err)
	}
	again := newSite(t, Options{Root: s.root})
	again.hasRun("a", 20_002)
	again.eventually("b is gone", func() bool { return again.store.Run("b") == nil })
	var answer wire.SeriesAnswer
	again.post("/api/v1/series", map[string]any{"runs": []string{"a"}, "names": []string{"loss"}, "points": 100_000}, &answer)
	if c := answer.Runs[0].Curves[0]; c.Total != 20_001 || c.Sampled {
		t.Errorf("%d points", c.Total)
	}
	if _, err := New(Options{Root: s.root}); err == nil {
		t.Error("two servers have one root")
	}
}

// TestSubscribersGetEachEventOnce reads points from a series, and everything after
// it from the event stream, which breaks off several times.
func TestSubscribersGetEachEventOnce(t *testing.T) {
	s := newSite(t, Options{})
	s.write("run.jsonl", stream("run", 10))
	s.hasRun("run", 11)
	var answer wire.SeriesAnswer
	s.post("/api/v1/series", map[string]any{"runs": []string{"run"}, "names": []string{"loss"}}, &answer)
	got := append(wire.Integers(nil), answer.Runs[0].Curves[0].Steps...)
	ctx, cancel := context.WithTimeout(t.Context(), longEnough)
	defer cancel()
	done := make(chan bool)
	go func() {
		defer close(done)
		for i := 10; i < 400; i++ {
			s.write("run.jsonl", pointLine(i))
			if i%40 == 0 {
				time.Sleep(20 * time.Millisecond)
			}
		}
	}()
	last := answer.Runs[0].Cursor
	for len(got) < 400 {
		n := 0
		s.events(ctx, "/api/v1/runs/run/live?name=loss&cursor=0123456789abcdef:5", last, func(id, kind, data string) bool {
			var p wire.LivePoints
			if kind != "points" {
				t.Fatalf("%s %s", kind, data)
			}
			unmarshal(t, data, &p)
			if p.Cursor != id || len(p.Curves) != 1 {
				t.Fatalf("%s: %+v", id, p)
			}
			got, last = append(got, p.Curves[0].Steps...), id
			n++
			return n == 3 || len(got) >= 400
		})
	}
	<-done
	for i, step := range got {
		if step != int64(i) {
			t.Fatalf("point %d is of step %d", i, step)
		}
	}
}

func TestWatchersAreToldOrSentBack(t *testing.T) {
	s := newSite(t, Options{})
	ctx, cancel := context.WithTimeout(t.Context(), longEnough)
	defer cancel()
	s.write("a.jsonl", stream("a", 1))
	s.hasRun("a", 2)
	last := ""
	s.events(ctx, "/api/v1/live", "elsewhere-7", func(id, kind, _ string) bool {
		last = id
		return kind == "reset"
	})
	s.write("b.jsonl", stream("b", 1))
	s.hasRun("b", 2)
	seen := map[string]bool{}
	s.events(ctx, "/api/v1/live", last, func(id, kind, data string) bool {
		var it wire.RunItem
		unmarshal(t, data, &it)
		seen[it.Slug], last = true, id
		return kind == "run" && it.Slug == "b"
	})
	if err := os.Remove(filepath.Join(s.root, "b.jsonl")); err != nil {
		t.Fatal(err)
	}
	s.events(ctx, "/api/v1/live", last, func(_, kind, data string) bool { return kind == "run-gone" && data == `{"slug":"b"}` })
	for i := range keptMessages + 10 {
		s.live.change("run", fmt.Sprint(i), func() (any, bool) { return wire.RunItem{}, true })
	}
	s.eventually("messages are told", func() bool { return s.live.last() > keptMessages })
	s.events(ctx, "/api/v1/live", last, func(_, kind, _ string) bool {
		if kind != "reset" {
			t.Fatalf("a gap is passed over by %s", kind)
		}
		return true
	})
}

func TestThereAreOnlySoManySubscribers(t *testing.T) {
	s := newSite(t, Options{Limits: Limits{Subscribers: 1}})
	if !s.live.enter() {
		t.Fatal("none may enter")
	}
	if a := s.do("GET", "/api/v1/live", nil); a.status != 503 {
		t.Errorf("%d", a.status)
	}
	s.live.leave()
}

// TestAStreamThatIsWrittenTheMomentItIsMade has the time of change that the empty file
// had, as the clocks of file systems are coarse.
func TestAStreamThatIsWrittenTheMomentItIsMade(t *testing.T) {
	s := newSite(t, Options{})
	name := filepath.Join(s.root, "run.jsonl")
	sees := func() bool {
		if err := os.Chtimes(name, time.UnixMilli(1e12), time.UnixMilli(1e12)); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		return s.find.isStream("run.jsonl", info)
	}
	s.write("run.jsonl", "")
	if sees() {
		t.Error("an empty file is a stream")
	}
	s.write("run.jsonl", stream("run", 3))
	if !sees() {
		t.Error("the stream is taken for the empty file")
	}
}

func TestAliveIsWhatHasNotSaidThatItStops(t *testing.T) {
	s := newSite(t, Options{})
	now := time.Now().UnixMilli()
	line := func(at int64, rest string) string { return fmt.Sprintf(`{"ts_ms":%d,%s}`, at, rest) + "\n" }
	open := func(at int64, slug string) string {
		return line(at, fmt.Sprintf(`"kind":"open","slug":%q,"description":"","metadata":{}`, slug))
	}
	signal := line(now, `"step":1,"kind":"annotation","annotation":"interrupted by SIGTERM at step 1","metadata":{"signal":"SIGTERM"}`)
	for slug, text := range map[string]string{
		"alive":   open(now, "alive"),
		"resumed": open(now, "resumed") + signal + open(now, "resumed"),
		"stopped": open(now, "stopped") + signal,
		"done":    open(now, "done") + line(now, `"kind":"done","slug":"done"`),
		"silent":  open(now-3_600_000, "silent"),
	} {
		s.write("runs/"+slug+"/0123456789abcdef.jsonl", text)
	}
	s.find.scan()
	s.eventually("all runs are there", func() bool { return len(s.store.Runs()) == 5 && s.index.pending() == 0 })
	var o wire.Overview
	s.get("/api/v1/overview", &o)
	var got []string
	for _, run := range o.Alive {
		got = append(got, run.Slug)
	}
	if diff := cmp.Diff([]string{"alive", "resumed"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
