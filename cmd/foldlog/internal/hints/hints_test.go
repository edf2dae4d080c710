package hints

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/study"
	"github.com/foldlog/foldlog/study/asktell"
)

func TestHints(t *testing.T) {
	for _, tc := range []struct {
		name string
		err  error
		want string // what the hint has in it, "" for no hint
	}{
		{"a missing head", fmt.Errorf("a.atj: %w", journal.ErrHeadMissing), "cp --salvage"},
		{"a missing data directory", journal.ErrDataMissing, "put it back"},
		{"a replaced journal", journal.ErrReplaced, "another journal"},
		{"a key of another trial", &asktell.KeyError{Key: "k"}, "draw another key"},
		{"a platform that only reads", journal.ErrReadOnlyPlatform, "write them on Linux"},
		{"a newer format", &journal.NewerFormatError{Format: 7}, "newer version of foldlog"},
		{"an uncertain append", &journal.UncertainError{First: 1, Last: 2, Err: os.ErrClosed}, "before you do it again"},
		{"what is no journal", &journal.CorruptError{Err: journal.ErrNotJournal}, "path of a study journal"},
		{"damaged bytes", &journal.CorruptError{Err: fs.ErrInvalid}, "foldlog verify"},
		{"an impossible operation", &study.ReplayError{Seq: 3, Err: study.ErrNotFound}, "foldlog verify"},
		{"a journal that exists", journal.ErrExist, "does not exist"},
		{"an operation that is too large", fmt.Errorf("%w: %w", study.ErrTooLarge, &journal.TooLargeError{}), "nothing was written"},
		{"a lost fence", &study.FencedError{}, "somebody else"},
		{"a used-up budget", study.ErrBudget, "--budget"},
		{"a lost race", &study.ConflictError{}, "faster"},
		{"a trial in another state", &study.StateError{}, "study show"},
		{"a trial of the other kind", study.ErrManaged, "study --help"},
		{"a reserved key", study.ErrReserved, "another key"},
		{"a trial that is not there", &study.NumberError{}, "study trials"},
		{"a missing path", &fs.PathError{Op: "open", Err: fs.ErrNotExist}, "foldlog ls"},
		{"a denied path", &fs.PathError{Op: "open", Err: fs.ErrPermission}, "the mode of the file"},
		{"a full disk", &fs.PathError{Op: "write", Err: syscall.ENOSPC}, "make room"},
		{"a file system that only reads", &fs.PathError{Op: "write", Err: syscall.EROFS}, "reading only"},
		{"an unknown certificate", fmt.Errorf("get: %w", &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}), "SSL_CERT_FILE"},
		{"anything else", context.DeadlineExceeded, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := cli.HintFor(fmt.Errorf("study ask a.atj: %w", tc.err), Rules())
			if !strings.Contains(got, tc.want) || tc.want == "" && got != "" {
				t.Errorf("hint %q, want %q in it", got, tc.want)
			}
		})
	}
}
