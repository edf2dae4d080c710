package fsx

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Mem is a file system in memory. It remembers what has been synced, so that
// [Mem.PowerLoss] can give back what a disk would hold afterwards.
type Mem struct {
	// NoLinks makes Link answer as a file system without hard links does, and
	// NoLocks the same for TryLock. Set them before use.
	NoLinks, NoLocks bool

	mu   sync.Mutex
	root *memNode
}

// memNode is a file or a directory. The synced fields are what is on disk.
type memNode struct {
	mode           fs.FileMode
	data, synced   []byte
	names, durable map[string]*memNode
	lock           *memFile
}

// NewMem returns an empty file system whose root is "/".
func NewMem() *Mem { return &Mem{root: newMemDir(0o777)} }

func newMemDir(perm fs.FileMode) *memNode {
	return &memNode{mode: fs.ModeDir | perm.Perm(), names: map[string]*memNode{}, durable: map[string]*memNode{}}
}

// PowerLoss returns what a disk holds after the power failed at this moment.
// Everything synced is there. Of the rest nothing is if rng is nil; otherwise
// each name and each file's end is there or not as rng falls. The receiver is
// not changed, and its open files do not reach the copy.
func (m *Mem) PowerLoss(rng *rand.Rand) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &Mem{NoLinks: m.NoLinks, NoLocks: m.NoLocks, root: lossOf(m.root, rng, map[*memNode]*memNode{})}
}

// Clone returns a copy that holds everything, as after a crash of the process
// alone.
func (m *Mem) Clone() *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &Mem{NoLinks: m.NoLinks, NoLocks: m.NoLocks, root: cloneOf(m.root, map[*memNode]*memNode{})}
}

func cloneOf(n *memNode, seen map[*memNode]*memNode) *memNode {
	if c, ok := seen[n]; ok {
		return c
	}
	c := &memNode{mode: n.mode, data: slices.Clone(n.data), synced: slices.Clone(n.synced)}
	seen[n] = c
	if n.names != nil {
		c.names, c.durable = map[string]*memNode{}, map[string]*memNode{}
		for name, child := range n.names {
			c.names[name] = cloneOf(child, seen)
		}
		for name, child := range n.durable {
			c.durable[name] = cloneOf(child, seen)
		}
	}
	return c
}

func lossOf(n *memNode, rng *rand.Rand, seen map[*memNode]*memNode) *memNode {
	if c, ok := seen[n]; ok {
		return c
	}
	c := &memNode{mode: n.mode}
	seen[n] = c
	if n.names == nil {
		c.data = lossOfData(n, rng)
		c.synced = slices.Clone(c.data)
		return c
	}
	c.names = map[string]*memNode{}
	kept := maps.Clone(n.durable)
	if rng != nil {
		for _, name := range slices.Sorted(maps.Keys(n.names)) {
			if rng.IntN(2) == 0 {
				kept[name] = n.names[name]
			}
		}
		for _, name := range slices.Sorted(maps.Keys(n.durable)) {
			if _, ok := n.names[name]; !ok && rng.IntN(2) == 0 {
				delete(kept, name)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(kept)) {
		c.names[name] = lossOf(kept[name], rng, seen)
	}
	c.durable = maps.Clone(c.names)
	return c
}

// lossOfData keeps the synced bytes and some of those written after them; a
// lost block in between reads as zeros.
func lossOfData(n *memNode, rng *rand.Rand) []byte {
	kept := slices.Clone(n.synced)
	if rng == nil || len(n.data) <= len(n.synced) {
		return kept
	}
	tail := slices.Clone(n.data[len(n.synced):])
	switch rng.IntN(3) {
	case 0:
		tail = tail[:rng.IntN(len(tail)+1)]
	case 1:
		from := rng.IntN(len(tail))
		clear(tail[from : from+rng.IntN(len(tail)-from+1)])
	}
	return append(kept, tail...)
}

func memParts(name string) []string {
	name = path.Clean("/" + strings.TrimPrefix(filepath.ToSlash(name), filepath.VolumeName(name)))
	if name == "/" {
		return nil
	}
	return strings.Split(name[1:], "/")
}

// find returns the node at a path, or nil and why.
func (m *Mem) find(name string) (*memNode, error) {
	n := m.root
	for _, part := range memParts(name) {
		if n.names == nil {
			return nil, syscall.ENOTDIR
		}
		next := n.names[part]
		if next == nil {
			return nil, fs.ErrNotExist
		}
		n = next
	}
	return n, nil
}

// parent returns the directory that holds a path's last name.
func (m *Mem) parent(name string) (*memNode, string, error) {
	parts := memParts(name)
	if len(parts) == 0 {
		return nil, "", syscall.EBUSY
	}
	dir, err := m.find(strings.Join(parts[:len(parts)-1], "/"))
	if err == nil && dir.names == nil {
		err = syscall.ENOTDIR
	}
	if err == nil && dir.mode&0o200 == 0 {
		err = fs.ErrPermission
	}
	return dir, parts[len(parts)-1], err
}

func memErr(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// OpenFile implements [FS].
func (m *Mem) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find(name)
	switch {
	case err == nil && flag&(os.O_CREATE|os.O_EXCL) == os.O_CREATE|os.O_EXCL:
		return nil, memErr("open", name, fs.ErrExist)
	case errors.Is(err, fs.ErrNotExist) && flag&os.O_CREATE != 0:
		dir, base, err := m.parent(name)
		if err != nil {
			return nil, memErr("open", name, err)
		}
		n = &memNode{mode: perm.Perm()}
		dir.names[base] = n
	case err != nil:
		return nil, memErr("open", name, err)
	}
	if n.names != nil && flag != os.O_RDONLY {
		return nil, memErr("open", name, syscall.EISDIR)
	}
	if flag&os.O_TRUNC != 0 {
		n.data = nil
	}
	return &memFile{fs: m, node: n, name: name}, nil
}

// Mkdir implements [FS].
func (m *Mem) Mkdir(name string, perm fs.FileMode) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, err := m.find(name); err == nil {
		return memErr("mkdir", name, fs.ErrExist)
	}
	dir, base, err := m.parent(name)
	if err != nil {
		return memErr("mkdir", name, err)
	}
	dir.names[base] = newMemDir(perm)
	return nil
}

// Rename implements [FS].
func (m *Mem) Rename(oldname, newname string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	from, oldbase, err := m.parent(oldname)
	if err != nil {
		return memErr("rename", oldname, err)
	}
	n := from.names[oldbase]
	if n == nil {
		return memErr("rename", oldname, fs.ErrNotExist)
	}
	to, newbase, err := m.parent(newname)
	if err != nil {
		return memErr("rename", newname, err)
	}
	switch old := to.names[newbase]; {
	case old == nil:
	case old == n:
		return nil
	case old.names != nil:
		return memErr("rename", newname, fs.ErrExist)
	case n.names != nil:
		return memErr("rename", newname, syscall.ENOTDIR)
	}
	delete(from.names, oldbase)
	to.names[newbase] = n
	return nil
}

// Link implements [FS].
func (m *Mem) Link(oldname, newname string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.NoLinks {
		return memErr("link", newname, errors.ErrUnsupported)
	}
	n, err := m.find(oldname)
	if err != nil {
		return memErr("link", oldname, err)
	}
	dir, base, err := m.parent(newname)
	if err == nil && dir.names[base] != nil {
		err = fs.ErrExist
	}
	if err != nil {
		return memErr("link", newname, err)
	}
	dir.names[base] = n
	return nil
}

// Remove implements [FS].
func (m *Mem) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, base, err := m.parent(name)
	if err != nil {
		return memErr("remove", name, err)
	}
	switch n := dir.names[base]; {
	case n == nil:
		return memErr("remove", name, fs.ErrNotExist)
	case len(n.names) > 0:
		return memErr("remove", name, syscall.ENOTEMPTY)
	}
	delete(dir.names, base)
	return nil
}

