package logkind

import (
	"context"
	"crypto/tls"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/version"
	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/objstore"
	"github.com/foldlog/foldlog/remote"
	"github.com/foldlog/foldlog/study"
)

// StudyReader is a study journal that is read, on disk or at a server.
type StudyReader interface {
	Snapshot() *study.Snapshot
	Refresh(ctx context.Context) error
	Header() journal.Header
	Close() error
}

var (
	_ StudyReader = (*study.JournalReader)(nil)
	_ StudyReader = (*remote.Journal)(nil)
)

// OpenReader opens a journal for reading.
func (f Finder) OpenReader(ctx context.Context, operand string) (StudyReader, error) {
	c, at, err := f.Server(operand)
	if err != nil {
		return nil, err
	}
	if c != nil {
		return remoteJournal(ctx, c, at, nil)
	}
	if err := mustExist(operand); err != nil {
		return nil, err
	}
	r, err := study.OpenJournalReader(operand, journal.ReaderOptions{})
	if err != nil {
		return nil, f.noJournal(operand, err)
	}
	return r, nil
}

// noJournal is the error of a path that could not be opened as a journal, or says what is
// there if it is none.
func (f Finder) noJournal(path string, err error) error {
	if !errors.Is(err, journal.ErrNotJournal) {
		return err
	}
	other := f.WrongKind(path, StudyJournal)
	if other == nil {
		return err
	}
	other.err = err
	return other
}

// Glance is OpenReader for a command that does nothing but tell, and so does not wait
// long for a server that is away.
func (f Finder) Glance(ctx context.Context, operand string) (StudyReader, error) {
	c, at, err := f.ReadingServer(operand)
	if c == nil || err != nil {
		return f.OpenReader(ctx, operand)
	}
	return remoteJournal(ctx, c, at, nil)
}

// OpenJournal opens a journal for writing. Worker is the id that operations carry, nil
// to draw one.
func (f Finder) OpenJournal(ctx context.Context, operand string, worker *uint64) (study.Storage, error) {
	c, at, err := f.Server(operand)
	if err != nil {
		return nil, err
	}
	if c != nil {
		return remoteJournal(ctx, c, at, worker)
	}
	if err := mustExist(operand); err != nil {
		return nil, err
	}
	j, err := study.OpenJournal(ctx, operand, f.JournalOptions(worker))
	if err != nil {
		return nil, f.noJournal(operand, err)
	}
	return j, nil
}

// OpenJournalSoon is OpenJournal for a program that waits for the answer: a server that
// has never answered is not waited for as one that is away.
func (f Finder) OpenJournalSoon(ctx context.Context, operand string) (study.Storage, error) {
	c, at, err := f.ReadingServer(operand)
	if c == nil || err != nil {
		return f.OpenJournal(ctx, operand, nil)
	}
	return remoteJournal(ctx, c, at, nil)
}

// CreateJournal makes a journal; one that is there is journal.ErrExist.
func (f Finder) CreateJournal(ctx context.Context, operand string) (study.Storage, error) {
	c, at, err := f.Server(operand)
	if err != nil {
		return nil, err
	}
	if c != nil && at == "" {
		return nil, noPath(c)
	}
	if c != nil {
		if !isJournalName(at) {
			return nil, cli.WithHint(cli.Usagef("at a server the name of a study journal ends in .atj"), "did you mean "+journalName(operand)+"?")
		}
		return c.CreateJournal(ctx, at, nil)
	}
	j, err := study.CreateJournal(ctx, operand, f.JournalOptions(nil))
	if err == nil {
		f.NoteNewJournal(operand)
	}
	return j, err
}

// NoteNewJournal says of a journal that was made if its name is none by which a server
// finds it.
func (f Finder) NoteNewJournal(path string) {
	if !isJournalName(path) {
		f.Notef("%s: a server finds only journals whose names end in .atj, such as %s", path, journalName(path))
	}
}

func isJournalName(path string) bool { return filepath.Ext(path) == ".atj" }

