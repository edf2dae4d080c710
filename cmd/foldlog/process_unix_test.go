//go:build !windows

package main

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// process is this test binary as another command (see TestMain).
func process(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Args = args // the name makes it the command
	return cmd
}

// started starts a process, which ends with the test at the latest, and reads what it
// prints.
func started(t *testing.T, cmd *exec.Cmd) *bufio.Reader {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil { // nobody has waited for it
			cmd.Process.Kill()
			cmd.Wait()
		}
	})
	return bufio.NewReader(out)
}

// TestAClosedOutputEndsQuietly runs a process whose reader has gone, as head
// does to its left-hand side.
func TestAClosedOutputEndsQuietly(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer w.Close()
	var stderr bytes.Buffer
	cmd := process(t, "foldlog", "verify", "gone.log")
	cmd.Stdout, cmd.Stderr = w, &stderr
	err = cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 128+13 || stderr.Len() != 0 {
		t.Errorf("got %v and %q, want exit status 141 and silence", err, stderr.String())
	}
}

// following is a process that follows a log with one event, and has printed it.
func following(t *testing.T, event string) (cmd *exec.Cmd, stdout *bufio.Reader) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "a.log")
	if err := os.WriteFile(log, []byte("lines\n"+event+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	cmd = process(t, "linelog", "tail", "-f", log)
	stdout = started(t, cmd)
	expect(t, stdout, event+"\n")
	return cmd, stdout
}

func expect(t *testing.T, r *bufio.Reader, want string) {
	t.Helper()
	if line, err := r.ReadString('\n'); err != nil || line != want {
		t.Fatalf("read %q (%v), want %q", line, err, want)
	}
}

func interrupt(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
}

func TestAnInterruptEndsFollowing(t *testing.T) {
	cmd, _ := following(t, "1")
	interrupt(t, cmd)
	if err := cmd.Wait(); err != nil {
		t.Errorf("got %v, want exit status 0", err)
	}
}

func TestASecondInterruptKills(t *testing.T) {
	cmd, stdout := following(t, "stubborn")
	interrupt(t, cmd)
	expect(t, stdout, "draining\n")
	interrupt(t, cmd)
	err := cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		t.Fatalf("got %v, want an exit error", err)
	}
	if status := exit.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != syscall.SIGINT {
		t.Errorf("got %v, want to be killed by SIGINT", err)
	}
}
