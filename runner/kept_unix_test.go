//go:build unix

package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/foldlog/foldlog/metrics"
	"github.com/foldlog/foldlog/study"
)

// script is a command that gets nothing but its environment.
func script(text string) []string {
	return []string{"sh", "-c", strings.NewReplacer("{", "{{", "}", "}}").Replace(text)}
}

// kept is a configuration that keeps everything beside the journal.
func kept(path, text string) Config {
	return Config{
		Command: script(text), Trials: 1, Journal: path, Grace: time.Minute, StopGrace: time.Minute,
		Logs: LogsPath(path), Runs: RunsPath(path), State: StatePath(path),
	}
}

// work runs a worker to its end.
func mustWork(t *testing.T, j *study.Journal, c Config) Report {
	t.Helper()
	report, err := Work(t.Context(), nil, j, c, nil)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestJobsRunAtOnce(t *testing.T) {
	path, j := newStudy(t)
	dir := t.TempDir()
	// Each command waits until three of them are there.
	c := Config{Journal: path, Trials: 9, Jobs: 3, Command: script(`
		touch '` + dir + `'/$FOLDLOG_TRIAL; until [ $(ls '` + dir + `' | wc -l) -ge 3 ]; do sleep 0.01; done; echo "{\"loss\":1}"`)}
	if report := mustWork(t, j, c); report.Complete != 9 {
		t.Errorf("report %+v, want 9 complete", report)
	}
	for _, tr := range trials(t, j) {
		if tr.Epoch != 1 || tr.State != study.Complete {
			t.Errorf("trial %d is %v at epoch %d", tr.Number, tr.State, tr.Epoch)
		}
	}
}

func TestATrialThatTakesTooLongFails(t *testing.T) {
	for name, text := range map[string]string{
		"it ends when asked":          `sleep 60`,
		"it ends well when asked":     `trap 'echo "{\"loss\":1}"; exit 0' TERM; sleep 60 & wait`,
		"it does not end":             `trap '' TERM; echo $$; while :; do sleep 0.1; done`,
		"a child of it does not end":  `(trap '' TERM; while :; do sleep 0.1; done) & wait`,
		"it has printed its result":   `echo "{\"loss\":1}"; sleep 60`,
		"it stops when it is stopped": `kill -STOP $$`,
	} {
		t.Run(name, func(t *testing.T) {
			path, j := newStudy(t)
			c := Config{Journal: path, Trials: 1, Command: script(text), TrialTimeout: 200 * time.Millisecond, StopGrace: 300 * time.Millisecond}
			report := mustWork(t, j, c)
			tr := trials(t, j)[0]
			if reason, _, _ := strings.Cut(tr.Error, "\n"); report.Failed != 1 || tr.State != study.Failed || reason != "timeout after 200ms" {
				t.Errorf("report %+v, trial is %v: %s", report, tr.State, tr.Error)
			}
		})
	}
}

func TestEnvironmentAndDirectoryAreOfTheTrial(t *testing.T) {
	path, j := newStudy(t)
	dir := t.TempDir()
	c := Config{
		Journal: path, Trials: 2, Dir: dir + "/run {trial} of {study}", Env: []string{"WHERE={here}", "X=[{x}]", "EMPTY="}, Here: dir,
		Command: script(`echo "$WHERE $X $EMPTY $FOLDLOG_JOURNAL" > out; echo "{\"loss\":1}"`),
	}
	mustWork(t, j, c)
	for _, tr := range trials(t, j) {
		got, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("run %d of s", tr.Number), "out"))
		x, _ := tr.Param("x")
		if want := fmt.Sprintf("%s [%s]  %s\n", dir, x.Text(), path); err != nil || string(got) != want {
			t.Errorf("trial %d wrote %q, want %q: %v", tr.Number, got, want, err)
		}
	}
}

