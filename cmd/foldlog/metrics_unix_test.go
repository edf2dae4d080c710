//go:build !windows

package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/foldlog/foldlog/internal/logkind"
	"github.com/foldlog/foldlog/internal/metricsview"
	"github.com/foldlog/foldlog/metrics"
)

// recording is a process that records what is written to it, and has passed the
// first line on.
func recording(t *testing.T, input string, args ...string) (cmd *exec.Cmd, path string, stderr *bufio.Reader, end func()) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "run.jsonl")
	cmd = process(t, append([]string{"foldlog", "metrics", "record", "--to", "jsonl:" + path}, args...)...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	told, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr = bufio.NewReader(told)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	if _, err := stdin.Write([]byte(input)); err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(input, "\n")
	expect(t, bufio.NewReader(stdout), first+"\n")
	return cmd, path, stderr, func() { stdin.Close() }
}

// heardSignal sends a recording a signal, and returns once it has heard it: what of both
// the signal and the end of the input a busy machine lets a process see first is its affair.
func heardSignal(t *testing.T, cmd *exec.Cmd, stderr *bufio.Reader, signal syscall.Signal) {
	t.Helper()
	if err := cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	if line, err := stderr.ReadString('\n'); err != nil || !strings.Contains(line, "interrupted; reading on") {
		t.Fatalf("%v: %s", err, line)
	}
}

// endedWith waits for the end of a recording, which has that status.
func endedWith(t *testing.T, cmd *exec.Cmd, stderr *bufio.Reader, want int) {
	t.Helper()
	said, _ := io.ReadAll(stderr)
	if got := exitStatus(cmd.Wait()); got != want {
		t.Errorf("exit status %d: %s", got, said)
	}
}

func runOf(t *testing.T, path string) *metricsview.Run {
	t.Helper()
	run, err := logkind.World{}.ReadRun(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func exitStatus(err error) int {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	return 0
}

func TestASignalEndsARecordingWithItsInterruption(t *testing.T) {
	for _, tc := range []struct {
		signal syscall.Signal
		name   string
		closes bool // the training run ends at the signal too
	}{
		{syscall.SIGINT, "SIGINT", true},
		{syscall.SIGTERM, "SIGTERM", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cmd, path, stderr, end := recording(t, "step=7 loss=0.5\n", "--slug", "r")
			heardSignal(t, cmd, stderr, tc.signal)
			if tc.closes {
				end()
			}
			endedWith(t, cmd, stderr, 128+int(tc.signal))
			run := runOf(t, path)
			marks := run.Fold.MarksOf(metrics.NoteInterrupted)
			if len(marks) != 1 || marks[0].Signal != tc.name || marks[0].Step != 7 || run.Fold.Status != metrics.StatusRunning || run.Fold.Metrics != 1 {
				t.Errorf("%+v, %s, %d metrics", marks, run.Fold.Status, run.Fold.Metrics)
			}
		})
	}
}

func TestARunThatSaysItselfThatItWasInterruptedSaysItOnce(t *testing.T) {
	const events = `{"ts_ms":1,"kind":"open","slug":"r","description":"","metadata":{}}
{"ts_ms":2,"step":3,"kind":"annotation","annotation":"interrupted by SIGTERM at step 3","metadata":{"signal":"SIGTERM"}}
`
	cmd, path, stderr, end := recording(t, events)
	// What is in the pipe before the signal is read in any case.
	heardSignal(t, cmd, stderr, syscall.SIGTERM)
	end()
	endedWith(t, cmd, stderr, 128+15)
	if marks := runOf(t, path).Fold.MarksOf(metrics.NoteInterrupted); len(marks) != 1 {
		t.Errorf("%d interruptions", len(marks))
	}
}

func TestAKilledRecordingLeavesWholeLines(t *testing.T) {
	cmd, path, _, _ := recording(t, "step=1 loss=0.5\n", "--slug", "r")
	for deadline := time.Now().Add(longEnough); ; time.Sleep(5 * time.Millisecond) {
		if data, _ := os.ReadFile(path); bytes.Count(data, []byte("\n")) == 2 {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("the file has %q", data)
		}
	}
	cmd.Process.Kill()
	cmd.Wait()
	if run := runOf(t, path); run.Bad+run.Torn != 0 || run.Fold.Status != metrics.StatusRunning {
		t.Errorf("%d bad, %d torn, %s", run.Bad, run.Torn, run.Fold.Status)
	}
}

func TestTailFollowsAStreamThatIsTornTruncatedAndReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.jsonl")
	line := func(step string) string {
		return `{"ts_ms":2,"step":` + step + `,"kind":"metric","name":"loss","value":0.5,"metadata":{}}` + "\n"
	}
	put := func(flag int, text string) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|flag, 0o666)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	put(0, line("1")+line("2")+line("3")[:20])
	cmd := process(t, "foldlog", "tail", "-f", "-n", "1", path)
	stdout := started(t, cmd)
	expect(t, stdout, line("2"))
	put(os.O_APPEND, line("3")[20:])
	expect(t, stdout, line("3"))
	put(os.O_TRUNC, line("4"))
	expect(t, stdout, line("4"))
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	put(0, "garbage\n"+line("5"))
	expect(t, stdout, line("5"))
	interrupt(t, cmd)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

func TestAPlotFollowsItsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.jsonl")
	cmd := process(t, "foldlog", "metrics", "plot", "-f", path, "--height", "3", "--width", "30")
	stdout := started(t, cmd)
	until := func(text string) {
		t.Helper()
		for {
			line, err := stdout.ReadString('\n')
			if err != nil {
				t.Fatalf("%q does not come: %v", text, err)
			}
			if strings.Contains(line, text) {
				return
			}
		}
	}
	for _, value := range []string{"0.5", "0.25"} {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o666)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(`{"ts_ms":2,"step":1,"kind":"metric","name":"loss","value":` + value + `,"metadata":{}}` + "\n"); err != nil {
			t.Fatal(err)
		}
		f.Close()
		until("last " + value)
	}
	if err := os.WriteFile(path, []byte(`{"ts_ms":2,"step":1,"kind":"metric","name":"loss","value":9,"metadata":{}}`+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	until("last 9")
	interrupt(t, cmd)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
