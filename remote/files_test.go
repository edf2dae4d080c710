package remote_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/internal/fsx"
	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/remote"
	"github.com/foldlog/foldlog/study"
)

// streamText is a stream of so many bytes and a few more.
func streamText(size int) string {
	var b strings.Builder
	b.WriteString(`{"ts_ms":1790189597000,"kind":"open","slug":"run","description":"","metadata":{}}` + "\n")
	for b.Len() < size {
		b.WriteString(`{"ts_ms":1790189597015,"step":1,"kind":"metric","name":"loss","value":3.5,"metadata":{}}` + "\n")
	}
	return b.String()
}

// openAt opens a file at the server.
func openAt(t *testing.T, f *remote.Files, name string) io.ReaderAt {
	t.Helper()
	file, err := f.OpenFile(name, os.O_RDONLY, 0)
	must(t, err)
	t.Cleanup(func() { file.Close() })
	return file
}

func TestAFileIsReadAsItIsAnywhere(t *testing.T) {
	root, c := newServer(t)
	want := streamText(200_000)
	must(t, os.WriteFile(filepath.Join(root, "run.jsonl"), []byte(want), 0o644))
	for _, ahead := range []int64{0, 1, 1000, 4096, 1 << 20} {
		file := openAt(t, losingClient(c, uint64(ahead)).Files(t.Context(), ahead), "/run.jsonl")
		r := rand.New(rand.NewPCG(1, uint64(ahead)))
		for range 40 {
			off, n := r.IntN(len(want)), r.IntN(20_000)
			b := make([]byte, n)
			got, err := file.ReadAt(b, int64(off))
			expect := want[off:min(off+n, len(want))]
			if string(b[:got]) != expect || (got < n) != errors.Is(err, io.EOF) {
				t.Fatalf("ahead %d: %d bytes at %d: %d, %v", ahead, n, off, got, err)
			}
		}
		if n, err := file.ReadAt(make([]byte, 1), int64(len(want))); n != 0 || !errors.Is(err, io.EOF) {
			t.Errorf("ahead %d: behind the end: %d, %v", ahead, n, err)
		}
	}
}

func TestWhatIsAddedToAnOpenFileIsRead(t *testing.T) {
	root, c := newServer(t)
	path, want := filepath.Join(root, "run.jsonl"), streamText(1000)
	must(t, os.WriteFile(path, []byte(want), 0o644))
	file := openAt(t, c.Files(t.Context(), 0), "/run.jsonl")
	if n, err := file.ReadAt(make([]byte, 10), int64(len(want))); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("%d, %v", n, err)
	}
	must(t, os.WriteFile(path, []byte(want+"{}\n"), 0o644))
	b := make([]byte, 10)
	if n, err := file.ReadAt(b, int64(len(want))); string(b[:n]) != "{}\n" || !errors.Is(err, io.EOF) {
		t.Errorf("%q, %v", b[:n], err)
	}
}

// made is a journal with some operations under a root.
func made(t *testing.T, path string) {
	t.Helper()
	ctx := context.Background()
	j, err := study.CreateJournal(ctx, path, journal.WriterOptions{})
	must(t, err)
	_, _, err = study.OpenOrCreate(ctx, j, study.Config{Name: "s", Directions: []study.Direction{study.Minimize}})
	must(t, err)
	for range 50 {
		must(t, j.Update(ctx, func(tx *study.Tx) error { _, err := tx.CreateTrial(0, nil); return err }))
	}
	must(t, j.Close())
}

