package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"sort"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/internal/lancetest"
	"github.com/foldlog/foldlog/internal/proctest"
	"github.com/foldlog/foldlog/objstore"
	"github.com/foldlog/foldlog/remote"
	"github.com/foldlog/foldlog/server/internal/wire"
)

// serveEnv tells a process of this test binary to be a server: its root, cache and address.
const serveEnv = "FOLDLOG_SERVER_CHILD"

// serveChild serves until it is killed.
func serveChild(args string) error {
	var a [3]string
	if err := json.Unmarshal([]byte(args), &a); err != nil {
		return err
	}
	s, err := New(Options{Root: a[0], Cache: a[1]})
	if err != nil {
		return err
	}
	return http.ListenAndServe(a[2], s.Handler())
}

// mortal is a server in a process of its own, which is killed and started again.
type mortal struct {
	t    *testing.T
	args [3]string
	http *http.Client

	mu    sync.Mutex
	cmd   *exec.Cmd
	ended <-chan error
}

// newMortal starts a server with a cache of its own.
func newMortal(t *testing.T, root string) *mortal {
	t.Helper()
	addr, err := proctest.Address()
	if err != nil {
		t.Fatal(err)
	}
	m := &mortal{t: t, args: [3]string{root, t.TempDir(), addr}, http: &http.Client{Transport: &http.Transport{}}}
	m.start()
	t.Cleanup(func() {
		m.kill()
		m.http.CloseIdleConnections()
	})
	return m
}

func (m *mortal) start() {
	args, err := json.Marshal(m.args)
	if err != nil {
		m.t.Fatal(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cmd = proctest.Self(context.Background(), serveEnv+"="+string(args))
	if m.ended, err = proctest.Start(m.cmd, func(string) {}); err != nil {
		m.t.Error(err)
	}
}

func (m *mortal) kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended != nil {
		_ = m.cmd.Process.Kill()
		<-m.ended
		m.ended = nil
	}
}

func (m *mortal) url() string { return "http://" + m.args[2] }

// post makes a request, again until there is an answer that is not of a server that cannot
// just now.
func (m *mortal) post(ctx context.Context, path string, body []byte, out any) (status int) {
	for ; ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		resp, err := m.http.Post(m.url()+path, "application/json", bytes.NewReader(body))
		if err != nil {
			continue
		}
		b, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode == http.StatusServiceUnavailable {
			continue
		}
		if resp.StatusCode == http.StatusOK && out != nil {
			if err := json.Unmarshal(b, out); err != nil {
				m.t.Errorf("%s: %v: %s", path, err, b)
			}
		}
		if resp.StatusCode >= 500 {
			m.t.Errorf("%s: %d: %s", path, resp.StatusCode, b)
		}
		return resp.StatusCode
	}
	m.t.Errorf("%s: there was no answer in time", path)
	return 0
}

// known is what was acknowledged: the value of each step.
type known struct {
	t  *testing.T
	id string

	mu    sync.Mutex
	steps map[string]string
}

const killedSteps = 5

func stepKey(item string, n int) string { return fmt.Sprint(item, " step ", n) }

func (k *known) acked(item string, n int, value string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if old := k.steps[stepKey(item, n)]; old != "" {
		k.t.Errorf("%s: step %d was acknowledged with %s, and again with %s", item, n, old, value)
	}
	k.steps[stepKey(item, n)] = value
}

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// work claims items of a list at a server until all have ended.
func (k *known) work(ctx context.Context, m *mortal, items []string) {
	for ctx.Err() == nil {
		var c wire.ItemClaim
		status := m.post(ctx, "/api/v1/datagen/"+k.id+"/claims", mustJSON(map[string]any{"items": items, "lease_ms": 3000, "key": fmt.Sprint(rand.Uint64())}), &c)
		switch {
		case status == http.StatusNotFound:
			time.Sleep(20 * time.Millisecond) // it has not looked yet
		case status == http.StatusGone: // this client was silent for too long
		case status != http.StatusOK:
			k.t.Errorf("claim: %d", status)
			return
		case c.Claim == "" && c.Waiting == 0:
			return
		case c.Claim == "":
			time.Sleep(50 * time.Millisecond)
		default:
			k.finish(ctx, m, &c)
		}
	}
}

