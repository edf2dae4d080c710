package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/foldlog/foldlog/internal/fsx"
)

// Tx collects the operations of one call of [Writer.Do].
type Tx struct {
	g        *group
	atMillis uint64
	from     int // where this transaction's lines begin
	first    uint64
	refused  error
}

// group is the extent in the making.
type group struct {
	w       *Writer
	payload []byte
	base    Head
	next    uint64
}

// NextSeq returns the sequence number that the next operation will have.
func (tx *Tx) NextSeq() uint64 { return tx.g.next }

// AtMillis returns the time that this transaction's operations carry.
func (tx *Tx) AtMillis() uint64 { return tx.atMillis }

// Worker returns the id that the operations carry.
func (tx *Tx) Worker() uint64 { return tx.g.w.opts.Worker }

// Append adds an operation, the compact JSON object that belongs under "op". It
// is copied. An error, [*TooLargeError] among them, must be returned from the
// transaction.
func (tx *Tx) Append(op []byte) error {
	g := tx.g
	at := len(g.payload)
	g.payload = appendRecord(g.payload, g.next, tx.Worker(), tx.atMillis, op)
	if tx.refused = g.admit(tx, int64(len(g.payload)-at)); tx.refused != nil {
		g.payload = g.payload[:at]
		return tx.refused
	}
	g.next++
	return nil
}

// admit checks the caps after a record of so many bytes was added.
func (g *group) admit(tx *Tx, record int64) error {
	o := &g.w.opts
	extent := int64(len(g.payload))
	stream := int64(g.base.Bytes) + extent
	switch {
	case record > o.MaxRecordBytes:
		return &TooLargeError{"record", record, o.MaxRecordBytes}
	case o.MaxJournalBytes > 0 && stream > o.MaxJournalBytes:
		return &TooLargeError{"journal", stream, o.MaxJournalBytes}
	case extent > o.MaxExtentBytes && tx.from > 0:
		return errExtentFull
	case extent > o.MaxExtentBytes:
		return &TooLargeError{"extent", extent, o.MaxExtentBytes}
	}
	return nil
}

// commit runs the requests and publishes what they appended as one extent.
func (w *Writer) commit(rs []*request) {
	if slices.ContainsFunc(rs, func(r *request) bool { return r.fn == nil }) {
		if err := w.catchUp(); err != nil {
			settle(rs, err)
			return
		}
	}
	g := &group{w: w, base: w.reader.snap.head, next: w.reader.snap.head.Ops + 1}
	var members []*request
	for i, r := range rs {
		if r.fn == nil {
			settle([]*request{r}, nil)
			continue
		}
		err := g.run(r)
		if errors.Is(err, errExtentFull) || len(g.payload) >= groupBytes {
			if err == nil {
				members = append(members, r)
				i++
			}
			w.putBack(rs[i:])
			break
		}
		if err != nil {
			settle([]*request{r}, err)
			continue
		}
		members = append(members, r)
	}
	w.group = len(members)
	w.finish(g, members)
}

// run runs one transaction and drops its lines if it fails.
func (g *group) run(r *request) error {
	millis := max(g.w.opts.Clock().UnixMilli(), 0)
	tx := &Tx{g: g, atMillis: uint64(millis), from: len(g.payload), first: g.next}
	err := r.fn(tx)
	if err == nil {
		err = tx.refused
	}
	if err != nil {
		g.payload, g.next = g.payload[:tx.from], tx.first
	}
	return err
}

// finish publishes a group and tells its members.
func (w *Writer) finish(g *group, members []*request) {
	if len(g.payload) == 0 {
		w.m.Settle(true)
		settle(members, nil)
		return
	}
	published, err := w.publish(g)
	w.m.Settle(published)
	if err != nil {
		w.seal()
	}
	if errors.Is(err, errFenced) {
		w.layDown()
		w.putBack(members)
		return
	}
	if !published && w.catchUp() != nil {
		w.layDown() // whoever holds it next catches up first
	}
	settle(members, err)
}

// publish makes a group part of the history. Published tells whether our own
// view has moved there; if not, catching up tells what the history holds.
// errFenced says that it certainly does not hold the group and never will.
func (w *Writer) publish(g *group) (published bool, err error) {
	head, sum, err := w.writeExtent(g)
	if err != nil {
		return false, err
	}
	ticket, err := w.writeTicket(w.reader.snap, head)
	if err != nil {
		return false, err
	}
	w.data.named = true
	if err := w.l.fs.Rename(ticket, w.l.head); err != nil {
		return false, w.resolve(g, head, fmt.Errorf("publish head: %w", err))
	}
	w.advance(head, sum)
	if err := w.l.syncParent(); err != nil {
		return true, &UncertainError{First: g.base.Ops + 1, Last: head.Ops, Visible: true, Err: err}
	}
	return true, nil
}

// advance moves our own view to a head that we published.
func (w *Writer) advance(head Head, sum uint64) {
	r := w.reader
	next := *r.snap
	next.head = head
	r.snap = &next
	r.known = position{head, sum}
	r.applied = head.Ops
}

// dataFile is the file that this handle appends to, nil until the first append
// and after one that failed.
type dataFile struct {
	fsx.File
	name    string
	end     int64
	created bool // its name is not yet durable
	named   bool // a head that names it may have been published
}

