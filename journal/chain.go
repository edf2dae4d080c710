package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
)

// extentRef is one link of the published chain, as small as can be: a journal
// of a million single-operation extents needs a million of them.
type extentRef struct {
	offset   int64
	checksum uint64
	length   int32
	headLen  int32
	file     int32
	ops      uint32
}

// position is a place in history between two extents: after the extent at tip.
type position struct {
	Head
	checksum uint64
}

// errRewound says that the published history no longer holds a position.
var errRewound = errors.New("history was rewound")

// readExtentHeader reads and checks the metadata line of a published extent.
// seq is its last operation, for messages.
func (p *filePool) readExtentHeader(ptr *Pointer, seq uint64) (extentHeader, int32, error) {
	f := p.files[p.number(ptr.File)]
	fail := func(err error) (extentHeader, int32, error) {
		return extentHeader{}, 0, p.l.extentError(ptr, seq, err)
	}
	if err := f.holds(ptr.Offset, ptr.Len); err != nil {
		return fail(err)
	}
	b, err := f.before(ptr.Offset, min(ptr.Len, maxMetaLine))
	if err != nil {
		return fail(err)
	}
	end := bytes.IndexByte(b, '\n')
	if end < 0 {
		return fail(errors.New("the extent's metadata line does not end within 2048 bytes"))
	}
	e, ok := quickExtentHeader(b[:end], p)
	if !ok {
		if e, err = decodeExtentHeader(b[:end]); err != nil {
			return fail(err)
		}
	}
	if int64(end)+1+e.payloadLen != ptr.Len {
		return fail(fmt.Errorf("payload of %d bytes does not fill the extent's %d", e.payloadLen, ptr.Len))
	}
	if err := e.check(); err != nil {
		return fail(err)
	}
	return e, int32(end) + 1, nil
}

// check refuses an extent that is too long for a reader, or too short for its
// operations, each of which takes a byte at least.
func (e *extentHeader) check() error {
	switch {
	case e.payloadLen > HardLimit:
		return &TooLargeError{"extent", e.payloadLen, HardLimit}
	case e.first == 0 || e.first > e.last || e.last-e.first >= uint64(e.payloadLen):
		return fmt.Errorf("operations %d to %d in %d bytes cannot be", e.first, e.last, e.payloadLen)
	}
	return nil
}

// extentError places a fault of a published extent. What keeps a healthy file
// from being read (permissions, I/O) is no corruption.
func (l layout) extentError(ptr *Pointer, seq uint64, err error) error {
	path := l.dataFile(ptr.File)
	var newer *NewerFormatError
	switch {
	case errors.As(err, &newer):
		newer.Path = path
		return newer
	case errors.Is(err, fs.ErrNotExist):
		if _, statErr := l.fs.Stat(l.data); errors.Is(statErr, fs.ErrNotExist) {
			err = fmt.Errorf("%s: %w", l.data, ErrDataMissing)
		} else {
			err = errFileMissing
		}
	case isEnvironment(err):
		return fmt.Errorf("read extent at %s, byte %d: %w", path, ptr.Offset, err)
	}
	return &CorruptError{Path: path, Offset: ptr.Offset, Seq: seq, Err: err}
}

// follow checks that an extent ends where its successor, or the head, begins.
func (e *extentHeader) follow(lastSeq, endBytes uint64) error {
	if e.last != lastSeq {
		return fmt.Errorf("last operation is %d, not %d", e.last, lastSeq)
	}
	if end := e.start + uint64(e.payloadLen); end != endBytes || end < e.start {
		return fmt.Errorf("logical end is %d, not %d", end, endBytes)
	}
	return nil
}

// walk follows the back-pointers from head to the position known and returns
// the extents after it, oldest first. It reports errRewound if the history of
// head does not go through known.
func (p *filePool) walk(s *snapshot, known position) ([]extentRef, position, error) {
	head := s.head
	if head.Ops < known.Ops {
		return nil, position{}, errRewound
	}
	var (
		refs refStack
		at   = head
		end  position
	)
	for at.Ops > known.Ops {
		if at.Tip == nil {
			return nil, position{}, p.l.brokenStart(at)
		}
		e, headLen, err := p.readExtentHeader(at.Tip, at.Ops)
		if err != nil {
			return nil, position{}, err
		}
		if err := e.follow(at.Ops, at.Bytes); err != nil {
			return nil, position{}, p.l.extentError(at.Tip, at.Ops, err)
		}
		if end.Tip == nil {
			end = position{head, e.checksum}
		}
		refs.push(p.ref(at.Tip, &e, headLen))
		at = Head{Tip: e.previous, Ops: e.first - 1, Bytes: e.start}
	}
	if end.Tip == nil {
		end = position{head, known.checksum}
	}
	if err := p.meets(s, at, known); err != nil {
		return nil, position{}, err
	}
	return refs.oldestFirst(), end, nil
}

// meets checks that the walk arrived at the known position exactly, or at the
// beginning of the stream if nothing was known.
func (p *filePool) meets(s *snapshot, at Head, known position) error {
	if known.Tip == nil {
		if at.Ops != 0 || at.Tip != nil || at.Bytes != uint64(len(s.headerLine)) {
			return p.l.brokenStart(at)
		}
		return nil
	}
	if at.Ops != known.Ops || at.Bytes != known.Bytes || at.Tip == nil || *at.Tip != *known.Tip {
		return errRewound
	}
	e, _, err := p.readExtentHeader(at.Tip, at.Ops)
	if err != nil {
		return err
	}
	if e.checksum != known.checksum {
		return errRewound
	}
	return nil
}

// brokenStart is the fault of a chain that does not begin where it must.
func (l layout) brokenStart(at Head) error {
	if at.Tip == nil {
		return &CorruptError{Path: l.head, Seq: at.Ops, Err: fmt.Errorf("the chain ends before operation %d, at logical byte %d", at.Ops, at.Bytes)}
	}
	return l.extentError(at.Tip, at.Ops, errors.New("the chain goes on before the first operation"))
}

// refStack collects the extents that a walk comes by, latest first, without
// moving them as it grows.
type refStack struct {
	full [][]extentRef
	last []extentRef
}

const refsPerPiece = 8 << 10

func (s *refStack) push(r extentRef) {
	if len(s.last) == refsPerPiece {
		s.full = append(s.full, s.last)
		s.last = make([]extentRef, 0, refsPerPiece)
	}
	s.last = append(s.last, r)
}

// oldestFirst returns everything in the order of history.
func (s *refStack) oldestFirst() []extentRef {
	refs := make([]extentRef, 0, len(s.full)*refsPerPiece+len(s.last))
	for _, piece := range slices.Backward(append(s.full, s.last)) {
		for _, r := range slices.Backward(piece) {
			refs = append(refs, r)
		}
	}
	return refs
}
