package journal

import (
	"container/list"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/foldlog/foldlog/internal/fsx"
)

// maxOpenFiles caps the descriptors that one reader holds for data files.
const maxOpenFiles = 64

// filePool opens data files on demand and closes the least recently used. Files
// are known by small numbers, in the order in which they were first named.
type filePool struct {
	l       layout
	names   []string
	numbers map[string]int32
	open    map[int32]*pooledFile
	recent  *list.List // of *pooledFile, most recent first
}

type pooledFile struct {
	fsx.File
	number int32
	place  *list.Element
	// size is the length when last looked at; data files only grow.
	size int64
	// window holds the file's bytes from windowAt on, for walking backwards.
	window   []byte
	windowAt int64
	reach    int64
}

func newFilePool(l layout) *filePool {
	return &filePool{l: l, numbers: map[string]int32{}, open: map[int32]*pooledFile{}, recent: list.New()}
}

// number returns the number of a data file.
func (p *filePool) number(name string) int32 {
	n, ok := p.numbers[name]
	if !ok {
		n = int32(len(p.names))
		p.names = append(p.names, name)
		p.numbers[name] = n
	}
	return n
}

func (p *filePool) path(number int32) string { return p.l.dataFile(p.names[number]) }

// file returns an open data file, valid until the next call.
func (p *filePool) file(number int32) (*pooledFile, error) {
	if f := p.open[number]; f != nil {
		p.recent.MoveToFront(f.place)
		return f, nil
	}
	for len(p.open) >= maxOpenFiles {
		p.drop(p.recent.Back().Value.(*pooledFile))
	}
	raw, err := p.l.fs.OpenFile(p.path(number), os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	f := &pooledFile{File: raw, number: number, reach: 4 << 10}
	if err := f.measure(); err != nil {
		raw.Close()
		return nil, err
	}
	f.place = p.recent.PushFront(f)
	p.open[number] = f
	return f, nil
}

func (f *pooledFile) measure() error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("not a regular file")
	}
	f.size = info.Size()
	return nil
}

func (p *filePool) drop(f *pooledFile) {
	f.Close()
	p.recent.Remove(f.place)
	delete(p.open, f.number)
}

// Close closes every file.
func (p *filePool) Close() {
	for _, f := range p.open {
		p.drop(f)
	}
}

// holds checks that n bytes at off are in the file.
func (f *pooledFile) holds(off, n int64) error {
	if off+n <= f.size {
		return nil
	}
	if err := f.measure(); err != nil {
		return err
	}
	if off+n > f.size {
		return fmt.Errorf("published extent of %d bytes ends after the file's %d bytes", n, f.size)
	}
	return nil
}

// maxReach bounds the window for walking backwards.
const maxReach = 1 << 20

// before returns n bytes at off, n small, expecting the next call to ask for
// bytes before them: it reads ahead towards the start of the file, the further
// the better that expectation holds.
func (f *pooledFile) before(off, n int64) ([]byte, error) {
	if off >= f.windowAt && off+n <= f.windowAt+int64(len(f.window)) {
		return f.window[off-f.windowAt:][:n], nil
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
	if err := readFull(f, f.window, from); err != nil {
		f.window = f.window[:0]
		return nil, err
	}
	return f.window[off-from:][:n], nil
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

// notExist tells a missing data file apart from one that cannot be read.
func notExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }
