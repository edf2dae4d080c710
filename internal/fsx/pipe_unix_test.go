//go:build unix

package fsx

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestOpeningANamedPipeForReadingDoesNotWait(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := OS.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Mode().IsRegular() {
		t.Errorf("stat: %v, %v", info, err)
	}
}
