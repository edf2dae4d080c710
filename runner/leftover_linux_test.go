package runner

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/foldlog/foldlog/study"
)

// TestWhatBothSupervisorAndWorkerLeftIsKilledByTheNextRun kills them at one moment,
// so that nobody is left to end what the command has started.
func TestWhatBothSupervisorAndWorkerLeftIsKilledByTheNextRun(t *testing.T) {
	path, j := newStudy(t)
	dir := t.TempDir()
	t.Setenv("FOLDLOG_TEST_WORKER", "1")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Command: shell(`cd '` + dir + `'; test -e child && { echo '{"loss":1}'; exit; }
		setsid sh -c 'echo $$ > stays; exec sleep 60' & sh -c 'echo $$ > child; exec sleep 60' & sleep 60`),
		Trials: 1, Journal: path, Grace: time.Second, Retries: 1}
	v := startSupervised(t, testOrder{Config: c, Workers: 1, Argv: []string{self}})
	waitFor(t, filepath.Join(dir, "child"), filepath.Join(dir, "stays"))
	pids := v.heard(t, 2)
	for _, pid := range pids {
		syscall.Kill(pid, syscall.SIGSTOP) // neither sees the other die
	}
	for _, pid := range slices.Backward(pids) { // the worker first: the death of its parent wakes one that was stopped
		syscall.Kill(pid, syscall.SIGKILL)
	}
	<-v.done
	child, stays := readPID(t, filepath.Join(dir, "child")), readPID(t, filepath.Join(dir, "stays"))
	defer syscall.Kill(stays, syscall.SIGKILL)
	if syscall.Kill(child, 0) != nil {
		t.Fatal("nothing was left to be killed")
	}
	other, _ := newStudy(t)
	if n := killLeftovers(other); n > 0 {
		t.Errorf("a run of another journal killed %d processes", n)
	}
	var cleared []string
	_, err = Work(t.Context(), nil, j, c, func(e Event) {
		if e.Kind == Cleared {
			cleared = append(cleared, e.Text)
		}
	})
	if err != nil || len(cleared) != 1 {
		t.Errorf("told %q, error %v", cleared, err)
	}
	if !gone(child) {
		t.Errorf("process %d was left running", child)
	}
	if err := syscall.Kill(stays, 0); err != nil {
		t.Errorf("the process with a session of its own: %v", err)
	}
	if all := trials(t, j); len(all) != 2 || all[0].State != study.Failed || all[1].State != study.Complete {
		t.Errorf("%d trials, the first %v", len(all), all[0].State)
	}
}

// waitFor waits until files have something in them.
func waitFor(t *testing.T, paths ...string) {
	t.Helper()
	for _, path := range paths {
		for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
			if info, err := os.Stat(path); err == nil && info.Size() > 0 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s was not written", path)
			}
		}
	}
}
