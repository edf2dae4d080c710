package main

import (
	"context"
	"path"

	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/remote"
	"github.com/foldlog/foldlog/study"
)

// Logs at a server, wherever a command takes a path: http(s)://HOST/PATH, or
// server:PATH at that of FOLDLOG_SERVER.

// studyReader is a journal that is read, on disk or at a server.
type studyReader interface {
	Snapshot() *study.Snapshot
	Refresh(ctx context.Context) error
	Header() journal.Header
	Close() error
}

var (
	_ studyReader = (*study.JournalReader)(nil)
	_ studyReader = (*remote.Journal)(nil)
)

// atServer is the server that an operand names and the path there; nil for a path of
// this machine.
func (a *app) atServer(text string) (*remote.Client, string, error) {
	base, at, away, err := remote.Parse(text, a.Var("FOLDLOG_SERVER"))
	if err != nil {
		return nil, "", cli.WithHint(&cli.UsageError{Err: err}, "http://HOST/PATH is a log at a server, server:PATH one at that of FOLDLOG_SERVER")
	}
	if !away {
		return nil, "", nil
	}
	return &remote.Client{Base: base, Token: a.Var("FOLDLOG_TOKEN")}, at, nil
}

// openReader opens a journal for reading.
func (a *app) openReader(operand string) (studyReader, error) {
	c, at, err := a.atServer(operand)
	if err != nil {
		return nil, err
	}
	if c != nil {
		return c.OpenJournal(context.Background(), at, nil)
	}
	if err := mustExist(operand); err != nil {
		return nil, err
	}
	return study.OpenJournalReader(operand, nil)
}

// openJournal opens a journal for writing. Worker is the id that operations carry, nil
// to draw one.
func (a *app) openJournal(ctx context.Context, operand string, worker *uint64) (study.Storage, error) {
	c, at, err := a.atServer(operand)
	if err != nil {
		return nil, err
	}
	if c != nil {
		return c.OpenJournal(ctx, at, worker)
	}
	if err := mustExist(operand); err != nil {
		return nil, err
	}
	return study.OpenJournal(ctx, operand, a.writerOptions(worker))
}

// createJournal makes a journal; one that is there is journal.ErrExist.
func (a *app) createJournal(ctx context.Context, operand string) (study.Storage, error) {
	c, at, err := a.atServer(operand)
	if err != nil {
		return nil, err
	}
	if c != nil {
		return c.CreateJournal(ctx, at, nil)
	}
	return study.CreateJournal(ctx, operand, a.writerOptions(nil))
}

// useServer spells the journal of a run at a server so that its worker processes find
// it.
func (a *app) useServer(p *runPlan) error {
	c, at, err := a.atServer(p.Journal)
	if c != nil {
		p.Journal = c.Base + "/" + at
	}
	return err
}

// beside is where the logs of trials lie: beside the journal, or, of one at a server,
// in the current directory.
func beside(journal string) string {
	if _, at, away, _ := remote.Parse(journal, ""); away {
		return path.Base(at)
	}
	return journal
}

// rootServer finds the server of a datagen log whose root is one.
func (a *app) rootServer(ref *logRef) error {
	c, at, err := a.atServer(ref.root)
	if err != nil || c == nil {
		return err
	}
	ref.server, ref.root = c, c.Base
	if at != "" {
		ref.root += "/" + at
	}
	return nil
}
