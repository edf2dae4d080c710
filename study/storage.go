package study

import (
	"context"
	"sync"
)

// Storage keeps studies: a log of operations and the fold of them.
type Storage interface {
	// Update runs fn and publishes the operations of its transaction all
	// together, or none of them if fn or the publishing fails. Nil means that
	// they are as durable as the storage is. Fn sees a settled and current
	// state; it may run more than once and must have no effects beside its
	// results; it must not call Update or Refresh.
	Update(ctx context.Context, fn func(tx *Tx) error) error
	// Snapshot returns the settled state as of now, an Update that has
	// returned included. It does not wait for anything on disk.
	Snapshot() *Snapshot
	// Refresh takes in what other processes have published.
	Refresh(ctx context.Context) error
	// Worker is the id that this storage's operations carry.
	Worker() uint64
	// Close ends the use of the storage. Snapshots stay valid; Update and
	// Refresh fail with [ErrClosed].
	Close() error
}

// OpenOrCreate returns the study of that name, creating it if there is none.
// However many processes call it at once, one study comes of it.
func OpenOrCreate(ctx context.Context, s Storage, c Config) (id StudyID, created bool, err error) {
	if st, ok := s.Snapshot().StudyByName(c.Name); ok {
		return st.ID, false, nil
	}
	err = s.Update(ctx, func(tx *Tx) (err error) {
		id, created, err = tx.OpenOrCreateStudy(c)
		return err
	})
	return id, created && err == nil, err
}

// shared is the settled fold that one goroutine changes and many read.
type shared struct {
	mu   sync.Mutex
	fold *Fold
	// snap is the last snapshot as long as it is current.
	snap *Snapshot
	// held is what is seen while records come in, which may end amid a transaction,
	// nil otherwise.
	held *Snapshot
}

func (s *shared) snapshot() *Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held != nil {
		return s.held
	}
	return s.current()
}

func (s *shared) current() *Snapshot {
	if s.snap == nil {
		s.snap = s.fold.Snapshot()
	}
	return s.snap
}

// hold keeps what is seen as it is until release.
func (s *shared) hold() {
	if s.held == nil {
		s.held = s.current()
	}
}

// release shows everything that has come in.
func (s *shared) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = nil
}

// seq is the last operation of the fold, which readers need not see yet.
func (s *shared) seq() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fold.Seq()
}

// draft begins a draft on the settled fold.
func (s *shared) draft() *Draft {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fold.Draft()
}

// reset makes it the fold of an empty journal, once release is called.
func (s *shared) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold()
	s.fold, s.snap = NewFold(), nil
}

// change runs f on the fold while no reader looks.
func (s *shared) change(f func(fold *Fold) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.snap = nil
	return f(s.fold)
}
