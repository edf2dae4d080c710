package journal

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// The lease is a baton: one directory in lease/ that never goes away and is
// only ever renamed, each time to a name that there has never been.
//
//	free-GENERATION          nobody publishes
//	held-GENERATION-NONCE    one writer does
//
// A rename names the directory it moves, so of several who try one wins, and
// whoever was overtaken finds its own path gone: the ticket that would become
// the head lies in the baton and is created and renamed by that path.
//
// The directory stays the same while its name changes, so a call that a former
// holder began before it was overtaken still reaches it. Therefore every file in
// it is named after the holder's nonce, which is used once: a late call finds
// nothing of its own and touches nothing of others.
const (
	freePrefix = "free-"
	heldPrefix = "held-"
)

type baton struct {
	generation uint64
	nonce      uint64
	held       bool
}

func (b baton) String() string {
	if b.held {
		return fmt.Sprintf("%s%016x-%016x", heldPrefix, b.generation, b.nonce)
	}
	return fmt.Sprintf("%s%016x", freePrefix, b.generation)
}

// ownerFile is the name of the file that says who holds the baton.
func (b baton) ownerFile() string { return fmt.Sprintf("%s%016x", ownerPrefix, b.nonce) }

// ticketFile is the name of the holder's n-th ticket.
func (b baton) ticketFile(n uint64) string {
	return fmt.Sprintf("%s%016x-%08x", ticketPrefix, b.nonce, n)
}

func parseBaton(name string) (b baton, ok bool) {
	if rest, found := strings.CutPrefix(name, freePrefix); found {
		b.generation, ok = parseHex16(rest)
		return b, ok
	}
	rest, found := strings.CutPrefix(name, heldPrefix)
	generation, nonce, cut := strings.Cut(rest, "-")
	if !found || !cut {
		return b, false
	}
	b.held = true
	b.generation, found = parseHex16(generation)
	b.nonce, ok = parseHex16(nonce)
	return b, ok && found
}

func parseHex16(s string) (uint64, bool) {
	n, err := strconv.ParseUint(s, 16, 64)
	return n, err == nil && len(s) == 16
}

// batonRack is the directory that holds the baton.
type batonRack struct {
	l   layout
	dir string
}

func newBatonRack(l layout) batonRack { return batonRack{l, l.dataFile(leaseDir)} }

func (r batonRack) path(b baton) string { return filepath.Join(r.dir, b.String()) }

// current returns the baton, and what else lies in the rack: batons of an older
// generation, as a careless copy or restore leaves them.
func (r batonRack) current() (b baton, strays []string, err error) {
	for {
		entries, err := r.l.fs.ReadDir(r.dir)
		if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
			if err := r.bootstrap(); err != nil {
				return baton{}, nil, err
			}
			continue
		}
		if err != nil {
			return baton{}, nil, fmt.Errorf("list lease: %w", err)
		}
		b, strays = pickBaton(entries)
		if b == (baton{}) {
			return baton{}, nil, fmt.Errorf("%s: no lease among its %d entries", r.dir, len(entries))
		}
		return b, strays, nil
	}
}

func pickBaton(entries []fs.DirEntry) (best baton, strays []string) {
	type named struct {
		baton
		name string
	}
	var all []named
	for _, e := range entries {
		if b, ok := parseBaton(e.Name()); ok && e.IsDir() {
			all = append(all, named{b, e.Name()})
		}
	}
	if len(all) == 0 {
		return baton{}, nil
	}
	slices.SortFunc(all, func(a, b named) int {
		return cmp.Or(cmp.Compare(b.generation, a.generation), cmp.Compare(b.name, a.name))
	})
	for _, stray := range all[1:] {
		strays = append(strays, stray.name)
	}
	return all[0].baton, strays
}

// bootstrap puts a first baton in place. The rack is moved there whole, which
// fails if one is there: a baton, once there, is never replaced. An empty rack,
// as a power loss may leave it, holds no baton and gives way.
func (r batonRack) bootstrap() error {
	made := r.l.dataFile(fmt.Sprintf("new-%016x", random64()))
	first := filepath.Join(made, baton{generation: 1}.String())
	err := r.l.mkdir(made)
	if err == nil {
		err = r.l.mkdir(first)
	}
	if err == nil {
		r.l.fs.Remove(r.dir)
		err = r.l.fs.Rename(made, r.dir)
	}
	if err == nil {
		return nil
	}
	r.l.fs.Remove(first)
	r.l.fs.Remove(made)
	if isNotEmpty(err) {
		return nil
	}
	return fmt.Errorf("make lease: %w", err)
}

// isNotEmpty tells a directory that cannot give way because it holds something.
func isNotEmpty(err error) bool {
	return errors.Is(err, fs.ErrExist) || errors.Is(err, syscall.ENOTEMPTY)
}

// move renames the baton from one state to the next. It reports false if the
// baton was not in that state any more.
func (r batonRack) move(from, to baton) (bool, error) {
	moved, _, err := r.rename(from, to)
	return moved, err
}

// rename is move, and tells besides whether it was our rename that did it. One
// that took effect although it failed is told by the new name; but that is also
// the name to which the former holder hands the baton over.
func (r batonRack) rename(from, to baton) (moved, ours bool, err error) {
	err = r.l.fs.Rename(r.path(from), r.path(to))
	if err == nil {
		return true, true, nil
	}
	if _, statErr := r.l.fs.Lstat(r.path(to)); statErr == nil {
		return true, false, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return false, false, nil
	}
	return false, false, fmt.Errorf("move lease: %w", err)
}

// maxClears bounds how often a stray is emptied anew because its former holder
// still puts tickets there.
const maxClears = 1000

// sweep empties the baton that we just took and removes strays. A rename of the
// former holder's ticket that the kernel has already begun still succeeds from
// the moved directory; once the ticket is unlinked it cannot. So the head may
// only be read after this.
func (r batonRack) sweep(ours baton, strays []string) error {
	if err := r.empty(r.path(ours)); err != nil {
		return err
	}
	for _, name := range strays {
		if err := r.clear(filepath.Join(r.dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// clear removes a stray, whose former holder could publish as long as it stands.
func (r batonRack) clear(dir string) error {
	for range maxClears {
		if err := r.empty(dir); err != nil {
			return err
		}
		err := r.l.fs.Remove(dir)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if !isNotEmpty(err) {
			return fmt.Errorf("clear lease: %w", err)
		}
	}
	return fmt.Errorf("clear lease: %s does not get empty", dir)
}

func (r batonRack) empty(dir string) error {
	entries, err := r.l.fs.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("clear lease: %w", err)
	}
	for _, e := range entries {
		err := r.l.fs.Remove(filepath.Join(dir, e.Name()))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("clear lease: %w", err)
		}
	}
	return nil
}