func TestAJournalIsVerifiedAndCopiedByItsBytes(t *testing.T) {
	root, c := newServer(t)
	path := filepath.Join(root, "s.atj")
	made(t, path)
	at := journal.ReaderOptions{FS: losingClient(c, 7).Files(t.Context(), remote.DefaultReadAhead)}
	verify := func(path string, opts journal.ReaderOptions) (*journal.VerifyStats, []string) {
		var found []string
		sum, err := journal.Verify(t.Context(), path, journal.VerifyOptions{ReaderOptions: opts, Machine: study.NewReplay()},
			func(f journal.Finding) { found = append(found, f.Err.Error()) })
		must(t, err)
		return sum, found
	}
	want, _ := verify(path, journal.ReaderOptions{})
	got, found := verify("/s.atj", at)
	if diff := cmp.Diff(want, got); diff != "" || len(found) > 0 {
		t.Errorf("%v\n%s", found, diff)
	}
	infoHere, err := journal.Inspect(path, journal.ReaderOptions{})
	must(t, err)
	infoThere, err := journal.Inspect("/s.atj", at)
	must(t, err)
	if infoHere.Path, infoThere.Path = "", ""; cmp.Diff(infoHere, infoThere) != "" {
		t.Error(cmp.Diff(infoHere, infoThere))
	}
	to := filepath.Join(t.TempDir(), "copy.atj")
	_, err = journal.Copy(t.Context(), "/s.atj", to, journal.CopyOptions{ReaderOptions: at, To: fsx.OS})
	must(t, err)
	a, err := os.ReadFile(path)
	must(t, err)
	b, err := os.ReadFile(to)
	must(t, err)
	if !bytes.Equal(a, b) {
		t.Error("the copy's head differs")
	}

	// A damaged byte is found where it is.
	data, err := filepath.Glob(filepath.Join(root, "s.atj.d", "data-*"))
	must(t, err)
	raw, err := os.ReadFile(data[0])
	must(t, err)
	raw[len(raw)/2] ^= 1
	must(t, os.WriteFile(data[0], raw, 0o644))
	_, faultsHere := verify(path, journal.ReaderOptions{})
	_, faultsThere := verify("/s.atj", at)
	if diff := cmp.Diff(faultsHere, faultsThere); diff != "" || len(faultsHere) == 0 {
		t.Errorf("%v\n%s", faultsHere, diff)
	}
}

func TestAServerThatIsAwayIsNoFaultOfTheLog(t *testing.T) {
	c := &remote.Client{Base: "http://127.0.0.1:1", Patience: -1}
	files := c.Files(t.Context(), 0)
	if _, err := files.Stat("/s.atj"); !errors.Is(err, remote.ErrAway) || errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	_, err := journal.Verify(t.Context(), "/s.atj", journal.VerifyOptions{ReaderOptions: journal.ReaderOptions{FS: files}}, func(f journal.Finding) {
		t.Errorf("found %v", f.Err)
	})
	wantErr(t, err, remote.ErrAway)
}

func TestTheFilesOfAServerAreReadOnly(t *testing.T) {
	root, c := newServer(t)
	must(t, os.WriteFile(filepath.Join(root, "run.jsonl"), []byte(streamText(10)), 0o644))
	files := c.Files(t.Context(), 0)
	_, err := files.OpenFile("/run.jsonl", os.O_RDWR, 0)
	for _, err := range []error{err, files.Mkdir("/x", 0o755), files.Rename("/run.jsonl", "/x"), files.Link("/run.jsonl", "/x"), files.Remove("/run.jsonl"), files.SyncDir("/")} {
		wantErr(t, err, fs.ErrPermission)
	}
	_, err = files.OpenFile("/none.jsonl", os.O_RDONLY, 0)
	wantErr(t, err, fs.ErrNotExist)
	_, err = files.ReadDir("/none.atj.d")
	wantErr(t, err, fs.ErrNotExist)
}

func TestLogsAreListedInWhateverPieces(t *testing.T) {
	root, c := newServer(t)
	made(t, filepath.Join(root, "s.atj"))
	must(t, os.WriteFile(filepath.Join(root, "run.jsonl"), []byte(streamText(10)), 0o644))
	for seed := range uint64(5) {
		logs, _, err := losingClient(c, seed).Logs(t.Context(), "s.atj")
		must(t, err)
		if len(logs) != 1 || logs[0].Kind != "study journal" {
			t.Errorf("%+v", logs)
		}
	}
	if logs, _, err := c.Logs(t.Context(), "run.jsonl"); err != nil || len(logs) != 1 || logs[0].Kind != "metrics stream" {
		t.Errorf("%+v %v", logs, err)
	}
}

