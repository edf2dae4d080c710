package server

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/foldlog/foldlog/metrics"
	"github.com/foldlog/foldlog/runner"
	"github.com/foldlog/foldlog/server/internal/projection"
	"github.com/foldlog/foldlog/study"
)

// A run that was killed cannot say so. Of one that is kept of a trial the study can:
// others have noticed that its worker is silent, and failed the trial.

// failedTrials are the trials that failed, by the slugs of the runs that they are kept as.
type failedTrials struct {
	mu     sync.RWMutex
	bySlug map[string]failedTrial
}

type failedTrial struct {
	log    *journalLog
	stream string
	ended  int64 // Unix milliseconds
	text   string
}

// mostLost bounds what is kept of why a trial failed, in characters.
const mostLost = 300

// trialFailed takes note of a trial that has failed for good.
func (l *journalLog) trialFailed(st *study.Study, t *study.Trial) {
	slug, stream := runner.TrialRun(t)
	if slug == "" {
		return
	}
	text := fmt.Sprintf("trial %d of study %s failed", t.Number, st.Config.Name)
	if t.Error != "" {
		text += ": " + t.Error
	}
	failed := failedTrial{l, stream, int64(t.EndedMillis), cutError(text, mostLost)}
	s := l.owner.server
	s.failed.mu.Lock()
	known := s.failed.bySlug[slug] == failed
	if s.failed.bySlug == nil {
		s.failed.bySlug = map[string]failedTrial{}
	}
	s.failed.bySlug[slug] = failed
	s.failed.mu.Unlock()
	if run := s.store.Run(slug); run != nil && !known {
		s.runChanged(slug, run)
	}
}

// forget forgets the trials of a journal whose history is not what it was.
func (f *failedTrials) forget(l *journalLog) {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.bySlug, func(_ string, t failedTrial) bool { return t.log == l })
}

// lost is why a run that has not ended will say no more, "" if nothing tells that. A run
// that has spoken since is not lost, whatever its study thinks.
func (s *Server) lost(run *projection.Run) string {
	if run.Status != metrics.StatusRunning {
		return ""
	}
	s.failed.mu.RLock()
	failed, ok := s.failed.bySlug[run.Slug]
	s.failed.mu.RUnlock()
	if !ok || failed.ended < run.LastTSMS || !slices.ContainsFunc(run.Streams, func(d *projection.Digest) bool { return d.ID == failed.stream }) {
		return ""
	}
	return failed.text
}
