package study

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/foldlog/foldlog/journal"
)

// Journal is a [Storage] in a journal on disk. Any number of processes may have
// one journal open.
type Journal struct {
	w *journal.Writer
	m *machine
}

var _ Storage = (*Journal)(nil)

// OpenJournal opens a journal for writing and replays it. One of an older
// format is migrated first. The errors are those of
// [journal.OpenWriter]; an operation that the fold refuses is a
// [*ReplayError] in it.
func OpenJournal(ctx context.Context, path string, opts journal.WriterOptions) (*Journal, error) {
	return openWith(ctx, path, opts, journal.OpenWriter)
}

// CreateJournal creates a journal. The errors are those of [journal.Create]:
// [journal.ErrExist] if there is one.
func CreateJournal(ctx context.Context, path string, opts journal.WriterOptions) (*Journal, error) {
	return openWith(ctx, path, opts, journal.Create)
}

type opener func(context.Context, string, journal.WriterOptions, journal.Machine) (*journal.Writer, error)

func openWith(ctx context.Context, path string, opts journal.WriterOptions, open opener) (*Journal, error) {
	m := newMachine()
	w, err := open(ctx, path, opts, m)
	if err != nil {
		return nil, journalError(err)
	}
	return &Journal{w: w, m: m}, nil
}

// Update implements [Storage]. What several callers have waiting shares one
// extent and its syncs. Beside the errors of this package it returns
// [*journal.UncertainError] and what opening can; they wrap [ErrTooLarge] and
// [ErrClosed] where those fit.
func (j *Journal) Update(ctx context.Context, fn func(tx *Tx) error) error {
	return journalError(j.w.Do(ctx, func(log *journal.Tx) error {
		draft, err := j.m.begin()
		if err != nil {
			return err
		}
		tx := &Tx{draft: draft, log: log}
		if err := tx.end(fn(tx)); err != nil {
			return err
		}
		return draft.Commit()
	}))
}

// Snapshot implements [Storage].
func (j *Journal) Snapshot() *Snapshot { return j.m.state.snapshot() }

// Refresh implements [Storage].
func (j *Journal) Refresh(ctx context.Context) error { return journalError(j.w.Refresh(ctx)) }

// Worker implements [Storage].
func (j *Journal) Worker() uint64 { return j.w.Worker() }

// Writer is the journal below, for its header and path.
func (j *Journal) Writer() *journal.Writer { return j.w }

// Close implements [Storage].
func (j *Journal) Close() error { return journalError(j.w.Close()) }

// journalError adds the sentinels of this package to the journal's errors.
func journalError(err error) error {
	var large *journal.TooLargeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &large) && !errors.Is(err, ErrTooLarge):
		return fmt.Errorf("%w: %w", ErrTooLarge, err)
	case errors.Is(err, journal.ErrClosed):
		return fmt.Errorf("%w: %w", ErrClosed, err)
	}
	return err
}

// machine folds what the journal holds and speculates on what is being written.
// The journal calls it from one goroutine; readers only take snapshots of the
// settled fold.
type machine struct {
	d     Decoder
	state shared
	// group is the draft of the transactions that wait to be published
	// together, nil without.
	group *Draft
	// fault is set if history moved below a group, which the journal never
	// does; after that the state cannot be trusted until a Reset.
	fault error
}

func newMachine() *machine { return &machine{state: shared{fold: NewFold()}} }

var (
	_ journal.Machine   = (*machine)(nil)
	_ journal.Completer = (*machine)(nil)
)

// Apply implements [journal.Machine].
func (m *machine) Apply(rec *journal.Record) error {
	if m.fault != nil {
		return m.fault
	}
	return m.state.apply(&m.d, rec)
}

// apply folds a record of a journal, to be seen once release is called.
func (s *shared) apply(d *Decoder, rec *journal.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold()
	s.snap = nil
	_, err := applyRecord(d, s.fold, rec)
	return err
}

// Complete implements [journal.Completer].
func (m *machine) Complete() { m.state.release() }

// applyRecord reads a record and folds it. The error is a [*ReplayError].
func applyRecord(d *Decoder, fold *Fold, rec *journal.Record) (Op, error) {
	op, err := d.Decode(rec.Op)
	if err != nil {
		refused := &ReplayError{Seq: rec.Seq, Err: err}
		var bad *DecodeError
		if errors.As(err, &bad) {
			refused.Kind, refused.Err = bad.Kind, bad.Err
		}
		return nil, refused
	}
	return op, fold.Apply(rec.Seq, rec.Worker, rec.AtMillis, op)
}

// Reset implements [journal.Machine].
func (m *machine) Reset() {
	m.group, m.fault = nil, nil
	m.state.reset()
}

// begin returns a draft for one transaction, on top of those before it.
func (m *machine) begin() (*Draft, error) {
	if m.fault != nil {
		return nil, m.fault
	}
	if m.group == nil {
		m.group = m.state.draft()
	}
	return m.group.Draft(), nil
}

// Settle implements [journal.Machine].
func (m *machine) Settle(published bool) {
	group := m.group
	m.group = nil
	if group == nil || !published {
		return
	}
	m.fault = m.state.change(func(*Fold) error { return group.Commit() })
}

// JournalReader follows a journal without writing to it.
type JournalReader struct {
	mu     sync.Mutex // serialises the reader
	r      *journal.Reader
	d      Decoder
	state  shared
	resets int
}

var _ journal.Completer = (*readMachine)(nil)

// OpenJournalReader opens a journal of any format for reading and replays it.
// It takes no lock and writes nothing.
func OpenJournalReader(path string, opts journal.ReaderOptions) (*JournalReader, error) {
	r, err := journal.OpenReader(path, opts)
	if err != nil {
		return nil, journalError(err)
	}
	j := &JournalReader{r: r, state: shared{fold: NewFold()}}
	if err := j.Refresh(context.Background()); err != nil {
		r.Close()
		return nil, err
	}
	return j, nil
}

// Refresh takes in what has been published since the last time.
func (j *JournalReader) Refresh(ctx context.Context) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	return journalError(j.r.Refresh((*readMachine)(j)))
}

// Snapshot returns the state as of the last refresh, without waiting for one.
func (j *JournalReader) Snapshot() *Snapshot { return j.state.snapshot() }

// Resets counts how often the history that had been read was found to be none any
// more, and was read anew: snapshots from before it are of no use.
func (j *JournalReader) Resets() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.resets
}

// Header returns the journal's header as last read.
func (j *JournalReader) Header() journal.Header {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.r.Header()
}

// Close ends the reading. Snapshots stay valid.
func (j *JournalReader) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.r.Close()
}

// readMachine is the side of a JournalReader that the journal sees.
type readMachine JournalReader

// Apply implements [journal.Applier].
func (m *readMachine) Apply(rec *journal.Record) error {
	return m.state.apply(&m.d, rec)
}

// Complete implements [journal.Completer].
func (m *readMachine) Complete() { m.state.release() }

// Reset implements [journal.Applier].
func (m *readMachine) Reset() {
	m.state.reset()
	m.resets++
}
