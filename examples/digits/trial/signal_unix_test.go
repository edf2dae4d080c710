//go:build !windows

package trial

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// TestASignalEndsTheStreamWithoutDone stops a real process in its work.
func TestASignalEndsTheStreamWithoutDone(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "--epochs", "10000")
	cmd.Env = append(os.Environ(), "DIGITS_TRAIN=1")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var stream bytes.Buffer
	chunk := make([]byte, 4096)
	for !strings.Contains(stream.String(), `"step":2,`) {
		n, err := stdout.Read(chunk)
		if err != nil {
			t.Fatalf("the stream ended before its second step: %v", err)
		}
		stream.Write(chunk[:n])
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.ReadFrom(stdout); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 128+15 {
		t.Errorf("got %v, want exit status 143", err)
	}
	list := events(t, stream.String())
	last := list[len(list)-1]
	if last.Kind != "annotation" || !strings.HasPrefix(last.Annotation, "interrupted by SIGTERM at step ") || last.Metadata["signal"] != "SIGTERM" {
		t.Errorf("the stream ends in %+v", last)
	}
}
