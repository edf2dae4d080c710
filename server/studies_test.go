package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/server/internal/wire"
	"github.com/foldlog/foldlog/study"
)

func unmarshal(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
}

// newStudy puts a study under the root and returns its id in the API.
func newStudy(s *site, journalName string, directions ...study.Direction) string {
	s.t.Helper()
	j, err := study.CreateJournal(s.t.Context(), filepath.Join(s.root, journalName), journal.WriterOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	defer j.Close()
	if len(directions) == 0 {
		directions = []study.Direction{study.Minimize}
	}
	space := &study.Space{Params: []study.SpaceParam{{Name: "x", Dist: study.FloatDist{Low: 0, High: 1}}, {Name: "n", Dist: study.IntDist{Low: 1, High: 4, Step: 1}}}}
	seed := uint64(math.MaxUint64)
	if _, _, err := study.OpenOrCreate(s.t.Context(), j, study.Config{Name: "demo", Directions: directions, Space: space, Seed: &seed}); err != nil {
		s.t.Fatal(err)
	}
	id := studyID(journalName, 0)
	s.find.scan()
	s.eventually("the study is there", func() bool { return s.do("GET", "/api/v1/studies/"+id, nil).status == 200 })
	return id
}

func TestWorkersAskAndTellThroughTheServer(t *testing.T) {
	s := newSite(t, Options{})
	base := "/api/v1/studies/" + newStudy(s, "s.atj")
	const workers, each = 8, 5
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for range each {
				var asked wire.TrialItem
				s.post(base+"/ask", map[string]any{}, &asked)
				path := fmt.Sprintf("%s/trials/%d", base, asked.Number)
				s.post(path+"/report", map[string]any{"step": 1, "values": []any{"NaN"}}, nil)
				s.post(path+"/tell", map[string]any{"values": []float64{float64(w)}}, nil)
			}
		})
	}
	all.Wait()
	var d wire.StudyDetail
	s.get(base, &d)
	if d.Trials != workers*each || d.States.Complete != workers*each || d.Best == nil || d.Best.Values[0] != 0 || *d.Seed != math.MaxUint64 {
		t.Errorf("%+v", d)
	}
	var page wire.TrialPage
	s.get(base+"/trials?sort=-value&where=value%3E3&limit=3", &page)
	if page.Total != 20 || len(page.Items) != 3 || page.Items[0].Values[0] != 7 || page.Items[0].Reports != 1 || page.Next == "" {
		t.Errorf("%+v", page)
	}
	s.get(base+"/trials?from=38", &page)
	if page.Total != 2 || page.Items[0].Number != 38 {
		t.Errorf("%+v", page)
	}
	var columns wire.TrialColumns
	s.get(base+"/columns?state=complete", &columns)
	if len(columns.Numbers) != 40 || len(columns.Values[0]) != 40 || len(columns.States) != 40 || len(columns.Params) != 2 {
		t.Errorf("%+v", columns)
	}
	var importance wire.Importance
	s.eventually("importance is computed", func() bool {
		s.get(base+"/importance", &importance)
		return !importance.Pending
	})
	if importance.Sample != 40 || importance.Of != 40 || importance.Explained == nil || len(importance.Items) != 2 ||
		math.Abs(float64(importance.Items[0].Share+importance.Items[1].Share)-1) > 1e-9 {
		t.Errorf("%+v", importance)
	}
	for query, status := range map[string]int{"sort=nothing": 400, "state=odd": 400, "where=value:x%3E1": 400, "limit=1001": 422} {
		if a := s.do("GET", base+"/trials?"+query, nil); a.status != status {
			t.Errorf("%s: %d %s", query, a.status, a.body)
		}
	}
}

