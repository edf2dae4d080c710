package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/foldlog/foldlog/internal/fsx"
)

// publish makes a group part of the history. Published tells whether our own
// view has moved there; if not, catching up tells what the history holds.
// errFenced says that it certainly does not hold the group and never will.
func (w *Writer) publish(g *group) (published bool, err error) {
	x, err := w.place(g)
	if err != nil {
		return false, fmt.Errorf("append extent: %w", err)
	}
	ticket, err := w.writeBoth(g, x)
	if err != nil {
		return false, err
	}
	w.data.named = true // whatever the rename answers
	w.show(&x.head)
	if err := w.l.fs.Rename(ticket, w.l.head); err != nil {
		return false, w.resolve(g, x.head, fmt.Errorf("publish head: %w", err))
	}
	w.advance(x.head, x.sum)
	if err := w.l.syncParent(); err != nil {
		return true, &UncertainError{First: g.base.Ops + 1, Last: x.head.Ops, Visible: true, Err: err}
	}
	return true, nil
}

// writeBoth makes the extent and the head that is to name it durable, both at
// once: neither means anything before the head is renamed into place.
func (w *Writer) writeBoth(g *group, x *extent) (ticket string, err error) {
	var extentErr, ticketErr error
	made := w.reader.snap
	w.opts.together(
		func() { extentErr = w.writeExtent(x) },
		func() { ticket, ticketErr = w.writeTicket(made, x.head) },
	)
	if extentErr != nil {
		err = fmt.Errorf("append extent: %w", extentErr)
	} else {
		err = ticketErr
	}
	now := made
	if err == nil {
		now, err = w.unmoved(g.base)
	}
	if err == nil && now.mode == made.mode {
		return ticket, nil
	}
	if ticketErr == nil {
		w.l.fs.Remove(ticket)
	}
	if err != nil {
		return "", err
	}
	w.reader.snap = now
	return w.writeTicket(now, x.head)
}

// atOnce runs two functions at the same time and returns when both have.
func atOnce(a, b func()) {
	var other sync.WaitGroup
	other.Go(a)
	b()
	other.Wait()
}

