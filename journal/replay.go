package journal

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
)

const (
	// batchBytes is how much of the journal is read ahead at a time.
	batchBytes = 1 << 20
	// batchExtents bounds the extents of a batch.
	batchExtents = 8 << 10
	// batchesAhead is how many batches wait between reading and applying.
	batchesAhead = 2
)

// batch is a run of extents on its way from the disk to the machine.
type batch struct {
	buf     []byte
	places  []int // of each extent in buf
	order   []int32
	records []Record
	err     error // what stopped the reader after the records
}

// replayer reads extents ahead in one goroutine, checks and splits them, and
// hands the records on to another.
type replayer struct {
	pool *filePool
	refs []extentRef
	next uint64 // sequence number of the first record to come
	free chan *batch
	full chan *batch
	stop chan struct{}
}

// replay applies the records of the extents, of which first is the first
// sequence number, in order.
func (p *filePool) replay(refs []extentRef, first uint64, apply func(*Record) error) error {
	if len(refs) == 0 {
		return nil
	}
	r := &replayer{pool: p, refs: refs, next: first}
	if len(refs) == 1 || totalBytes(refs) <= 64<<10 {
		b := new(batch)
		r.fill(b, refs)
		return r.apply(b, apply)
	}
	r.free, r.full, r.stop = make(chan *batch, batchesAhead), make(chan *batch, batchesAhead), make(chan struct{})
	for range batchesAhead {
		r.free <- new(batch)
	}
	go r.read()
	var err error
	for b := range r.full {
		if err == nil {
			if err = r.apply(b, apply); err != nil {
				close(r.stop)
			}
		}
		r.free <- b
	}
	return err
}

func totalBytes(refs []extentRef) (n int64) {
	for i := range refs {
		n += int64(refs[i].length)
	}
	return n
}

// read fills batches until the extents or the consumer's patience end. It owns
// the file pool while it runs, and closes full when it is done with it.
func (r *replayer) read() {
	defer close(r.full)
	for refs := r.refs; len(refs) > 0; {
		var b *batch
		select {
		case b = <-r.free:
		case <-r.stop:
			return
		}
		n, size := 1, int64(refs[0].length)
		for n < len(refs) && n < batchExtents && size+int64(refs[n].length) <= batchBytes {
			size += int64(refs[n].length)
			n++
		}
		r.fill(b, refs[:n])
		refs = refs[n:]
		r.full <- b
		if b.err != nil {
			return
		}
	}
}

func (r *replayer) apply(b *batch, apply func(*Record) error) error {
	for i := range b.records {
		if err := apply(&b.records[i]); err != nil {
			return err
		}
	}
	return b.err
}

// fill reads the extents into the batch and splits them into records. On a
// fault the records before it stay, and b.err tells.
func (r *replayer) fill(b *batch, refs []extentRef) {
	b.records, b.err = b.records[:0], nil
	failed, readErr := r.load(b, refs)
	for i := range refs {
		if readErr != nil && i == failed {
			b.err = readErr
			return
		}
		ref := &refs[i]
		payload := b.buf[b.places[i]+int(ref.headLen):][:ref.length-ref.headLen]
		if b.err = r.split(b, ref, payload); b.err != nil {
			return
		}
	}
}

// load reads the extents' bytes with as few, as large reads as the files allow.
// On a fault it names the first extent, in order, that could not be read.
func (r *replayer) load(b *batch, refs []extentRef) (failed int, err error) {
	b.places = slices.Grow(b.places[:0], len(refs))[:len(refs)]
	b.order = b.order[:0]
	for i := range refs {
		b.order = append(b.order, int32(i))
	}
	slices.SortFunc(b.order, func(i, j int32) int {
		return cmp.Or(cmp.Compare(refs[i].file, refs[j].file), cmp.Compare(refs[i].offset, refs[j].offset))
	})
	need := int(totalBytes(refs))
	if cap(b.buf) < need {
		b.buf = make([]byte, need)
	}
	b.buf = b.buf[:need]
	failed = len(refs)
	at := 0
	for i := 0; i < len(b.order); {
		start, size := i, 0
		first := &refs[b.order[i]]
		for ; i < len(b.order); i++ {
			ref := &refs[b.order[i]]
			if ref.file != first.file || ref.offset != first.offset+int64(size) {
				break
			}
			b.places[b.order[i]] = at + size
			size += int(ref.length)
		}
		runErr := r.readRun(b.buf[at:at+size], first)
		if runErr == nil {
			at += size
			continue
		}
		for _, k := range b.order[start:i] {
			if int(k) < failed {
				failed, err = int(k), r.refError(&refs[k], r.seqOf(refs, int(k)), runErr)
			}
		}
		at += size
	}
	return failed, err
}

func (r *replayer) readRun(buf []byte, first *extentRef) error {
	return r.pool.files[first.file].read(buf, first.offset)
}

// seqOf returns the first sequence number of refs[i], r.next being that of
// refs[0].
func (r *replayer) seqOf(refs []extentRef, i int) uint64 {
	seq := r.next
	for k := range i {
		seq += uint64(refs[k].ops)
	}
	return seq
}

func (r *replayer) refError(ref *extentRef, seq uint64, err error) error {
	ptr := &Pointer{File: r.pool.names[ref.file], Offset: ref.offset, Len: int64(ref.length)}
	return r.pool.l.extentError(ptr, seq, err)
}

// split checks a payload and appends its records to the batch.
func (r *replayer) split(b *batch, ref *extentRef, payload []byte) error {
	if sum := checksum(payload); sum != ref.checksum {
		return r.refError(ref, r.next, fmt.Errorf("checksum is %d, not %d", sum, ref.checksum))
	}
	last := r.next + uint64(ref.ops) - 1
	offset := ref.offset + int64(ref.headLen)
	for len(payload) > 0 {
		if r.next > last {
			err := fmt.Errorf("more bytes than the %d operations that the extent names", ref.ops)
			return &CorruptError{Path: r.pool.path(ref.file), Offset: offset, Seq: last, Err: err}
		}
		line, err := splitRecord(payload, r.next, &b.records)
		if err != nil {
			return &CorruptError{Path: r.pool.path(ref.file), Offset: offset, Seq: r.next, Err: err}
		}
		payload = payload[line:]
		offset += int64(line)
		r.next++
	}
	if r.next != last+1 {
		return r.refError(ref, r.next, fmt.Errorf("operations %d to %d are missing", r.next, last))
	}
	return nil
}

// splitRecord parses the first line of a payload, which must be operation seq,
// and returns the line's length.
func splitRecord(payload []byte, seq uint64, records *[]Record) (int, error) {
	end := bytes.IndexByte(payload, '\n')
	if end < 0 {
		return 0, errors.New("the operation line has no end")
	}
	*records = append(*records, Record{Line: payload[:end+1]})
	rec := &(*records)[len(*records)-1]
	err := decodeRecord(payload[:end], rec)
	if err == nil && rec.Seq != seq {
		err = fmt.Errorf("operation is numbered %d", rec.Seq)
	}
	if err != nil {
		*records = (*records)[:len(*records)-1]
	}
	return end + 1, err
}
