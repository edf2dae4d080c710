//go:build !windows

package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/study"
)

// remoteTail is a foldlog tail -f of a log at a server.
type remoteTail struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines *bufio.Reader
}

func tailAt(t *testing.T, address string) *remoteTail {
	t.Helper()
	cmd := process(t, "foldlog", "tail", "-f", "-n", "1", address)
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = t.Output()
	return &remoteTail{t, cmd, started(t, cmd)}
}

func (r *remoteTail) wants(text string) {
	r.t.Helper()
	line, err := r.lines.ReadString('\n')
	if err != nil || !strings.Contains(line, text) {
		r.t.Fatalf("tail prints %q and not %q: %v", line, text, err)
	}
}

// TestATailOutlivesItsServer follows a stream and a journal while the server goes and
// comes back: each event once, those of the meantime too, and an interrupt is no failure.
func TestATailOutlivesItsServer(t *testing.T) {
	root, address := t.TempDir(), servedAt(t)
	run := filepath.Join(root, "run.jsonl")
	if err := os.WriteFile(run, longRun("run", 2), 0o644); err != nil {
		t.Fatal(err)
	}
	j, err := study.CreateJournal(t.Context(), filepath.Join(root, "s.atj"), journal.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if _, _, err := study.OpenOrCreate(t.Context(), j, study.Config{Name: "s", Directions: []study.Direction{study.Minimize}}); err != nil {
		t.Fatal(err)
	}
	attr := func(value string) {
		t.Helper()
		if err := j.Update(t.Context(), func(tx *study.Tx) error { return tx.SetStudyUserAttr(0, "k", []byte(value)) }); err != nil {
			t.Fatal(err)
		}
	}
	written := longRun("run", 2)
	points := func(n int) {
		t.Helper()
		text := longRun("run", n)
		f, err := os.OpenFile(run, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(text[len(written):]); err != nil {
			t.Fatal(err)
		}
		if written = text; f.Close() != nil {
			t.Fatal("the stream is not written")
		}
	}

	server := serving(t, root, address)
	stream, ops := tailAt(t, "http://"+address+"/run.jsonl"), tailAt(t, "http://"+address+"/s.atj")
	stream.wants(`"step":1,`)
	ops.wants(`create-study`)
	points(3)
	attr("41")
	stream.wants(`"step":2,`)
	ops.wants("41")
	stop(t, server)
	points(5)
	attr("42")
	server = serving(t, root, address)
	stream.wants(`"step":3,`)
	stream.wants(`"step":4,`)
	ops.wants("42")
	stop(t, server)
	for _, tail := range []*remoteTail{stream, ops} {
		if err := tail.cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		if rest, err := tail.lines.ReadString('\n'); rest != "" {
			t.Errorf("tail prints %q at its end: %v", rest, err)
		}
		if err := tail.cmd.Wait(); err != nil {
			t.Errorf("an interrupted tail ends with %v", err)
		}
	}
}
