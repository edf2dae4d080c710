package study

import "fmt"

// core is what a fold and a draft have in common.
type core struct {
	st state
	// version counts the changes, so that a draft notices those behind its
	// back.
	version uint64
	env     envelope
}

// apply folds one operation or leaves everything as it was.
func (c *core) apply(seq, worker, atMillis uint64, op Op) error {
	if seq != c.st.seq+1 {
		return &ReplayError{seq, op.Kind(), fmt.Errorf("%w: %d is next", ErrOutOfOrder, c.st.seq+1)}
	}
	c.env = envelope{seq: seq, worker: worker, at: atMillis}
	if err := op.apply(&c.st, &c.env); err != nil {
		return &ReplayError{seq, op.Kind(), err}
	}
	c.st.seq = seq
	c.version++
	return nil
}

// Seq is the sequence number of the last operation, 0 without.
func (c *core) Seq() uint64 { return c.st.seq }

// Snapshot returns an immutable view of the present state. It costs nothing,
// but what it shows is copied when it changes next.
func (c *core) Snapshot() *Snapshot {
	snap := &Snapshot{st: c.st}
	c.st.freeze()
	return snap
}

// Draft begins a draft on top of the present state.
func (c *core) Draft() *Draft {
	c.st.freeze()
	d := &Draft{core: core{st: c.st}, parent: c, base: c.version}
	d.st.freeze()
	return d
}

// Fold is the state of a journal: what its operations, applied in order, have
// made. It is a pure function of them. Not for concurrent use; the snapshots
// that it hands out are.
type Fold struct{ core }

// NewFold returns the fold of an empty journal.
func NewFold() *Fold {
	f := new(Fold)
	f.st.freeze()
	return f
}

// Apply folds the operation of one record: seq is one more than the last,
// worker and atMillis are those of the record. Op may be reused afterwards.
// The error is a [ReplayError] and leaves the fold as it was.
//
// Refused is what can never have been written: a transition from another state
// than the present one, a move that the state machine forbids, a raw
// transition of a managed trial; identities that are not the next; studies,
// trials and outbox entries that do not exist; values that are not one per
// direction; a claim at another epoch than the next; a fence that does not
// hold; the failing of a trial that is not what was observed or not stale.
func (f *Fold) Apply(seq, worker, atMillis uint64, op Op) error {
	return f.apply(seq, worker, atMillis, op)
}

// Draft is speculation on top of a fold or of another draft. Operations
// applied to it change nothing below. [Draft.Commit] hands them down; a draft
// that is dropped costs nothing. A draft dies when its parent changes.
type Draft struct {
	core
	parent *core
	base   uint64
}

// Apply folds one operation on the draft; see [Fold.Apply].
func (d *Draft) Apply(seq, worker, atMillis uint64, op Op) error {
	if d.stale() {
		return &ReplayError{seq, op.Kind(), ErrStaleDraft}
	}
	return d.apply(seq, worker, atMillis, op)
}

func (d *Draft) stale() bool { return d.parent == nil || d.parent.version != d.base }

// Commit makes the draft's state the parent's, and ends the draft. The error
// is [ErrStaleDraft] if the parent has changed since the draft began.
func (d *Draft) Commit() error {
	if d.stale() {
		return ErrStaleDraft
	}
	d.parent.st = d.st
	d.parent.version++
	d.parent = nil
	d.st.freeze()
	return nil
}
