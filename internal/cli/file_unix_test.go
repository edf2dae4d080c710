//go:build unix

package cli

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func hello(w io.Writer) error {
	_, err := io.WriteString(w, "hello")
	return err
}

func checkFile(t *testing.T, path, want string) {
	t.Helper()
	if b, err := os.ReadFile(path); err != nil || string(b) != want {
		t.Errorf("%s holds %q, %v; want %q", filepath.Base(path), b, err, want)
	}
}

func TestReplacedFileKeepsItsModeAndTheLinkToIt(t *testing.T) {
	dir := t.TempDir()
	real, link := filepath.Join(dir, "real"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(real, []byte("old"), 0o600), os.Symlink("real", link)); err != nil {
		t.Fatal(err)
	}
	if err := ReplaceFile(link, hello); err != nil {
		t.Fatal(err)
	}
	checkFile(t, real, "hello")
	if info, err := os.Stat(real); err != nil || info.Mode() != 0o600 {
		t.Errorf("the file is now %v, %v", info.Mode(), err)
	}
	if target, err := os.Readlink(link); err != nil || target != "real" {
		t.Errorf("the link leads to %q, %v", target, err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 2 {
		t.Errorf("left behind: %v", left)
	}
}

func TestPipeIsWrittenToAndNotReplaced(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- ReplaceFile(pipe, hello) }()
	checkFile(t, pipe, "hello")
	if err := <-done; err != nil {
		t.Error(err)
	}
	if info, err := os.Lstat(pipe); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		t.Errorf("the pipe is now %v, %v", info.Mode(), err)
	}
}

func TestFileStaysAsItWasIfItsReplacementFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	fault := errors.New("fault")
	if err := ReplaceFile(path, func(w io.Writer) error { return errors.Join(hello(w), fault) }); !errors.Is(err, fault) {
		t.Errorf("error %v, want %v", err, fault)
	}
	checkFile(t, path, "old")
	if err := ReplaceFile(filepath.Dir(path), hello); !errors.Is(err, syscall.EISDIR) {
		t.Errorf("a directory: %v", err)
	}
}
