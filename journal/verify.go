package journal

import (
	"context"
	"errors"
	"fmt"
)

// Severity grades a finding.
type Severity string

// Severities: a fault means that the journal is not what it must be; a warning
// that something wants attention; a note is information.
const (
	Fault   Severity = "fault"
	Warning Severity = "warning"
	Note    Severity = "note"
)

// Finding is one thing that [Verify] has to say.
type Finding struct {
	Severity Severity
	// Path and Offset are the place: a file and a byte in it.
	Path   string
	Offset int64
	// Seq is the operation concerned, 0 where there is none.
	Seq uint64
	// Err is what was found.
	Err error
}

// VerifyOptions configure [Verify]. The zero value checks bytes alone.
type VerifyOptions struct {
	ReaderOptions
	// Machine replays the operations, up to the first fault.
	Machine Applier
	// Progress hears of the payload bytes checked, of how many.
	Progress func(done, total int64)
}

// VerifyStats counts what [Verify] checked.
type VerifyStats struct {
	Format  uint64
	Ops     uint64 // operations checked
	Extents int
	Bytes   int64 // extent bytes checked
	Faults  int
}

// Verify checks everything in a journal that can be checked, goes on after a
// fault as far as that makes sense, and reports each finding. The error is for
// what keeps it from checking to the end: the path is missing, or not a journal,
// or of a newer format, the system failed, or ctx ended.
func Verify(ctx context.Context, path string, opts VerifyOptions, report func(Finding)) (*VerifyStats, error) {
	l, err := newLayout(orOS(opts.FS), path)
	if err != nil {
		return nil, err
	}
	v := &verifier{ctx: ctx, l: l, pool: newFilePool(l), opts: opts, report: report, m: opts.Machine}
	defer v.pool.Close()
	return v.run()
}

type verifier struct {
	ctx    context.Context
	l      layout
	pool   *filePool
	opts   VerifyOptions
	report func(Finding)
	m      Applier // nil once the replay has stopped
	sum    VerifyStats
	snap   *snapshot
	// Of a broken chain: the extent before which operations are missing, and
	// the first operation after them.
	gap    int
	resume uint64
}

func (v *verifier) find(s Severity, path string, offset int64, seq uint64, err error) {
	if s == Fault {
		v.sum.Faults++
		v.m = nil
	}
	v.report(Finding{s, path, offset, seq, err})
}

// fault reports an error; what the system, not the journal, did wrong ends the
// check.
func (v *verifier) fault(err error) error {
	var c *CorruptError
	if !errors.As(err, &c) {
		return err
	}
	v.find(Fault, c.Path, c.Offset, c.Seq, c.Err)
	return nil
}

func (v *verifier) run() (*VerifyStats, error) {
	snap, err := v.l.readHead()
	if err != nil {
		if errors.Is(err, ErrHeadMissing) {
			v.find(Fault, v.l.head, 0, 0, ErrHeadMissing)
			return &v.sum, v.scanLeft()
		}
		var c *CorruptError
		if names, listErr := v.l.dataFiles(); errors.As(err, &c) && listErr == nil && len(names) > 0 {
			v.find(Fault, c.Path, c.Offset, 0, c.Err)
			return &v.sum, v.scanLeft()
		}
		return nil, err
	}
	v.snap, v.sum.Format = snap, snap.header.Format
	if snap.legacy() {
		return &v.sum, v.legacy()
	}
	refs, err := v.chain()
	if err == nil {
		err = v.payloads(refs)
	}
	if err == nil {
		err = v.leftovers(refs)
	}
	if err == nil {
		err = v.keptFiles()
	}
	return &v.sum, err
}

// scanLeft says what the data files of a journal without a head still hold.
func (v *verifier) scanLeft() error {
	n, ops := 0, uint64(0)
	err := v.l.scanAll(func(e foundExtent) { n++; ops = max(ops, e.last) })
	if n > 0 {
		v.find(Note, v.l.data, 0, 0, fmt.Errorf("%d sound extents lie here, up to operation %d", n, ops))
	}
	return err
}

