package journal

import (
	"cmp"
	"errors"
	"slices"
)

// readableTail walks back from the head as far as the links hold. Before is the
// last operation that it did not reach.
func (p *filePool) readableTail(snap *snapshot) (tail []extentRef, before uint64) {
	var refs refStack
	at := snap.head
	for at.Tip != nil && at.Ops > 0 {
		e, headLen, err := p.readExtentHeader(at.Tip, at.Ops)
		if err != nil || e.follow(at.Ops, at.Bytes) != nil {
			break
		}
		refs.push(p.ref(at.Tip, &e, headLen))
		at = Head{Tip: e.previous, Ops: e.first - 1, Bytes: e.start}
	}
	return refs.oldestFirst(), at.Ops
}

// everySound collects the sound extents of all data files.
func (l layout) everySound() (all []foundExtent, err error) {
	err = l.scanAll(func(e foundExtent) { all = append(all, e) })
	return all, err
}

// longestBefore returns the longest history up to an operation among the sound
// extents, whether or not a head can still prove it.
func (p *filePool) longestBefore(all []foundExtent, headerLen, upTo uint64) (refs []extentRef) {
	for _, e := range longestChain(all, headerLen, upTo) {
		refs = append(refs, p.ref(&e.ptr, &e.extentHeader, int32(e.ptr.Len-e.payloadLen)))
	}
	return refs
}

// brokenLinks tells of every place that a sound extent names as its predecessor
// and that does not hold it, latest first. Whoever wrote an extent had read the
// one before it from a head, so these were published whatever became of the
// extents that name them.
func (p *filePool) brokenLinks(all []foundExtent) (faults []error) {
	sound := make(map[Pointer]bool, len(all))
	for i := range all {
		sound[all[i].ptr] = true
	}
	named := slices.Clone(all)
	slices.SortStableFunc(named, func(a, b foundExtent) int { return cmp.Compare(b.first, a.first) })
	for i := range named {
		e := &named[i]
		if e.previous == nil || sound[*e.previous] {
			continue
		}
		sound[*e.previous] = true // told once
		h, _, err := p.readExtentHeader(e.previous, e.first-1)
		if err == nil {
			err = h.follow(e.first-1, e.start)
			if err == nil {
				err = errors.New("the checksum does not match")
			}
			err = p.l.extentError(e.previous, e.first-1, err)
		}
		faults = append(faults, err)
	}
	return faults
}

func (p *filePool) ref(ptr *Pointer, e *extentHeader, headLen int32) extentRef {
	return extentRef{
		offset: ptr.Offset, length: int32(ptr.Len), headLen: headLen,
		checksum: e.checksum, file: p.number(ptr.File), ops: uint32(e.last - e.first + 1),
	}
}

func totalOps(refs []extentRef) (n uint64) {
	for i := range refs {
		n += uint64(refs[i].ops)
	}
	return n
}
