package optuna

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/study"
)

// realOptuna is an interpreter that has Optuna, as Debian's python3-optuna.
func realOptuna(t *testing.T) string {
	t.Helper()
	python := os.Getenv("FOLDLOG_PYTHON")
	if python == "" {
		python = "/usr/bin/python3"
	}
	if out, err := exec.Command(python, "-c", "import optuna.storages").CombinedOutput(); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("%s has no Optuna: %v\n%s", python, err, out)
		}
		t.Skipf("%s has no Optuna (python3-optuna)", python)
	}
	return python
}

// TestRealOptunaOpensWhatWasExported lets Optuna write a file, imports and exports
// it, and lets Optuna compare both and go on with the second.
func TestRealOptunaOpensWhatWasExported(t *testing.T) {
	python := realOptuna(t)
	dir := t.TempDir()
	log, other := filepath.Join(dir, "a.log"), filepath.Join(dir, "b.log")
	run := func(args ...string) {
		t.Helper()
		cmd := exec.Command(python, append([]string{"-W", "ignore", "testdata/story.py"}, args...)...)
		cmd.Env = append(os.Environ(), "PYTHONPATH=")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("story.py %v: %v\n%s", args, err, out)
		}
	}
	run("write", log)
	in, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	path := filepath.Join(dir, "s.atj")
	done, err := Import(context.Background(), in, path, ImportOptions{Fault: func(f *LineError) { t.Error(f) }})
	if err != nil || done.Studies != 3 || done.Trials != 12 || done.Ignored > 0 {
		t.Fatalf("imported %+v, %v", done, err)
	}
	r, err := study.OpenJournalReader(path, journal.ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := os.WriteFile(other, []byte(exported(t, r.Snapshot())), 0o666); err != nil {
		t.Fatal(err)
	}
	run("same", log, other)
}
