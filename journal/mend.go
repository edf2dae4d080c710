package journal

// readableTail walks back from the head as far as the links hold. Before is the
// last operation that it did not reach.
func (p *filePool) readableTail(snap *snapshot) (refs []extentRef, before uint64) {
	at := snap.head
	for at.Tip != nil && at.Ops > 0 {
		e, headLen, err := p.readExtentHeader(at.Tip, at.Ops)
		if err != nil || e.follow(at.Ops, at.Bytes) != nil {
			break
		}
		refs = append(refs, p.ref(at.Tip, &e, headLen))
		at = Head{Tip: e.previous, Ops: e.first - 1, Bytes: e.start}
	}
	reverse(refs)
	return refs, at.Ops
}

// longestBefore returns the longest history up to an operation that the data
// files hold, whether or not a head can still prove it.
func (p *filePool) longestBefore(headerLen, upTo uint64) ([]extentRef, error) {
	var all []foundExtent
	if err := p.l.scanAll(func(e foundExtent) { all = append(all, e) }); err != nil {
		return nil, err
	}
	var refs []extentRef
	for _, e := range longestChain(all, headerLen, upTo) {
		refs = append(refs, p.ref(&e.ptr, &e.extentHeader, int32(e.ptr.Len-e.payloadLen)))
	}
	return refs, nil
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
