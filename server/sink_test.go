package server

import (
	"fmt"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/foldlog/foldlog/internal/fsx"
	"github.com/foldlog/foldlog/server/internal/wire"
)

// TestAStreamIsHeldOnceHoweverManyThereAre: requests for one stream agree on where it
// ends, also when more streams than are kept open are being written to.
func TestAStreamIsHeldOnceHoweverManyThereAre(t *testing.T) {
	s := newSite(t, Options{})
	name := func(i int) string { return fmt.Sprintf("runs/r/%d.jsonl", i) }
	var held []*sinkFile
	for i := range mostSinkFiles + 10 {
		held = append(held, s.sink.hold(name(i)))
	}
	for i, f := range held {
		if again := s.sink.hold(name(i)); again != f {
			t.Fatalf("stream %d is held twice", i)
		} else {
			s.sink.release(again)
		}
		s.sink.release(f)
	}
	if n := len(s.sink.files); n != 0 || s.sink.order.Len() != 0 {
		t.Errorf("%d are kept of which none is open", n)
	}
}

// TestATagIsAcknowledgedOnceItsFileIsDurable lets the first attempt to make the name of
// the file durable fail.
func TestATagIsAcknowledgedOnceItsFileIsDurable(t *testing.T) {
	s := newSite(t, Options{})
	text := stream("run", 3)
	s.post(streamAt("run", firstLine(text), 0), []byte(text), nil)
	s.hasRun("run", 4)
	failing, synced := true, 0
	s.labels.fs = fsx.NewFault(s.labels.fs, func(c fsx.Call) fsx.Fate {
		if c.Op != "syncdir" || c.Path != filepath.Join(s.base, "runs", "run") {
			return fsx.Fate{}
		}
		if failing {
			failing = false
			return fsx.Fate{Err: syscall.EIO}
		}
		synced++
		return fsx.Fate{}
	})
	tag := map[string]any{"add": []string{"baseline"}}
	if a := s.do("POST", "/api/v1/runs/run/tags", tag); a.status != 500 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	s.post("/api/v1/runs/run/tags", tag, nil)
	s.post("/api/v1/runs/run/tags", tag, nil)
	if synced != 1 {
		t.Errorf("the directory was synced %d times", synced)
	}
}

// TestWhatIsAcknowledgedIsSeenAtOnce asks in every way for what has just been sent.
func TestWhatIsAcknowledgedIsSeenAtOnce(t *testing.T) {
	s := newSite(t, Options{})
	s.index.mu.Lock() // nobody reads in the background
	s.index.ended = true
	s.index.ready.Broadcast()
	s.index.mu.Unlock()
	text, at := stream("run", 60), 0
	for n := range 60 {
		end := len(stream("run", n+1))
		s.post(streamAt("run", firstLine(text), at), []byte(text[at:end]), nil)
		at = end
		want := wire.Count(n + 2)
		var list wire.RunPage
		var run wire.RunDetail
		var series wire.SeriesAnswer
		s.get("/api/v1/runs", &list)
		s.get("/api/v1/runs/run", &run)
		s.post("/api/v1/series", map[string]any{"runs": []string{"run"}, "names": []string{"loss"}}, &series)
		if len(list.Items) != 1 || list.Items[0].Events != want || run.Events != want || series.Runs[0].Curves[0].Total != want-1 {
			t.Fatalf("after %d events: %+v, %d, %d points", want, list.Items, run.Events, series.Runs[0].Curves[0].Total)
		}
	}
	s.post(streamAt("run", firstLine(text), 0), []byte(text), nil) // once more, as after a lost answer
	s.get("/api/v1/runs/run", new(wire.RunDetail))
}
