package remote_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/internal/proctest"
	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/objstore"
	"github.com/foldlog/foldlog/remote"
	"github.com/foldlog/foldlog/server"
	"github.com/foldlog/foldlog/study"
	"github.com/foldlog/foldlog/study/asktell"
)

func TestMain(m *testing.M) { os.Exit(proctest.Run(m)) }

// newServer serves a temporary root.
func newServer(t *testing.T) (root string, c *remote.Client) {
	t.Helper()
	root = t.TempDir()
	s, err := server.New(server.Options{Root: root, Limits: server.Limits{Listing: 5 * time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(s.Handler())
	t.Cleanup(func() {
		h.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return root, &remote.Client{Base: h.URL, HTTP: h.Client(), Patience: time.Minute}
}

// losing is a network that loses questions and answers.
type losing struct {
	next http.RoundTripper
	mu   sync.Mutex
	rand *rand.Rand
}

var errLost = errors.New("lost on the way")

// RoundTrip implements http.RoundTripper.
func (l *losing) RoundTrip(r *http.Request) (*http.Response, error) {
	l.mu.Lock()
	fate := l.rand.IntN(8)
	l.mu.Unlock()
	if fate == 0 {
		return nil, errLost
	}
	resp, err := l.next.RoundTrip(r)
	if fate == 1 && err == nil {
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		return nil, errLost
	}
	if fate == 2 && err == nil && resp.StatusCode == http.StatusOK {
		resp.Body = cut{resp.Body}
	}
	return resp, err
}

// cut is an answer that ends in the middle.
type cut struct{ io.ReadCloser }

// Read implements io.Reader.
func (c cut) Read(b []byte) (int, error) {
	n, _ := c.ReadCloser.Read(b[:min(len(b), 7)])
	return n, io.ErrUnexpectedEOF
}

func losingClient(c *remote.Client, seed uint64) *remote.Client {
	return &remote.Client{Base: c.Base, Patience: time.Minute, HTTP: &http.Client{
		Transport: &losing{next: c.HTTP.Transport, rand: rand.New(rand.NewPCG(seed, 1))}}}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestAJournalWhoseMakingWasNotAnsweredIsMadeOnce loses the first answer, and the server.
func TestAJournalWhoseMakingWasNotAnsweredIsMadeOnce(t *testing.T) {
	_, c := newServer(t)
	net := &restarting{RoundTripper: c.HTTP.Transport, kill: func() {}}
	again := &remote.Client{Base: c.Base, HTTP: &http.Client{Transport: net}, Patience: time.Minute}
	if _, err := again.CreateJournal(t.Context(), "deep/s.atj", nil); err != nil {
		t.Errorf("its answer lost: %v", err)
	}
	net = &restarting{RoundTripper: c.HTTP.Transport, kill: func() {}}
	again = &remote.Client{Base: c.Base, HTTP: &http.Client{Transport: net}, Patience: time.Minute}
	if _, err := again.CreateJournal(t.Context(), "deep/s.atj", nil); !errors.Is(err, journal.ErrExist) {
		t.Errorf("one that another has made: %v", err)
	}
}

func TestAJournalAtAServerIsOneForAll(t *testing.T) {
	root, c := newServer(t)
	ctx := t.Context()
	if _, err := c.OpenJournal(ctx, "none.atj", nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a journal that is not there: %v", err)
	}
	j, err := c.CreateJournal(ctx, "deep/er/s.atj", nil)
	must(t, err)
	if _, err := c.CreateJournal(ctx, "deep/er/s.atj", nil); !errors.Is(err, journal.ErrExist) {
		t.Errorf("made twice: %v", err)
	}
	id, created, err := study.OpenOrCreate(ctx, j, study.Config{Name: "s", Directions: []study.Direction{study.Minimize}})
	must(t, err)
	if !created || j.Header().Format != journal.FormatVersion {
		t.Errorf("created %v, %+v", created, j.Header())
	}

	const workers, each = 3, 6
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			mine, err := losingClient(c, uint64(w)).OpenJournal(ctx, "deep/er/s.atj", nil)
			if err != nil {
				t.Error(err)
				return
			}
			for range each {
				trial, err := asktell.Ask(ctx, mine, id, asktell.AskOptions{})
				if err == nil {
					err = mine.Update(ctx, func(tx *study.Tx) error {
						return asktell.End(tx, trial, study.Outcome{State: study.Complete, Values: []float64{1}})
					})
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	must(t, j.Refresh(ctx))
	disk, err := study.OpenJournalReader(filepath.Join(root, "deep", "er", "s.atj"), journal.ReaderOptions{})
	must(t, err)
	defer disk.Close()
	for name, snap := range map[string]*study.Snapshot{"here": j.Snapshot(), "on disk": disk.Snapshot()} {
		st, err := snap.Study(id)
		must(t, err)
		if n := st.Counts()[study.Complete]; n != workers*each || st.NumTrials() != workers*each {
			t.Errorf("%s: %d complete of %d", name, n, st.NumTrials())
		}
	}
	if a, b := j.Snapshot().Seq(), disk.Snapshot().Seq(); a != b {
		t.Errorf("%d operations here, %d on disk", a, b)
	}
}

// restarting is a server that takes a request and is killed before it answers: another
// one over the same root is there for the next try.
type restarting struct {
	http.RoundTripper
	kill func()
	once sync.Once
}

// RoundTrip implements http.RoundTripper.
func (r *restarting) RoundTrip(req *http.Request) (resp *http.Response, err error) {
	resp, err = r.RoundTripper.RoundTrip(req)
	if req.Method == http.MethodPost && err == nil && resp.StatusCode == http.StatusOK {
		r.once.Do(func() {
			resp.Body.Close()
			r.kill()
			resp, err = nil, errLost
		})
	}
	return resp, err
}

// newRoot makes a root with a journal that holds a study.
func newRoot(t *testing.T) (root string, handler *atomic.Value) {
	t.Helper()
	root, handler = t.TempDir(), new(atomic.Value)
	disk, err := study.CreateJournal(t.Context(), filepath.Join(root, "s.atj"), journal.WriterOptions{})
	must(t, err)
	_, _, err = study.OpenOrCreate(t.Context(), disk, study.Config{Name: "s", Directions: []study.Direction{study.Minimize}})
	must(t, err)
	must(t, disk.Close())
	return root, handler
}

func TestWhatAServerPublishedBeforeItWasKilledIsNotPublishedAgain(t *testing.T) {
	root, handler := newRoot(t)
	start := func() {
		s, err := server.New(server.Options{Root: root, Cache: t.TempDir()})
		must(t, err)
		t.Cleanup(func() { must(t, s.Close()) })
		handler.Store(s.Handler())
	}
	start()
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.Load().(http.Handler).ServeHTTP(w, r) }))
	defer h.Close()
	create := func(tx *study.Tx) error { _, err := tx.CreateTrial(0, nil); return err }
	for _, first := range []func(tx *study.Tx) error{create, func(tx *study.Tx) error {
		// The request that it is sent with is not to be mixed up with what it says.
		return errors.Join(tx.SetStudyUserAttr(0, "note", []byte(`"`+study.RequestField+`"`)), create(tx))
	}} {
		net := &restarting{RoundTripper: h.Client().Transport, kill: start}
		c := &remote.Client{Base: h.URL, HTTP: &http.Client{Transport: net}, Patience: time.Minute}
		j, err := c.OpenJournal(t.Context(), "s.atj", nil)
		must(t, err)
		must(t, j.Update(t.Context(), first))
	}
	j, err := (&remote.Client{Base: h.URL, HTTP: h.Client()}).OpenJournal(t.Context(), "s.atj", nil)
	must(t, err)
	disk, err := study.OpenJournalReader(filepath.Join(root, "s.atj"), journal.ReaderOptions{})
	must(t, err)
	defer disk.Close()
	for name, snap := range map[string]*study.Snapshot{"here": j.Snapshot(), "on disk": disk.Snapshot()} {
		st, err := snap.Study(0)
		must(t, err)
		if st.NumTrials() != 2 {
			t.Errorf("%s: %d trials", name, st.NumTrials())
		}
	}
	r, err := journal.OpenReader(filepath.Join(root, "s.atj"), journal.ReaderOptions{})
	must(t, err)
	defer r.Close()
	replay := study.NewReplay()
	must(t, r.Refresh(replay))
	if notes := replay.Notes(); len(notes) > 0 {
		t.Errorf("verification finds %q", notes)
	}
}

// refusing loses the answer to the first request that changes something, and refuses the
// next one.
type refusing struct {
	http.RoundTripper
	posts int
}

// RoundTrip implements http.RoundTripper.
func (r *refusing) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodPost {
		return r.RoundTripper.RoundTrip(req)
	}
	r.posts++
	switch r.posts {
	case 1:
		resp, err := r.RoundTripper.RoundTrip(req)
		if err == nil {
			resp.Body.Close()
		}
		return nil, errLost
	case 2:
		return &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
	}
	return r.RoundTripper.RoundTrip(req)
}

// TestARefusalIsNotThatOfAnEarlierTry has the right to write end between two tries, of
// which the first was carried out.
func TestARefusalIsNotThatOfAnEarlierTry(t *testing.T) {
	_, good := newServer(t)
	_, err := good.CreateJournal(t.Context(), "s.atj", nil)
	must(t, err)
	net := &refusing{RoundTripper: good.HTTP.Transport}
	c := &remote.Client{Base: good.Base, HTTP: &http.Client{Transport: net}, Patience: time.Minute}
	j, err := c.OpenJournal(t.Context(), "s.atj", nil)
	must(t, err)
	_, created, err := study.OpenOrCreate(t.Context(), j, study.Config{Name: "s", Directions: []study.Direction{study.Minimize}})
	if err != nil || !created || j.Snapshot().NumStudies() != 1 || net.posts != 2 {
		t.Errorf("created %v, %v, %d studies, %d requests", created, err, j.Snapshot().NumStudies(), net.posts)
	}
}

func TestATransactionThatDoesNothingSeesTheNewest(t *testing.T) {
	_, c := newServer(t)
	ctx := t.Context()
	a, err := c.CreateJournal(ctx, "s.atj", nil)
	must(t, err)
	b, err := c.OpenJournal(ctx, "s.atj", nil)
	must(t, err)
	_, _, err = study.OpenOrCreate(ctx, a, study.Config{Name: "s", Directions: []study.Direction{study.Minimize}})
	must(t, err)
	seen := 0
	must(t, b.Update(ctx, func(tx *study.Tx) error { seen = tx.Snapshot().NumStudies(); return nil }))
	if seen != 1 {
		t.Errorf("%d studies", seen)
	}
	must(t, a.Close())
	if err := a.Update(ctx, func(*study.Tx) error { return nil }); !errors.Is(err, study.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
	for _, path := range []string{"../x.atj", "/x.atj", "x.txt", ".foldlog/x.atj", "a/../x.atj", "x.atj.d/y.atj", "a\\b.atj"} {
		if _, err := c.CreateJournal(ctx, path, nil); !errors.Is(err, remote.ErrRefused) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestALogAtAServerIsWrittenLikeOneOnDisk(t *testing.T) {
	root, c := newServer(t)
	ctx := t.Context()
	away, err := datagen.OpenOrCreate(ctx, losingClient(c, 7).Store(), "p", "e", datagen.Options{})
	must(t, err)
	w, err := away.NewWriter(ctx, datagen.WriterOptions{MergeAfter: 4})
	must(t, err)
	for i := range 3 {
		s, err := w.Open(ctx, fmt.Sprint("item-", i), datagen.CreateOptions{})
		must(t, err)
		for k := range 3 {
			step := datagen.Step{Name: fmt.Sprint("s", k), Index: int64(k), Instance: fmt.Sprint("s", k)}
			must(t, s.Checkpoint(ctx, step, []datagen.Change{datagen.Set("blob", datagen.BlobValue(make([]byte, 100_000)))}))
		}
		must(t, s.End(ctx, datagen.EndCompleted))
	}
	store, err := objstore.OpenLocal(root, objstore.LocalOptions{})
	must(t, err)
	local, err := datagen.Open(ctx, store, "p", "e", datagen.Options{})
	must(t, err)
	lw, err := local.NewWriter(ctx, datagen.WriterOptions{})
	must(t, err)
	if _, err := lw.Open(ctx, "item-0", datagen.CreateOptions{}); !errors.Is(err, datagen.ErrEnded) {
		t.Errorf("an item that has ended elsewhere: %v", err)
	}
	half, err := w.Open(ctx, "half", datagen.CreateOptions{})
	must(t, err)
	must(t, half.Create(ctx))
	if _, err := lw.Open(ctx, "half", datagen.CreateOptions{}); !errors.Is(err, datagen.ErrHeld) {
		t.Errorf("an item whose writer lives elsewhere: %v", err)
	}
	must(t, w.Close(ctx))
	s, err := lw.Open(ctx, "half", datagen.CreateOptions{})
	must(t, err)
	must(t, s.End(ctx, datagen.EndCompleted))
	must(t, lw.Close(ctx))
	for name, l := range map[string]*datagen.Log{"away": away, "local": local} {
		stats, err := l.Verify(ctx, func(err error) { t.Errorf("%s: %v", name, err) })
		must(t, err)
		if stats.Items != 4 || stats.Blobs != 9 {
			t.Errorf("%s: %+v", name, stats)
		}
	}
}

func TestAStoreAtAServerKeepsItsPromises(t *testing.T) {
	_, c := newServer(t)
	ctx := t.Context()
	s := losingClient(c, 3).Store()
	key := "datagen_checkpoints/p/e/log.lance/data/x"
	must(t, s.PutIfAbsent(ctx, key, []byte("first")))
	if err := s.PutIfAbsent(ctx, key, []byte("other")); !errors.Is(err, objstore.ErrExists) {
		t.Errorf("a key that is taken: %v", err)
	}
	must(t, s.Put(ctx, key, []byte("second")))
	out, err := s.Create(ctx, key+"2")
	must(t, err)
	for range 100 {
		_, err := out.Write(make([]byte, 1000))
		must(t, err)
	}
	must(t, out.Close())
	must(t, out.Abort())
	if err := out.Close(); err == nil {
		t.Error("a writer is closed twice")
	}
	b, err := s.Get(ctx, key, 100)
	must(t, err)
	part, err := s.GetRange(ctx, key, 1, 3)
	must(t, err)
	if string(b) != "second" || string(part) != "eco" {
		t.Errorf("%q %q", b, part)
	}
	info, err := s.Stat(ctx, key+"2")
	must(t, err)
	if info.Size != 100_000 || time.Since(info.Modified) > time.Hour {
		t.Errorf("%+v", info)
	}
	_, err = s.GetRange(ctx, key, 4, 3)
	wantErr(t, err, io.ErrUnexpectedEOF)
	_, err = s.Get(ctx, key, 3)
	wantErr(t, err, objstore.ErrTooLarge)
	_, err = s.Stat(ctx, key+"3")
	wantErr(t, err, objstore.ErrNotFound)
	var keys []string
	for info, err := range s.List(ctx, objstore.ListOptions{Prefix: "datagen_checkpoints/p/"}) {
		must(t, err)
		keys = append(keys, info.Key)
	}
	if want := []string{key, key + "2"}; !cmp.Equal(keys, want) {
		t.Errorf("%v", keys)
	}
	must(t, s.Delete(ctx, key))
	must(t, s.Delete(ctx, key))
	_, err = s.Get(ctx, key, 100)
	wantErr(t, err, objstore.ErrNotFound)
	for _, key := range []string{"runs/x", "datagen_checkpoints/p/x", "datagen_checkpoints/../x/y/z", "x/y", ".foldlog/datagen_checkpoints/p/e/x", "datagen_checkpoints/p/.e/x"} {
		if err := s.Put(ctx, key, nil); err == nil {
			t.Errorf("%s is written", key)
		}
		if _, err := s.Get(ctx, key, 10); err == nil {
			t.Errorf("%s is read", key)
		}
	}
	for _, err := range s.List(ctx, objstore.ListOptions{Prefix: ""}) {
		if err == nil {
			t.Error("everything is listed")
		}
	}
}

func wantErr(t *testing.T, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("%v is not %v", err, target)
	}
}

func TestAddressesAreTakenApart(t *testing.T) {
	for text, want := range map[string][2]string{
		"http://h:7654/a/b.atj": {"http://h:7654", "a/b.atj"}, "https://h/": {"https://h", ""}, "server:x.atj": {"http://s", "x.atj"},
		"server:/x/y": {"http://s", "x/y"},
	} {
		base, path, ok, err := remote.Parse(text, "http://s/")
		if base != want[0] || path != want[1] || !ok || err != nil {
			t.Errorf("%s: %q %q %v %v", text, base, path, ok, err)
		}
	}
	for _, text := range []string{"http://", "http://h/x?y", "http://u:p@h/x"} {
		if _, _, ok, err := remote.Parse(text, ""); !ok || !errors.Is(err, remote.ErrAddress) {
			t.Errorf("%s: %v %v", text, ok, err)
		}
	}
	if _, _, ok, err := remote.Parse("server:x", ""); !ok || err == nil {
		t.Error("server: without a server")
	}
	for _, text := range []string{"a/b.atj", "httpx", "C:\\x"} {
		if _, _, ok, _ := remote.Parse(text, "http://s"); ok {
			t.Errorf("%s is an address", text)
		}
	}
}

func TestAServerThatIsAwayIsWaitedForOnlySoLong(t *testing.T) {
	c := &remote.Client{Base: "http://127.0.0.1:1", Patience: 200 * time.Millisecond}
	if _, err := c.OpenJournal(context.Background(), "x.atj", nil); !errors.Is(err, remote.ErrAway) {
		t.Error(err)
	}
}

func TestAServerWithoutTLSIsToldAtOnce(t *testing.T) {
	_, plain := newServer(t)
	c := &remote.Client{Base: strings.Replace(plain.Base, "http:", "https:", 1), HTTP: plain.HTTP, Patience: time.Hour}
	_, err := c.OpenJournal(t.Context(), "x.atj", nil)
	if !errors.Is(err, remote.ErrPlain) || errors.Is(err, remote.ErrAway) {
		t.Error(err)
	}
}
