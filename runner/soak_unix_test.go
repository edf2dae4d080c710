//go:build unix

package runner

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/foldlog/foldlog/internal/proctest"
	"github.com/foldlog/foldlog/study"
	"github.com/foldlog/foldlog/study/sampler"
)

// testOrder says what a supervisor process does.
type testOrder struct {
	Config  Config
	Workers int
	Argv    []string
	Term    time.Duration
}

// superviseForTest is a process that runs the Supervisor of FOLDLOG_TEST_SUPERVISOR
// and prints the ids of its worker processes.
func superviseForTest() int {
	var o testOrder
	if err := json.Unmarshal([]byte(os.Getenv("FOLDLOG_TEST_SUPERVISOR")), &o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	os.Unsetenv("FOLDLOG_TEST_SUPERVISOR")
	os.Setenv("FOLDLOG_TEST_WORKER", "1")
	s := Supervisor{
		Config: o.Config, Workers: o.Workers, Argv: o.Argv, Term: o.Term, Stderr: os.Stderr,
		OnStart: func(_, pid int, _ uint64) { fmt.Println(pid) },
	}
	if _, err := s.Run(context.Background(), nil); err != nil {
		return 1
	}
	return 0
}

// supervised is a supervisor process that is hunted.
type supervised struct {
	cmd  *exec.Cmd
	mu   sync.Mutex
	pids []int
	done chan struct{}
}

func startSupervised(t *testing.T, s testOrder) *supervised {
	t.Helper()
	order, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	v := &supervised{cmd: exec.Command(s.Argv[0]), done: make(chan struct{})}
	v.cmd.Env = append(os.Environ(), "FOLDLOG_TEST_SUPERVISOR="+string(order))
	v.cmd.Stderr = os.Stderr
	out, err := v.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := v.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	v.pids = []int{v.cmd.Process.Pid}
	go func() {
		defer close(v.done)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var pid int
			if _, err := fmt.Sscan(lines.Text(), &pid); err == nil {
				v.mu.Lock()
				v.pids = append(v.pids, pid)
				v.mu.Unlock()
			}
		}
		v.cmd.Wait()
	}()
	return v
}

// heard returns the ids of the supervisor and its workers, once so many are known.
func (v *supervised) heard(t *testing.T, n int) []int {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		v.mu.Lock()
		pids := slices.Clone(v.pids)
		v.mu.Unlock()
		if len(pids) >= n {
			return pids
		}
	}
	t.Fatalf("%d processes were not heard of", n)
	return nil
}

// hunt kills processes at random until the supervisor has ended: any of them while
// kills are left. It tells whether the supervisor came to its end by itself.
func (v *supervised) hunt(rng *rand.Rand, kills *int) (finished bool) {
	for {
		select {
		case <-v.done:
			return v.cmd.ProcessState.Success()
		case <-time.After(time.Duration(20+rng.IntN(400)) * time.Millisecond):
		}
		if *kills == 0 {
			continue
		}
		*kills--
		v.mu.Lock()
		i := rng.IntN(len(v.pids))
		syscall.Kill(v.pids[i], syscall.SIGKILL)
		if i > 0 {
			v.pids = append(v.pids[:i], v.pids[i+1:]...)
		}
		v.mu.Unlock()
	}
}

// TestSoakKilledWorkers kills workers and their supervisors at random through whole
// studies, with both a sampler that looks at all trials and one that follows generations.
func TestSoakKilledWorkers(t *testing.T) {
	long := proctest.Lasts(t, 0)
	began := time.Now()
	for round := uint64(0); round < 2 || time.Since(began) < long; round++ {
		seed := uint64(time.Now().UnixNano())
		t.Logf("round %d, seed %d", round, seed)
		rng := rand.New(rand.NewPCG(seed, 0))
		trials, kills := uint64(12), 3
		if long > 0 {
			trials, kills = 60, 25
		}
		huntStudy(t, rng, []string{"tpe:startup=4", "cmaes"}[round%2], trials, kills)
		if t.Failed() {
			return
		}
	}
}