func TestOutputIsInTheLog(t *testing.T) {
	path, j := newStudy(t)
	mustWork(t, j, kept(path, `echo out; echo err >&2; echo "{\"loss\":1}"`))
	tr := trials(t, j)[0]
	if got := TrialLog(tr); got != "s.atj.logs/s/0.log" {
		t.Errorf("log %q", got)
	}
	got, err := os.ReadFile(filepath.Join(filepath.Dir(path), TrialLog(tr)))
	for _, line := range []string{"out\n", "err\n", "{\"loss\":1}\n"} {
		if !strings.Contains(string(got), line) {
			t.Errorf("log %q lacks %q: %v", got, line, err)
		}
	}
}

func TestALogThatCannotBeWrittenFailsNoTrial(t *testing.T) {
	path, j := newStudy(t)
	c := kept(path, `echo "{\"loss\":1}"`)
	for _, dir := range []string{c.Logs, filepath.Join(c.Runs, metrics.RunsDir), c.State} {
		if err := os.WriteFile(dir, nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	missing := 0
	report, err := Work(t.Context(), nil, j, c, func(e Event) {
		if e.Kind == Missing {
			missing++
		}
	})
	if err != nil || report.Complete != 1 || missing != 3 {
		t.Errorf("report %+v, %d missing, error %v; want 1 complete and 3 missing", report, missing, err)
	}
}

func TestMetricsAreARun(t *testing.T) {
	path, j := newStudy(t)
	mustWork(t, j, kept(path, `echo "{\"loss\":3,\"acc\":1}"; echo "{\"loss\":2}"; echo "{\"lr\":7}"
		echo "{\"ts_ms\":1,\"step\":5,\"kind\":\"metric\",\"name\":\"loss\",\"value\":1,\"metadata\":{\"split\":\"eval\"}}"
		echo "{\"ts_ms\":1,\"step\":6,\"kind\":\"annotation\",\"annotation\":\"hello\",\"metadata\":{}}"`))
	slug, id := TrialRun(trials(t, j)[0])
	if slug != "s-0" {
		t.Errorf("slug %q", slug)
	}
	fold := readRun(t, metrics.StreamPath(filepath.Dir(path), slug, id))
	if fold.Slug != "s-0" || fold.Status != metrics.StatusDone || fold.Metrics != 5 || len(fold.Marks) != 1 || len(fold.Curves()) != 3 {
		t.Errorf("run %s is %v, %d metrics, %d marks, %d curves", fold.Slug, fold.Status, fold.Metrics, len(fold.Marks), len(fold.Curves()))
	}
	if x := fold.Metadata.Text("knobs"); !strings.Contains(x, `"x"`) || fold.Metadata.Text("trial") != "0" {
		t.Errorf("metadata %s", fold.Metadata)
	}
	if steps := fold.Curve("lr").Series; len(steps) != 1 || steps[0].Stats.LastStep != 1 {
		t.Errorf("lr at step %d, want that of the object before it", steps[0].Stats.LastStep)
	}
}

func readRun(t *testing.T, path string) *metrics.Fold {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var fold metrics.Fold
	checked, err := metrics.Check(f, metrics.CheckOptions{}, func(f metrics.Finding) { t.Errorf("finding: %v", f.LineError) })
	if err != nil || checked.Faults > 0 {
		t.Errorf("check: %+v, %v", checked, err)
	}
	if _, err := f.Seek(0, 0); err != nil {
		t.Fatal(err)
	}
	if err := metrics.ReadStream(f, func(it *metrics.Item) { fold.Apply(&it.Event) }); err != nil {
		t.Fatal(err)
	}
	return &fold
}

func TestAFailedTrialIsAFailedRun(t *testing.T) {
	path, j := newStudy(t)
	mustWork(t, j, kept(path, `echo no; exit 3`))
	slug, id := TrialRun(trials(t, j)[0])
	fold := readRun(t, metrics.StreamPath(filepath.Dir(path), slug, id))
	if fold.Status != metrics.StatusFailed || len(fold.MarksOf(metrics.NoteFailed)) != 1 || fold.MarksOf(metrics.NoteFailed)[0].Error != "exit status 3" {
		t.Errorf("run is %v: %+v", fold.Status, fold.Marks)
	}
}

// stopped runs a worker that is stopped once its command has written a file.
func stopped(t *testing.T, j *study.Journal, c Config, ready string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(ready); err == nil {
				stop()
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	report, err := Work(ctx, nil, j, c, nil)
	if err != nil || report.GivenBack != 1 {
		t.Fatalf("report %+v, error %v; want 1 given back", report, err)
	}
}

func TestAPausedTrialGoesOnWithItsState(t *testing.T) {
	for name, c := range map[string]struct{ state, kind string }{
		"small": {`{"epoch": 7}`, stateKind},
		"large": {`"` + strings.Repeat("x", MaxState) + `"`, statePathKind},
		"other": {`not JSON`, statePathKind},
	} {
		t.Run(name, func(t *testing.T) {
			path, j := newStudy(t)
			dir := t.TempDir()
			save := filepath.Join(dir, "save")
			if err := os.WriteFile(save, []byte(c.state), 0o666); err != nil {
				t.Fatal(err)
			}
			config := kept(path, `cd "$FOLDLOG_STATE_DIR"; if [ -e state.json ]; then cp state.json '`+dir+`/found'; echo "{\"loss\":2}"; exit; fi
				trap 'cp "`+save+`" state.json; exit 1' TERM; echo "{\"loss\":1}"; touch '`+dir+`/ready'; sleep 60 >/dev/null 2>&1 & wait`)
			stopped(t, j, config, filepath.Join(dir, "ready"))
			tr := trials(t, j)[0]
			if tr.State != study.Paused || tr.Blob == nil || tr.Blob.Kind != c.kind {
				t.Fatalf("trial is %v with the state %+v", tr.State, tr.Blob)
			}
			if c.kind == stateKind { // as on another machine
				if err := os.RemoveAll(config.State); err != nil {
					t.Fatal(err)
				}
			}
			if report := mustWork(t, j, config); report.Complete != 1 {
				t.Errorf("report %+v, want 1 complete", report)
			}
			got, err := os.ReadFile(filepath.Join(dir, "found"))
			if err != nil || !sameJSON(string(got), c.state) {
				t.Errorf("found %.80q, %v; want %.80q", got, err, c.state)
			}
			all := trials(t, j)
			if len(all) != 1 || all[0].Epoch != 2 || all[0].NumReports() != 2 {
				t.Errorf("%d trials, epoch %d, %d reports", len(all), all[0].Epoch, all[0].NumReports())
			}
			slug, id := TrialRun(all[0])
			fold := readRun(t, metrics.StreamPath(filepath.Dir(path), slug, id))
			if len(fold.Segments) != 2 || fold.Segments[0].Interrupted != "SIGTERM" || fold.Status != metrics.StatusDone {
				t.Errorf("run is %v with segments %+v", fold.Status, fold.Segments)
			}
		})
	}
}

// TestAPausedTrialThatWasDoneHasItsResult stops a command that has printed all, the
// last of it when it was asked to end.
func TestAPausedTrialThatWasDoneHasItsResult(t *testing.T) {
	path, j := newStudy(t)
	dir := t.TempDir()
	config := kept(path, `cd '`+dir+`'; test -e ready && exit
		trap 'echo "{\"loss\":5}"; exit' TERM; echo "{\"loss\":1}"; touch ready; sleep 60 >/dev/null 2>&1 & wait`)
	stopped(t, j, config, filepath.Join(dir, "ready"))
	if tr := trials(t, j)[0]; tr.State != study.Paused || tr.NumReports() != 2 {
		t.Fatalf("trial is %v with %d reports, want both", tr.State, tr.NumReports())
	}
	if report := mustWork(t, j, config); report.Complete != 1 {
		t.Errorf("report %+v, want 1 complete: %s", report, trials(t, j)[0].Error)
	}
	if tr := trials(t, j)[0]; !slices.Equal(tr.Values, []float64{5}) {
		t.Errorf("values %v, want what it reported last", tr.Values)
	}
}

func sameJSON(a, b string) bool {
	var x, y any
	if json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil {
		return fmt.Sprint(x) == fmt.Sprint(y)
	}
	return a == b
}

func TestEmptyStateDirectoriesAreRemoved(t *testing.T) {
	path, j := newStudy(t)
	c := kept(path, `test -d "$FOLDLOG_STATE_DIR" && echo "{\"loss\":1}"`)
	c.Trials = 3
	if report := mustWork(t, j, c); report.Complete != 3 {
		t.Errorf("report %+v, want 3 complete", report)
	}
	if _, err := os.Stat(c.State); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is there: %v", c.State, err)
	}
}

// TestBadCommandsEndWithAReason goes through what a command can do wrong. The
// study goes on each time.
func TestBadCommandsEndWithAReason(t *testing.T) {
	for name, c := range map[string]struct {
		text, reason string
		state        study.State
	}{
		"prints nothing":        {`:`, `the output has no value for "loss"`, study.Failed},
		"prints NaN":            {`echo "{\"loss\":NaN}"`, "", study.Complete},
		"prints nonsense":       {`echo "{\"loss\":\"high\"}"; echo "{\"loss\":"`, `the output has no value for "loss"`, study.Failed},
		"exits":                 {`exit 3`, "exit status 3", study.Failed},
		"is killed":             {`kill -KILL $$`, "signal: killed", study.Failed},
		"aborts":                {`kill -ABRT $$`, "signal: aborted", study.Failed},
		"does not exist":        {`exec /no/such/program`, "exit status 127", study.Failed},
		"forks":                 {`for i in 1 2 3 4 5; do sleep 60 >/dev/null 2>&1 & done; echo "{\"loss\":1}"`, "", study.Complete},
		"prints a lot":          {`yes 0123456789012345678901234567890123456789 | head -n 100000; echo "{\"loss\":1}"`, "", study.Complete},
		"prints a long line":    {`head -c 5000000 /dev/zero | tr '\0' x; echo; echo "{\"loss\":1}"`, "", study.Complete},
		"closes its output":     {`echo "{\"loss\":1}"; exec >&- 2>&-; sleep 0.2`, "", study.Complete},
		"prints binary":         {`head -c 100000 /dev/urandom; echo; echo "{\"loss\":1}"`, "", study.Complete},
		"reports huge steps":    {`echo "{\"step\":9223372036854775807,\"loss\":1}"; echo "{\"loss\":1}"`, "", study.Complete},
		"is a loop of children": {`for i in 1 2 3 4 5 6 7 8 9 10; do (echo "{\"loss\":$i}"); done`, "", study.Complete},
	} {
		t.Run(name, func(t *testing.T) {
			path, j := newStudy(t)
			config := kept(path, c.text)
			config.LogBytes = 200_000
			mustWork(t, j, config)
			tr := trials(t, j)[0]
			if reason, _, _ := strings.Cut(tr.Error, "\n"); tr.State != c.state || reason != c.reason {
				t.Errorf("trial is %v: %q, want %v: %q", tr.State, reason, c.state, c.reason)
			}
			for _, end := range []string{"", ".1"} {
				if info, err := os.Stat(filepath.Join(filepath.Dir(path), TrialLog(tr)+end)); err == nil && info.Size() > 100_000 {
					t.Errorf("the log%s has %d bytes", end, info.Size())
				}
			}
		})
	}
}

func TestTheLogKeepsTheEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x", "l.log")
	l := newLogFile(path, 200)
	for i := range 1000 {
		fmt.Fprintf(l, "%d\n", i)
		if i == 600 { // a pause
			if err := l.close(); err != nil {
				t.Fatal(err)
			}
			l = newLogFile(path, 200)
		}
	}
	if err := l.close(); err != nil {
		t.Fatal(err)
	}
	older, err1 := os.ReadFile(path + ".1")
	newer, err2 := os.ReadFile(path)
	all := string(older) + string(newer)
	if err := errors.Join(err1, err2); err != nil || len(older) > 100 || len(newer) > 100 || len(all) <= 100 || !strings.HasSuffix(all, "\n997\n998\n999\n") {
		t.Errorf("%v: %q", err, all)
	}
	lines := strings.Fields(all)
	if first := slices.Index(lines, "980"); first < 0 || len(lines)-first != 20 {
		t.Errorf("lines are missing between 980 and 999: %q", lines)
	}
}