// unmoved reads the head that a group is about to follow. One that is gone or of
// another journal is not written over; one that has moved on under our lease says
// that we have lost it.
func (w *Writer) unmoved(base Head) (*snapshot, error) {
	snap, err := w.l.readHead()
	switch {
	case err != nil:
		return nil, fmt.Errorf("publish head: %w", err)
	case !snap.sameJournal(w.reader.snap):
		return nil, fmt.Errorf("publish head: %w", ErrReplaced)
	case !snap.head.same(base):
		return nil, errFenced
	}
	return snap, nil
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

// extent is a group as it will lie in our data file.
type extent struct {
	bytes []byte
	sum   uint64
	head  Head // that would publish it
}

// place finds the place of a group at the end of our data file.
func (w *Writer) place(g *group) (*extent, error) {
	sum := checksum(g.payload)
	line := appendExtentHeader(nil, extentHeader{
		previous: g.base.Tip, first: g.base.Ops + 1, last: g.next - 1,
		start: g.base.Bytes, payloadLen: int64(len(g.payload)), checksum: sum,
	})
	if len(line) > maxMetaLine {
		return nil, &TooLargeError{"extent metadata", int64(len(line)), maxMetaLine}
	}
	d, err := w.openData()
	if err != nil {
		return nil, err
	}
	x := &extent{bytes: append(line, g.payload...), sum: sum}
	tip := &Pointer{File: d.name, Offset: d.end, Len: int64(len(x.bytes))}
	x.head = Head{Tip: tip, Ops: g.next - 1, Bytes: g.base.Bytes + uint64(len(g.payload))}
	return x, nil
}

// writeExtent appends an extent to our data file and makes it durable.
func (w *Writer) writeExtent(x *extent) error {
	d := w.data
	if err := fsx.WriteFull(d, x.bytes, d.end); err != nil {
		return err
	}
	if err := d.Sync(); err != nil {
		return err
	}
	if d.created {
		if err := w.l.syncDirs(); err != nil {
			return err
		}
		d.created = false
	}
	d.end += int64(len(x.bytes))
	return nil
}

// openData returns the current data file, making one if there is none.
func (w *Writer) openData() (*dataFile, error) {
	if w.data != nil {
		return w.data, nil
	}
	name := w.opts.DataFile(w.Worker(), w.nFiles)
	w.nFiles++
	if err := (&Pointer{File: name, Len: 1}).check(); err != nil {
		return nil, err
	}
	if !strings.HasPrefix(name, dataPrefix) {
		return nil, fmt.Errorf("data file name %.80q does not begin with %s", name, dataPrefix)
	}
	f, err := createShared(w.l.fs, w.l.dataFile(name), os.O_WRONLY)
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

// leave goes on in a new data file: where history has been taken back, as by a copy
// that was put in the journal's place, ours need not be among its files any more.
func (w *Writer) leave() {
	w.data.close()
	w.data = nil
}

// writeTicket writes the next head, durable, into the lease.
func (w *Writer) writeTicket(snap *snapshot, head Head) (string, error) {
	path := filepath.Join(w.lease.dir(), w.lease.baton.ticketFile(w.nTickets))
	w.nTickets++
	f, err := w.createTicket(path, snap.mode)
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

// createTicket gives the ticket the mode of the head that it will replace.
func (w *Writer) createTicket(path string, mode fs.FileMode) (fsx.File, error) {
	if mode == 0 {
		return createShared(w.l.fs, path, os.O_WRONLY)
	}
	return w.l.fs.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
}

func fillTicket(f fsx.File, snap *snapshot, head Head) error {
	b := appendHead(slices.Clone(snap.headerLine), head)
	if n := int64(len(b) - len(snap.headerLine)); n > maxMetaLine {
		return &TooLargeError{"head line", n, maxMetaLine}
	}
	if err := fsx.WriteFull(f, b, 0); err != nil {
		return err
	}
	if err := keepMode(f, snap.mode); err != nil {
		return err
	}
	return f.Sync()
}

// keepMode undoes what the umask took from a file's mode, 0 being any.
func keepMode(f fsx.File, mode fs.FileMode) error {
	if mode == 0 {
		return nil
	}
	info, err := f.Stat()
	if err != nil || info.Mode().Perm() == mode {
		return err
	}
	return f.Chmod(mode)
}

// resolvePatience bounds how long a writer tries to find out what became of a
// head before it says that it cannot tell.
const resolvePatience = 30 * time.Second

// reacquire takes the lease anew, which sweeps our ticket away: from then on the
// head says for good what became of a rename that failed.
func (w *Writer) reacquire() (err error) {
	w.layDown()
	deadline := time.Now().Add(resolvePatience)
	w.lease, err = w.keeper.acquire(func(d time.Duration) bool {
		time.Sleep(d)
		return time.Now().Before(deadline)
	})
	return err
}

// resolve finds out what became of a head whose rename failed.
func (w *Writer) resolve(g *group, head Head, cause error) error {
	uncertain := &UncertainError{First: g.base.Ops + 1, Last: head.Ops, Err: cause}
	if err := w.reacquire(); err != nil {
		return uncertain
	}
	held, err := w.historyHolds(head)
	switch {
	case err != nil:
		return uncertain
	case held:
		return w.settleHead(uncertain)
	case errors.Is(cause, fs.ErrNotExist):
		return errFenced
	}
	return cause
}

// settleHead makes a head durable that is there although its rename failed.
func (w *Writer) settleHead(uncertain *UncertainError) error {
	if err := w.l.syncParent(); err != nil {
		uncertain.Visible, uncertain.Err = true, errors.Join(uncertain.Err, err)
		return uncertain
	}
	return nil
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
