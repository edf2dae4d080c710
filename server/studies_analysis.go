package server

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/foldlog/foldlog/server/internal/wire"
	"github.com/foldlog/foldlog/study"
	"github.com/foldlog/foldlog/study/analysis"
)

// background computes what is slow, once for each state of a study, and keeps the
// last result of each: whoever asks meanwhile gets that, and is told what it is of.
type background struct {
	mu      sync.Mutex
	results map[string]*result
	running map[string]chan struct{}
	slots   chan struct{}
}

type result struct {
	seq   uint64
	value any
	used  time.Time
}

const (
	// patience is how long an answer waits for a result that is being computed.
	patience = 120 * time.Millisecond
	// mostResults bounds what is kept.
	mostResults = 256
)

func newBackground() *background {
	return &background{results: map[string]*result{}, running: map[string]chan struct{}{}, slots: make(chan struct{}, 1)}
}

// get returns the newest result, nil before the first, and whether a newer one is
// being computed.
func (b *background) get(key string, seq uint64, compute func() any) (value any, pending bool) {
	b.mu.Lock()
	if r := b.results[key]; r != nil && r.seq == seq {
		r.used = time.Now()
		b.mu.Unlock()
		return r.value, false
	}
	done := b.running[key]
	if done == nil {
		done = make(chan struct{})
		b.running[key] = done
		go b.run(key, seq, compute, done)
	}
	b.mu.Unlock()
	select {
	case <-done:
	case <-time.After(patience):
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.results[key]
	if r == nil {
		return nil, true
	}
	return r.value, r.seq != seq
}

func (b *background) run(key string, seq uint64, compute func() any, done chan struct{}) {
	b.slots <- struct{}{}
	value := compute()
	<-b.slots
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.running, key)
	b.results[key] = &result{seq, value, time.Now()}
	if len(b.results) > mostResults {
		b.forgetOldest()
	}
	close(done)
}

func (b *background) forgetOldest() {
	oldest := ""
	for key, r := range b.results {
		if oldest == "" || r.used.Before(b.results[oldest].used) {
			oldest = key
		}
	}
	delete(b.results, oldest)
}

// mostFront is how many trials of a front are told.
const mostFront = 10_000

func (s *Server) studyFront(ctx context.Context, in *studyInput) (*struct{ Body wire.Front }, error) {
	_, snap, st, err := s.study(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	value, pending := s.slow.get("front "+in.ID, snap.Seq(), func() any {
		f := wire.Front{Seq: wire.Count(snap.Seq()), Items: []wire.BestTrial{}}
		best, err := snap.Best(st.ID)
		if err != nil {
			return f
		}
		f.Total = len(best)
		for _, t := range best[:min(len(best), mostFront)] {
			f.Items = append(f.Items, wire.BestTrial{Number: int(t.Number), Values: t.Values})
		}
		return f
	})
	f, ok := value.(wire.Front)
	if !ok {
		f.Items = []wire.BestTrial{}
	}
	f.Pending = pending
	return &struct{ Body wire.Front }{f}, nil
}

type importanceInput struct {
	ID        string `path:"id" maxLength:"64"`
	Objective int    `query:"objective" minimum:"0"`
}

// importanceSample is from how many trials importance is computed at most: some
// tenths of a second.
const importanceSample = 5000

func (s *Server) studyImportance(ctx context.Context, in *importanceInput) (*struct{ Body wire.Importance }, error) {
	_, snap, st, err := s.study(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	if in.Objective >= len(st.Config.Directions) {
		return nil, problem(http.StatusBadRequest, "the study has no such objective")
	}
	value, pending := s.slow.get("importance "+strconv.Itoa(in.Objective)+" "+in.ID, snap.Seq(), func() any {
		return importanceOf(snap, st, in.Objective)
	})
	v, ok := value.(wire.Importance)
	if !ok {
		v = wire.Importance{Method: analysis.FANOVA.String(), Items: []wire.ParamImportance{}}
	}
	v.Pending = pending
	return &struct{ Body wire.Importance }{v}, nil
}

func importanceOf(snap *study.Snapshot, st *study.Study, objective int) wire.Importance {
	v := wire.Importance{Seq: wire.Count(snap.Seq()), Method: analysis.FANOVA.String(), Items: []wire.ParamImportance{}}
	report, err := analysis.Importances(snap, st, analysis.ImportanceOptions{Objective: objective, Most: importanceSample})
	if err != nil { // too few trials
		return v
	}
	v.Sample, v.Of = report.Trials, report.Of
	if explained := wire.Number(report.Explained); explained == explained {
		v.Explained = &explained
	}
	for _, p := range report.Params {
		v.Items = append(v.Items, wire.ParamImportance{Name: p.Param, Share: wire.Number(p.Share),
			Fraction: wire.Number(p.Fraction), Spread: wire.Number(p.Spread), Trials: p.Trials})
	}
	return v
}
