//go:build unix

package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/metrics"
	"github.com/foldlog/foldlog/study"
)

// TestAServerThatIsKilledUnderARunHasEveryRunWhole kills a server while the workers of a
// study there run trials and their runs are sent: every trial is complete once, and the
// run of each is at the server as it was written.
func TestAServerThatIsKilledUnderARunHasEveryRunWhole(t *testing.T) {
	root, kept, address := t.TempDir(), t.TempDir(), servedAt(t)
	newSearch(t, filepath.Join(root, "search.atj"))
	ctx, cancel := context.WithTimeout(t.Context(), longEnough)
	defer cancel()
	times := 3
	if testing.Short() {
		times = 1
	}
	trials := 8 * times
	var run sync.WaitGroup
	run.Go(func() {
		k := newKillable(ctx, t, address)
		defer k.http.CloseIdleConnections()
		if status := k.until("GET", "/api/v1/studies", nil, nil); status != http.StatusOK {
			t.Errorf("the server answers %d", status)
		}
		// This is the foldlog that TestMain has made: it starts workers of its own name.
		cmd := exec.CommandContext(ctx, "foldlog", "study", "run", k.base+"/search.atj", "--trials", fmt.Sprint(trials), "--workers", "2", "--jobs", "2",
			"--runs", kept, "--logs", "none", "--state", "none", "--", "sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10; do echo loss=$i; sleep 0.1; done")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("study run: %v\n%s", err, out)
		}
	})
	kills(ctx, t, root, address, times, &run)
	intact(t, filepath.Join(root, "search.atj"))
	r, err := study.OpenJournalReader(filepath.Join(root, "search.atj"), journal.ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if n := r.Snapshot().NumTrials(); n != trials {
		t.Errorf("%d trials, not %d", n, trials)
	}
	for trial := range r.Snapshot().Trials(0, study.TrialFilter{}) {
		if trial.State != study.Complete || trial.NumReports() != 10 {
			t.Errorf("trial %d is %s with %d reports: %s", trial.Number, trial.State, trial.NumReports(), trial.Error)
		}
		sameRun(t, root, kept, fmt.Sprintf("search-%d", trial.Number))
	}
}

// newSearch makes a journal with one study.
func newSearch(t *testing.T, path string) {
	t.Helper()
	j, err := study.CreateJournal(t.Context(), path, journal.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	_, _, err = study.OpenOrCreate(t.Context(), j, study.Config{
		Name: "search", Directions: []study.Direction{study.Minimize}, MetricNames: []string{"loss"},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// sameRun wants a run under two roots, in one stream each, of the same bytes, with its
// end.
func sameRun(t *testing.T, root, kept, slug string) {
	t.Helper()
	var texts [2][]byte
	for i, dir := range []string{root, kept} {
		files, err := filepath.Glob(filepath.Join(dir, metrics.RunsDir, slug, "*.jsonl"))
		if err != nil || len(files) != 1 {
			t.Errorf("%s: the streams are %v under %s, %v", slug, files, dir, err)
			return
		}
		if texts[i], err = os.ReadFile(files[0]); err != nil {
			t.Error(err)
		}
	}
	if !bytes.Equal(texts[0], texts[1]) || bytes.Count(texts[0], []byte(`"kind":"metric"`)) != 10 || bytes.Count(texts[0], []byte(`"kind":"done"`)) != 1 {
		t.Errorf("%s: the server has\n%s\nof\n%s", slug, texts[0], texts[1])
	}
}
