package main

import (
	"context"
	"errors"
	"io/fs"
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

// noAnswer tells what keeps a server from saying anything about a log.
func noAnswer(err error) bool {
	for _, sentinel := range []error{remote.ErrAway, remote.ErrUnauthorized, remote.ErrNoHost, remote.ErrOld, remote.ErrPlain, remote.ErrAddress} {
		if errors.Is(err, sentinel) {
			return true
		}
	}
	return certificateHint.Match(err)
}

// openReader opens a journal for reading.
func (a *app) openReader(operand string) (studyReader, error) {
	c, at, err := a.Server(operand)
	if err != nil {
		return nil, err
	}
	if c != nil {
		return remoteJournal(context.Background(), c, at, nil)
	}
	if err := mustExist(operand); err != nil {
		return nil, err
	}
	return study.OpenJournalReader(operand, nil)
}

// remoteJournal opens a journal at a server, and says where those are that it has.
func remoteJournal(ctx context.Context, c *remote.Client, at string, worker *uint64) (*remote.Journal, error) {
	if at == "" {
		return nil, noPath(c)
	}
	j, err := c.OpenJournal(ctx, at, worker)
	if errors.Is(err, fs.ErrNotExist) && !noAnswer(err) {
		err = cli.WithHint(err, "check the path; foldlog ls "+c.Base+" lists the logs that the server has")
	}
	return j, err
}

// noPath refuses the address of a server where that of a log is wanted.
func noPath(c *remote.Client) error {
	err := cli.Usagef("%s is a server, and the path of a journal there is missing", c.Base)
	return cli.WithHint(err, "it is http://HOST/PATH; foldlog ls "+c.Base+" lists the logs that the server has")
}

// glance is openReader for a command that does nothing but tell, and so does not wait
// long for a server that is away.
func (a *app) glance(operand string) (studyReader, error) {
	c, at, err := a.ReadingServer(operand)
	if c == nil || err != nil {
		return a.openReader(operand)
	}
	return remoteJournal(context.Background(), c, at, nil)
}

// openJournal opens a journal for writing. Worker is the id that operations carry, nil
// to draw one.
func (a *app) openJournal(ctx context.Context, operand string, worker *uint64) (study.Storage, error) {
	c, at, err := a.Server(operand)
	if err != nil {
		return nil, err
	}
	if c != nil {
		return remoteJournal(ctx, c, at, worker)
	}
	if err := mustExist(operand); err != nil {
		return nil, err
	}
	return study.OpenJournal(ctx, operand, a.writerOptions(worker))
}

// openJournalSoon is openJournal for a program that waits for the answer: a server that
// has never answered is not waited for as one that is away.
func (a *app) openJournalSoon(ctx context.Context, operand string) (study.Storage, error) {
	c, at, err := a.ReadingServer(operand)
	if c == nil || err != nil {
		return a.openJournal(ctx, operand, nil)
	}
	return remoteJournal(ctx, c, at, nil)
}

// createJournal makes a journal; one that is there is journal.ErrExist.
func (a *app) createJournal(ctx context.Context, operand string) (study.Storage, error) {
	c, at, err := a.Server(operand)
	if err != nil {
		return nil, err
	}
	if c != nil && at == "" {
		return nil, noPath(c)
	}
	if c != nil {
		return c.CreateJournal(ctx, at, nil)
	}
	return study.CreateJournal(ctx, operand, a.writerOptions(nil))
}

// useServer spells the journal of a run at a server so that its worker processes find
// it.
func (a *app) useServer(p *runPlan) error {
	c, at, err := a.Server(p.Journal)
	if c != nil {
		p.Journal = remote.Address(c.Base, at)
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