func (v *verifier) legacy() error {
	r, err := newReader(v.l)
	if err != nil {
		return err
	}
	defer r.Close()
	m := v.m
	if m == nil {
		m = discard{}
	}
	if err := r.Refresh(until{v.ctx, m}); err != nil {
		if err := v.machineFault(r.Applied()+1, r.legacyAt, v.l.head, err); err != nil {
			return err
		}
	} else if rest := r.snap.size - r.legacyAt; rest > 0 {
		v.find(Note, v.l.head, r.legacyAt, 0, fmt.Errorf("torn last line of %d bytes", rest))
	}
	v.sum.Ops, v.sum.Bytes = r.Applied(), r.legacyAt
	return nil
}

// machineFault reports an error of a replay, which is a fault of the operation
// unless the system failed.
func (v *verifier) machineFault(seq uint64, offset int64, path string, err error) error {
	var c *CorruptError
	switch {
	case errors.As(err, &c):
		return v.fault(err)
	case isEnvironment(err), v.ctx.Err() != nil:
		return err
	}
	v.find(Fault, path, offset, seq, err)
	return nil
}

// chain follows the back-pointers to the beginning. Where a link is broken it
// goes on with the longest history before it that the data files hold.
func (v *verifier) chain() ([]extentRef, error) {
	refs, _, err := v.pool.walk(v.snap, position{Head: v.snap.start()})
	if err == nil {
		return refs, nil
	}
	if err := v.fault(err); err != nil {
		return nil, err
	}
	return v.mended(err)
}

// mended collects the extents on both sides of the broken link, and tells of
// every other one.
func (v *verifier) mended(told error) ([]extentRef, error) {
	tail, before := v.pool.readableTail(v.snap)
	all, err := v.l.everySound()
	if err != nil {
		return nil, err
	}
	for _, link := range v.pool.brokenLinks(all) {
		if link.Error() == told.Error() {
			continue
		}
		if err := v.fault(link); err != nil {
			return nil, err
		}
	}
	refs := v.pool.longestBefore(all, uint64(len(v.snap.headerLine)), before)
	if ops := totalOps(refs); ops < before {
		v.find(Note, v.l.data, 0, ops+1, fmt.Errorf("operations %d to %d cannot be reached", ops+1, before))
	}
	v.gap = len(refs)
	v.resume = before + 1
	return append(refs, tail...), nil
}

// payloads checks every extent's payload and replays what comes before the
// first fault.
func (v *verifier) payloads(refs []extentRef) error {
	total := totalBytes(refs)
	r := &replayer{pool: v.pool, next: 1}
	b := new(batch)
	for i := range refs {
		if err := v.ctx.Err(); err != nil {
			return err
		}
		ref := &refs[i]
		if v.resume > 0 && i == v.gap {
			r.next = v.resume
		}
		first := r.next
		r.fill(b, refs[i:i+1])
		if err := v.apply(b, ref); err != nil {
			return err
		}
		r.next = first + uint64(ref.ops)
		v.sum.Extents++
		v.sum.Bytes += int64(ref.length)
		if v.opts.Progress != nil {
			v.opts.Progress(v.sum.Bytes, total)
		}
	}
	return nil
}

func (v *verifier) apply(b *batch, ref *extentRef) error {
	offset := ref.offset + int64(ref.headLen)
	for i := range b.records {
		rec := &b.records[i]
		v.sum.Ops++
		if v.m != nil {
			if err := v.m.Apply(rec); err != nil {
				if err := v.machineFault(rec.Seq, offset, v.pool.path(ref.file), err); err != nil {
					return err
				}
			}
		}
		offset += int64(len(rec.Line))
	}
	if b.err != nil {
		return v.fault(b.err)
	}
	return nil
}

// leftovers notes the bytes that no head names.
func (v *verifier) leftovers(refs []extentRef) error {
	infos, err := v.pool.fileInfos(refs)
	if err != nil {
		return err
	}
	what := "%d unpublished bytes, which are never read"
	if v.resume > 0 {
		what = "%d bytes that the readable part of the journal does not name"
	}
	for _, f := range infos {
		if f.Size > f.Published {
			v.find(Note, v.l.dataFile(f.Name), f.Published, 0, fmt.Errorf(what, f.Size-f.Published))
		}
	}
	return nil
}
