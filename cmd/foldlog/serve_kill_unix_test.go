//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/metrics"
	"github.com/foldlog/foldlog/study"
)

// intact checks logs as a user would.
func intact(t *testing.T, paths ...string) {
	t.Helper()
	if out, err := process(t, append([]string{"foldlog", "verify"}, paths...)...).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// killable is a client of a server that is killed and started again.
type killable struct {
	t    *testing.T
	ctx  context.Context
	base string
	http http.Client
	// tries, if there is one, hears of every request before it is made.
	tries func()
}

func newKillable(ctx context.Context, t *testing.T, address string) *killable {
	return &killable{t: t, ctx: ctx, base: "http://" + address, http: http.Client{Timeout: 30 * time.Second}}
}

// try makes one request; without an answer the status is 0.
func (k *killable) try(method, path string, body, into any) int {
	if k.tries != nil {
		k.tries()
	}
	text, err := json.Marshal(body)
	if err != nil {
		k.t.Error(err)
		return 0
	}
	req, err := http.NewRequestWithContext(k.ctx, method, k.base+path, bytes.NewReader(text))
	if err != nil {
		k.t.Error(err)
		return 0
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := k.http.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return 0
	case resp.StatusCode >= 500 && resp.StatusCode != http.StatusServiceUnavailable:
		k.t.Errorf("%s %s: %d %s", method, path, resp.StatusCode, answer)
	case resp.StatusCode == http.StatusOK && into != nil:
		if err := json.Unmarshal(answer, into); err != nil {
			k.t.Errorf("%s %s: %v", method, path, err)
		}
	}
	return resp.StatusCode
}

// until repeats a request until the server has answered it.
func (k *killable) until(method, path string, body, into any) int {
	for {
		status := k.try(method, path, body, into)
		if status != 0 && status != http.StatusServiceUnavailable || k.ctx.Err() != nil {
			return status
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// kills kills a server a few times while clients work, and starts it again.
func kills(ctx context.Context, t *testing.T, root, address string, times int, clients *sync.WaitGroup) {
	t.Helper()
	for range times {
		cmd := serving(t, root, address)
		select {
		case <-time.After(1500 * time.Millisecond):
		case <-ctx.Done():
		}
		cmd.Process.Kill()
		cmd.Wait()
	}
	cmd := serving(t, root, address)
	clients.Wait()
	stop(t, cmd)
}

// TestAServerThatIsKilledGivesNoItemToTwo kills a server while sixteen clients claim
// items and record steps: each step is in the log once, and only by who had the item.
func TestAServerThatIsKilledGivesNoItemToTwo(t *testing.T) {
	root, address := t.TempDir(), servedAt(t)
	ctx, cancel := context.WithTimeout(t.Context(), longEnough)
	defer cancel()
	work := &sharedItems{last: map[string]int{}, told: map[string]string{}}
	times := 4
	if testing.Short() {
		times = 1
	}
	for i := range 120 * times {
		work.names = append(work.names, fmt.Sprintf("item-%d", i))
	}
	var clients sync.WaitGroup
	for n := range 16 {
		clients.Go(func() {
			c := &itemClient{killable: newKillable(ctx, t, address), n: n, work: work}
			defer c.http.CloseIdleConnections()
			c.run()
		})
	}
	kills(ctx, t, root, address, times, &clients)
	log := filepath.Join(root, "datagen_checkpoints", "p", "e", "log.lance")
	intact(t, log)
	out, err := process(t, "foldlog", "cat", log).Output()
	if err != nil {
		t.Fatal(err)
	}
	work.compare(t, out)
}

// sharedItems is what the clients were told.
type sharedItems struct {
	names []string

	mu    sync.Mutex
	clock int               // counts what happens
	last  map[string]int    // of each item, when the latest of its claims that were heard of was asked for
	told  map[string]string // who was told that a step is recorded
}

// now is a time after all that were told before.
func (w *sharedItems) now() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clock++
	return w.clock
}

// claimed takes down a claim that was asked for then, and returns when it was heard of.
func (w *sharedItems) claimed(item string, asked int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last[item] = max(w.last[item], asked)
	w.clock++
	return w.clock
}

// passedOn tells whether it is known that another claim of an item came after one that was
// heard of then. Answers may be read late, and say nothing by their order.
func (w *sharedItems) passedOn(item string, heard int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last[item] > heard
}

// itemSteps are those of each item; the last one ends it.
var itemSteps = []string{"draw", "judge", "keep"}

type itemClient struct {
	*killable
	n    int
	work *sharedItems
	at   string
	keys int
}

type claimedItem struct {
	Claim, Name string
	Waiting     int
	Item        *struct{ Steps []struct{ Name string } }
}

func (c *itemClient) run() {
	var made struct{ ID string }
	if c.until("POST", "/api/v1/datagen", map[string]string{"pipeline": "p", "experiment": "e"}, &made); made.ID == "" {
		c.t.Error("the experiment is not made")
		return
	}
	c.at = "/api/v1/datagen/" + made.ID
	for c.ctx.Err() == nil {
		var got claimedItem
		asked := 0
		c.tries = func() { asked = c.work.now() }
		status := c.until("POST", c.at+"/claims", map[string]any{"items": c.work.names, "lease_ms": 120_000}, &got)
		switch {
		case status != http.StatusOK:
			c.t.Errorf("claim: %d", status)
			return
		case got.Claim != "":
			c.do(&got, c.work.claimed(got.Name, asked))
		case got.Waiting == 0:
			return
		default:
			time.Sleep(200 * time.Millisecond)
		}
	}
	c.t.Error("not all items have ended in time")
}

// do records what is missing of an item, as far as the claim is good.
func (c *itemClient) do(got *claimedItem, heard int) {
	passedOn := false // when it last asked
	c.tries = func() { passedOn = c.work.passedOn(got.Name, heard) }
	have := 0
	if got.Item != nil {
		have = len(got.Item.Steps)
	}
	for i := have; i < len(itemSteps); i++ {
		c.keys++
		body := map[string]any{"key": fmt.Sprint(c.n, "-", c.keys), "step": map[string]any{"name": itemSteps[i], "index": i},
			"changes": []any{map[string]any{"name": "by-" + itemSteps[i], "value": fmt.Sprint(c.n)}}}
		if i == len(itemSteps)-1 {
			body["end"] = "completed"
		}
		status := c.until("POST", c.at+"/claims/"+got.Claim+"/checkpoint", body, nil)
		if status == http.StatusGone {
			return // the server began anew
		}
		if status != http.StatusOK {
			c.t.Errorf("%s of %s: %d", itemSteps[i], got.Name, status)
			return
		}
		if passedOn {
			c.t.Errorf("client %d records %s of %s, which another has", c.n, itemSteps[i], got.Name)
		}
		c.work.recorded(c.t, got.Name, itemSteps[i], c.n)
	}
}

func (w *sharedItems) recorded(t *testing.T, item, step string, client int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if who, ok := w.told[item+" "+step]; ok {
		t.Errorf("%s of %s is recorded by %s and by %d", step, item, who, client)
	}
	w.told[item+" "+step] = fmt.Sprint(client)
}

// compare wants every step of every item once, in order, by who was told so.
func (w *sharedItems) compare(t *testing.T, log []byte) {
	t.Helper()
	steps, by, seen := map[string]map[int]string{}, map[string]string{}, map[string]bool{}
	for line := range bytes.Lines(log) {
		var e struct {
			Item  string          `json:"item_id"`
			Seq   int             `json:"item_seq"`
			Kind  string          `json:"event_type"`
			Step  string          `json:"step_name"`
			Field string          `json:"field_name"`
			Value json.RawMessage `json:"value"`
		}
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if at := fmt.Sprint(e.Item, " ", e.Seq); seen[at] {
			t.Errorf("event %s is there twice", at)
		} else {
			seen[at] = true
		}
		switch {
		case e.Kind == "STEP_COMPLETED":
			if steps[e.Item] == nil {
				steps[e.Item] = map[int]string{}
			}
			steps[e.Item][e.Seq] = e.Step
		case e.Field != "":
			by[e.Item+" "+e.Field] = string(e.Value)
		}
	}
	for _, item := range w.names {
		var got []string
		for _, seq := range slices.Sorted(maps.Keys(steps[item])) {
			got = append(got, steps[item][seq])
		}
		if !cmp.Equal(got, itemSteps) {
			t.Errorf("%s has the steps %v", item, got)
		}
		for _, step := range itemSteps {
			if who, ok := w.told[item+" "+step]; ok && by[item+" by-"+step] != fmt.Sprintf("%q", who) {
				t.Errorf("%s of %s is by %s, client %s was told so", step, item, by[item+" by-"+step], who)
			}
		}
	}
}

// TestAServerThatIsKilledKeepsTrialsOnce kills a server while sixteen clients ask and
// tell: no trial is given to two, none is left over of asks whose answers were lost, and
// each end that was acknowledged is there once.
func TestAServerThatIsKilledKeepsTrialsOnce(t *testing.T) {
	root, address := t.TempDir(), servedAt(t)
	journal := filepath.Join(root, "search.atj")
	newStudy(t, journal)
	ctx, cancel := context.WithTimeout(t.Context(), longEnough)
	defer cancel()
	times := 4
	if testing.Short() {
		times = 1
	}
	work := &sharedTrials{told: map[uint64]float64{}}
	var clients sync.WaitGroup
	for n := range 16 {
		clients.Go(func() {
			c := newKillable(ctx, t, address)
			defer c.http.CloseIdleConnections()
			work.run(c, n, 40*times)
		})
	}
	kills(ctx, t, root, address, times, &clients)
	intact(t, journal)
	work.compare(t, journal)
}

// sharedTrials is what the clients were told.
type sharedTrials struct {
	mu   sync.Mutex
	told map[uint64]float64 // the values of trials that have ended
}

func (w *sharedTrials) run(c *killable, n, trials int) {
	var page struct{ Items []struct{ ID string } }
	for len(page.Items) == 0 && c.ctx.Err() == nil {
		c.until("GET", "/api/v1/studies", nil, &page)
	}
	if len(page.Items) == 0 {
		c.t.Error("there is no study")
		return
	}
	at := "/api/v1/studies/" + page.Items[0].ID
	for i := 0; i < trials && c.ctx.Err() == nil; {
		var asked struct {
			Number        uint64
			Worker, Epoch *string
		}
		ask := map[string]any{"lease_ms": 600_000, "key": fmt.Sprintf("client %d, trial %d", n, i)}
		if status := c.until("POST", at+"/ask", ask, &asked); status != http.StatusOK {
			c.t.Errorf("ask: %d", status)
			return
		}
		value := float64(1000*n + i)
		body := map[string]any{"worker": asked.Worker, "epoch": asked.Epoch, "values": []float64{value}}
		if status := c.until("POST", fmt.Sprintf("%s/trials/%d/tell", at, asked.Number), body, nil); status != http.StatusOK {
			c.t.Errorf("tell of trial %d: %d", asked.Number, status)
			return
		}
		w.mu.Lock()
		if other, ok := w.told[asked.Number]; ok {
			c.t.Errorf("trial %d was given to two: %g and %g", asked.Number, other, value)
		}
		w.told[asked.Number] = value
		w.mu.Unlock()
		i++
	}
}

func (w *sharedTrials) compare(t *testing.T, path string) {
	t.Helper()
	r, err := study.OpenJournalReader(path, journal.ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	total := 0
	snap := r.Snapshot()
	for st := range snap.Studies() {
		for trial := range snap.Trials(st.ID, study.TrialFilter{}) {
			total++
			want, told := w.told[trial.Number]
			if told != (trial.State == study.Complete) || told && !slices.Equal(trial.Values, []float64{want}) {
				t.Errorf("trial %d is %s with %v, its client was told of %v (%t)", trial.Number, trial.State, trial.Values, want, told)
			}
		}
	}
	if total != len(w.told) {
		t.Errorf("%d trials; %d have ended", total, len(w.told))
	}
}

// TestAServerThatIsStoppedUnderLoadLosesNothing sends SIGTERM while 64 clients send:
// the server ends well, and what was acknowledged is all that is there but for what
// was under way.
func TestAServerThatIsStoppedUnderLoadLosesNothing(t *testing.T) {
	root, address := t.TempDir(), servedAt(t)
	cmd := serving(t, root, address)
	const clients = 64
	type sent struct {
		text  []byte
		acked int64
		next  int64 // the end of the request that was under way
	}
	var all sync.WaitGroup
	list := make([]sent, clients)
	var begun sync.WaitGroup
	begun.Add(clients)
	for i := range list {
		all.Go(func() {
			slug := fmt.Sprintf("run-%d", i)
			s := &list[i]
			s.text = longRun(slug, 20_000)
			id := metrics.StreamID(s.text[:bytes.IndexByte(s.text, '\n')])
			c := &metrics.Client{Base: "http://" + address, HTTP: &http.Client{Timeout: time.Minute}}
			defer c.HTTP.CloseIdleConnections()
			for s.acked < int64(len(s.text)) {
				piece := s.text[s.acked:min(s.acked+20_000, int64(len(s.text)))]
				piece = piece[:bytes.LastIndexByte(piece, '\n')+1]
				s.next = s.acked + int64(len(piece))
				ack, err := c.Append(context.Background(), slug, id, s.acked, piece)
				if s.acked == 0 {
					begun.Done()
				}
				if err != nil {
					return
				}
				s.acked = ack.Offset
			}
		})
	}
	begun.Wait()
	stop(t, cmd)
	all.Wait()
	under := 0
	for i := range list {
		s, slug := &list[i], fmt.Sprintf("run-%d", i)
		got, err := os.ReadFile(metrics.StreamPath(root, slug, metrics.StreamID(s.text[:bytes.IndexByte(s.text, '\n')])))
		n := int64(len(got))
		if err != nil || n != s.acked && n != s.next || !bytes.Equal(got, s.text[:min(n, int64(len(s.text)))]) {
			t.Errorf("%s: %d bytes are there, %d were acknowledged, then %d: %v", slug, n, s.acked, s.next, err)
		}
		if n != s.acked {
			under++
		}
	}
	if under > 0 {
		t.Errorf("%d requests were carried out and not answered", under)
	}
}
