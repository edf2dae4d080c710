package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/foldlog/foldlog/internal/fsx"
)

// waitQueue is the directory in which writers line up for the lease, a file
// NUMBER-NONCE each. Numbers only grow while somebody waits, so nobody is
// overtaken for ever; the holder hands the lease to the lowest.
type waitQueue struct {
	l   layout
	dir string
}

// waiter is a place in the queue.
type waiter struct {
	number, nonce uint64
}

func (w waiter) String() string { return fmt.Sprintf("%016x-%016x", w.number, w.nonce) }

func newWaitQueue(l layout) waitQueue { return waitQueue{l, l.dataFile(queueDir)} }

func (q waitQueue) path(w waiter) string { return filepath.Join(q.dir, w.String()) }

// list returns who waits, first come first.
func (q waitQueue) list() ([]waiter, error) {
	entries, err := q.l.fs.ReadDir(q.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list queue: %w", err)
	}
	var all []waiter
	for _, e := range entries {
		number, nonce, _ := strings.Cut(e.Name(), "-")
		n, ok := parseHex16(number)
		id, ok2 := parseHex16(nonce)
		if ok && ok2 {
			all = append(all, waiter{n, id})
		}
	}
	return all, nil
}

// join lines up behind everybody else. The returned file holds the kernel lock
// that tells others on this machine that we live; close it when done waiting.
func (q waitQueue) join(nonce uint64, o Owner) (waiter, fsx.File, error) {
	if err := q.l.mkdirIfMissing(q.dir); err != nil {
		return waiter{}, nil, fmt.Errorf("make queue: %w", err)
	}
	all, err := q.list()
	if err != nil {
		return waiter{}, nil, err
	}
	w := waiter{nonce: nonce}
	if len(all) > 0 {
		w.number = all[len(all)-1].number
		if w.number < math.MaxUint64 {
			w.number++
		}
	}
	f, err := createOwned(q.l.fs, q.path(w), filepath.Join(q.dir, fmt.Sprintf("new-%016x", nonce)), o)
	return w, f, err
}

// leave gives up a place. It reports false if that was gone already.
func (q waitQueue) leave(w waiter) bool {
	return !errors.Is(q.l.fs.Remove(q.path(w)), fs.ErrNotExist)
}

// next returns the first who still lives. Those of this machine whose kernel
// lock is free have died and are removed.
func (q waitQueue) next() (w waiter, ok bool, err error) {
	all, err := q.list()
	if err != nil {
		return waiter{}, false, err
	}
	for _, w := range all {
		dead, err := ownerDied(q.l.fs, q.path(w), nil)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case dead:
			q.leave(w)
		default:
			return w, true, nil
		}
	}
	return waiter{}, false, nil
}

// ownerDied tells whether the kernel of this machine says that whoever keeps an
// owner file locked is gone. Of other machines it says nothing. Content is what
// the file holds, nil if that is not known.
func ownerDied(fsys fsx.FS, path string, content []byte) (bool, error) {
	f, err := fsys.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return false, err
	}
	defer f.Close()
	if content == nil {
		content = make([]byte, ownerSize)
		if err := readFull(f, content, 0); err != nil {
			return false, err
		}
	}
	if !decodeOwner(content).sameMachine() {
		return false, nil
	}
	return f.TryLock()
}

// position returns how many wait before w, -1 if w is not in the queue.
func (q waitQueue) position(w waiter) (int, error) {
	all, err := q.list()
	return slices.Index(all, w), err
}

// createOwned writes an owner file under a temporary name, takes its kernel
// lock and moves it in place, so that nobody ever sees it unlocked while its
// owner lives.
func createOwned(fsys fsx.FS, name, temporary string, o Owner) (fsx.File, error) {
	b, err := o.encode()
	if err != nil {
		return nil, err
	}
	f, err := createShared(fsys, temporary, os.O_RDWR)
	if err != nil {
		return nil, fmt.Errorf("create owner file: %w", err)
	}
	fail := func(err error) (fsx.File, error) {
		f.Close()
		fsys.Remove(temporary)
		return nil, fmt.Errorf("write owner file: %w", err)
	}
	if err := fsx.WriteFull(f, b, 0); err != nil {
		return fail(err)
	}
	if _, err := f.TryLock(); err != nil && !fsx.IsUnsupported(err) {
		return fail(err)
	}
	if err := fsys.Rename(temporary, name); err != nil {
		return fail(err)
	}
	return f, nil
}
