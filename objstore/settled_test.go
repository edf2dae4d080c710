package objstore_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/foldlog/foldlog/internal/fsx"
	"github.com/foldlog/foldlog/objstore"
)

// A directory that another process has made, and not synced yet, must not take an
// acknowledged object with it when the power goes.
func TestADirectoryThatAnotherMadeIsMadeDurable(t *testing.T) {
	mem := fsx.NewMem()
	root := filepath.Join(string(filepath.Separator), "root")
	for _, dir := range []string{root, filepath.Join(root, "a"), filepath.Join(root, "a", "b")} {
		if err := mem.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	store, err := objstore.OpenLocal(root, objstore.LocalOptions{FS: mem})
	if err != nil {
		t.Fatal(err)
	}
	put := map[string]func(string) error{
		"put": func(key string) error { return store.Put(context.Background(), key, []byte("x")) },
		"stage": func(key string) error {
			commit, err := store.Stage(context.Background(), []objstore.Object{{Key: key, Data: []byte("x")}},
				objstore.Object{Key: key + ".last", Data: []byte("y")})
			if err != nil {
				return err
			}
			return commit(context.Background())
		},
	}
	for name, put := range put {
		if err := put("a/b/" + name); err != nil {
			t.Fatal(err)
		}
	}
	mem = mem.PowerLoss(nil)
	for name := range put {
		f, err := mem.OpenFile(filepath.Join(root, "a", "b", name), os.O_RDONLY, 0)
		if err != nil {
			t.Errorf("%s: after the power loss: %v", name, err)
			continue
		}
		f.Close()
	}
}

// hooked is a file system that tells of directories that it has made and removed.
type hooked struct {
	fsx.FS
	made, removed func(name string)
}

func (h *hooked) Mkdir(name string, perm fs.FileMode) error {
	err := h.FS.Mkdir(name, perm)
	if err == nil && h.made != nil {
		h.made(name)
	}
	return err
}

func (h *hooked) Remove(name string) error {
	err := h.FS.Remove(name)
	if err == nil && h.removed != nil {
		h.removed(name)
	}
	return err
}

// TestADirectoryThatIsMadeAgainIsMadeDurable has one caller remove a directory with the last
// object in it, another make it again, and a third write into it, each before the one before
// has gone on.
func TestADirectoryThatIsMadeAgainIsMadeDurable(t *testing.T) {
	mem := fsx.NewMem()
	root := filepath.Join(string(filepath.Separator), "root")
	if err := mem.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	h := &hooked{FS: mem}
	store, err := objstore.OpenLocal(root, objstore.LocalOptions{FS: h})
	if err != nil {
		t.Fatal(err)
	}
	put := func(key string) {
		if err := store.Put(context.Background(), key, []byte("x")); err != nil {
			t.Error(err)
		}
	}
	put("a/b/first")
	var lost *fsx.Mem
	second, third := make(chan struct{}), make(chan struct{})
	wait := func(c chan struct{}) {
		select {
		case <-c:
		case <-time.After(100 * time.Millisecond): // it may have to wait for us
		}
	}
	dir := filepath.Join(root, "a", "b")
	h.removed = func(name string) {
		if name == dir {
			h.removed = nil
			go func() { defer close(second); put("a/b/second") }()
			wait(third)
		}
	}
	h.made = func(name string) {
		if name == dir {
			h.made = nil
			go func() { defer close(third); put("a/b/third"); lost = mem.PowerLoss(nil) }()
			wait(third)
		}
	}
	if err := store.Delete(context.Background(), "a/b/first"); err != nil {
		t.Fatal(err)
	}
	<-second
	<-third
	if _, err := lost.Stat(filepath.Join(dir, "third")); err != nil {
		t.Errorf("after the power loss: %v", err)
	}
}