// journalName is the name of a journal that is nearest to another one.
func journalName(path string) string {
	return strings.TrimSuffix(strings.TrimSuffix(path, filepath.Ext(path)), "/") + ".atj"
}

// OpenOrCreateJournal opens a journal for writing that others may be creating at the
// same time.
func (f Finder) OpenOrCreateJournal(ctx context.Context, operand string) (study.Storage, error) {
	j, err := f.OpenJournal(ctx, operand, nil)
	if !errors.Is(err, fs.ErrNotExist) {
		return j, err
	}
	if j, err = f.CreateJournal(ctx, operand); errors.Is(err, journal.ErrExist) {
		return f.OpenJournal(ctx, operand, nil)
	}
	return j, err
}

// remoteJournal opens a journal at a server, and says where those are that it has.
func remoteJournal(ctx context.Context, c *remote.Client, at string, worker *uint64) (*remote.Journal, error) {
	if at == "" {
		return nil, noPath(c)
	}
	j, err := c.OpenJournal(ctx, at, worker)
	if errors.Is(err, fs.ErrNotExist) && !NoAnswer(err) {
		if logs, _, lookErr := c.Logs(ctx, at); lookErr == nil {
			if other := wrongKindAt(c, logs, at, StudyJournal); other != nil {
				return nil, other
			}
		}
		err = cli.WithHint(err, "check the path; foldlog ls "+c.Base+" lists the logs that the server has")
	}
	return j, err
}

// noPath refuses the address of a server where that of a log is wanted.
func noPath(c *remote.Client) error {
	err := cli.Usagef("%s is a server, and the path of a journal there is missing", c.Base)
	return cli.WithHint(err, "it is http://HOST/PATH; foldlog ls "+c.Base+" lists the logs that the server has")
}

// NoAnswer tells what keeps a server, of logs or of a bucket, from saying anything about
// a log.
func NoAnswer(err error) bool {
	for _, sentinel := range []error{
		remote.ErrAway, remote.ErrUnauthorized, remote.ErrNoHost, remote.ErrOld, remote.ErrPlain, remote.ErrAddress,
		objstore.ErrDenied, objstore.ErrNoBucket,
	} {
		if errors.Is(err, sentinel) {
			return true
		}
	}
	return cli.As[*tls.CertificateVerificationError](err) || BucketAway(err)
}

// BucketAway tells the errors of a bucket whose server cannot be reached.
func BucketAway(err error) bool {
	return cli.As[*objstore.Error](err) && !errors.Is(err, remote.ErrAway) && (cli.As[*net.OpError](err) || cli.As[*net.DNSError](err))
}

// hostPort is a path that looks like an address without its scheme.
var hostPort = regexp.MustCompile(`^[A-Za-z0-9.-]+:[0-9]+/`)

// mustExist refuses a path where there is no journal, and says how to make one.
func mustExist(path string) error {
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) && journal.StudyPath(path) == "" {
		if hostPort.MatchString(path) {
			return cli.WithHint(fs.ErrNotExist, "a log at a server is http://"+path)
		}
		return cli.WithHint(fs.ErrNotExist, "foldlog study create "+path+" makes a journal")
	}
	return nil
}

// JournalOptions are those of a writer that tells what happens to a journal besides the
// work asked for. Worker is the id that operations carry, nil to draw one.
func (f Finder) JournalOptions(worker *uint64) journal.WriterOptions {
	return journal.WriterOptions{
		Worker:  worker,
		Program: version.Program(),
		Clock:   f.Time,
		OnTakeover: func(o journal.Owner) {
			f.Notef("took the journal over from %v, which had stopped", o)
		},
		OnMigrate: func(from uint64, kept string) {
			f.Notef("migrating the journal from format %d to %d; the old file stays as %s", from, journal.FormatVersion, kept)
			f.Notef("writers of the old format must have been stopped: what they append from now on is lost to the journal")
		},
	}
}
