package server

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/foldlog/foldlog/internal/fsx"
	"github.com/foldlog/foldlog/objstore"
	"github.com/foldlog/foldlog/server/internal/wire"
)

// fillable makes the disk of a server's journals and datagen logs one that is full when
// the switch says so.
func fillable(t *testing.T, s *site) *atomic.Bool {
	t.Helper()
	full := new(atomic.Bool)
	hook := func(c fsx.Call) fsx.Fate {
		if full.Load() && c.Mutates() && c.Op != "remove" {
			return fsx.Fate{Err: syscall.ENOSPC}
		}
		return fsx.Fate{}
	}
	s.studies.fs = fsx.NewFault(s.studies.fs, hook)
	var err error
	s.files, err = objstore.OpenLocal(s.base, objstore.LocalOptions{FS: fsx.NewFault(belowRoot{fsx.InRoot(s.Server.root), filepath.Dir(s.base)}, hook)})
	if err != nil {
		t.Fatal(err)
	}
	return full
}

// TestWhatAFullDiskDoesNotTakeIs507 is about everything but streams, which
// TestAFullDiskTakesAllOrNothing is about; cmd/foldlog has the same on a real disk.
func TestWhatAFullDiskDoesNotTakeIs507(t *testing.T) {
	s := newSite(t, Options{})
	full := fillable(t, s)
	at := "/api/v1/studies/" + newStudy(s, "search.atj")
	var made wire.CreatedExperiment
	s.post("/api/v1/datagen", map[string]any{"pipeline": "p", "experiment": "e"}, &made)
	log := "/api/v1/datagen/" + made.ID
	var c wire.ItemClaim
	s.post(log+"/claims", map[string]any{"items": []string{"a"}}, &c)
	type request struct {
		name, path string
		body       any
	}
	requests := func(round int) []request {
		return []request{
			{"ask", at + "/ask", map[string]any{}},
			{"enqueue", at + "/enqueue", map[string]any{"params": map[string]any{}}},
			{"append", log + "/append", fmt.Appendf(nil, `{"item_id":"b%d","item_seq":0,"checkpoint_id":"c","event_type":"ITEM_CREATED","event_ts":"2026-01-02T03:04:05Z"}`, round)},
			{"journal", "/api/v1/journals", map[string]any{"path": fmt.Sprintf("other%d.atj", round)}},
			{"experiment", "/api/v1/datagen", map[string]any{"pipeline": "p", "experiment": fmt.Sprint("other", round)}},
		}
	}
	step := request{"checkpoint", log + "/claims/" + c.Claim + "/checkpoint", map[string]any{"key": "1", "step": map[string]any{"name": "draw"},
		"changes": []any{map[string]any{"name": "text", "value": strings.Repeat("x", 1<<16)}}}}
	for round := range 2 {
		full.Store(true)
		for _, r := range append(requests(round), step) {
			a := s.do("POST", r.path, r.body)
			if a.status != http.StatusInsufficientStorage || strings.Contains(string(a.body), s.base) {
				t.Errorf("round %d, %s: %d %s", round, r.name, a.status, a.body)
			}
		}
		full.Store(false)
		s.checkStored(t, at, log, round)
		for _, r := range requests(round) {
			s.post(r.path, r.body, nil)
		}
	}
	var state wire.ClaimState
	s.post(step.path, step.body, &state)
	if state.LastSeq == 0 || !state.Open {
		t.Errorf("the claim does not outlast the full disk: %+v", state)
	}
}

// checkStored wants what so many rounds have stored, and nothing of what was refused.
func (s *site) checkStored(t *testing.T, study, log string, rounds int) {
	t.Helper()
	var got wire.StudyItem
	s.get(study, &got)
	items, _ := s.items(strings.TrimPrefix(log, "/api/v1/datagen/"), "")
	if got.Trials != 2*rounds || len(items) != rounds {
		t.Errorf("after %d rounds there are %d trials, and items %s", rounds, got.Trials, fmt.Sprint(items))
	}
}
