package journal

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/foldlog/foldlog/internal/fsx"
)

// Info is what a journal is and how it lies on disk.
type Info struct {
	// Path is the study path with its symbolic links resolved.
	Path   string
	Header Header
	// Head is what is published; of a journal before format 6 its complete
	// lines.
	Head Head
	// Extents counts the published extents.
	Extents int
	// Files lists the data files by name.
	Files []FileInfo
	// Holder is who holds the lease at this moment, nil if nobody does.
	Holder *Owner
	// Generation counts how often the lease has changed hands.
	Generation uint64
	// Kept lists the files of older formats that migrations left.
	Kept []string
}

// FileInfo is one data file.
type FileInfo struct {
	Name string
	// Size is the file's length, Published how many of its bytes up to the end
	// of its last published extent there are. What follows is never read.
	Size, Published int64
	// Extents counts its published extents.
	Extents int
}

// Inspect describes a journal without replaying it. It follows the whole chain.
func Inspect(path string, opts ReaderOptions) (*Info, error) {
	r, err := OpenReader(path, opts)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	info := &Info{Path: r.l.head, Header: r.snap.header, Kept: r.l.keptFiles()}
	info.Generation, info.Holder = r.l.holder()
	if r.snap.legacy() {
		if err := r.Refresh(discard{}); err != nil {
			return nil, err
		}
		info.Head = r.Head()
		return info, nil
	}
	info.Head = r.snap.head
	refs, _, err := r.pool.walk(r.snap, r.known)
	if err != nil {
		return nil, err
	}
	info.Extents = len(refs)
	info.Files, err = r.pool.fileInfos(refs)
	return info, err
}

// discard is an applier that keeps nothing.
type discard struct{}

func (discard) Apply(*Record) error { return nil }
func (discard) Reset()              {}

// fileInfos lists the data files with what the extents say of them.
func (p *filePool) fileInfos(refs []extentRef) ([]FileInfo, error) {
	names, err := p.l.dataFiles()
	if err != nil {
		return nil, err
	}
	for i := range refs { // another writer may name its files otherwise
		if name := p.names[refs[i].file]; !strings.HasPrefix(name, dataPrefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	published := map[string]*FileInfo{}
	infos := make([]FileInfo, len(names))
	for i, name := range names {
		infos[i].Name = name
		published[name] = &infos[i]
		info, err := p.l.fs.Stat(p.l.dataFile(name))
		if err != nil {
			return nil, err
		}
		infos[i].Size = info.Size()
	}
	for i := range refs {
		if info := published[p.names[refs[i].file]]; info != nil {
			info.Extents++
			info.Published = max(info.Published, refs[i].offset+int64(refs[i].length))
		}
	}
	return infos, nil
}

// holder returns the lease's generation and who holds it, without touching it.
func (l layout) holder() (uint64, *Owner) {
	rack := newBatonRack(l)
	entries, err := l.fs.ReadDir(rack.dir)
	if err != nil {
		return 0, nil
	}
	b, _ := pickBaton(entries)
	if !b.held {
		return b.generation, nil
	}
	raw, err := fsx.ReadFile(l.fs, filepath.Join(rack.path(b), b.ownerFile()), ownerSize)
	if errors.Is(err, fs.ErrNotExist) {
		return b.generation, nil
	}
	o := decodeOwner(raw)
	return b.generation, &o
}

// keptFiles lists what migrations of this journal left.
func (l layout) keptFiles() []string {
	var kept []string
	for format := uint64(firstFormat); format < FormatVersion; format++ {
		path := KeptPath(l.head, format)
		if _, err := l.fs.Lstat(path); err == nil {
			kept = append(kept, path)
		}
	}
	return kept
}

// Size returns the bytes that a journal takes on disk, without reading it.
func Size(path string, opts ReaderOptions) (int64, error) {
	l, err := newLayout(orOS(opts.FS), path)
	if err != nil {
		return 0, err
	}
	info, err := l.fs.Stat(l.head)
	if err != nil {
		return 0, l.missing(err)
	}
	total := info.Size()
	names, err := l.dataFiles()
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		info, err := l.fs.Stat(l.dataFile(name))
		if err != nil {
			return 0, err
		}
		total += info.Size()
	}
	return total, nil
}

// Holder returns how often the lease has changed hands, and who holds it at
// this moment, nil if nobody does.
func (r *Reader) Holder() (generation uint64, holder *Owner) { return r.l.holder() }
