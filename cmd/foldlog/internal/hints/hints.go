// Package hints has the advice of the command line: what to do about the errors that the
// packages below it return.
package hints

import (
	"crypto/tls"
	"io/fs"
	"syscall"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/logkind"
	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/lance"
	"github.com/foldlog/foldlog/metrics/trainlog"
	"github.com/foldlog/foldlog/objstore"
	"github.com/foldlog/foldlog/remote"
	"github.com/foldlog/foldlog/runner"
	"github.com/foldlog/foldlog/study"
	"github.com/foldlog/foldlog/study/asktell"
)

// Rules says what to do about errors. It is the only place that knows: a package gives its errors a type
// or a sentinel, and a line here gives the advice. The first match wins.
func Rules() []cli.HintRule {
	return []cli.HintRule{
		{Match: cli.Is(journal.ErrHeadMissing), Hint: "the head is never made up; foldlog verify says what the data holds, foldlog cp --salvage copies it"},
		{Match: cli.Is(journal.ErrDataMissing), Hint: "the directory beside the head belongs to the journal; put it back"},
		{Match: cli.Is(journal.ErrReplaced), Hint: "another journal has been put at this path; look at it, and start again"},
		{Match: cli.Is(journal.ErrReadOnlyPlatform), Hint: "journals can be read here; write them on Linux or macOS"},
		{Match: cli.As[*journal.NewerFormatError], Hint: "a newer version of foldlog reads it"},
		{Match: cli.As[*journal.UncertainError], Hint: "look whether the journal holds it (foldlog study show) before you do it again"},
		{Match: cli.Is(journal.ErrNotJournal), Hint: "give the path of a study journal; foldlog inspect says what a log is, foldlog ls what is in a directory"},
		{Match: damaged, Hint: "foldlog verify lists every fault; foldlog cp --salvage copies what is sound"},
		{Match: cli.Is(lance.ErrCorrupt), Hint: "foldlog verify lists every fault; foldlog cat prints the rows before the first one"},
		{Match: cli.As[*lance.UnsupportedError], Hint: "another Lance library may read it; docs/format/lance.md says what is read here"},
		{Match: cli.Is(datagen.ErrNewer), Hint: "a newer version of foldlog reads it"},
		{Match: cli.Is(datagen.ErrFenced), Hint: "this process was silent for so long that another took its work over; run the same command again"},
		{Match: cli.Is(datagen.ErrUnsure), Hint: "the log says what became of it; run the same command again"},
		{Match: cli.Is(datagen.ErrHeld), Hint: "wait until its process has ended, or died for as long as its lease"},
		{Match: cli.Is(datagen.ErrFault), Hint: "foldlog datagen item LOG ITEM --trajectory shows the item; begin it anew to go on"},
		{Match: cli.Is(trainlog.ErrNoOpen), Hint: "--slug names the run"},
		Certificate,
		{Match: cli.Is(fs.ErrExist), Hint: "give a path that does not exist"},
		{Match: cli.Is(study.ErrTooLarge), Hint: "nothing was written; keep large things in files, and their paths in the journal"},
		{Match: cli.Is(asktell.ErrKeyUsed), Hint: "draw another key to ask for another trial"},
		{Match: cli.Is(study.ErrFenced), Hint: "the trial belongs to somebody else now or has ended; ask for another one"},
		{Match: cli.Is(study.ErrBudget), Hint: "the study has all its trials; a larger --budget admits more"},
		{Match: cli.Is(study.ErrConflict), Hint: "somebody else was faster; foldlog study show says how things stand"},
		{Match: cli.Is(study.ErrBadState), Hint: "foldlog study show PATH NUMBER says what has become of the trial"},
		{Match: cli.Is(study.ErrManaged), Hint: "raw and managed trials have different commands; see foldlog study --help"},
		{Match: cli.Is(runner.ErrNotOnHold), Hint: "what is paused otherwise is taken up by the next study run"},
		{Match: cli.Is(study.ErrReserved), Hint: "choose another key"},
		{Match: cli.Is(study.ErrNotFound), Hint: "foldlog study show PATH lists the studies, foldlog study trials PATH their trials"},
		{Match: cli.Is(remote.ErrUnauthorized), Hint: "FOLDLOG_TOKEN holds the token for the server; foldlog serve token list there says what each may do"},
		{Match: cli.Is(remote.ErrPlain), Hint: "its address begins with http://"},
		{Match: cli.Is(remote.ErrNoHost), Hint: "check the name in the address"},
		{Match: cli.Is(remote.ErrOld), Hint: "check the address; a server does this from the version of this program on"},
		{Match: cli.Is(objstore.ErrClock), Hint: "set this machine's clock, or that of the server of the bucket"},
		{Match: cli.Is(objstore.ErrDenied), Hint: "check the credentials, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or those of the profile or the machine, and what they may do in the bucket"},
		{Match: cli.Is(objstore.ErrNoBucket), Hint: "check the name of the bucket, AWS_ENDPOINT_URL and AWS_REGION; a bucket is made with the tools of its server"},
		{Match: cli.Is(syscall.ENOSPC), Hint: "the disk is full; make room, and do it again"},
		{Match: cli.Is(datagen.ErrOutage), Hint: "nothing that was recorded is lost; run the same command again once the storage answers"},
		{Match: logkind.BucketAway, Hint: "check AWS_ENDPOINT_URL and the name of the bucket, and that its server answers"},
		{Match: cli.Is(remote.ErrAway), Hint: "check the address (https:// of a server with a certificate), and that foldlog serve runs there"},
		{Match: cli.Is(fs.ErrNotExist), Hint: "check the path; foldlog ls ROOT lists the logs under a root"},
		{Match: cli.Is(syscall.EADDRINUSE), Hint: "something listens there already; --addr HOST:PORT names another address, port 0 any free one"},
		{Match: cli.Is(syscall.EROFS), Hint: "the file system is mounted for reading only"},
		{Match: cli.Is(fs.ErrPermission), Hint: "check the owner and the mode of the file and of its directory"},
	}
}

// Certificate is for a server whose certificate nobody vouches for.
var Certificate = cli.HintRule{
	Match: cli.As[*tls.CertificateVerificationError],
	Hint:  "a certificate that no known authority signed has to be trusted first: on Linux SSL_CERT_FILE names its file, elsewhere it goes into the system's store",
}

// damaged matches bytes that are not what they must be, and operations that can
// never have been written.
func damaged(err error) bool {
	return cli.As[*journal.CorruptError](err) || cli.As[*study.ReplayError](err)
}
