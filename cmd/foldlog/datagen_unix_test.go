//go:build unix

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// interruptible is a pipeline of commands with a loop, a branch, a filter and
// sub-items. Every command notes that it ran; $OUT is the folder of the notes.
const interruptible = `
pipeline: p
steps:
  - step: begin
    run: echo "$FOLDLOG_ITEM $FOLDLOG_INSTANCE" >> "$OUT"; sleep 0.01; echo '{"n":0}'
  - loop: count
    until: n >= 2
    max: 4
    steps:
      - step: more
        run: echo "$FOLDLOG_ITEM $FOLDLOG_INSTANCE" >> "$OUT"; sleep 0.01; echo "{\"n\":$((FOLDLOG_ITERATION + 1))}"
  - branch: way
    cases:
      - {when: kind == "odd", steps: [{step: mark, run: 'echo "$FOLDLOG_ITEM $FOLDLOG_INSTANCE" >> "$OUT"; echo "{\"odd\":true}"'}]}
  - map: parts
    over: 2
    steps:
      - step: part
        run: echo "$FOLDLOG_ITEM $FOLDLOG_INSTANCE" >> "$OUT"; sleep 0.01; echo x > "$FOLDLOG_BLOBS/x"; echo '{"b":{"$blob":"x"}}'
  - filter: keep
    keep: kind != "drop"
  - step: end
    run: echo "$FOLDLOG_ITEM $FOLDLOG_INSTANCE" >> "$OUT"; echo '{"n":-1}'
`

var withoutTimes = regexp.MustCompile(`"attempt":\d+,"run_id":"[^"]*",|"(created|updated)":"[^"]*",|"blob":"[^"]*",`)

// interruptedPipeline runs the pipeline to its end, interrupted after each of some
// times, and returns what was exported and what ran.
func interruptedPipeline(t *testing.T, signal os.Signal, times []time.Duration) (exported, ran []string) {
	t.Helper()
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	var items strings.Builder
	for i := range 6 {
		fmt.Fprintf(&items, "{\"key\":\"i%d\",\"fields\":{\"kind\":%q}}\n", i, []string{"even", "odd", "drop"}[i%3])
	}
	for name, text := range map[string]string{"p.yaml": interruptible, "items.jsonl": items.String()} {
		if err := os.WriteFile(path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i := 0; ; i++ {
		cmd := process(t, "foldlog", "datagen", "run", path("p.yaml"), "--root", dir, "--items", path("items.jsonl"), "--workers", "3", "--quiet")
		cmd.Env = append(os.Environ(), "OUT="+path("ran"), "GORACE=atexit_sleep_ms=0")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if i < len(times) {
			time.Sleep(times[i])
			cmd.Process.Signal(signal) // it may have ended
		}
		err := cmd.Wait()
		if err == nil {
			break
		}
		if code := cmd.ProcessState.ExitCode(); i >= len(times) || code != 130 && code != -1 {
			t.Fatalf("%v: %s", err, stderr.String())
		}
	}
	exported = strings.Split(mustDo(t, "datagen", "export", "p/main", "--root", dir, "--no-provenance", "--status", "completed", "--status", "filtered"), "\n")
	for i := range exported { // what differs between any two runs
		exported[i] = withoutTimes.ReplaceAllString(exported[i], "")
	}
	notes, err := os.ReadFile(path("ran"))
	if err != nil {
		t.Fatal(err)
	}
	ran = strings.Split(string(notes), "\n")
	slices.Sort(exported)
	slices.Sort(ran)
	return exported, ran
}

// TestInterruptedAtRandomPoints drains a pipeline by SIGINT again and again: the
// result is that of an uninterrupted run, and no command ran twice.
func TestInterruptedAtRandomPoints(t *testing.T) {
	exported, ran := interruptedPipeline(t, os.Interrupt, nil)
	rounds := 3
	switch {
	case testing.Short():
		rounds = 1
	case os.Getenv("FOLDLOG_SOAK") != "":
		rounds = 100
	}
	for range rounds {
		times := make([]time.Duration, 5)
		for i := range times {
			times[i] = time.Duration(rand.IntN(400)) * time.Millisecond
		}
		gotExported, gotRan := interruptedPipeline(t, os.Interrupt, times)
		if diff := cmp.Diff(exported, gotExported); diff != "" {
			t.Errorf("interrupted after %v (-uninterrupted +interrupted):\n%s", times, diff)
		}
		if diff := cmp.Diff(ran, gotRan); diff != "" {
			t.Errorf("commands that ran, interrupted after %v (-uninterrupted +interrupted):\n%s", times, diff)
		}
	}
}

// TestASecondInterruptStopsCommands and gives their steps to the next run.
func TestASecondInterruptStopsCommands(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "p.yaml")
	text := "pipeline: p\nsteps:\n  - {step: quick, run: 'echo quick >> \"$OUT\"'}\n  - {step: slow, run: 'echo slow >> \"$OUT\"; test -f \"$OUT.go\" || exec sleep 600'}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "ran")
	begin := func(notes io.Writer) (wait func() int, signal func()) {
		cmd := process(t, "foldlog", "datagen", "run", file, "--root", dir, "--items", "-")
		cmd.Env = append(os.Environ(), "OUT="+out)
		cmd.Stdin, cmd.Stderr = strings.NewReader("1\n"), notes
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return func() int { cmd.Wait(); return cmd.ProcessState.ExitCode() }, func() { cmd.Process.Signal(syscall.SIGINT) }
	}
	hearing, telling, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer hearing.Close()
	wait, signal := begin(telling)
	telling.Close()
	for notes := ""; !strings.Contains(notes, "slow"); time.Sleep(5 * time.Millisecond) {
		b, _ := os.ReadFile(out)
		notes = string(b)
	}
	signal()
	heard := bufio.NewReader(hearing)
	for line := ""; !strings.Contains(line, "interrupt again"); { // or the two may be one
		if line, err = heard.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	signal()
	go io.Copy(io.Discard, heard)
	if code := wait(); code != 130 {
		t.Errorf("exit status %d", code)
	}
	if err := os.WriteFile(out+".go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if wait, _ := begin(io.Discard); wait() != 0 {
		t.Error("the next run did not end well")
	}
	if b, err := os.ReadFile(out); err != nil || string(b) != "quick\nslow\nslow\n" {
		t.Errorf("ran %q, %v", b, err)
	}
}
