package server

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/metrics"
	"github.com/foldlog/foldlog/server/internal/wire"
	"github.com/foldlog/foldlog/study"
)

// failedKeeper makes a study with a trial for each run, which names the run and its
// stream; those of them fail.
func (s *site) failedKeeper(streams map[string]string, fails map[string]bool) {
	s.t.Helper()
	j, err := study.CreateJournal(s.t.Context(), filepath.Join(s.root, "s.atj"), journal.WriterOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	defer j.Close()
	id, _, err := study.OpenOrCreate(s.t.Context(), j, study.Config{Name: "demo", Directions: []study.Direction{study.Minimize}})
	if err != nil {
		s.t.Fatal(err)
	}
	for slug, stream := range streams {
		err := j.Update(s.t.Context(), func(tx *study.Tx) error {
			ref, err := tx.CreateTrial(id, nil)
			if err != nil {
				return err
			}
			if err := tx.SetTrialSystemAttr(ref.ID, "foldlog:run", fmt.Appendf(nil, `{"slug":%q,"stream":%q}`, slug, stream)); err != nil {
				return err
			}
			if err := tx.Transition(ref.ID, study.Waiting, study.Running); err != nil || !fails[slug] {
				return err
			}
			return tx.Transition(ref.ID, study.Running, study.Failed)
		})
		if err != nil {
			s.t.Fatal(err)
		}
	}
	s.find.scan()
}

// TestARunIsLostWhenItsTrialHasFailed: what a study knows of the runs that are kept of its
// trials is told at once, and nothing else is guessed.
func TestARunIsLostWhenItsTrialHasFailed(t *testing.T) {
	s := newSite(t, Options{})
	now := time.Now().UnixMilli() - 60_000
	texts, ids := map[string]string{}, map[string]string{}
	for _, slug := range []string{"lost", "at work", "speaks on", "of another stream", "ended"} {
		texts[slug] = fmt.Sprintf(`{"ts_ms":%d,"kind":"open","slug":%q,"description":"","metadata":{}}`, now, slug) + "\n"
		ids[slug] = metrics.StreamID([]byte(strings.TrimSuffix(texts[slug], "\n")))
	}
	texts["ended"] += fmt.Sprintf(`{"ts_ms":%d,"kind":"done","slug":"ended"}`, now) + "\n"
	texts["speaks on"] += fmt.Sprintf(`{"ts_ms":%d,"step":1,"kind":"metric","name":"loss","value":1,"metadata":{}}`, now+3_600_000) + "\n"
	for slug, text := range texts {
		s.write("runs/"+metrics.EncodeSlug(slug)+"/"+ids[slug]+".jsonl", text)
	}
	s.find.scan()
	s.eventually("all runs are there", func() bool { return len(s.store.Runs()) == len(texts) && s.index.pending() == 0 })
	lost := func() map[string]string {
		var page wire.RunPage
		s.get("/api/v1/runs", &page)
		got := map[string]string{}
		for _, run := range page.Items {
			if run.Lost != "" {
				got[run.Slug] = run.Lost
			}
		}
		return got
	}
	if got := lost(); len(got) > 0 {
		t.Errorf("lost before anything failed: %v", got)
	}
	ids["of another stream"] = ids["lost"]
	s.failedKeeper(ids, map[string]bool{"lost": true, "speaks on": true, "of another stream": true, "ended": true})
	s.eventually("the study is read", func() bool { return len(lost()) > 0 })
	got := lost()
	number := -1
	if _, err := fmt.Sscanf(got["lost"], "trial %d of study demo failed", &number); err != nil || number < 0 || number > 4 {
		t.Errorf("%q", got["lost"])
	}
	delete(got, "lost")
	if len(got) > 0 {
		t.Errorf("lost too: %v", got)
	}
	var o wire.Overview
	s.get("/api/v1/overview", &o)
	if diff := cmp.Diff(wire.RunCounts{Total: 5, Running: 4, Lost: 1, Done: 1}, o.Runs); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, run := range o.Alive {
		if run.Slug == "lost" {
			t.Error("a lost run is alive")
		}
	}
	if len(o.Alive) != 3 {
		t.Errorf("%d runs are alive", len(o.Alive))
	}
}
