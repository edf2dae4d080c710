package fsx

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func inRoot(t *testing.T, dir string) FS {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return InRoot(root)
}

func TestARootAnswersAsTheSystemDoes(t *testing.T) {
	for _, c := range calls {
		t.Run(c.name, func(t *testing.T) {
			real := &bench{fs: OS, dir: t.TempDir()}
			c.run(real)
			dir := t.TempDir()
			inside := &bench{fs: inRoot(t, dir), dir: dir}
			c.run(inside)
			if diff := cmp.Diff(real.log, inside.log); diff != "" {
				t.Errorf("(-system +root):\n%s", diff)
			}
		})
	}
}

func TestNoNameLeadsOutOfARoot(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "root")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(parent, "secret")
	if err := os.WriteFile(secret, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	f := inRoot(t, dir)
	for _, name := range []string{secret, filepath.Join(dir, "link"), dir + "/../secret", "secret", dir + "x"} {
		if _, err := f.OpenFile(name, os.O_RDONLY, 0); err == nil {
			t.Errorf("%s is opened", name)
		}
		if _, err := f.Stat(name); err == nil {
			t.Errorf("%s is looked at", name)
		}
		if _, err := f.EvalSymlinks(name); err == nil {
			t.Errorf("%s is resolved", name)
		}
	}
	if err := f.Rename(filepath.Join(dir, "link"), secret); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("moved out: %v", err)
	}
}