func huntStudy(t *testing.T, rng *rand.Rand, samplerName string, budget uint64, kills int) {
	path, j := newStudy(t)
	choose(t, j, sampler.Attribute, samplerName)
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := kept(path, `
		cd '`+dir+`'
		if [ -e $FOLDLOG_TRIAL ] && kill -0 $(cat $FOLDLOG_TRIAL) 2>/dev/null; then echo $FOLDLOG_TRIAL >> twice; fi
		echo $$ > $FOLDLOG_TRIAL; echo x >> $FOLDLOG_TRIAL.starts
		echo "{\"loss\":1}"; sleep 0.0$(($$ % 10)); echo "{\"loss\":0.$$}"`)
	c.Trials, c.Jobs, c.Retries, c.Grace = budget, 2, 3, 600*time.Millisecond
	s := testOrder{Config: c, Workers: 3, Argv: []string{self}, Term: 200 * time.Millisecond}
	for n := 0; ; n++ {
		if startSupervised(t, s).hunt(rng, &kills) && kills == 0 {
			break
		}
		if st, _ := j.Snapshot().Study(0); j.Refresh(t.Context()) == nil && st.Counts()[study.Complete]+st.Counts()[study.Failed] >= int(budget) {
			kills = 0 // nothing is left to be hunted at
		}
		if n > 200 {
			t.Fatal("the study does not end")
		}
	}
	checkHunted(t, j, c, dir)
}

// checkHunted holds a study that is done against what it should be.
func checkHunted(t *testing.T, j *study.Journal, c Config, dir string) {
	t.Helper()
	all := trials(t, j)
	st, _ := j.Snapshot().Study(0)
	if st.Reserved() != c.Trials {
		t.Errorf("%d trials reserved, the budget is %d", st.Reserved(), c.Trials)
	}
	if twice, err := os.ReadFile(filepath.Join(dir, "twice")); err == nil {
		t.Errorf("trials ran twice at once: %q", twice)
	}
	repeats := map[study.TrialID]int{}
	for _, tr := range all {
		parent, isRetry := tr.Parent()
		if isRetry {
			repeats[parent]++
		}
		if isRetry != (tr.Attempt > 1) || tr.Attempt > 1+c.Retries {
			t.Errorf("trial %d is attempt %d, a retry: %v", tr.Number, tr.Attempt, isRetry)
		}
		if !tr.State.Terminal() || tr.State == study.Failed && tr.Error == "" || tr.State == study.Complete && len(tr.Params) != 2 {
			t.Errorf("trial %d is %v (%q) with %d parameters", tr.Number, tr.State, tr.Error, len(tr.Params))
		}
		starts, _ := os.ReadFile(filepath.Join(dir, fmt.Sprint(tr.Number)+".starts"))
		if n := strings.Count(string(starts), "x"); uint64(n) > tr.Epoch {
			t.Errorf("trial %d was started %d times in %d epochs", tr.Number, n, tr.Epoch)
		}
	}
	for _, tr := range all {
		want := 0
		if tr.State == study.Failed && tr.Attempt <= c.Retries {
			want = 1
		}
		if repeats[tr.ID] != want {
			t.Errorf("trial %d is %v at attempt %d and has %d retries, want %d: %s", tr.Number, tr.State, tr.Attempt, repeats[tr.ID], want, tr.Error)
		}
	}
}

// TestSoakManyWorkers runs a thousand trials by sixteen processes on one journal.
func TestSoakManyWorkers(t *testing.T) {
	budget, workers := uint64(48), 6
	if proctest.Lasts(t, 0) > 0 {
		budget, workers = 1000, 16
	} else if testing.Short() {
		budget = 16
	}
	path, j := newStudy(t)
	t.Setenv("FOLDLOG_TEST_WORKER", "1")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := kept(path, `echo "{\"loss\":1}"`)
	c.Trials = budget
	s := Supervisor{Config: c, Workers: workers, Argv: []string{self}, Stderr: os.Stderr, OnEvent: func(_ int, e Event) {
		if e.Kind != Started && e.Kind != Finished {
			t.Errorf("%s: %s", e.Kind, e.Text)
		}
	}}
	report, err := s.Run(t.Context(), nil)
	if err != nil || report.Complete != int(budget) {
		t.Errorf("report %+v, error %v; want %d complete", report, err, budget)
	}
	if n := len(trials(t, j)); n != int(budget) {
		t.Errorf("%d trials, want %d", n, budget)
	}
}
