//go:build !windows

package main

import (
	"bytes"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// together runs so many processes of one command line at once.
func together(t *testing.T, n int, args func(i int) []string) []result {
	t.Helper()
	results := make([]result, n)
	var done sync.WaitGroup
	for i := range n {
		done.Go(func() { results[i] = output(process(t, append([]string{"foldlog"}, args(i)...)...)) })
	}
	done.Wait()
	return results
}

// output runs a command to its end.
func output(cmd *exec.Cmd) result {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if cmd.ProcessState == nil {
		return result{status: -1, stderr: err.Error()}
	}
	return result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

func TestTailFollowsAWriterInAnotherProcess(t *testing.T) {
	t.Chdir(t.TempDir())
	mustDo(t, "study", "create", "a.atj", "--seed", "1")
	tail := process(t, "foldlog", "tail", "-f", "a.atj")
	stdout := started(t, tail)
	expect(t, stdout, mustDo(t, "cat", "a.atj", "--from", "1"))
	for i := range 5 {
		from := i*2 + 2 // an ask of a study without a space is two operations
		if got := output(process(t, "foldlog", "study", "ask", "a.atj")); got.status != 0 {
			t.Fatalf("ask %d: %+v", i, got)
		}
		for line := range strings.Lines(mustDo(t, "cat", "a.atj", "--from", strconv.Itoa(from))) {
			expect(t, stdout, line)
		}
	}
	interrupt(t, tail)
	if err := tail.Wait(); err != nil {
		t.Errorf("got %v, want exit status 0", err)
	}
}

func TestLiveJournalIsCopiedConsistently(t *testing.T) {
	t.Chdir(t.TempDir())
	mustDo(t, "study", "create", "a.atj", "--seed", "1")
	var writers sync.WaitGroup
	for range 2 {
		writers.Go(func() {
			for range 10 {
				if got := output(process(t, "foldlog", "study", "ask", "a.atj")); got.status != 0 {
					t.Errorf("ask: %+v", got)
				}
			}
		})
	}
	for i := range 10 {
		copied := fmt.Sprintf("copy-%d.atj", i)
		mustDo(t, "cp", "a.atj", copied)
		mustDo(t, "verify", copied)
	}
	writers.Wait()
	all := mustDo(t, "cat", "a.atj")
	for i := range 10 {
		if part := mustDo(t, "cat", fmt.Sprintf("copy-%d.atj", i)); !strings.HasPrefix(all, part) {
			t.Errorf("copy %d is no beginning of the journal", i)
		}
	}
}

func TestManyProcessesCreateOneStudy(t *testing.T) {
	t.Chdir(t.TempDir())
	created := 0
	for _, got := range together(t, 10, func(int) []string { return []string{"study", "create", "a.atj", "--open"} }) {
		if got.status != 0 {
			t.Errorf("create: %+v", got)
		}
		if strings.HasPrefix(got.stdout, "created") {
			created++
		}
	}
	all := mustDo(t, "cat", "a.atj")
	if n := strings.Count(all, `"kind":"create-study"`); n != 1 || created != 1 {
		t.Errorf("%d studies, and %d say that they created it", n, created)
	}
}

func TestManyProcessesEnqueueOneTrial(t *testing.T) {
	t.Chdir(t.TempDir())
	mustDo(t, "study", "create", "a.atj")
	created, want := 0, ""
	for i, got := range together(t, 8, func(int) []string { return []string{"study", "enqueue", "a.atj", "x=1", "--key", "baseline"} }) {
		if got.status != 0 {
			t.Fatalf("enqueue: %+v", got)
		}
		if got.stderr == "" {
			created++
		}
		if i == 0 {
			want = got.stdout
		}
		if diff := cmp.Diff(want, got.stdout); diff != "" {
			t.Errorf("another trial:\n%s", diff)
		}
	}
	all := mustDo(t, "cat", "a.atj")
	if n := strings.Count(all, `"kind":"lifecycle-reserve"`); n != 1 || created != 1 {
		t.Errorf("%d trials, and %d processes say nothing of one before", n, created)
	}
}

func TestManyProcessesNeverAskForTheSameTrial(t *testing.T) {
	t.Chdir(t.TempDir())
	mustDo(t, "study", "create", "a.atj", "--seed", "1")
	const n = 12
	budget := 0
	for _, got := range together(t, n, func(int) []string {
		return []string{"study", "ask", "a.atj", "--lease", "1m", "--budget", "8"}
	}) {
		if got.status != 0 && strings.Contains(got.stderr, "trial budget used up") {
			budget++
		} else if got.status != 0 {
			t.Errorf("ask: %+v", got)
		}
	}
	all := mustDo(t, "cat", "a.atj")
	claims := strings.Count(all, `"kind":"lifecycle-claim"`)
	if reserved := strings.Count(all, `"kind":"lifecycle-reserve"`); claims != 8 || reserved != 8 || budget != n-8 {
		t.Errorf("%d reserved, %d claimed, %d refused", reserved, claims, budget)
	}
}

func TestTakingOverFromAKilledWriterIsTold(t *testing.T) {
	t.Chdir(t.TempDir())
	mustDo(t, "study", "create", "a.atj", "--seed", "1")
	holder := process(t, "holder", "a.atj")
	expect(t, started(t, holder), "holding\n")
	if out := mustDo(t, "ls", "--json"); !strings.Contains(out, `"state":"live"`) {
		t.Errorf("ls of a journal whose lease is held printed %q", out)
	}
	if out := mustDo(t, "inspect", "a.atj", "--json"); !strings.Contains(out, fmt.Sprintf(`"pid": %d,`, holder.Process.Pid)) {
		t.Errorf("inspect does not name the holder: %q", out)
	}
	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	holder.Wait()
	got := output(process(t, "foldlog", "study", "ask", "a.atj"))
	want := fmt.Sprintf("took the journal over from worker 77 (process %d on ", holder.Process.Pid)
	if got.status != 0 || !strings.HasPrefix(got.stderr, want) || !strings.HasPrefix(got.stdout, "trial  0\n") {
		t.Errorf("got %+v, want trial 0 and %q", got, want)
	}
	mustDo(t, "verify", "a.atj")
}
