package server

import (
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/foldlog/foldlog/internal/fsx"
)

// TestAStreamIsAcknowledgedOnceItsNameIsDurable lets the first attempt to make the names
// of a new stream durable fail, as it also would be left by a server that was killed
// before it: the next lines are acknowledged only after it was made up for.
func TestAStreamIsAcknowledgedOnceItsNameIsDurable(t *testing.T) {
	s := newSite(t, Options{})
	failing := true
	var synced []string
	s.sink.fs = fsx.NewFault(s.sink.fs, func(c fsx.Call) fsx.Fate {
		if c.Op != "syncdir" {
			return fsx.Fate{}
		}
		if failing {
			failing = false
			return fsx.Fate{Err: syscall.EIO}
		}
		synced = append(synced, c.Path)
		return fsx.Fate{}
	})
	text := stream("run", 3)
	at := streamAt("run", firstLine(text), 0)
	if a := s.do("POST", at, []byte(text)); a.status != 500 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	s.post(at, []byte(text), nil)
	for _, dir := range []string{"runs/run", "runs", "."} {
		if !slices.Contains(synced, filepath.Join(s.base, dir)) {
			t.Errorf("%s was not synced, only %q", dir, synced)
		}
	}
}