// finish takes the steps of an item that are left, until the claim is gone.
func (k *known) finish(ctx context.Context, m *mortal, c *wire.ItemClaim) {
	done := 0
	if c.Item != nil {
		done = len(c.Item.Steps)
	}
	for n := done; n < killedSteps && ctx.Err() == nil; n++ {
		value := fmt.Sprint(rand.Uint64())
		body := map[string]any{
			"key": value, "step": map[string]any{"name": fmt.Sprint("step-", n), "index": n},
			"changes": []any{map[string]any{"name": "values", "append": true, "kind": "str", "value": value}},
		}
		if n == killedSteps-1 {
			body["end"] = "completed"
		}
		switch status := m.post(ctx, "/api/v1/datagen/"+k.id+"/claims/"+c.Claim+"/checkpoint", mustJSON(body), nil); status {
		case http.StatusOK:
			k.acked(c.Name, n, value)
		case http.StatusGone, http.StatusNotFound:
			return
		default:
			k.t.Errorf("checkpoint: %d", status)
			return
		}
	}
}

// say appends an item's events, a checkpoint at a time, through a server.
func (k *known) say(ctx context.Context, m *mortal, item string) {
	seq, at := int64(0), time.Now()
	for n := range killedSteps {
		value := fmt.Sprint(rand.Uint64())
		step := &datagen.Step{Name: fmt.Sprint("step-", n), Index: int64(n), Instance: fmt.Sprint("step-", n)}
		v := datagen.StrValue(value)
		f := datagen.Set("values", v).Field
		batch := []datagen.Event{{Kind: datagen.FieldAppend, Step: step, Field: &f}, {Kind: datagen.StepCompleted, Step: step}}
		if n == 0 {
			batch = append([]datagen.Event{{Kind: datagen.ItemCreated}}, batch...)
		}
		if n == killedSteps-1 {
			batch = append(batch, datagen.Event{Kind: datagen.ItemEnded, End: datagen.EndCompleted})
		}
		var lines []byte
		for i := range batch {
			e := &batch[i]
			seq++
			e.Item, e.Root, e.Seq, e.Checkpoint, e.Run, e.Time = item, item, seq, fmt.Sprint("c", n), "said", at
			line := map[string]any{}
			if err := json.Unmarshal(datagen.AppendEvent(nil, e), &line); err != nil {
				k.t.Error(err)
			}
			for _, left := range []string{"event_id", "writer_epoch", "schema_version"} {
				delete(line, left)
			}
			lines = append(append(lines, mustJSON(line)...), '\n')
		}
		for ctx.Err() == nil {
			status := m.post(ctx, "/api/v1/datagen/"+k.id+"/append", lines, nil)
			if status == http.StatusOK {
				k.acked(item, n, value)
				break
			}
			if status != http.StatusNotFound && status != http.StatusConflict {
				k.t.Errorf("append: %d", status)
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// write takes the steps of items with a writer of this process over the objects of a server.
func (k *known) write(ctx context.Context, m *mortal, items []string) {
	c := &remote.Client{Base: m.url(), HTTP: m.http, Patience: longEnough}
	l, err := datagen.Open(ctx, c.Store(), "digits", "v1", datagen.Options{})
	if err != nil {
		k.t.Error(err)
		return
	}
	w, err := l.NewWriter(ctx, datagen.WriterOptions{})
	if err != nil {
		k.t.Error(err)
		return
	}
	for _, item := range items {
		s, err := w.Open(ctx, item, datagen.CreateOptions{})
		for n := 0; n < killedSteps && err == nil; n++ {
			value := fmt.Sprint(rand.Uint64())
			change := datagen.Set("values", datagen.StrValue(value))
			change.Append = true
			st := datagen.Step{Name: fmt.Sprint("step-", n), Index: int64(n), Instance: fmt.Sprint("step-", n)}
			if n < killedSteps-1 {
				err = s.Checkpoint(ctx, st, []datagen.Change{change})
			} else {
				err = s.CheckpointEnd(ctx, st, []datagen.Change{change}, datagen.EndCompleted)
			}
			if err == nil {
				k.acked(item, n, value)
			}
		}
		if err != nil {
			k.t.Errorf("%s: %v", item, err)
		}
	}
	if err := w.Close(ctx); err != nil {
		k.t.Error(err)
	}
}

// TestServersThatAreKilledLoseNothing has two servers on one root, each with a cache of its
// own and killed again and again, while clients claim items, append events and write
// objects through them.
func TestServersThatAreKilledLoseNothing(t *testing.T) {
	rounds, items := 12, 24
	if testing.Short() {
		rounds, items = 3, 8
	}
	root := t.TempDir()
	servers := []*mortal{newMortal(t, root), newMortal(t, root)}
	ctx, cancel := context.WithTimeout(t.Context(), longEnough)
	defer cancel()
	var made wire.CreatedExperiment
	if status := servers[0].post(ctx, "/api/v1/datagen", []byte(`{"pipeline":"digits","experiment":"v1"}`), &made); status != http.StatusOK {
		t.Fatalf("create: %d", status)
	}
	k := &known{t: t, id: made.ID, steps: map[string]string{}}
	var shared, all []string
	for i := range items {
		shared = append(shared, fmt.Sprint("shared-", i))
	}
	all = append(all, shared...)
	var wg sync.WaitGroup
	for i := range 4 {
		m := servers[i%2]
		wg.Go(func() { k.work(ctx, m, shared) })
		said, written := fmt.Sprint("said-", i), fmt.Sprint("written-", i)
		all = append(all, said)
		wg.Go(func() { k.say(ctx, m, said) })
		if i < 2 {
			all = append(all, written)
			wg.Go(func() { k.write(ctx, m, []string{written}) })
		}
	}
	for range rounds {
		time.Sleep(time.Duration(200+rand.IntN(600)) * time.Millisecond)
		m := servers[rand.IntN(2)]
		m.kill()
		m.start()
	}
	wg.Wait()
	for _, m := range servers {
		m.kill()
	}
	k.check(root, all)
}

// check compares the log with what was acknowledged, as Foldlog and the real library read it.
func (k *known) check(root string, items []string) {
	store, err := objstore.OpenLocal(root, objstore.LocalOptions{})
	if err != nil {
		k.t.Fatal(err)
	}
	l, err := datagen.Open(k.t.Context(), store, "digits", "v1", datagen.Options{})
	if err != nil {
		k.t.Fatal(err)
	}
	v, err := l.View(k.t.Context())
	if err != nil {
		k.t.Fatal(err)
	}
	var ids []string
	for e, err := range v.All(k.t.Context()) {
		if err != nil {
			k.t.Fatal(err)
		}
		ids = append(ids, e.ID)
	}
	sort.Strings(ids)
	if n := len(slices.Compact(slices.Clone(ids))); n != len(ids) {
		k.t.Errorf("%d of %d events are there once", n, len(ids))
	}
	for _, item := range items {
		k.item(v, item)
	}
	if real, there := lancetest.Alone(k.t); there {
		dir := filepath.Join(root, filepath.FromSlash(filepath.Dir(datagen.Path("digits", "v1"))))
		rows := real.Rows(k.t, "scan", lancetest.On(dir, "select", []string{"event_id"}))
		sort.Strings(rows)
		rows = slices.Compact(rows)
		if len(rows) != len(ids) {
			k.t.Errorf("the real library reads %d events, Foldlog %d", len(rows), len(ids))
		}
	}
}

// item checks an item: every step once, in order, with the value that was acknowledged.
func (k *known) item(v *datagen.View, item string) {
	it, err := v.Item(k.t.Context(), item, datagen.AsOf{})
	if err != nil {
		k.t.Errorf("%s: %v", item, err)
		return
	}
	if len(it.Faults) > 0 || it.Status != datagen.StatusCompleted {
		k.t.Errorf("%s: %s with faults %v", item, it.Status, it.Faults)
	}
	var got, want []string
	for _, s := range it.Steps {
		got = append(got, s.Name)
	}
	for n := range killedSteps {
		want = append(want, fmt.Sprint("step-", n))
	}
	if d := cmp.Diff(want, got); d != "" {
		k.t.Errorf("%s: %s", item, d)
	}
	events, err := v.Events(k.t.Context(), item)
	if err != nil {
		k.t.Error(err)
		return
	}
	seq := int64(-1)
	for i := range events {
		e := &events[i]
		if e.Seq <= seq {
			k.t.Errorf("%s: sequence %d after %d", item, e.Seq, seq)
		}
		seq = e.Seq
		if e.Field == nil {
			continue
		}
		key := stepKey(item, int(e.Step.Index))
		if want := k.steps[key]; want != "" && e.Field.Value.Str != want {
			k.t.Errorf("%s: %s was acknowledged, %s is there", key, want, e.Field.Value.Str)
		}
		delete(k.steps, key)
	}
	for n := range killedSteps {
		if k.steps[stepKey(item, n)] != "" {
			k.t.Errorf("%s: step %d was acknowledged and is not there", item, n)
		}
	}
}