func TestOnlyTheOwnerEndsAManagedTrial(t *testing.T) {
	s := newSite(t, Options{})
	base := "/api/v1/studies/" + newStudy(s, "s.atj")
	var asked wire.TrialItem
	s.post(base+"/ask", map[string]any{"lease_ms": 60_000, "worker": "77"}, &asked)
	if !asked.Managed || *asked.Worker != 77 || asked.Epoch != 1 || asked.LeaseMS != 60_000 {
		t.Fatalf("%+v", asked)
	}
	path := fmt.Sprintf("%s/trials/%d", base, asked.Number)
	mine := func(more map[string]any) map[string]any {
		more["worker"], more["epoch"] = "77", "1"
		return more
	}
	for name, c := range map[string]struct {
		path   string
		body   map[string]any
		status int
	}{
		"without a fence":     {"/tell", map[string]any{"values": []float64{1}}, 409},
		"another worker":      {"/renew", map[string]any{"worker": "78", "epoch": "1"}, 409},
		"another epoch":       {"/renew", map[string]any{"worker": "77", "epoch": "2"}, 409},
		"too many values":     {"/tell", mine(map[string]any{"values": []float64{1, 2}}), 422},
		"values of a failure": {"/tell", mine(map[string]any{"values": []float64{1}, "state": "failed"}), 422},
		"no such trial":       {"9/renew", mine(map[string]any{}), 404},
		"a claim of it":       {"/claim", map[string]any{"lease_ms": 1000}, 409},
	} {
		if a := s.do("POST", path+c.path, c.body); a.status != c.status {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	s.post(path+"/renew", mine(map[string]any{}), nil)
	s.post(path+"/report", mine(map[string]any{"step": 3, "values": []float64{0.5}}), nil)
	tell := mine(map[string]any{"error": "out of memory", "retries": 1})
	for range 2 {
		var told wire.TrialItem
		s.post(path+"/tell", tell, &told)
		if told.State != "failed" || told.Error != "out of memory" {
			t.Errorf("%+v", told)
		}
	}
	var page wire.TrialPage
	s.get(base+"/trials", &page)
	if page.Total != 2 || page.Items[1].State != "waiting" || *page.Items[1].RetryOf != 0 || page.Items[1].Attempt != 2 {
		t.Errorf("%+v", page)
	}
	var claimed wire.TrialItem
	s.post(base+"/trials/1/claim", map[string]any{"lease_ms": 1000, "worker": "5"}, &claimed)
	if claimed.State != "running" || *claimed.Worker != 5 || string(claimed.Params) != string(asked.Params) {
		t.Errorf("%+v", claimed)
	}
	if a := s.do("POST", path+"/tell", mine(map[string]any{"values": []float64{1}})); a.status != 409 {
		t.Errorf("told anew: %d %s", a.status, a.body)
	}
}

func TestAnAskThatIsRepeatedWithItsKeyIsTheSameTrial(t *testing.T) {
	s := newSite(t, Options{})
	base := "/api/v1/studies/" + newStudy(s, "s.atj")
	for _, body := range []map[string]any{{"key": "raw"}, {"key": "managed", "lease_ms": 60_000}, {"key": "mine", "lease_ms": 60_000, "worker": "77"}} {
		var first, again wire.TrialItem
		var all sync.WaitGroup
		for _, into := range []*wire.TrialItem{&first, &again} {
			all.Go(func() { s.post(base+"/ask", body, into) })
		}
		all.Wait()
		if diff := cmp.Diff(first, again); diff != "" || len(first.Params) < len(`{"x":0,"n":1}`) {
			t.Errorf("%v: %s\n%s", body, first.Params, diff)
		}
	}
	s.post(base+"/trials/0/tell", map[string]any{"values": []float64{1}}, nil)
	for _, body := range []map[string]any{{"key": "raw"}, {"key": "managed"}, {"key": "mine", "lease_ms": 60_000, "worker": "78"}} {
		if a := s.do("POST", base+"/ask", body); a.status != 409 {
			t.Errorf("%v: %d %s", body, a.status, a.body)
		}
	}
	var page wire.TrialPage
	s.get(base+"/trials", &page)
	if page.Total != 3 {
		t.Errorf("%d trials", page.Total)
	}
}

func TestWhatIsEnqueuedIsAskedForFirst(t *testing.T) {
	s := newSite(t, Options{})
	base := "/api/v1/studies/" + newStudy(s, "s.atj")
	var first, again wire.Enqueued
	body := map[string]any{"params": map[string]any{"x": 0.25, "n": 3}, "key": "baseline", "raw": true}
	s.post(base+"/enqueue", body, &first)
	s.post(base+"/enqueue", body, &again)
	if !first.Created || again.Created || first.Number != again.Number {
		t.Errorf("%+v %+v", first, again)
	}
	if a := s.do("POST", base+"/enqueue", map[string]any{"params": map[string]any{"x": 2}}); a.status != 422 {
		t.Errorf("%d %s", a.status, a.body)
	}
	var asked wire.TrialItem
	s.post(base+"/ask", map[string]any{}, &asked)
	if diff := cmp.Diff(`{"x":0.25,"n":3}`, string(asked.Params)); diff != "" && string(asked.Params) != `{"n":3,"x":0.25}` {
		t.Error(diff)
	}
	s.read(s.do("POST", base+"/attrs", map[string]any{"key": "team", "value": map[string]any{"a": 1}}), nil)
	s.read(s.do("POST", base+"/attrs", map[string]any{"key": "note", "value": "x", "number": asked.Number}), nil)
	if a := s.do("POST", base+"/attrs", map[string]any{"key": "foldlog:x", "value": 1}); a.status != 422 {
		t.Errorf("%d %s", a.status, a.body)
	}
	var d wire.StudyDetail
	s.get(base, &d)
	var trial wire.TrialDetail
	s.get(fmt.Sprintf("%s/trials/%d", base, asked.Number), &trial)
	if string(d.Attrs) != `{"team":{"a":1}}` || string(trial.UserAttrs) != `{"note":"x"}` || trial.Attrs != 1 {
		t.Errorf("%s %s", d.Attrs, trial.UserAttrs)
	}
}

func TestOtherProcessesWriteWhileTheServerDoes(t *testing.T) {
	s := newSite(t, Options{})
	id := newStudy(s, "s.atj")
	base := "/api/v1/studies/" + id
	s.post(base+"/ask", map[string]any{}, nil)
	ctx, cancel := context.WithTimeout(t.Context(), longEnough)
	defer cancel()
	var d wire.StudyDetail
	s.get(base, &d)
	// The stream begins with what is there when it is opened: a seq that is older is
	// answered with a reset.
	numbers := make(chan int)
	go func() {
		defer close(numbers)
		s.events(ctx, base+"/live?seq=0", "", func(_, kind, data string) bool {
			if kind == "reset" {
				numbers <- -1
				return false
			}
			var live wire.LiveTrials
			unmarshal(t, data, &live)
			for _, it := range live.Items {
				numbers <- it.Number
			}
			return kind == "trials"
		})
	}()
	if n := <-numbers; n != -1 {
		t.Fatalf("trial %d has changed", n)
	}
	j, err := study.OpenJournal(ctx, filepath.Join(s.root, "s.atj"), journal.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if err := j.Update(ctx, func(tx *study.Tx) error { _, err := tx.CreateTrial(0, nil); return err }); err != nil {
		t.Fatal(err)
	}
	if n := <-numbers; n != 1 {
		t.Errorf("trial %d has changed", n)
	}
	for n := range numbers {
		t.Errorf("trial %d has changed", n)
	}
	s.post(base+"/ask", map[string]any{}, nil)
	s.get(base, &d)
	if d.Trials != 2 || d.States.Running != 2 {
		t.Errorf("%+v", d)
	}
}

func TestARequestThatIsSentAgainMeanwhileIsAnsweredAsTheFirstTime(t *testing.T) {
	s := newSite(t, Options{})
	base := "/api/v1/studies/" + newStudy(s, "s.atj")
	for round := range 5 {
		var d wire.StudyDetail
		s.get(base, &d)
		op := fmt.Sprintf(`{"kind":"create-trial","study":0,"trial":%d,"number":%[1]d,"template":{"fixed":{},"parent":null}}`, round)
		body := map[string]any{"id": fmt.Sprintf("request-%d", round), "after": fmt.Sprint(uint64(d.Seq)), "ops": []any{json.RawMessage(op)}}
		var all sync.WaitGroup
		for range 6 {
			all.Go(func() {
				a := s.do("POST", "/api/v1/journals/ops?path=s.atj", body)
				var got wire.OpsAnswer
				if a.status != 200 || json.Unmarshal(a.body, &got) != nil || got.Seq != d.Seq+1 {
					t.Errorf("after %d: %d %s", uint64(d.Seq), a.status, a.body)
				}
			})
		}
		all.Wait()
		if s.get(base, &d); d.Trials != round+1 {
			t.Errorf("%d trials in round %d", d.Trials, round)
		}
	}
}

func TestTailsOfJournalsThatNobodyFollowsAreLetGo(t *testing.T) {
	s := newSite(t, Options{})
	newStudy(s, "s.atj")
	ops := "/api/v1/journals/ops?path=s.atj"
	first := s.do("GET", ops, nil)
	s.tails.rest(time.Hour)
	if n := len(s.tails.tail); n != 1 {
		t.Errorf("%d tails while one is in use", n)
	}
	s.tails.rest(0)
	if n := len(s.tails.tail); n != 0 {
		t.Errorf("%d tails are kept", n)
	}
	if again := s.do("GET", ops, nil); again.status != 200 || string(again.body) != string(first.body) {
		t.Errorf("%d %s", again.status, again.body)
	}
}

func TestJournalsAreNotReachedByLinks(t *testing.T) {
	s := newSite(t, Options{})
	newStudy(s, "s.atj")
	for link, to := range map[string]string{"loop": ".", "out": t.TempDir()} {
		if err := os.Symlink(to, filepath.Join(s.root, link)); err != nil {
			t.Fatal(err)
		}
	}
	for path, status := range map[string]int{"loop/s.atj": 404, "loop/loop/s.atj": 404, "out/s.atj": 404} {
		if a := s.do("GET", "/api/v1/journals/ops?path="+path, nil); a.status != status {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	for path, status := range map[string]int{"loop/t.atj": 403, "out/t.atj": 403, "s.atj/t.atj": 409} {
		if a := s.do("POST", "/api/v1/journals", map[string]any{"path": path}); a.status != status {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
}

func TestAStudyWithoutObjectivesIsRefusedWithAReason(t *testing.T) {
	s := newSite(t, Options{})
	newStudy(s, "s.atj")
	j, err := study.OpenJournal(t.Context(), filepath.Join(s.root, "s.atj"), journal.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	err = j.Update(t.Context(), func(tx *study.Tx) error { // as another program might
		made := tx.Apply(&study.CreateStudy{Study: 1, Config: study.Config{Name: "none"}})
		return errors.Join(made, tx.Apply(&study.CreateTrial{Study: 1, Trial: 0, Number: 0}))
	})
	if err != nil {
		t.Fatal(err)
	}
	s.find.scan()
	base := "/api/v1/studies/" + studyID("s.atj", 1)
	s.eventually("the study is there", func() bool { return s.do("GET", base, nil).status != 404 })
	if a := s.do("POST", base+"/ask", map[string]any{}); a.status != 422 {
		t.Errorf("ask: %d %s", a.status, a.body)
	}
	for _, path := range []string{"", "/trials", "/columns", "/front", "/importance", "/curves", "/trials/0", "/trials/0/should-prune"} {
		if a := s.do("GET", base+path, nil); a.status >= 500 {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
}

func TestAnOlderHeadTakesTheJournalsPlace(t *testing.T) {
	s := newSite(t, Options{})
	id := newStudy(s, "s.atj")
	base := "/api/v1/studies/" + id
	s.post(base+"/ask", map[string]any{}, nil)
	path := filepath.Join(s.root, "s.atj")
	head, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		s.post(base+"/ask", map[string]any{}, nil)
	}
	var d wire.StudyDetail
	if s.get(base, &d); d.Trials != 4 {
		t.Fatalf("%+v", d)
	}
	// As after a power loss that took the last renames, or a head from a backup.
	if err := os.WriteFile(path+"~", head, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+"~", path); err != nil {
		t.Fatal(err)
	}
	s.eventually("the older copy is seen", func() bool {
		s.get(base, &d)
		return d.Trials == 1
	})
	var asked wire.TrialItem
	s.post(base+"/ask", map[string]any{}, &asked)
	if s.get(base, &d); asked.Number != 1 || d.Trials != 2 {
		t.Errorf("trial %d of %d", asked.Number, d.Trials)
	}
}

func TestAnotherJournalTakesTheJournalsPlace(t *testing.T) {
	s := newSite(t, Options{})
	base := "/api/v1/studies/" + newStudy(s, "s.atj")
	s.post(base+"/ask", map[string]any{}, nil)
	s.post(base+"/ask", map[string]any{}, nil)
	os.RemoveAll(filepath.Join(s.root, "s.atj"))
	os.RemoveAll(filepath.Join(s.root, "s.atj.d"))
	newStudy(s, "s.atj")
	var d wire.StudyDetail
	s.eventually("the other journal is seen", func() bool {
		a := s.do("GET", base, nil)
		return a.status == 200 && json.Unmarshal(a.body, &d) == nil && d.Trials == 0
	})
	var asked wire.TrialItem
	s.eventually("the other journal is written to", func() bool {
		a := s.do("POST", base+"/ask", map[string]any{})
		return a.status == 200 && json.Unmarshal(a.body, &asked) == nil
	})
	if s.get(base, &d); asked.Number != 0 || d.Trials != 1 {
		t.Errorf("trial %d of %d", asked.Number, d.Trials)
	}
}

func TestStudiesComeAndGo(t *testing.T) {
	s := newSite(t, Options{})
	id := newStudy(s, "s.atj", study.Minimize, study.Maximize)
	for _, values := range [][]float64{{1, 1}, {2, 2}, {3, 1}} {
		s.post("/api/v1/studies/"+id+"/ask", map[string]any{}, nil)
		var page wire.TrialPage
		s.get("/api/v1/studies/"+id+"/trials?state=running", &page)
		s.post(fmt.Sprintf("/api/v1/studies/%s/trials/%d/tell", id, page.Items[0].Number), map[string]any{"values": values}, nil)
	}
	var front wire.Front
	s.eventually("the front is computed", func() bool {
		s.get("/api/v1/studies/"+id+"/front", &front)
		return !front.Pending
	})
	if front.Total != 2 || front.Items[1].Number != 1 {
		t.Errorf("%+v", front)
	}
	s.write("broken.atj", "{\"atune\":\"x\",\"format\":6")
	os.RemoveAll(filepath.Join(s.root, "s.atj"))
	os.RemoveAll(filepath.Join(s.root, "s.atj.d"))
	s.find.scan()
	if a := s.do("GET", "/api/v1/studies/"+id, nil); a.status != 404 {
		t.Errorf("%d %s", a.status, a.body)
	}
	var list wire.StudyPage
	s.get("/api/v1/studies", &list)
	if list.Total != 0 {
		t.Errorf("%+v", list)
	}
}

func TestADeletedStudyIsNotListed(t *testing.T) {
	s := newSite(t, Options{})
	id := newStudy(s, "s.atj")
	j, err := study.OpenJournal(t.Context(), filepath.Join(s.root, "s.atj"), journal.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if err := j.Update(t.Context(), func(tx *study.Tx) error {
		return tx.SetStudySystemAttr(0, study.DeletedAttr, []byte("true"))
	}); err != nil {
		t.Fatal(err)
	}
	s.eventually("the study is gone", func() bool {
		var list wire.StudyPage
		s.get("/api/v1/studies", &list)
		return list.Total == 0
	})
	if a := s.do("GET", "/api/v1/studies/"+id, nil); a.status != 404 {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// TestARepeatedTellCarriesOutWhatFollows tells again what was told to a server that died
// before it had made the trial that tries again, and to one whose answer was lost.
func TestARepeatedTellCarriesOutWhatFollows(t *testing.T) {
	s := newSite(t, Options{})
	base := "/api/v1/studies/" + newStudy(s, "s.atj")
	var asked wire.TrialItem
	s.post(base+"/ask", map[string]any{"lease_ms": 60_000, "worker": "77"}, &asked)
	j, err := study.OpenJournal(t.Context(), filepath.Join(s.root, "s.atj"), journal.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if err := j.Update(t.Context(), func(tx *study.Tx) error {
		return tx.LifecycleTerminal(study.Fence{Trial: 0, Worker: 77, Epoch: 1}, study.FailedWith("oom"), &study.RetryPolicy{MaxRetries: 1})
	}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s.post(base+"/trials/0/tell", map[string]any{"worker": "77", "epoch": "1", "error": "oom", "retries": 1}, nil)
	}
	var page wire.TrialPage
	if s.get(base+"/trials", &page); page.Total != 2 || page.Items[1].State != "waiting" {
		t.Errorf("%+v", page)
	}
}