func TestWaitingIsToldOnce(t *testing.T) {
	told := 0
	c := &remote.Client{Base: "http://127.0.0.1:1", FirstPatience: 3 * time.Second,
		Waiting: func(err error, patience time.Duration) {
			if told++; !errors.Is(err, remote.ErrAway) || patience > 3*time.Second {
				t.Errorf("%v, %v", err, patience)
			}
		}}
	_, _, err := c.Logs(t.Context(), "")
	wantErr(t, err, remote.ErrAway)
	if told != 1 {
		t.Errorf("told %d times", told)
	}
}

func TestAnAddressIsTakenApartAgain(t *testing.T) {
	for _, path := range []string{"", "a/b.atj", "runs/a%20b/x.jsonl", "é?#/x y"} {
		base, at, away, err := remote.Parse(remote.Address("http://h:1", path), "")
		if base != "http://h:1" || at != path || !away || err != nil {
			t.Errorf("%q: %q %q %v", path, base, at, err)
		}
	}
}

// before calls a function before each request that reads a file.
type before struct {
	next http.RoundTripper
	call func()
}

func (b before) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodGet {
		b.call()
	}
	return b.next.RoundTrip(req)
}

// TestAFileThatIsReplacedIsReadAsOneOfThem replaces a small file by a longer one
// after it was opened, and before each of its readings.
func TestAFileThatIsReplacedIsReadAsOneOfThem(t *testing.T) {
	root, c := newServer(t)
	path := filepath.Join(root, "run.jsonl")
	text, asked := "", 0
	replace := func() {
		asked++
		text = strings.Replace(streamText(1), `"description":""`, fmt.Sprintf(`"description":"%d%s"`, asked, strings.Repeat("-", asked)), 1)
		must(t, os.WriteFile(path, []byte(text), 0o644))
	}
	replace()
	c.HTTP.Transport = before{c.HTTP.Transport, replace}
	for _, ahead := range []int64{0, 4096} {
		b := make([]byte, 4000)
		n, err := openAt(t, c.Files(t.Context(), ahead), "/run.jsonl").ReadAt(b, 0)
		if string(b[:n]) != text || !errors.Is(err, io.EOF) {
			t.Errorf("ahead %d: %.200q, %v, want %.200q", ahead, b[:n], err, text)
		}
	}
}

// TestAHeadThatGrowsWhileItIsReadIsNotTorn appends to a journal between the looks at
// its head's size and at its bytes.
func TestAHeadThatGrowsWhileItIsReadIsNotTorn(t *testing.T) {
	root, c := newServer(t)
	w, err := journal.Create(t.Context(), filepath.Join(root, "s.atj"), journal.WriterOptions{}, nothing{})
	must(t, err)
	defer w.Close()
	appended := 0
	c.HTTP.Transport = before{c.HTTP.Transport, func() {
		appended += 10
		must(t, w.Do(t.Context(), func(tx *journal.Tx) error {
			for range 10 {
				if err := tx.Append([]byte(`{"kind":"test"}`)); err != nil {
					return err
				}
			}
			return nil
		}))
	}}
	r, err := journal.OpenReader("/s.atj", journal.ReaderOptions{FS: c.Files(t.Context(), 0)})
	must(t, err)
	defer r.Close()
	if ops := r.Head().Ops; ops == 0 || ops > uint64(appended) {
		t.Errorf("%d operations, of %d", ops, appended)
	}
}

// nothing is a machine without a state.
type nothing struct{}

func (nothing) Apply(*journal.Record) error { return nil }
func (nothing) Reset()                      {}
func (nothing) Settle(bool)                 {}
