package journal

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Tx collects the operations of one call of [Writer.Do].
type Tx struct {
	g        *group
	atMillis uint64
	from     int // where this transaction's lines begin
	first    uint64
	refused  error
}

// groupBytes ends a group: what more is waiting goes into the next extent.
const groupBytes = 4 << 20

// group is the extent in the making.
type group struct {
	w       *Writer
	payload []byte
	base    Head
	next    uint64
	ran     []*request // in order, with what their transactions said
}

// NextSeq returns the sequence number that the next operation will have.
func (tx *Tx) NextSeq() uint64 { return tx.g.next }

// AtMillis returns the time that this transaction's operations carry.
func (tx *Tx) AtMillis() uint64 { return tx.atMillis }

// Worker returns the id that the operations carry.
func (tx *Tx) Worker() uint64 { return tx.g.w.Worker() }

// Append adds an operation, the compact JSON object that belongs under "op". It
// is copied. What a reader could not read back, as JSON that is broken or spread
// over lines, is refused. An error, [*TooLargeError] among them, must be returned
// from the transaction, which appends nothing any more.
func (tx *Tx) Append(op []byte) error {
	if tx.refused != nil {
		return tx.refused
	}
	g := tx.g
	at := len(g.payload)
	g.payload = appendRecord(g.payload, g.next, tx.Worker(), tx.atMillis, op)
	if tx.refused = g.admit(tx, g.payload[at:]); tx.refused != nil {
		g.payload = g.payload[:at]
		return tx.refused
	}
	g.next++
	return nil
}

// admit checks the caps, and that readers would read it, after a record was
// added.
func (g *group) admit(tx *Tx, line []byte) error {
	o := &g.w.opts
	record := int64(len(line))
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
	case bytes.IndexByte(line, '\n') != len(line)-1:
		return errors.New("append operation: it is not on one line")
	}
	if err := decodeRecord(line[:len(line)-1], new(Record)); err != nil {
		return fmt.Errorf("append operation: %w", err)
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
	w.due = 0
	g := &group{w: w, base: w.reader.snap.head, next: w.reader.snap.head.Ops + 1}
	for i, r := range rs {
		if r.fn == nil {
			settle([]*request{r}, nil)
			continue
		}
		r.alone = len(g.payload) == 0
		r.err = g.run(r)
		if errors.Is(r.err, errExtentFull) {
			w.putBack(rs[i:])
			break
		}
		g.ran = append(g.ran, r)
		if len(g.payload) >= groupBytes {
			w.putBack(rs[i+1:])
			break
		}
	}
	w.finish(g)
}

// run runs one transaction and drops its lines if it fails.
func (g *group) run(r *request) error {
	millis := max(g.w.opts.Clock().UnixMilli(), 0)
	tx := &Tx{g: g, atMillis: uint64(millis), from: len(g.payload), first: g.next}
	err := r.fn(tx)
	if err == nil || errors.Is(tx.refused, errExtentFull) {
		err = tx.refused
	}
	if err != nil {
		g.payload, g.next = g.payload[:tx.from], tx.first
	}
	return err
}

// finish publishes a group and tells its members. Those that were refused, or found
// that there was nothing to do, may have seen operations of others in the group: they
// are told once those are published.
func (w *Writer) finish(g *group) {
	published, err := false, error(nil)
	if len(g.payload) == 0 {
		_, err = w.unmoved(g.base)
		w.m.Settle(err == nil)
	} else {
		published, err = w.publishGroup(g)
	}
	switch {
	case errors.Is(err, errFenced):
		w.layDown()
		w.putBack(g.ran)
	case err == nil || published:
		g.tell(err)
	default:
		w.putBack(g.rested())
		g.tell(err)
	}
}

// publishGroup publishes a group that has operations and brings the machine to where
// the history is.
func (w *Writer) publishGroup(g *group) (published bool, err error) {
	began := time.Now()
	published, err = w.publish(g)
	w.m.Settle(published)
	if published {
		w.show(nil)
	} else {
		w.hide()
	}
	waiting, _ := w.pending()
	w.due, w.took = waiting+len(g.ran), time.Since(began)
	if err != nil {
		w.seal()
	}
	if !published && !errors.Is(err, errFenced) {
		_ = w.catchUp() // what fails here is told to the next who needs it
	}
	return published, err
}

// rested takes out of a group that was not published those that were refused after
// they had seen operations of it: they are to be run again.
func (g *group) rested() (again []*request) {
	told := g.ran[:0:0]
	for _, r := range g.ran {
		if r.err != nil && !r.alone {
			again = append(again, r)
		} else {
			told = append(told, r)
		}
	}
	g.ran = told
	return again
}

// tell settles the members of a group, those that were refused with their own error.
func (g *group) tell(err error) {
	for _, r := range g.ran {
		if r.err != nil {
			settle([]*request{r}, r.err)
		} else {
			settle([]*request{r}, err)
		}
	}
}
