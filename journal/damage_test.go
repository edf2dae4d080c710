package journal

import (
	"bytes"
	"errors"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/foldlog/foldlog/internal/fsx"
)

// specimen is a journal of two writers in memory, to be damaged:
//
//	extent  1 (a)   2 (b)    3 (a)   4 (b)   5 (a)
//	ids     one     two,three four   five    six
type specimen struct {
	t       testing.TB
	mem     *fsx.Mem
	extents []Pointer // from index 1 on
	first   []uint64  // the first operation of each
}

var specimenIDs = []string{"one", "two", "three", "four", "five", "six"}

func newSpecimen(t testing.TB) *specimen {
	t.Helper()
	s := &specimen{t: t, mem: newMem(t), extents: make([]Pointer, 1), first: make([]uint64, 1)}
	named := func(name string) WriterOptions {
		o := memOptions(s.mem)
		o.DataFile = func(uint64, uint64) string { return name }
		o.Term = MaxTerm // who is overtaken, because the machine is busy, begins another file
		return o
	}
	a, err := Create(t.Context(), memPath, named("data-a"), new(ids))
	if err != nil {
		t.Fatal(err)
	}
	b, err := OpenWriter(t.Context(), memPath, named("data-b"), new(ids))
	if err != nil {
		t.Fatal(err)
	}
	for i, w := range []*Writer{a, b, a, b, a} {
		names := [][]string{{"one"}, {"two", "three"}, {"four"}, {"five"}, {"six"}}[i]
		mustPut(t, w, names...)
		l, _ := newLayout(s.mem, memPath)
		snap, err := l.readHead()
		if err != nil {
			t.Fatal(err)
		}
		s.extents = append(s.extents, *snap.head.Tip)
		s.first = append(s.first, snap.head.Ops-uint64(len(names))+1)
	}
	a.Close()
	b.Close()
	return s
}

func (s *specimen) data(name string) string { return memPath + ".d/" + name }

func (s *specimen) read(path string) []byte {
	s.t.Helper()
	b, err := fsx.ReadFile(s.mem, path, 1<<20)
	if err != nil {
		s.t.Fatal(err)
	}
	return b
}

// write replaces a file.
func (s *specimen) write(path string, b []byte) {
	s.t.Helper()
	f, err := s.mem.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err == nil {
		err = errors.Join(fsx.WriteFull(f, b, 0), f.Close())
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// edit replaces text in a file, which must hold it.
func (s *specimen) edit(path, old, text string) {
	s.t.Helper()
	b := s.read(path)
	if !bytes.Contains(b, []byte(old)) {
		s.t.Fatalf("%s does not hold %q:\n%s", path, old, b)
	}
	s.write(path, bytes.Replace(b, []byte(old), []byte(text), 1))
}

// editExtent replaces text of the same length in an extent.
func (s *specimen) editExtent(n int, old, text string) {
	s.t.Helper()
	if len(old) != len(text) {
		s.t.Fatalf("%q and %q differ in length", old, text)
	}
	p := s.extents[n]
	b := s.read(s.data(p.File))
	in := b[p.Offset : p.Offset+p.Len]
	if !bytes.Contains(in, []byte(old)) {
		s.t.Fatalf("extent %d does not hold %q:\n%s", n, old, in)
	}
	copy(in, bytes.Replace(in, []byte(old), []byte(text), 1))
	s.write(s.data(p.File), b)
}

// forge replaces the payload of the last extent and everything that depends on
// its bytes, so that only the lines themselves are wrong.
func (s *specimen) forge(payload string) {
	s.t.Helper()
	p := s.extents[5]
	b := s.read(s.data(p.File))
	l, _ := newLayout(s.mem, memPath)
	snap, err := l.readHead()
	if err != nil {
		s.t.Fatal(err)
	}
	line, _, _ := bytes.Cut(b[p.Offset:], []byte("\n"))
	e, err := decodeExtentHeader(line)
	if err != nil {
		s.t.Fatal(err)
	}
	e.payloadLen, e.checksum = int64(len(payload)), checksum([]byte(payload))
	extent := append(appendExtentHeader(nil, e), payload...)
	s.write(s.data(p.File), append(b[:p.Offset], extent...))
	p.Len = int64(len(extent))
	s.extents[5] = p
	head := Head{Tip: &p, Ops: snap.head.Ops, Bytes: e.start + uint64(len(payload))}
	s.write(memPath, appendHead(bytes.Clone(snap.headerLine), head))
}

// line is the sixth operation's line with another text in it.
func (s *specimen) line(old, text string) string {
	line := string(appendRecord(nil, 6, 7, 1000, idOp("six")))
	if !strings.Contains(line, old) {
		s.t.Fatalf("%s does not hold %q", line, old)
	}
	return strings.Replace(line, old, text, 1)
}

// fault is where a damage must be reported.
type fault struct {
	path   string // "" is the head
	extent int    // 0: offset is given
	offset int64
	seq    uint64 // 0: the last operation of the extent, or none
	text   string
}

func (s *specimen) headOffset() int64 {
	b := s.read(memPath)
	return int64(bytes.IndexByte(b, '\n')) + 1
}

const afterHeader = math.MinInt64 // the offset of the head line
