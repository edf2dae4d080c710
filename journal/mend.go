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

// longestBefore returns the longest unbroken history among the sound extents,
// from the first operation on, that ends at the operation upTo or before. What it
// holds was once written whole, though no head can prove any more that the last
// extent was published.
func (p *filePool) longestBefore(all []foundExtent, headerLen, upTo uint64) []extentRef {
	// An extent begins after its predecessor, so that whatever is looked at after
	// it may follow it.
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b foundExtent) int { return cmp.Compare(a.first, b.first) })
	chained := make(map[Pointer]*foundExtent, len(all))
	var last *foundExtent
	for i := range all {
		e := &all[i]
		if e.last > upTo || !e.chains(chained, headerLen) {
			continue
		}
		chained[e.ptr] = e
		if last == nil || e.last > last.last {
			last = e
		}
	}
	var refs refStack
	for e := last; e != nil; {
		refs.push(p.ref(&e.ptr, &e.extentHeader, int32(e.ptr.Len-e.payloadLen)))
		if e.previous == nil {
			break
		}
		e = chained[*e.previous]
	}
	return refs.oldestFirst()
}

// chains tells whether an extent is the first of a history, or follows one that
// leads back to it.
func (e *foundExtent) chains(chained map[Pointer]*foundExtent, headerLen uint64) bool {
	if e.previous == nil {
		return e.first == 1 && e.start == headerLen
	}
	previous, ok := chained[*e.previous]
	return ok && previous.follow(e.first-1, e.start) == nil
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