func (d *dataFile) close() {
	if d != nil {
		d.Close()
	}
}

// writeExtent appends the group to our data file and makes it durable. It
// returns the head that would publish it.
func (w *Writer) writeExtent(g *group) (Head, uint64, error) {
	fail := func(err error) (Head, uint64, error) { return Head{}, 0, fmt.Errorf("append extent: %w", err) }
	sum := checksum(g.payload)
	line := appendExtentHeader(nil, extentHeader{
		previous: g.base.Tip, first: g.base.Ops + 1, last: g.next - 1,
		start: g.base.Bytes, payloadLen: int64(len(g.payload)), checksum: sum,
	})
	if len(line) > maxMetaLine {
		return fail(&TooLargeError{"extent metadata", int64(len(line)), maxMetaLine})
	}
	d, err := w.openData()
	if err != nil {
		return fail(err)
	}
	extent := append(line, g.payload...)
	if err := fsx.WriteFull(d, extent, d.end); err != nil {
		return fail(err)
	}
	if err := d.Sync(); err != nil {
		return fail(err)
	}
	if d.created {
		if err := w.l.syncDirs(); err != nil {
			return fail(err)
		}
		d.created = false
	}
	tip := &Pointer{File: d.name, Offset: d.end, Len: int64(len(extent))}
	d.end += tip.Len
	return Head{Tip: tip, Ops: g.next - 1, Bytes: g.base.Bytes + uint64(len(g.payload))}, sum, nil
}

// openData returns the current data file, making one if there is none.
func (w *Writer) openData() (*dataFile, error) {
	if w.data != nil {
		return w.data, nil
	}
	name := w.opts.DataFile(w.opts.Worker, w.nFiles)
	w.nFiles++
	if err := (&Pointer{File: name, Len: 1}).check(); err != nil {
		return nil, err
	}
	f, err := w.l.fs.OpenFile(w.l.dataFile(name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return nil, err
	}
	w.data = &dataFile{File: f, name: name, created: true}
	return w.data, nil
}

// seal ends the current data file: after a failure nobody can tell what its end
// holds, so nothing is ever appended to it again. A file that no head can name
// is removed.
func (w *Writer) seal() {
	d := w.data
	if d == nil {
		return
	}
	w.data = nil
	d.close()
	if !d.named {
		w.l.fs.Remove(w.l.dataFile(d.name))
	}
}

// writeTicket writes the next head, durable, into the lease.
func (w *Writer) writeTicket(snap *snapshot, head Head) (string, error) {
	path := filepath.Join(w.lease.dir(), fmt.Sprintf("%s%08x", ticketPrefix, w.nTickets))
	w.nTickets++
	perm := snap.mode
	if perm == 0 {
		perm = 0o666
	}
	f, err := w.l.fs.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, perm)
	if errors.Is(err, fs.ErrNotExist) {
		return "", errFenced
	}
	if err != nil {
		return "", fmt.Errorf("create ticket: %w", err)
	}
	if err := errors.Join(fillTicket(f, snap, head), f.Close()); err != nil {
		w.l.fs.Remove(path)
		return "", fmt.Errorf("write ticket: %w", err)
	}
	return path, nil
}

func fillTicket(f fsx.File, snap *snapshot, head Head) error {
	b := appendHead(slices.Clone(snap.headerLine), head)
	if err := fsx.WriteFull(f, b, 0); err != nil {
		return err
	}
	if snap.mode != 0 {
		info, err := f.Stat()
		if err != nil {
			return err
		}
		if info.Mode().Perm() != snap.mode {
			if err := f.Chmod(snap.mode); err != nil {
				return err
			}
		}
	}
	return f.Sync()
}

// resolvePatience bounds how long a writer tries to find out what became of an
// append before it says that it cannot tell.
const resolvePatience = 30 * time.Second

// resolve finds out what became of a head whose rename failed. It takes the
// lease anew, which sweeps our ticket away; from then on the head is final.
func (w *Writer) resolve(g *group, head Head, cause error) error {
	uncertain := &UncertainError{First: g.base.Ops + 1, Last: head.Ops, Err: cause}
	w.layDown()
	deadline := time.Now().Add(resolvePatience)
	lease, err := w.keeper.acquire(func(d time.Duration) bool {
		time.Sleep(d)
		return time.Now().Before(deadline)
	})
	if err != nil {
		return uncertain
	}
	w.lease = lease
	held, err := w.historyHolds(head)
	switch {
	case err != nil:
		return uncertain
	case held:
		if err := w.l.syncParent(); err != nil {
			uncertain.Visible, uncertain.Err = true, errors.Join(cause, err)
			return uncertain
		}
		return nil
	case errors.Is(cause, fs.ErrNotExist):
		return errFenced
	}
	return cause
}

// historyHolds tells whether the published chain goes through a head.
func (w *Writer) historyHolds(head Head) (bool, error) {
	snap, err := w.l.readHead()
	if err != nil {
		return false, err
	}
	at := snap.head
	for at.Tip != nil && at.Ops > head.Ops {
		e, _, err := w.reader.pool.readExtentHeader(at.Tip, at.Ops)
		if err != nil {
			return false, err
		}
		at = Head{Tip: e.previous, Ops: e.first - 1, Bytes: e.start}
	}
	return at.Tip != nil && at.Ops == head.Ops && *at.Tip == *head.Tip, nil
}
