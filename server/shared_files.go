package server

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path"
	"time"

	"github.com/foldlog/foldlog/internal/fsx"
)

// lockTime is how long a request waits for another server that writes to its file.
const lockTime = 5 * time.Second

// lockFile keeps another server of the root, if there is one, from writing to a file that
// is there. Where the system has no locks there is none.
func lockFile(fsys fsx.FS, root *os.Root, name string) (unlock func(), err error) {
	f, err := fsys.OpenFile(inRoot(root, name), os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	for deadline := time.Now().Add(lockTime); ; time.Sleep(time.Millisecond) {
		got, err := f.TryLock()
		switch {
		case got || fsx.IsUnsupported(err):
			return func() { f.Close() }, nil
		case err != nil:
			return nil, fmt.Errorf("lock: %w", errors.Join(err, f.Close()))
		case time.Now().After(deadline):
			return nil, errors.Join(problem(http.StatusServiceUnavailable, "another server is writing to that file"), f.Close())
		}
	}
}

// syncNames makes the names durable that lead from the root to what is in a directory.
// Who made them need not have come so far.
func syncNames(fsys fsx.FS, root *os.Root, dir string) error {
	for ; ; dir = path.Dir(dir) {
		if err := fsys.SyncDir(inRoot(root, dir)); err != nil && !fsx.IsUnsupported(err) {
			return err
		}
		if dir == "." {
			return nil
		}
	}
}
