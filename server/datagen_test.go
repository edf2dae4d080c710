package server

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/objstore"
	"github.com/foldlog/foldlog/server/internal/wire"
)

const png = "\x89PNG\r\n\x1a\n0000"

// experimentLog makes a log below the root of a site that somebody else writes.
func experimentLog(t *testing.T, root string, fill func(*datagen.Writer)) *datagen.Log {
	t.Helper()
	ctx := context.Background()
	store, err := objstore.OpenLocal(root, objstore.LocalOptions{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	l, err := datagen.OpenOrCreate(ctx, store, "digits", "v1", datagen.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := l.NewWriter(ctx, datagen.WriterOptions{Run: "there"})
	if err != nil {
		t.Fatal(err)
	}
	fill(w)
	if err := w.Close(ctx); err != nil {
		t.Fatal(err)
	}
	return l
}

func stepOf(name string, index int64) datagen.Step {
	return datagen.Step{Name: name, Index: index, Instance: name}
}

// someItems are four items: completed with blobs, failed with a sub-item, and two under way.
func someItems(t *testing.T) func(*datagen.Writer) {
	return func(w *datagen.Writer) {
		ctx := context.Background()
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		for i := range 4 {
			s, err := w.Open(ctx, fmt.Sprintf("digit-%d", i), datagen.CreateOptions{Tags: json.RawMessage(fmt.Sprintf(`{"label":%d}`, i%2))})
			must(err)
			must(s.Checkpoint(ctx, stepOf("draw", 0), []datagen.Change{
				datagen.Set("image", datagen.BlobValue([]byte(png))), datagen.Set("page", datagen.BlobValue([]byte("<script>alert(1)</script>"))),
				datagen.Set("score", datagen.IntValue(int64(i)))}))
			st := stepOf("judge", 1)
			switch i {
			case 0:
				must(s.CheckpointEnd(ctx, st, []datagen.Change{datagen.Set("score", datagen.IntValue(7))}, datagen.EndCompleted))
			case 1:
				sub, err := s.Sub(ctx, "perturb", 3, datagen.CreateOptions{})
				must(err)
				must(sub.Checkpoint(ctx, stepOf("draw", 0), nil))
				must(s.Fail(ctx, &st, datagen.Failure{Type: "<b>Odd", Dump: json.RawMessage(`{"message":"odd"}`)}))
			}
		}
	}
}

func (s *site) experimentID() string {
	s.t.Helper()
	var page wire.ExperimentPage
	s.eventually("the experiment", func() bool {
		s.get("/api/v1/datagen", &page)
		return page.Total == 1 && page.Items[0].Ready
	})
	return page.Items[0].ID
}

func (s *site) items(id, query string) (list []string, page wire.ItemPage) {
	s.t.Helper()
	s.get("/api/v1/datagen/"+id+"/items?"+query, &page)
	for _, item := range page.Items {
		list = append(list, item.Item)
	}
	return list, page
}

func TestAnExperimentIsTold(t *testing.T) {
	root := t.TempDir()
	experimentLog(t, root, someItems(t))
	s := newSite(t, Options{Root: root})
	id := s.experimentID()
	var d wire.ExperimentDetail
	s.get("/api/v1/datagen/"+id, &d)
	if d.Items != 5 || d.Roots != 4 || d.Pipeline != "digits" || d.States != (wire.ItemStates{Running: 3, Completed: 1, Failed: 1}) {
		t.Errorf("%+v", d)
	}
	if len(d.Steps) != 2 || d.Steps[0].Completed != 5 || len(d.Failures) != 1 || d.Failures[0].Type != "<b>Odd" || d.Maintenance.Version == 0 {
		t.Errorf("%+v %+v %+v", d.Steps, d.Failures, d.Maintenance)
	}
	for query, want := range map[string][]string{
		"":                        {"digit-0", "digit-1", "digit-1/perturb:3", "digit-2", "digit-3"},
		"roots=true&sort=item":    {"digit-0", "digit-1", "digit-2", "digit-3"},
		"status=failed,completed": {"digit-0", "digit-1"},
		"tag=label%3D1":           {"digit-1", "digit-3"},
		"tag=label%3D1&tag=x%3Dy": nil,
		"error=%3Cb%3EOdd":        {"digit-1"},
		"of=digit-1":              {"digit-1", "digit-1/perturb:3"},
		"prefix=digit-1/":         {"digit-1/perturb:3"},
		"step=judge":              {"digit-0"},
		"suspect=true":            nil,
		"sort=events&limit=1":     {"digit-0"},
		"offset=3":                {"digit-2", "digit-3"},
		"offset=1&limit=1&roots=true&sort=item&reverse=true": {"digit-2"},
		"offset=9":                  nil,
		"status=pending&sort=event": nil,
	} {
		if query == "status=pending&sort=event" {
			if a := s.do("GET", "/api/v1/datagen/"+id+"/items?"+query, nil); a.status != 422 {
				t.Errorf("%s: %d", query, a.status)
			}
			continue
		}
		if got, _ := s.items(id, query); !cmp.Equal(got, want) {
			t.Errorf("%s: %v", query, got)
		}
	}
	var all []string
	for cursor, more := "", true; more; more = cursor != "" {
		list, page := s.items(id, "sort=item&limit=2&cursor="+url.QueryEscape(cursor))
		all, cursor = append(all, list...), page.Next
	}
	if len(all) != 5 || all[2] != "digit-1/perturb:3" {
		t.Errorf("pages: %v", all)
	}
}

func TestAnItemIsToldWithHowItCameAbout(t *testing.T) {
	root := t.TempDir()
	experimentLog(t, root, someItems(t))
	s := newSite(t, Options{Root: root})
	at := "/api/v1/datagen/" + s.experimentID()
	var item wire.DatagenItem
	s.get(at+"/items/digit-0", &item)
	if item.Status != datagen.StatusCompleted || len(item.Steps) != 2 || len(item.Fields) != 3 || string(item.Fields[2].Values[0].Value) != "7" {
		t.Errorf("%+v", item)
	}
	s.get(at+"/items/digit-0?as_of=1", &item)
	if len(item.Steps) != 0 {
		t.Errorf("as of the first event: %+v", item.Steps)
	}
	var way wire.Trajectory
	s.get(at+"/items/digit-0/trajectory", &way)
	if n := len(way.Checkpoints); n != 2 || way.Checkpoints[1].Changes[0].Old == nil || string(*way.Checkpoints[1].Changes[0].Old) != "0" || way.Checkpoints[1].End != "completed" {
		t.Errorf("%+v", way)
	}
	var tree wire.ItemTree
	s.get(at+"/items/"+url.PathEscape("digit-1/perturb:3")+"/tree", &tree)
	if len(tree.Nodes) != 2 || tree.Nodes[1].Depth != 1 || tree.Nodes[1].Parent != "digit-1" {
		t.Errorf("%+v", tree)
	}
	var failures wire.FailurePage
	s.get(at+"/failures", &failures)
	if len(failures.Items) != 1 || failures.Items[0].Item != "digit-1" || string(failures.Items[0].Dump) != `{"message":"odd"}` {
		t.Errorf("%+v", failures)
	}
	var classes wire.Classification
	s.post(at+"/classify", map[string]any{"keys": []string{"digit-0", "digit-1", "digit-9"}}, &classes)
	if got := fmt.Sprint(classes.Items); got != "[{digit-0 finished judge} {digit-1 resumable draw} {digit-9 fresh }]" {
		t.Error(got)
	}
	for path, status := range map[string]int{
		"/items/nobody": 404, "/items/" + strings.Repeat("x", 13000): 422, "/items/digit-0?as_of=never": 404,
		"/items/..%2f..%2fetc": 404, "/failures?item=nobody": 404, "/items?cursor=rubbish": 400, "/items?cursor=rubbish&offset=1": 400, "/items?tag=x": 400, "/blobs/x?size=1&checksum=y": 404,
	} {
		if a := s.do("GET", at+path, nil); a.status != status {
			t.Errorf("%.60s: %d %s", path, a.status, a.body)
		}
	}
	if a := s.do("GET", "/api/v1/datagen/nothing/items", nil); a.status != 404 {
		t.Errorf("%d", a.status)
	}
}

func TestBlobsAreNeverPages(t *testing.T) {
	root := t.TempDir()
	experimentLog(t, root, someItems(t))
	s := newSite(t, Options{Root: root})
	at := "/api/v1/datagen/" + s.experimentID()
	var item wire.DatagenItem
	s.get(at+"/items/digit-2", &item)
	for _, f := range item.Fields[:2] {
		var ref struct {
			Blob, Checksum string
			Size           int64
		}
		if err := json.Unmarshal(f.Values[0].Value, &ref); err != nil {
			t.Fatal(err)
		}
		path := fmt.Sprintf("%s/blobs/%s?size=%d&checksum=%s", at, ref.Blob, ref.Size, url.QueryEscape(ref.Checksum))
		a := s.do("GET", path, nil)
		h := a.header
		want := []string{"nosniff", "image/png", `inline; filename="` + filepath.Base(at) + `"`}
		body := png
		if f.Name == "page" {
			want[1], want[2], body = "application/octet-stream", `attachment; filename="`+filepath.Base(at)+`"`, "<script>alert(1)</script>"
		}
		got := []string{h.Get("X-Content-Type-Options"), h.Get("Content-Type"), h.Get("Content-Disposition")}
		if !cmp.Equal(got, want) || string(a.body) != body || !strings.Contains(h.Get("Content-Security-Policy"), "sandbox") {
			t.Errorf("%s: %v %q %v", f.Name, got, a.body, h)
		}
		part := s.do("GET", path, nil, func(r *http.Request) { r.Header.Set("Range", "bytes=1-3") })
		if part.status != 206 || string(part.body) != body[1:4] {
			t.Errorf("part: %d %q", part.status, part.body)
		}
		if a := s.do("GET", strings.Replace(path, "size=", "size=9", 1), nil); a.status == 200 {
			t.Errorf("a wrong size is answered with %d", a.status)
		}
	}
}

func TestCheckpointsAreRecordedOnce(t *testing.T) {
	s := newSite(t, Options{})
	var made wire.CreatedExperiment
	s.post("/api/v1/datagen", map[string]any{"pipeline": "p", "experiment": "e"}, &made)
	if !made.Created {
		t.Error("it was there")
	}
	s.post("/api/v1/datagen", map[string]any{"pipeline": "p", "experiment": "e"}, &made)
	if made.Created {
		t.Error("it is made again")
	}
	at := "/api/v1/datagen/" + made.ID
	var c wire.ItemClaim
	s.post(at+"/claims", map[string]any{"items": []string{"a"}, "tags": map[string]any{"k": "v"}}, &c)
	if c.Claim == "" || c.Item != nil || c.Name != "a" {
		t.Fatalf("%+v", c)
	}
	if a := s.do("POST", at+"/claims", map[string]any{"items": []string{"a"}}); a.status != 409 {
		t.Errorf("the item is claimed twice: %d %s", a.status, a.body)
	}
	body := map[string]any{"key": "1", "step": map[string]any{"name": "draw"}, "changes": []any{
		map[string]any{"name": "n", "value": 7}, map[string]any{"name": "x", "value": 1.5}, map[string]any{"name": "s", "value": "text"},
		map[string]any{"name": "j", "value": map[string]any{"b": 1, "a": nil}}, map[string]any{"name": "list", "append": true, "value": true},
		map[string]any{"name": "raw", "kind": "blob", "value": base64.StdEncoding.EncodeToString([]byte("bytes"))},
		map[string]any{"name": "nan", "kind": "float", "value": "NaN"}}}
	var first, again wire.ClaimState
	s.post(at+"/claims/"+c.Claim+"/checkpoint", body, &first)
	s.post(at+"/claims/"+c.Claim+"/checkpoint", body, &again)
	if first != again || first.LastSeq != 8 || !first.Open {
		t.Errorf("%+v, then %+v", first, again)
	}
	body["changes"] = nil
	if a := s.do("POST", at+"/claims/"+c.Claim+"/checkpoint", body); a.status != 409 {
		t.Errorf("the key of another request: %d", a.status)
	}
	s.post(at+"/claims/"+c.Claim+"/fail", map[string]any{"key": "2", "step": map[string]any{"name": "judge", "index": 1}, "type": "Odd", "message": "what"}, &first)
	if first.Attempt != 1 {
		t.Errorf("%+v", first)
	}
	end := map[string]any{"key": "3", "end": "completed"}
	s.post(at+"/claims/"+c.Claim+"/end", end, &first)
	s.post(at+"/claims/"+c.Claim+"/end", end, &again)
	if first != again || first.Open {
		t.Errorf("%+v, then %+v", first, again)
	}
	var item wire.DatagenItem
	s.get(at+"/items/a", &item)
	got := ""
	for _, f := range item.Fields[:5] {
		got += f.Name + string(f.Values[0].Kind) + string(f.Values[0].Value) + " "
	}
	if got != `nint7 xfloat1.5 sstr"text" jjson{"a":null,"b":1} listbooltrue ` || item.Status != datagen.StatusCompleted || len(item.Failures) != 1 {
		t.Errorf("%s %+v", got, item)
	}
	var none wire.ItemClaim
	s.post(at+"/claims", map[string]any{"items": []string{"a", "a"}}, &none)
	if none.Claim != "" || none.Waiting != 0 {
		t.Errorf("an item that has ended: %+v", none)
	}
	if a := s.do("POST", at+"/claims/"+c.Claim+"/checkpoint", map[string]any{"key": "4", "step": map[string]any{"name": "x"}}); a.status != 410 {
		t.Errorf("after the end: %d %s", a.status, a.body)
	}
	if a := s.do("POST", at+"/claims/unknown/renew", nil); a.status != 410 {
		t.Errorf("an unknown claim: %d", a.status)
	}
}

// silentFor has the client of a claim silent for longer than it was.
func (s *site) silentFor(experiment, claim string, d time.Duration) {
	s.t.Helper()
	l, err := s.experiment(experiment)
	if err != nil {
		s.t.Fatal(err)
	}
	c, err := l.claim(claim)
	if err != nil {
		s.t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = c.seen.Add(-d)
}

func TestAClaimWhoseClientIsSilentIsGivenUp(t *testing.T) {
	s := newSite(t, Options{})
	var made wire.CreatedExperiment
	s.post("/api/v1/datagen", map[string]any{"pipeline": "p", "experiment": "e"}, &made)
	at := "/api/v1/datagen/" + made.ID
	var dead, next, busy wire.ItemClaim
	s.post(at+"/claims", map[string]any{"items": []string{"a"}, "lease_ms": 3_600_000}, &dead)
	s.post(at+"/claims/"+dead.Claim+"/checkpoint", map[string]any{"key": "1", "step": map[string]any{"name": "draw"}}, nil)
	s.post(at+"/claims", map[string]any{"items": []string{"b"}, "lease_ms": 3_600_000}, &busy)
	s.silentFor(made.ID, dead.Claim, 2*time.Hour)
	s.eventually("the item is free", func() bool {
		s.post(at+"/claims", map[string]any{"items": []string{"a", "b"}, "lease_ms": 3_600_000}, &next)
		return next.Claim != ""
	})
	if next.Name != "a" || next.Item == nil || len(next.Item.Steps) != 1 || next.Attempt != 1 {
		t.Errorf("%+v", next)
	}
	s.post(at+"/claims", map[string]any{"items": []string{"a", "b"}}, &dead)
	if dead.Claim != "" || dead.Waiting != 2 {
		t.Errorf("both are with others: %+v", dead)
	}
	s.post(at+"/claims/"+busy.Claim+"/release", nil, nil)
	s.post(at+"/claims/"+busy.Claim+"/release", nil, nil)
	s.post(at+"/claims", map[string]any{"items": []string{"a", "b"}}, &next)
	if next.Name != "b" {
		t.Errorf("what was released is not had: %+v", next)
	}
}

func TestEventsAreAppendedOnce(t *testing.T) {
	s := newSite(t, Options{})
	var made wire.CreatedExperiment
	s.post("/api/v1/datagen", map[string]any{"pipeline": "p", "experiment": "e"}, &made)
	at := "/api/v1/datagen/" + made.ID
	lines := []byte(`{"item_id":"a","item_seq":0,"checkpoint_id":"c","event_type":"ITEM_CREATED","event_ts":"2026-01-02T03:04:05Z"}
{"item_id":"b","item_seq":0,"checkpoint_id":"c","event_type":"ITEM_CREATED","event_ts":"2026-01-02T03:04:05Z"}
`)
	for range 3 {
		var done wire.Appended
		s.post(at+"/append", lines, &done)
		if done != (wire.Appended{Events: 2, Batches: 2}) {
			t.Errorf("%+v", done)
		}
	}
	if list, _ := s.items(made.ID, ""); len(list) != 2 {
		t.Errorf("%v", list)
	}
	for text, status := range map[string]int{
		"half a line": 422,
		`{"item_id":"a","item_seq":0,"checkpoint_id":"d","event_type":"ITEM_CREATED","event_ts":"2026-01-02T03:04:05Z"}`: 422,
		`{"item_id":"a","item_seq":0,"checkpoint_id":"c","event_type":"ITEM_CREATED","event_ts":"2027-01-02T03:04:05Z"}`: 409,
		`{"item_id":"c","item_seq":0,"checkpoint_id":"c","event_type":"NONSENSE"}`:                                       422,
		`{"item_id":"` + strings.Repeat("x", 5000) + `","item_seq":0,"checkpoint_id":"c","event_type":"ITEM_CREATED"}`:   422,
	} {
		if a := s.do("POST", at+"/append", []byte(text)); a.status != status {
			t.Errorf("%.90s: %d %s", text, a.status, a.body)
		}
	}
	if a := s.do("POST", "/api/v1/datagen", map[string]any{"pipeline": "../x", "experiment": "e"}); a.status != 422 {
		t.Errorf("a name with a path: %d", a.status)
	}
}

func TestWhoWatchesAnExperimentSeesWhatChanges(t *testing.T) {
	root := t.TempDir()
	l := experimentLog(t, root, someItems(t))
	s := newSite(t, Options{Root: root})
	id := s.experimentID()
	ctx, cancel := context.WithTimeout(t.Context(), longEnough)
	defer cancel()
	written := make(chan error, 1)
	_, page := s.items(id, "")
	go func() {
		w, err := l.NewWriter(ctx, datagen.WriterOptions{})
		if err == nil {
			var st *datagen.Stream
			if st, err = w.Open(ctx, "new", datagen.CreateOptions{}); err == nil {
				err = st.Checkpoint(ctx, stepOf("draw", 0), nil)
			}
			w.Close(context.Background())
		}
		written <- err
	}()
	s.events(ctx, "/api/v1/datagen/"+id+"/live?seq="+fmt.Sprint(uint64(page.Seq)), "", func(_, kind, data string) bool {
		var live wire.LiveItems
		if err := json.Unmarshal([]byte(data), &live); err != nil || kind != "items" {
			t.Errorf("%s %s", kind, data)
		}
		return len(live.Items) == 1 && live.Items[0].Item == "new"
	})
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	s.events(ctx, "/api/v1/datagen/"+id+"/live", "99999999999999999", func(_, kind, _ string) bool { return kind == "reset" })
}

func TestAnIndexThatIsLostOrDamagedIsMadeAnew(t *testing.T) {
	root := t.TempDir()
	experimentLog(t, root, someItems(t))
	for _, harm := range []func(path string) error{
		func(string) error { return nil },
		os.Remove,
		func(path string) error { return os.WriteFile(path, bytes.Repeat([]byte("x"), 1000), 0o600) },
	} {
		s := newSite(t, Options{Root: root})
		id := s.experimentID()
		if list, _ := s.items(id, ""); len(list) != 5 {
			t.Errorf("%v", list)
		}
		s.end()
		if err := harm(filepath.Join(root, CacheDir, "datagen-"+id)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWritingAnExperimentTakesAToken(t *testing.T) {
	tokens := newTokens(t)
	_, other := add(t, tokens, ScopeRead, "write:datagen/other/*")
	_, reader := add(t, tokens, ScopeRead)
	_, writer := add(t, tokens, ScopeRead, "write:datagen/p/*")
	s := newSite(t, Options{Tokens: tokens})
	s.token = writer
	var made wire.CreatedExperiment
	s.post("/api/v1/datagen", map[string]any{"pipeline": "p", "experiment": "e"}, &made)
	for _, token := range []string{other, reader} {
		s.token = token
		for path, body := range map[string]any{
			"":                                  map[string]any{"pipeline": "p", "experiment": "e2"},
			"/" + made.ID + "/claims":           map[string]any{"items": []string{"a"}},
			"/" + made.ID + "/append":           []byte("{}"),
			"/" + made.ID + "/claims/x/release": nil,
		} {
			if a := s.do("POST", "/api/v1/datagen"+path, body); a.status != 403 {
				t.Errorf("%s: %d %s", path, a.status, a.body)
			}
		}
		s.post("/api/v1/datagen/"+made.ID+"/classify", map[string]any{"keys": []string{"a"}}, nil)
	}
}
