package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/foldlog/foldlog/internal/proctest"
	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/metrics"
	"github.com/foldlog/foldlog/remote"
	"github.com/foldlog/foldlog/study"
	"github.com/foldlog/foldlog/study/asktell"
)

// roughWay sends each request to any one of the servers, and loses requests and answers.
type roughWay struct {
	next    http.RoundTripper
	servers []*mortal
}

var errLostOnTheWay = errors.New("lost on the way")

// RoundTrip implements http.RoundTripper.
func (w *roughWay) RoundTrip(r *http.Request) (*http.Response, error) {
	fate := rand.IntN(10)
	if fate == 0 {
		return nil, errLostOnTheWay
	}
	to, err := url.Parse(w.servers[rand.IntN(len(w.servers))].url())
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.URL.Host, r.Host = to.Host, to.Host
	resp, err := w.next.RoundTrip(r)
	if fate == 1 && err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		return nil, errLostOnTheWay
	}
	return resp, err
}

// TestSoakServersThatAreKilledLoseNoTrialAndNoEvent has two servers on one root, killed again
// and again, while workers search in a journal and runs send their streams, each request to
// any of the two and some of them lost or answered in vain.
func TestSoakServersThatAreKilledLoseNoTrialAndNoEvent(t *testing.T) {
	lasts := proctest.Lasts(t, 6*time.Second)
	root := t.TempDir()
	servers := []*mortal{newMortal(t, root), newMortal(t, root)}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	way := &http.Client{Transport: &roughWay{next: transport, servers: servers}}
	ctx, cancel := context.WithTimeout(t.Context(), lasts+longEnough)
	defer cancel()
	client := &remote.Client{Base: servers[0].url(), HTTP: way, Patience: longEnough}
	j, err := client.CreateJournal(ctx, "s.atj", nil)
	if err != nil {
		t.Fatal(err)
	}
	id, _, err := study.OpenOrCreate(ctx, j, study.Config{Name: "s", Directions: []study.Direction{study.Minimize}})
	if err != nil {
		t.Fatal(err)
	}

	told := trialsTold{values: map[study.TrialID]float64{}}
	sent := make([]int64, 4)
	over := time.Now().Add(lasts)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if err := told.search(ctx, client, id, over); err != nil {
				t.Error(err)
			}
		})
	}
	for i := range sent {
		to := []metrics.Target{{Kind: metrics.TargetHTTP, URL: servers[0].url(), Client: way}}
		if i%2 == 0 { // sent from the file, and else from memory
			to = append(to, metrics.Target{Kind: metrics.TargetJSONL, Path: filepath.Join(t.TempDir(), "run.jsonl")})
		}
		all.Go(func() {
			var err error
			if sent[i], err = sendRun(fmt.Sprint("run-", i), to, over); err != nil {
				t.Error(err)
			}
		})
	}
	kills := 0
	for time.Now().Before(over) {
		time.Sleep(time.Duration(200+rand.IntN(600)) * time.Millisecond)
		m := servers[rand.IntN(2)]
		m.kill()
		m.start()
		kills++
	}
	all.Wait()
	for _, m := range servers {
		m.kill()
	}
	told.check(t, filepath.Join(root, "s.atj"), id)
	events := int64(0)
	for i, n := range sent {
		checkSent(t, root, fmt.Sprint("run-", i), n)
		events += n
	}
	t.Logf("%d kills, %d trials, %d events", kills, len(told.values), events)
}

// trialsTold are the trials whose end was acknowledged, with their values.
type trialsTold struct {
	mu     sync.Mutex
	values map[study.TrialID]float64
}

// search asks for trials, reports and ends them until it is over.
func (k *trialsTold) search(ctx context.Context, c *remote.Client, id study.StudyID, over time.Time) error {
	j, err := c.OpenJournal(ctx, "s.atj", nil)
	if err != nil {
		return err
	}
	defer j.Close()
	for time.Now().Before(over) {
		trial, err := asktell.Ask(ctx, j, id, asktell.AskOptions{})
		if err != nil {
			return fmt.Errorf("ask: %w", err)
		}
		value := rand.Float64()
		for step := range uint64(2) {
			if err := j.Update(ctx, func(tx *study.Tx) error { return tx.Report(trial, step, value+float64(step)) }); err != nil {
				return fmt.Errorf("report: %w", err)
			}
		}
		if err := j.Update(ctx, func(tx *study.Tx) error { return asktell.End(tx, trial, study.Completed(value)) }); err != nil {
			return fmt.Errorf("end: %w", err)
		}
		k.mu.Lock()
		_, twice := k.values[trial]
		k.values[trial] = value
		k.mu.Unlock()
		if twice {
			return fmt.Errorf("trial %d was given to two", trial)
		}
	}
	return nil
}

// check compares the journal on disk with what was acknowledged.
func (k *trialsTold) check(t *testing.T, path string, id study.StudyID) {
	disk, err := study.OpenJournalReader(path, journal.ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer disk.Close()
	snap := disk.Snapshot()
	s, err := snap.Study(id)
	if err != nil {
		t.Fatal(err)
	}
	if s.NumTrials() != len(k.values) {
		t.Errorf("%d trials, of %d it was told", s.NumTrials(), len(k.values))
	}
	for number, value := range k.values {
		trial, err := snap.Trial(number)
		if err != nil {
			t.Errorf("trial %d: %v", number, err)
			continue
		}
		var reports []float64
		for _, values := range trial.Reports() {
			reports = append(reports, values...)
		}
		if trial.State != study.Complete || !slices.Equal(trial.Values, []float64{value}) || !slices.Equal(reports, []float64{value, value + 1}) {
			t.Errorf("trial %d: %s with %v and reports %v, told was %v", number, trial.State, trial.Values, reports, value)
		}
	}
	found := func(f journal.Finding) {
		if f.Severity == journal.Fault { // and not what those killed had not published
			t.Error(f)
		}
	}
	if _, err := journal.Verify(t.Context(), path, journal.VerifyOptions{}, found); err != nil {
		t.Error(err)
	}
}

// sendRun sends a run's metrics until it is over, and says how many.
func sendRun(slug string, to []metrics.Target, over time.Time) (n int64, err error) {
	rt, err := metrics.Start(metrics.Options{Slug: slug, EmitterOptions: metrics.EmitterOptions{
		Targets: to, FlushEvery: 5 * time.Millisecond, CloseTimeout: longEnough, QueueBytes: 1 << 30,
	}})
	if err != nil {
		return 0, err
	}
	for time.Now().Before(over) {
		n++
		if err := rt.Run().Metric(n, "loss", metrics.Float(float64(n)), metrics.Meta("split", "train")); err != nil {
			return n, err
		}
		if n%20 == 0 {
			time.Sleep(3 * time.Millisecond)
		}
	}
	return n, rt.Done().Err()
}

// checkSent checks that a run's stream has every event once and in order.
func checkSent(t *testing.T, root, slug string, n int64) {
	names, err := filepath.Glob(filepath.Join(root, metrics.RunsDir, slug, "*"+metrics.Extension))
	if err != nil || len(names) != 1 {
		t.Fatalf("%s: %q, %v", slug, names, err)
	}
	b, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	if int64(len(lines)) != n+2 { // and what opens it and what ends it
		t.Errorf("%s: %d lines, want %d", slug, len(lines), n+2)
		return
	}
	for i, line := range lines[1 : n+1] {
		var e struct{ Step int64 }
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.Step != int64(i+1) {
			t.Errorf("%s: line %d is %s, %v", slug, i+2, line, err)
			return
		}
	}
}
