package journal

import (
	"context"
	"errors"
	"time"

	"github.com/foldlog/foldlog/internal/fsx"
)

// Applier is what a [Reader] hands records to.
type Applier interface {
	// Apply takes one published record, in order. An error stops the reading;
	// the next time everything comes again, after a Reset.
	Apply(rec *Record) error
	// Reset forgets everything: the history that was applied is not the
	// published one any more and is applied anew.
	Reset()
}

// Completer is an [Applier] that others look at while records are applied to it.
type Completer interface {
	Applier
	// Complete says that everything that was published has been applied. What an
	// applier has between a record and this may be a part of a transaction only, or
	// after a Reset of the history.
	Complete()
}

// until hands records on until its context ends.
type until struct {
	ctx context.Context
	Applier
}

func (u until) Apply(rec *Record) error {
	if err := u.ctx.Err(); err != nil {
		return err
	}
	return u.Applier.Apply(rec)
}

// ReaderOptions configure a [Reader]. The zero value is ready for use.
type ReaderOptions struct {
	// FS is the file system, the operating system's if nil. The files of a server
	// (package remote) are another one.
	FS fsx.FS
}

// Reader reads a journal of any format without locks and without writing. It
// stays at a position, so that each refresh costs what is new. It is not safe
// for concurrent use.
type Reader struct {
	l     layout
	pool  *filePool
	snap  *snapshot
	known position
	// legacyAt is how far a journal before format 6 has been applied.
	legacyAt int64
	applied  uint64
	// news tells that records have been handed over since Follow looked.
	news bool
	// restarts counts how often history has been taken back.
	restarts int
	closed   bool
}

// OpenReader opens a journal for reading. Nothing is applied before the first
// [Reader.Refresh].
func OpenReader(path string, opts ReaderOptions) (*Reader, error) {
	l, err := newLayout(orOS(opts.FS), path)
	if err != nil {
		return nil, err
	}
	return newReader(l)
}

func newReader(l layout) (*Reader, error) {
	snap, err := l.readHead()
	if err != nil {
		return nil, err
	}
	r := &Reader{l: l, pool: newFilePool(l), snap: snap}
	r.rewind()
	return r, nil
}

func orOS(fsys fsx.FS) fsx.FS {
	if fsys == nil {
		return fsx.OS
	}
	return fsys
}

// Header returns the header as last read.
func (r *Reader) Header() Header { return r.snap.header }

// HeaderLine returns the header line verbatim, newline included.
func (r *Reader) HeaderLine() []byte { return r.snap.headerLine }

// Head returns the head as last read; of a journal before format 6 it counts
// what has been applied.
func (r *Reader) Head() Head {
	if r.snap.legacy() {
		return Head{Ops: r.applied, Bytes: uint64(r.legacyAt)}
	}
	return r.snap.head
}

// Applied returns the last sequence number that was applied.
func (r *Reader) Applied() uint64 { return r.applied }

func (r *Reader) rewind() {
	r.known = position{Head: r.snap.start()}
	r.legacyAt = int64(len(r.snap.headerLine))
	r.applied = 0
}

// Refresh applies what has been published since the last call. Each record is
// applied once, in order; if the history that was applied has been taken back
// by a power loss, m is reset first and everything comes again. Errors:
// [*CorruptError], [*NewerFormatError], [ErrReplaced], [ErrHeadMissing], those
// of the file system and those of m.
func (r *Reader) Refresh(m Applier) error {
	if r.closed {
		return ErrClosed
	}
	snap, err := r.l.readHead()
	if err != nil {
		return err
	}
	if err = r.catchUp(snap, m); err != nil && snap.legacy() {
		// It may have been migrated between the two looks at its file.
		if now, headErr := r.l.readHead(); headErr == nil && !now.legacy() {
			err = r.catchUp(now, m)
		}
	}
	if err != nil {
		// What was open may have been replaced: look again the next time.
		r.pool.Close()
		return err
	}
	if c, ok := m.(Completer); ok {
		c.Complete()
	}
	return nil
}

// catchUp applies what a head holds beyond the reader's position.
func (r *Reader) catchUp(snap *snapshot, m Applier) error {
	if !snap.sameJournal(r.snap) {
		return ErrReplaced
	}
	migrated := r.snap.legacy() && !snap.legacy()
	r.snap = snap
	if migrated && r.applied > 0 {
		r.restart(m)
	}
	if snap.legacy() {
		return r.catchUpLegacy(m)
	}
	if r.atHead() {
		return nil
	}
	if r.applied != r.known.Ops {
		// An error came amid an extent the last time.
		r.restart(m)
	}
	refs, end, err := r.pool.walk(snap, r.known)
	if errors.Is(err, errRewound) {
		r.restart(m)
		refs, end, err = r.pool.walk(snap, r.known)
	}
	if err != nil {
		return err
	}
	defer r.pool.rest()
	r.news = r.news || len(refs) > 0
	err = r.pool.replay(refs, r.known.Ops+1, func(rec *Record) error {
		if err := m.Apply(rec); err != nil {
			return err
		}
		r.applied = rec.Seq
		return nil
	})
	if err == nil {
		r.known = end
	}
	return err
}

// CheckTip checks that the extent which the head names is there and follows the
// extents before it as far as its metadata line says. It is a quick look, no
// verification.
func (r *Reader) CheckTip() error {
	at := r.snap.head
	if r.snap.legacy() || at.Tip == nil {
		return nil
	}
	e, _, err := r.pool.readExtentHeader(at.Tip, at.Ops)
	if err != nil {
		return err
	}
	if err := e.follow(at.Ops, at.Bytes); err != nil {
		return r.l.extentError(at.Tip, at.Ops, err)
	}
	return nil
}

// atHead tells whether everything that the head names has been applied.
func (r *Reader) atHead() bool {
	return r.known.same(r.snap.head) && r.applied == r.known.Ops
}

func (r *Reader) restart(m Applier) {
	m.Reset()
	r.restarts++
	r.rewind()
	r.pool.Close() // history changes only with the files
}

// DefaultPoll is how often [Reader.Follow] looks for news.
const DefaultPoll = 50 * time.Millisecond

// Follow refreshes until ctx ends, looking for news every poll (0 means
// [DefaultPoll]), and returns nil then. After each round that brought news it
// calls flush, if not nil.
func (r *Reader) Follow(ctx context.Context, poll time.Duration, m Applier, flush func() error) error {
	if poll <= 0 {
		poll = DefaultPoll
	}
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		r.news = false
		if err := r.Refresh(m); err != nil {
			return err
		}
		if flush != nil && r.news {
			if err := flush(); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Close frees the reader's descriptors.
func (r *Reader) Close() error {
	r.closed = true
	r.pool.Close()
	return nil
}
