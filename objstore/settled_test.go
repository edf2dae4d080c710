package objstore_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

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
