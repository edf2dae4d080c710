package server

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/remote"
	"github.com/foldlog/foldlog/server/internal/wire"
)

func (s *site) newExperiment() (id, at string) {
	s.t.Helper()
	var made wire.CreatedExperiment
	s.post("/api/v1/datagen", map[string]any{"pipeline": "p", "experiment": "e"}, &made)
	return made.ID, "/api/v1/datagen/" + made.ID
}

func createdLine(item string) []byte {
	return fmt.Appendf(nil, `{"item_id":%q,"item_seq":0,"checkpoint_id":"c","event_type":"ITEM_CREATED","event_ts":"2026-01-02T03:04:05Z"}`+"\n", item)
}

// TestWhatWasAppendedIsListed: a request is answered from a reading that began after it
// came. One that goes on may have passed by what the client has just been told is there.
func TestWhatWasAppendedIsListed(t *testing.T) {
	s := newSite(t, Options{})
	id, at := s.newExperiment()
	l := s.datagens.byID[id]
	s.eventually("the reading for its creation has ended", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.reading == nil
	})
	l.refreshing.Lock()
	first := l.nextReading()
	second, third := l.nextReading(), l.nextReading()
	l.refreshing.Unlock()
	if first == second || second != third {
		t.Errorf("readings %p %p %p", first, second, third)
	}
	<-second.done
	if second.err != nil || second.index == nil {
		t.Errorf("%+v", second)
	}
	for n := range 20 {
		s.post(at+"/append", createdLine(fmt.Sprint("item ", n)), nil)
		if list, _ := s.items(id, ""); len(list) != n+1 {
			t.Fatalf("%d items of %d", len(list), n+1)
		}
	}
}

// TestWhoWatchedAServerThatWasKilledMissesNothing comes back to a server that goes on from
// an older index than the one that has been told from.
func TestWhoWatchedAServerThatWasKilledMissesNothing(t *testing.T) {
	root := t.TempDir()
	s := newSite(t, Options{Root: root})
	id, at := s.newExperiment()
	more := func(s *site, item string) wire.Count {
		s.post(at+"/append", createdLine(item), nil)
		_, page := s.items(id, "")
		return page.Seq
	}
	more(s, "a")
	l := s.datagens.byID[id]
	err := l.save()
	path := filepath.Join(root, CacheDir, "datagen-"+id)
	stored, err2 := os.ReadFile(path)
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	more(s, "b")
	seen := more(s, "c")
	s.end()
	if err := os.WriteFile(path, stored, 0o600); err != nil {
		t.Fatal(err)
	}
	s = newSite(t, Options{Root: root})
	more(s, "d")
	more(s, "e")
	more(s, "f")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	got := map[string]bool{}
	s.events(ctx, at+"/live", fmt.Sprint(uint64(seen)), func(_, kind, data string) bool {
		var live wire.LiveItems
		if err := json.Unmarshal([]byte(data), &live); err != nil || kind != "items" {
			t.Errorf("%s %s", kind, data)
		}
		for _, item := range live.Items {
			got[item.Item] = true
		}
		return true
	})
	for _, item := range []string{"d", "e", "f"} {
		if !got[item] {
			t.Errorf("%s was not told of, only %v", item, got)
		}
	}
}

// TestTheListOfExperimentsHasWhatIsAcknowledged asks for the counts of a log right after
// each write to it, by events and by files.
func TestTheListOfExperimentsHasWhatIsAcknowledged(t *testing.T) {
	s := newSite(t, Options{})
	_, at := s.newExperiment()
	counts := func() int {
		var page wire.ExperimentPage
		s.get("/api/v1/datagen", &page)
		if len(page.Items) != 1 || page.Items[0].Error != "" {
			t.Fatalf("%+v", page)
		}
		return page.Items[0].Items
	}
	for n := range 20 {
		s.post(at+"/append", createdLine(fmt.Sprint("item ", n)), nil)
		if got := counts(); got != n+1 {
			t.Fatalf("%d items of %d", got, n+1)
		}
	}
	client := &remote.Client{Base: s.url}
	l, err := datagen.Open(t.Context(), client.Store(), "p", "e", datagen.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := l.NewWriter(t.Context(), datagen.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close(context.WithoutCancel(t.Context()))
	for n := range 5 {
		item, err := w.Open(t.Context(), fmt.Sprint("by files ", n), datagen.CreateOptions{})
		if err == nil {
			err = item.Checkpoint(t.Context(), stepOf("draw", 0), nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := counts(); got != 21+n {
			t.Fatalf("%d items of %d", got, 21+n)
		}
	}
}

// TestAnIndexThatWasReadIsNotReadAgain: what a server has read of a log as it found it is
// there for the first request, at rest too.
func TestAnIndexThatWasReadIsNotReadAgain(t *testing.T) {
	root := t.TempDir()
	if err := benchItems(root, 2000); err != nil {
		t.Fatal(err)
	}
	for range 2 { // without and with a stored index
		s := newSite(t, Options{Root: root})
		l := s.datagens.all()[0]
		s.eventually("it is read", l.isReady)
		s.eventually("it is stored", func() bool {
			_, err := os.Stat(l.storedPath())
			return err == nil
		})
		l.mu.Lock()
		was := l.index
		l.mu.Unlock()
		list, _ := s.items(l.id, "")
		x, err := l.ready(t.Context())
		if err != nil || was == nil || x != was || len(list) == 0 {
			t.Errorf("index %p is %p now, %v, %d items", was, x, err, len(list))
		}
		s.end()
	}
}
