// Package lancetest helps tests of Lance tables: made-up rows of every type, rows as
// text to compare, and the real Lance library to ask.
package lancetest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
)

// Oracle is a process with the real Lance library.
type Oracle struct {
	mu  sync.Mutex
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	err bytes.Buffer
}

var shared struct {
	once   sync.Once
	oracle *Oracle
	err    error
}

// dir is lance/oracle in the source tree, looked for upwards from the package that
// is tested: a build with -trimpath does not know where its sources lay.
func dir() string {
	up := "."
	for range 16 {
		if _, err := os.Stat(filepath.Join(up, "go.mod")); err == nil {
			break
		}
		up = filepath.Join(up, "..")
	}
	return filepath.Join(up, "lance", "oracle")
}

// Real returns the process that the tests of a package share. Where Node or its
// modules are missing it returns false, and in CI the test fails.
func Real(t testing.TB) (*Oracle, bool) {
	t.Helper()
	shared.once.Do(func() { shared.oracle, shared.err = start() })
	return shared.oracle, needed(t, shared.err)
}

// needed reports whether there is a process, which there must be in CI.
func needed(t testing.TB, err error) bool {
	t.Helper()
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("no Lance to compare with: %v", err)
		}
		t.Logf("left out, there is no Lance to compare with (npm ci in lance/oracle): %v", err)
	}
	return err == nil
}

// Alone is Real with a process that ends with the test.
func Alone(t testing.TB) (*Oracle, bool) {
	t.Helper()
	o, err := start()
	if !needed(t, err) {
		return nil, false
	}
	t.Cleanup(func() {
		_ = o.in.Close()
		_ = o.cmd.Wait()
	})
	return o, true
}

// Another starts a process of its own, for races.
func Another(t testing.TB) *Oracle {
	t.Helper()
	o, err := start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = o.in.Close()
		_ = o.cmd.Wait()
	})
	return o
}

func start() (*Oracle, error) {
	node, err := exec.LookPath("node")
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(dir(), "node_modules", "@lancedb", "lancedb")); err != nil {
		return nil, err
	}
	o := &Oracle{cmd: exec.Command(node, "oracle.mjs")}
	o.cmd.Dir = dir()
	o.cmd.Stderr = &o.err
	if o.in, err = o.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := o.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	o.out = bufio.NewReader(out)
	return o, o.cmd.Start()
}

// Args are the arguments of a command.
type Args map[string]any

// Try runs a command and decodes its answer into out, if that is not nil.
func (o *Oracle) Try(cmd string, args Args, out any) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	line := Args{"cmd": cmd}
	for k, v := range args {
		line[k] = v
	}
	b, err := json.Marshal(line)
	if err != nil {
		return err
	}
	if _, err := o.in.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("%s: %w: %s", cmd, err, o.err.String())
	}
	answer, err := o.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("%s: %w: %s", cmd, err, o.err.String())
	}
	var reply struct {
		OK    json.RawMessage `json:"ok"`
		Error string          `json:"error"`
	}
	if err := json.Unmarshal(answer, &reply); err != nil {
		return fmt.Errorf("%s: %w: %s", cmd, err, answer)
	}
	if reply.Error != "" {
		return fmt.Errorf("%s: %s", cmd, reply.Error)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(reply.OK, out)
}

// Do is Try for what must succeed.
func (o *Oracle) Do(t testing.TB, cmd string, args Args, out any) {
	t.Helper()
	if err := o.Try(cmd, args, out); err != nil {
		t.Fatalf("the real Lance: %v", err)
	}
}

// Rows runs a command that answers with rows, and returns them as text.
func (o *Oracle) Rows(t testing.TB, cmd string, args Args) []string {
	t.Helper()
	args["out"] = filepath.Join(t.TempDir(), "rows.arrow")
	o.Do(t, cmd, args, nil)
	f, err := os.Open(args["out"].(string))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := ipc.NewFileReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var out []string
	for i := range r.NumRecords() {
		rec, err := r.RecordBatchAt(i)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, Text(rec)...)
	}
	return out
}

// WriteRows writes batches as an Arrow IPC file and returns its path.
func WriteRows(t testing.TB, batches ...arrow.RecordBatch) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rows.arrow")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w, err := ipc.NewFileWriter(f, ipc.WithSchema(batches[0].Schema()))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range batches {
		if err := w.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}
