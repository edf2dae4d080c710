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
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/foldlog/foldlog/internal/proctest"
	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/study"
)

// TestMain lets this binary be a worker process, and looks for goroutines that
// tests leave behind.
func TestMain(m *testing.M) {
	if os.Getenv("FOLDLOG_TEST_SUPERVISOR") != "" {
		os.Exit(superviseForTest())
	}
	proctest.Role("FOLDLOG_TEST_WORKER", func(string) error { return RunProcess(os.Stdin, os.Stdout) })
	os.Exit(proctest.Run(m))
}

// newStudy makes a journal with one study of one objective, "loss".
func newStudy(t *testing.T) (string, *study.Journal) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s.atj")
	j, err := study.CreateJournal(t.Context(), path, journal.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	seed := uint64(7)
	_, _, err = study.OpenOrCreate(t.Context(), j, study.Config{
		Name: "s", Directions: []study.Direction{study.Minimize}, Seed: &seed, MetricNames: []string{"loss"},
		Space: &study.Space{Params: []study.SpaceParam{
			{Name: "x", Dist: study.FloatDist{Low: -1, High: 1}},
			{Name: "opt", Dist: &study.CatDist{Version: 1, Choices: []study.Choice{study.StringChoice("a b"), study.IntChoice(3)}}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return path, j
}

// shell runs a script with x and opt as its arguments.
func shell(script string) []string {
	return []string{"sh", "-c", strings.ReplaceAll(script, "{", "{{"), "sh", "{x}", "{opt}"}
}

func supervisor(t *testing.T, path string, workers int, script string) *Supervisor {
	t.Helper()
	t.Setenv("FOLDLOG_TEST_WORKER", "1")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return &Supervisor{
		Config:  Config{Command: shell(script), Trials: 8, Journal: path, Grace: time.Minute},
		Workers: workers, Argv: []string{self}, Stderr: os.Stderr,
	}
}

func trials(t *testing.T, j *study.Journal) []*study.Trial {
	t.Helper()
	if err := j.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	return slices.Collect(j.Snapshot().Trials(0, study.TrialFilter{}))
}

func TestWorkersRunEveryTrialOnce(t *testing.T) {
	path, j := newStudy(t)
	log := filepath.Join(t.TempDir(), "log")
	// The first two wait for each other, so that no worker is too slow to have one.
	s := supervisor(t, path, 3, `echo "$FOLDLOG_TRIAL $1 $2 $FOLDLOG_PARAMS" >> '`+log+`'
		until [ $(wc -l < '`+log+`') -ge 2 ]; do sleep 0.01; done
		echo starting; for i in 1 2 3; do echo "{\"step\":$i,\"loss\":$1}"; done`)
	report, err := s.Run(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if report.Complete != 8 || report.Failed != 0 {
		t.Errorf("report %+v, want 8 complete", report)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "\n"); n != 8 {
		t.Errorf("the command ran %d times, want 8", n)
	}
	owners := map[uint64]bool{}
	for _, tr := range trials(t, j) {
		x, _ := tr.Param("x")
		opt, _ := tr.Param("opt")
		if tr.State != study.Complete || tr.NumReports() != 3 || tr.Values[0] != x.Value.F64() {
			t.Errorf("trial %d: %v, %d reports, values %v, x %v", tr.Number, tr.State, tr.NumReports(), tr.Values, x.Value)
		}
		line := fmt.Sprintf("%d %s %s {\"x\":%s,\"opt\":%s}", tr.Number,
			x.Value.AppendJSON(nil, x.Dist), strings.Trim(string(opt.Value.AppendJSON(nil, opt.Dist)), `"`),
			x.Value.AppendJSON(nil, x.Dist), opt.Value.AppendJSON(nil, opt.Dist))
		if !strings.Contains(string(text), line+"\n") {
			t.Errorf("no run got %s", line)
		}
		owners[tr.Owner] = true
	}
	if len(owners) < 2 {
		t.Errorf("%d workers had trials, want several", len(owners))
	}
}

func TestFailureHasTheEndOfTheOutputAndIsRetried(t *testing.T) {
	path, j := newStudy(t)
	s := supervisor(t, path, 2, `echo "{\"loss\":1}"; echo "no memory left" >&2; exit 3`)
	s.Config.Trials, s.Config.Retries = 2, 1
	report, err := s.Run(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if report.Failed != 4 || report.Retried != 2 {
		t.Errorf("report %+v, want 4 failed and 2 retried", report)
	}
	attempts := map[uint64]int{}
	for _, tr := range trials(t, j) {
		if tr.State != study.Failed || !strings.Contains(tr.Error, "exit status 3") || !strings.Contains(tr.Error, "no memory left") {
			t.Errorf("trial %d: %v, %q", tr.Number, tr.State, tr.Error)
		}
		attempts[tr.Attempt]++
		if parent, ok := tr.Parent(); ok {
			source, err := j.Snapshot().Trial(parent)
			if err != nil || source.Params[0].Value != tr.Params[0].Value {
				t.Errorf("trial %d does not repeat trial %d: %v", tr.Number, parent, err)
			}
		}
	}
	if attempts[1] != 2 || attempts[2] != 2 {
		t.Errorf("attempts %v, want two of each", attempts)
	}
}

func TestOutputWithoutTheMetricFails(t *testing.T) {
	path, j := newStudy(t)
	s := supervisor(t, path, 1, `echo "{\"accuracy\":1}"`)
	s.Config.Trials = 1
	if _, err := s.Run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	tr := trials(t, j)[0]
	if tr.State != study.Failed || !strings.Contains(tr.Error, `no value for "loss"`) {
		t.Errorf("trial is %v: %q", tr.State, tr.Error)
	}
}

func TestKilledWorkerIsNoticedAndItsTrialRetried(t *testing.T) {
	path, j := newStudy(t)
	marker := filepath.Join(t.TempDir(), "killed")
	// The first command that runs kills the worker above it.
	s := supervisor(t, path, 2, `if mkdir '`+marker+`' 2>/dev/null; then kill -KILL $PPID; sleep 60; fi; echo "{\"loss\":1}"`)
	// A worker that the machine lets starve for the grace is stale too, which more
	// retries make good.
	s.Config.Trials, s.Config.Retries, s.Config.Grace = 3, 9, time.Second
	report, err := s.Run(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if report.Stale == 0 || report.Retried != report.Stale || report.Complete != 3 {
		t.Errorf("report %+v, want at least 1 stale, all of them retried, 3 complete", report)
	}
	for _, tr := range trials(t, j) {
		if tr.State == study.Failed && !strings.Contains(tr.Error, "stale") {
			t.Errorf("trial %d failed: %s", tr.Number, tr.Error)
		}
	}
}

// A disk that cannot be written is told once by each worker, as what it is.
func TestWhatTheSystemSaidIsKnownOfAWorkerProcess(t *testing.T) {
	path, _ := newStudy(t)
	s := supervisor(t, path, 1, `echo "{\"loss\":1}"`)
	var printed strings.Builder
	s.Stderr = &printed
	if err := os.Rename(path+".d/lease", path+".d/moved"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".d/lease", nil, 0o666); err != nil {
		t.Fatal(err)
	}
	_, err := s.Run(t.Context(), nil)
	if !errors.Is(err, syscall.ENOTDIR) || !strings.Contains(err.Error(), "worker process 1: ") || printed.Len() > 0 {
		t.Errorf("error %v, printed %q; want that it is no directory, told once", err, &printed)
	}
}

func TestAllWorkersKilledIsAnError(t *testing.T) {
	path, _ := newStudy(t)
	s := supervisor(t, path, 1, `kill -KILL $PPID; sleep 60`)
	_, err := s.Run(t.Context(), nil)
	var killed *KilledError
	if !errors.As(err, &killed) {
		t.Errorf("error %v, want a KilledError", err)
	}
}

func TestDrainFinishesWhatRuns(t *testing.T) {
	path, j := newStudy(t)
	s := supervisor(t, path, 2, `sleep 0.5; echo "{\"loss\":1}"`)
	s.Config.Trials = 100
	drain := make(chan struct{})
	var once sync.Once
	s.OnEvent = func(_ int, e Event) {
		if e.Kind == Started {
			once.Do(func() { close(drain) })
		}
	}
	report, err := s.Run(t.Context(), drain)
	if err != nil {
		t.Fatal(err)
	}
	for _, tr := range trials(t, j) {
		if tr.State != study.Complete {
			t.Errorf("trial %d is %v after the drain", tr.Number, tr.State)
		}
	}
	if report.Complete == 0 || report.Complete == 100 {
		t.Errorf("report %+v, want those that ran alone", report)
	}
}

func TestStopGivesTrialsBackAndTheNextRunTakesThemUp(t *testing.T) {
	path, j := newStudy(t)
	slow := filepath.Join(t.TempDir(), "slow")
	if err := os.Mkdir(slow, 0o777); err != nil {
		t.Fatal(err)
	}
	s := supervisor(t, path, 2, `test -d '`+slow+`' && { echo "{\"loss\":9}"; sleep 60; }; echo "{\"loss\":1}"`)
	s.Config.Trials = 3
	ctx, stop := context.WithCancel(t.Context())
	started := 0
	s.OnEvent = func(_ int, e Event) {
		if e.Kind == Started {
			if started++; started == 2 {
				stop()
			}
		}
	}
	report, err := s.Run(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	if report.GivenBack != 2 {
		t.Fatalf("report %+v, want 2 given back", report)
	}
	if err := os.Remove(slow); err != nil {
		t.Fatal(err)
	}
	s.OnEvent = nil
	if report, err = s.Run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	all := trials(t, j)
	if len(all) != 3 || report.Complete != 3 {
		t.Errorf("%d trials, report %+v; want 3 complete", len(all), report)
	}
	for _, tr := range all {
		if tr.State != study.Complete || tr.Values[0] != 1 {
			t.Errorf("trial %d is %v with %v", tr.Number, tr.State, tr.Values)
		}
	}
}

func TestLateResultIsKeptBesideTheJournal(t *testing.T) {
	path, j := newStudy(t)
	c := Config{Command: shell(`echo "{\"loss\":0.5}"; sleep 1`), Trials: 1, Journal: path, Grace: time.Minute}
	var late []Event
	tell := func(e Event) {
		switch e.Kind {
		case Started:
			// Somebody takes the trial away while its command runs.
			o := study.Observation{Trial: e.Trial, State: study.Running, Owner: e.Worker, Epoch: e.Epoch, HeartbeatSeq: 1, ElapsedMillis: 1, GraceMillis: 1}
			tr, err := j.Snapshot().Trial(e.Trial)
			if err != nil {
				t.Error(err)
				return
			}
			o.HeartbeatMillis = tr.HeartbeatMillis
			if err := j.Update(t.Context(), func(tx *study.Tx) error { return tx.LifecycleFailStale(o, "stale", nil) }); err != nil {
				t.Error(err)
			}
		case Late:
			late = append(late, e)
		}
	}
	report, err := Work(t.Context(), nil, j, c, tell)
	if err != nil || report.Late != 1 || len(late) != 1 {
		t.Fatalf("report %+v, events %+v, error %v", report, late, err)
	}
	b, err := os.ReadFile(LatePath(path))
	if err != nil {
		t.Fatal(err)
	}
	var kept struct {
		Number uint64
		Epoch  uint64
		Values []float64
		Why    string
	}
	if err := json.Unmarshal(b, &kept); err != nil || kept.Epoch != 1 || !slices.Equal(kept.Values, []float64{0.5}) || kept.Why == "" {
		t.Errorf("kept %s: %v", b, err)
	}
}

func TestSecondRunContinues(t *testing.T) {
	path, j := newStudy(t)
	s := supervisor(t, path, 2, `echo "{\"loss\":1}"`)
	for _, n := range []uint64{3, 5, 5} {
		s.Config.Trials = n
		if _, err := s.Run(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if got := len(trials(t, j)); got != int(n) {
			t.Errorf("%d trials after a run with a budget of %d", got, n)
		}
	}
}

func TestOrphanedWorkerStopsItsCommand(t *testing.T) {
	path, j := newStudy(t)
	pidFile := filepath.Join(t.TempDir(), "pid")
	s := supervisor(t, path, 1, `echo $$ > '`+pidFile+`.new'; mv '`+pidFile+`.new' '`+pidFile+`'; sleep 60`)
	ctx, gone := context.WithCancel(t.Context())
	s.OnEvent = func(_ int, e Event) {
		if e.Kind == Started {
			for {
				if _, err := os.Stat(pidFile); err == nil {
					break
				}
				time.Sleep(5 * time.Millisecond)
			}
			gone() // closes the worker's input, as our death would
		}
	}
	if _, err := s.Run(ctx, nil); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	fmt.Sscan(string(b), &pid)
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the command still runs: %v", err)
	}
	if tr := trials(t, j)[0]; tr.State != study.Paused {
		t.Errorf("trial is %v, want Paused", tr.State)
	}
}

func TestCheckRefusesWhatCannotWork(t *testing.T) {
	_, j := newStudy(t)
	good := Config{Command: []string{"sh", "-c", "true", "{x}"}}
	if err := good.Check(j.Snapshot()); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Config){
		"a study that is not there":     func(c *Config) { c.Study = 3 },
		"a program that is not there":   func(c *Config) { c.Command[0] = "no-such-program" },
		"an unknown placeholder":        func(c *Config) { c.Command[3] = "{y}" },
		"two metrics for one direction": func(c *Config) { c.Metrics = []string{"a", "b"} },
		"a grace too short":             func(c *Config) { c.Grace = time.Millisecond },
	} {
		t.Run(name, func(t *testing.T) {
			c := good
			c.Command = slices.Clone(good.Command)
			change(&c)
			if err := c.Check(j.Snapshot()); err == nil {
				t.Error("no error")
			}
		})
	}
}

func TestCommandIsDoneThoughAChildKeepsItsOutput(t *testing.T) {
	path, j := newStudy(t)
	pidFile := filepath.Join(t.TempDir(), "pid")
	s := supervisor(t, path, 1, `echo "{\"loss\":1}"; sleep 60 & echo $! > '`+pidFile+`'`)
	s.Config.Trials = 1
	if _, err := s.Run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if tr := trials(t, j)[0]; tr.State != study.Complete {
		t.Errorf("trial is %v: %q", tr.State, tr.Error)
	}
	if pid := readPID(t, pidFile); !gone(pid) {
		t.Errorf("process %d was left running", pid)
	}
}

func TestOutputOfAChildThatEndsAfterTheCommandIsRead(t *testing.T) {
	path, j := newStudy(t)
	s := supervisor(t, path, 1, `{ sleep 0.3; echo "{\"loss\":2}"; } & echo "{\"loss\":1}"`)
	s.Config.Trials = 1
	if _, err := s.Run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if tr := trials(t, j)[0]; !slices.Equal(tr.Values, []float64{2}) {
		t.Errorf("trial is %v with %v, want 2", tr.State, tr.Values)
	}
}

// readPID reads the number of a process that a command wrote down.
func readPID(t *testing.T, path string) (pid int) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscan(string(b), &pid); err != nil {
		t.Fatal(err)
	}
	return pid
}

// gone tells whether a process that was killed is gone, but for what remains of
// one that nobody waits for.
func gone(pid int) bool {
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || err == nil
		}
	}
	return false
}

func TestRunOfAShortGraceLeavesTheTrialsOfALongOneAlone(t *testing.T) {
	path, j := newStudy(t)
	c := Config{Command: shell(`echo "{\"loss\":1}"; sleep 1.5`), Trials: 1, Journal: path, Grace: time.Minute}
	impatient := c
	impatient.Grace = MinGrace
	other, err := study.OpenJournal(t.Context(), path, journal.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	var wg sync.WaitGroup
	tell := func(e Event) {
		if e.Kind != Started {
			return
		}
		wg.Go(func() {
			if report, err := Work(t.Context(), nil, other, impatient, nil); err != nil || report.Stale > 0 {
				t.Errorf("the impatient run: %+v, %v", report, err)
			}
		})
	}
	report, err := Work(t.Context(), nil, j, c, tell)
	wg.Wait()
	if err != nil || report.Complete != 1 {
		t.Errorf("report %+v, error %v; want 1 complete", report, err)
	}
}

func TestKilledWorkerTakesAllOfItsCommandAlong(t *testing.T) {
	path, _ := newStudy(t)
	pidFile := filepath.Join(t.TempDir(), "pid")
	s := supervisor(t, path, 1, `sleep 60 & echo $! > '`+pidFile+`'; sleep 0.5; kill -KILL $PPID; wait`)
	_, err := s.Run(t.Context(), nil)
	var killed *KilledError
	if !errors.As(err, &killed) {
		t.Fatalf("error %v, want a KilledError", err)
	}
	if pid := readPID(t, pidFile); !gone(pid) {
		t.Errorf("process %d was left running", pid)
	}
}
