//go:build !windows

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"testing"
)

// TestAClosedOutputEndsQuietly runs a real process whose reader has gone, as
// head does to its left-hand side.
func TestAClosedOutputEndsQuietly(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer w.Close()
	var stderr bytes.Buffer
	cmd := exec.Command(self)
	cmd.Args = []string{"foldlog", "verify", "gone.log"} // the name makes the test binary foldlog
	cmd.Stdout, cmd.Stderr = w, &stderr
	err = cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 128+13 || stderr.Len() != 0 {
		t.Errorf("got %v and %q, want exit status 141 and silence", err, stderr.String())
	}
}
