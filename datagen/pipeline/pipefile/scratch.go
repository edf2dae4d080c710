package pipefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/foldlog/foldlog/internal/fsx"
)

// scratch is the folder of one execution of a command, gone afterwards. Beside it lies a
// file that is locked for as long, so that what a killed process left behind is known, and
// removed by the next one.
type scratch struct {
	dir  string
	lock fsx.File // nil where files cannot be locked
}

const (
	scratchName = "foldlog-step-"
	lockSuffix  = ".lock"
)

// swept: this process has removed what others left behind.
var swept sync.Once

func newScratch() (*scratch, error) {
	swept.Do(func() { sweepScratch(os.TempDir()) })
	for {
		s, err := tryScratch()
		if s != nil || err != nil {
			return s, err
		}
	}
}

// tryScratch makes the lock and then the folder. It is nil if a sweeper took the lock for
// one that was left behind.
func tryScratch() (*scratch, error) {
	made, err := os.CreateTemp("", scratchName+"*"+lockSuffix)
	if err != nil {
		return nil, err
	}
	name := made.Name()
	made.Close()
	lock, err := fsx.OS.OpenFile(name, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	locked, err := lock.TryLock()
	switch {
	case err != nil: // it cannot be known then who has left what
		lock.Close()
		os.Remove(name)
		lock = nil
	case !locked || !isStill(lock, name):
		lock.Close()
		return nil, nil
	}
	dir := strings.TrimSuffix(name, lockSuffix)
	err = os.Mkdir(dir, 0o700)
	s := &scratch{dir, lock}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// isStill tells whether an open file is the one that has its name.
func isStill(f fsx.File, name string) bool {
	a, err := f.Stat()
	b, err2 := os.Stat(name)
	return err == nil && err2 == nil && os.SameFile(a, b)
}

func (s *scratch) close() {
	os.RemoveAll(s.dir)
	if s.lock != nil {
		os.Remove(s.dir + lockSuffix)
		s.lock.Close()
	}
}

// sweepScratch removes the folders whose process was killed.
func sweepScratch(parent string) {
	names, err := filepath.Glob(filepath.Join(parent, scratchName+"*"+lockSuffix))
	if err != nil {
		return
	}
	for _, name := range names {
		lock, err := fsx.OS.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if locked, err := lock.TryLock(); err == nil && locked && isStill(lock, name) {
			(&scratch{strings.TrimSuffix(name, lockSuffix), lock}).close()
			continue
		}
		lock.Close()
	}
}
