package objstore

import (
	"errors"
	"io/fs"
	"path/filepath"
	"sync"
)

// maxSettled bounds what a store remembers; more are synced once more, no harm.
const maxSettled = 4096

// settled are the directories whose names are known to be durable. That one is there
// does not say so: another process, or goroutine, may have made it a moment ago and
// not have synced its parent yet.
type settled struct {
	mu   sync.Mutex
	dirs map[string]bool
}

// missing are those of a directory and its parents, up to the root, that are not
// known.
func (s *settled) missing(root, dir string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var dirs []string
	for !s.dirs[dir] && dir != filepath.Dir(dir) {
		dirs = append(dirs, dir)
		if dir == root {
			break
		}
		dir = filepath.Dir(dir)
	}
	return dirs
}

func (s *settled) add(dirs []string) {
	if len(dirs) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dirs == nil || len(s.dirs)+len(dirs) > maxSettled {
		s.dirs = make(map[string]bool)
	}
	for _, d := range dirs {
		s.dirs[d] = true
	}
}

// change makes or removes a directory and forgets what was known of it. Both happen under
// one lock: whoever finds the directory made again must not find what was known before.
func (s *settled) change(dir string, do func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := do()
	if err == nil {
		delete(s.dirs, dir)
	}
	return err
}

// settleNames makes the names of a directory and of its parents durable.
func (l *Local) settleNames(dir string) error {
	dirs := l.settled.missing(l.root, dir)
	for _, d := range dirs {
		if err := l.syncDir(filepath.Dir(d)); err != nil {
			return err
		}
	}
	l.settled.add(dirs)
	return nil
}

// mkdir makes a directory and its parents. Names from the root
// on are not durable yet: see settleNames.
func (l *Local) mkdir(dir string) error {
	mkdir := func() error { return l.fs.Mkdir(dir, 0o755) }
	err := l.settled.change(dir, mkdir)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir):
		if err := l.mkdir(filepath.Dir(dir)); err != nil {
			return err
		}
		if err = l.settled.change(dir, mkdir); errors.Is(err, fs.ErrExist) {
			return nil
		}
	}
	if err != nil {
		return err
	}
	if len(dir) < len(l.root) {
		return l.syncDir(filepath.Dir(dir))
	}
	return nil
}
