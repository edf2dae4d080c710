package server

import (
	"fmt"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/foldlog/foldlog/internal/fsx"
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
