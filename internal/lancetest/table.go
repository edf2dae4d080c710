package lancetest

import (
	"path/filepath"
	"testing"

	"github.com/foldlog/foldlog/objstore"
)

// LocalTable returns a directory for a table "log", where the real library finds it,
// and its store.
func LocalTable(t testing.TB) (dir string, s objstore.Store) {
	t.Helper()
	dir = t.TempDir()
	s, err := objstore.OpenLocal(filepath.Join(dir, "log.lance"), objstore.LocalOptions{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	return dir, s
}

// On are the arguments of a command on the table in a directory, and more of them as
// names and values by turns.
func On(dir string, more ...any) Args {
	a := Args{"dir": dir}
	for i := 0; i < len(more); i += 2 {
		a[more[i].(string)] = more[i+1]
	}
	return a
}