// Stat implements [FS].
func (m *Mem) Stat(name string) (fs.FileInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find(name)
	if err != nil {
		return nil, memErr("stat", name, err)
	}
	return memInfo{path.Base(name), n.mode, int64(len(n.data))}, nil
}

// Lstat implements [FS]; there are no symbolic links here.
func (m *Mem) Lstat(name string) (fs.FileInfo, error) { return m.Stat(name) }

// ReadDir implements [FS].
func (m *Mem) ReadDir(name string) ([]fs.DirEntry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find(name)
	if err == nil && n.names == nil {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return nil, memErr("readdir", name, err)
	}
	var list []fs.DirEntry
	for _, base := range slices.Sorted(maps.Keys(n.names)) {
		child := n.names[base]
		list = append(list, fs.FileInfoToDirEntry(memInfo{base, child.mode, int64(len(child.data))}))
	}
	return list, nil
}

// EvalSymlinks implements [FS].
func (m *Mem) EvalSymlinks(name string) (string, error) {
	_, err := m.Stat(name)
	return name, err
}

// SyncDir implements [FS].
func (m *Mem) SyncDir(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find(name)
	if err == nil && n.names == nil {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return memErr("sync", name, err)
	}
	n.durable = maps.Clone(n.names)
	return nil
}

type memFile struct {
	fs   *Mem
	node *memNode
	name string
}

func (f *memFile) ReadAt(b []byte, off int64) (int, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if off >= int64(len(f.node.data)) {
		return 0, io.EOF
	}
	n := copy(b, f.node.data[off:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memFile) WriteAt(b []byte, off int64) (int, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if need := int(off) + len(b) - len(f.node.data); need > 0 {
		f.node.data = append(f.node.data, make([]byte, need)...)
	}
	return copy(f.node.data[off:], b), nil
}

func (f *memFile) Sync() error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	f.node.synced = slices.Clone(f.node.data)
	return nil
}

func (f *memFile) Stat() (fs.FileInfo, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	return memInfo{path.Base(f.name), f.node.mode, int64(len(f.node.data))}, nil
}

func (f *memFile) Chmod(mode fs.FileMode) error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	f.node.mode = f.node.mode&^fs.ModePerm | mode.Perm()
	return nil
}

func (f *memFile) TryLock() (bool, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if f.fs.NoLocks {
		return false, memErr("lock", f.name, errors.ErrUnsupported)
	}
	if f.node.lock != nil && f.node.lock != f {
		return false, nil
	}
	f.node.lock = f
	return true, nil
}

func (f *memFile) Close() error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if f.node.lock == f {
		f.node.lock = nil
	}
	return nil
}

type memInfo struct {
	name string
	mode fs.FileMode
	size int64
}

func (i memInfo) Name() string       { return i.name }
func (i memInfo) Size() int64        { return i.size }
func (i memInfo) Mode() fs.FileMode  { return i.mode }
func (i memInfo) ModTime() time.Time { return time.Time{} }
func (i memInfo) IsDir() bool        { return i.mode.IsDir() }
func (i memInfo) Sys() any           { return nil }
