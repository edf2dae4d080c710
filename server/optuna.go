package server

import (
	"context"
	"net"

	"github.com/foldlog/foldlog/study"
	"github.com/foldlog/foldlog/study/optuna"
)

// ServeOptuna answers programs that tune with Optuna, by its gRPC storage proxy, until
// ctx ends: their studies are those of one journal, which is made if there is none.
// Optuna's client shows no token: who reaches the listener may change that journal.
func (s *Server) ServeOptuna(ctx context.Context, l net.Listener, journal string) error {
	open := context.WithValue(ctx, principalKey{}, &principal{open: true})
	in := &createJournalInput{}
	in.Body.Path = journal
	if _, err := s.createJournal(open, in); err != nil {
		return err
	}
	log, err := s.journal(journal)
	if err != nil {
		return err
	}
	if err := log.refresh(ctx); err != nil {
		return err
	}
	return optuna.NewServer(journalStorage{log}, optuna.ServerOptions{}).Serve(ctx, l)
}

// journalStorage is a journal as the server's own parts see it: all changes go through
// its one writer.
type journalStorage struct{ l *journalLog }

var _ study.Storage = journalStorage{}

// Update implements study.Storage.
func (j journalStorage) Update(ctx context.Context, fn func(*study.Tx) error) error {
	_, err := j.l.update(ctx, fn)
	return err
}

// Snapshot implements study.Storage.
func (j journalStorage) Snapshot() *study.Snapshot {
	j.l.mu.Lock()
	defer j.l.mu.Unlock()
	if j.l.snap == nil {
		return study.NewFold().Snapshot()
	}
	return j.l.snap
}

// Refresh implements study.Storage.
func (j journalStorage) Refresh(ctx context.Context) error { return j.l.refresh(ctx) }

// Worker implements study.Storage.
func (j journalStorage) Worker() uint64 { return 0 }

// Close implements study.Storage; the server closes its journals itself.
func (j journalStorage) Close() error { return nil }
