package logkind

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestExamineReadsTheStartOfRegularFilesOnly(t *testing.T) {
	dir := t.TempDir()
	long := filepath.Join(dir, "long")
	if err := os.WriteFile(long, bytes.Repeat([]byte("x"), 3*startSize), 0o666); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, path string
		exists     bool
		start      int
	}{
		{"a long file", long, true, startSize},
		{"an empty file", empty, true, 0},
		{"a directory", dir, true, 0},
		{"a directory with a slash", dir + "/", true, 0},
		{"nothing", filepath.Join(dir, "gone"), false, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, err := Examine(tc.path)
			if err != nil {
				t.Fatal(err)
			}
			if (c.Info != nil) != tc.exists || len(c.Start) != tc.start {
				t.Errorf("exists %v with %d bytes, want %v with %d", c.Info != nil, len(c.Start), tc.exists, tc.start)
			}
			if c.Path != filepath.Clean(tc.path) {
				t.Errorf("path %q is not clean", c.Path)
			}
		})
	}
}
