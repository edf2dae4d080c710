package journal

import (
	"container/list"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/foldlog/foldlog/internal/fsx"
)

const (
	// maxOpenFiles caps the descriptors that one reader holds for data files.
	maxOpenFiles = 64
	// maxReach bounds the window of an open file in bytes, maxIdleWindow that of
	// a closed one and maxIdle all of those together: with thousands of files
	// most of what is read is near what was read before.
	maxReach      = 1 << 20
	maxIdleWindow = 64 << 10
	maxIdle       = 64 << 20
)

// filePool opens data files on demand and closes the least recently used. Files
// are known by small numbers, in the order in which they were first named.
type filePool struct {
	l       layout
	names   []string
	numbers map[string]int32
	files   []*pooledFile // by number
	open    *list.List    // of *pooledFile, most recent first
	idle    int64         // bytes in the windows of closed files
}

// pooledFile is a data file, open or not.
type pooledFile struct {
	pool *filePool
	path string
	raw  fsx.File // nil while closed
	// place is where an open file stands in the pool's order.
	place *list.Element
	// size is the length when last looked at; data files only grow.
	size int64
	// window holds the file's bytes from windowAt on, all of them published.
	window   []byte
	windowAt int64
	reach    int64
}

func newFilePool(l layout) *filePool {
	return &filePool{l: l, numbers: map[string]int32{}, open: list.New()}
}

// number returns the number of a data file.
func (p *filePool) number(name string) int32 {
	n, ok := p.numbers[name]
	if !ok {
		n = int32(len(p.names))
		p.names = append(p.names, name)
		p.files = append(p.files, &pooledFile{pool: p, path: p.l.dataFile(name)})
		p.numbers[name] = n
	}
	return n
}

// shared returns a name as a string, that of the pool if it has it.
func (p *filePool) shared(name []byte) string {
	if n, ok := p.numbers[string(name)]; ok {
		return p.names[n]
	}
	return string(name)
}

func (p *filePool) path(number int32) string { return p.files[number].path }

// Close closes every file and forgets what it held.
func (p *filePool) Close() {
	for _, f := range p.files {
		f.close()
		f.window, f.size = nil, 0
	}
	p.idle = 0
}

// rest frees what only a long reading at once makes use of.
func (p *filePool) rest() {
	if p.idle == 0 {
		return
	}
	for _, f := range p.files {
		if f.raw == nil {
			f.window = nil
		}
	}
	p.idle = 0
}

// opened makes sure that the file is open.
func (f *pooledFile) opened() error {
	p := f.pool
	if f.raw != nil {
		p.open.MoveToFront(f.place)
		return nil
	}
	for p.open.Len() >= maxOpenFiles {
		p.open.Back().Value.(*pooledFile).close()
	}
	raw, err := p.l.fs.OpenFile(f.path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	p.idle -= int64(len(f.window))
	f.raw, f.place, f.reach = raw, p.open.PushFront(f), 4<<10
	if err := f.measure(); err != nil {
		f.close()
		return err
	}
	return nil
}

func (f *pooledFile) close() {
	if f.raw == nil {
		return
	}
	p := f.pool
	f.raw.Close()
	f.raw = nil
	p.open.Remove(f.place)
	if len(f.window) > maxIdleWindow || p.idle+int64(len(f.window)) > maxIdle {
		f.window = nil
	}
	p.idle += int64(len(f.window))
}

// measure looks the length of an open file up.
func (f *pooledFile) measure() error {
	info, err := f.raw.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("not a regular file")
	}
	f.size = info.Size()
	return nil
}

// holds checks that n bytes at off are in the file.
func (f *pooledFile) holds(off, n int64) error {
	if off+n <= f.size {
		return nil
	}
	if err := f.opened(); err != nil {
		return err
	}
	if err := f.measure(); err != nil {
		return err
	}
	if off+n > f.size {
		return fmt.Errorf("published extent of %d bytes ends after the file's %d bytes", n, f.size)
	}
	return nil
}

// inWindow returns n bytes at off if they are at hand.
func (f *pooledFile) inWindow(off, n int64) ([]byte, bool) {
	if off < f.windowAt || off+n > f.windowAt+int64(len(f.window)) {
		return nil, false
	}
	return f.window[off-f.windowAt:][:n], true
}

// before returns n bytes at off, n small, expecting the next call to ask for
// bytes before them: it reads ahead towards the start of the file, the further
// the better that expectation holds.
func (f *pooledFile) before(off, n int64) ([]byte, error) {
	if b, ok := f.inWindow(off, n); ok {
		return b, nil
	}
	if err := f.opened(); err != nil {
		return nil, err
	}
	if len(f.window) > 0 && off < f.windowAt && f.windowAt-off <= 2*f.reach {
		f.reach = min(2*f.reach, maxReach)
	}
	from := max(0, off+n-max(f.reach, n))
	size := off + n - from
	if int64(cap(f.window)) < size {
		f.window = make([]byte, size)
	}
	f.window, f.windowAt = f.window[:size], from
	if err := readFull(f.raw, f.window, from); err != nil {
		f.window = f.window[:0]
		return nil, err
	}
	return f.window[off-from:][:n], nil
}

// read fills b with the bytes at off.
func (f *pooledFile) read(b []byte, off int64) error {
	if have, ok := f.inWindow(off, int64(len(b))); ok {
		copy(b, have)
		return nil
	}
	if err := f.opened(); err != nil {
		return err
	}
	return readFull(f.raw, b, off)
}

func readFull(r io.ReaderAt, b []byte, off int64) error {
	n, err := r.ReadAt(b, off)
	if n == len(b) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
