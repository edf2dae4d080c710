package server

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"

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

// Front is the Pareto front of a study, or its best trial.
type Front struct {
	Seq     Count       `json:"seq" doc:"operations in the journal that this is of, 0 before the first result"`
	Pending bool        `json:"pending" doc:"a newer result is being computed: ask again"`
	Items   []BestTrial `json:"items" doc:"by number; the first 10000"`
	Total   int         `json:"total"`
}

// mostFront is how many trials of a front are told.
const mostFront = 10_000

func (s *Server) studyFront(ctx context.Context, in *studyInput) (*struct{ Body Front }, error) {
	_, snap, st, err := s.study(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	value, pending := s.slow.get("front "+in.ID, snap.Seq(), func() any {
		f := Front{Seq: Count(snap.Seq()), Items: []BestTrial{}}
		best, err := snap.Best(st.ID)
		if err != nil {
			return f
		}
		f.Total = len(best)
		for _, t := range best[:min(len(best), mostFront)] {
			f.Items = append(f.Items, BestTrial{int(t.Number), t.Values})
		}
		return f
	})
	f, ok := value.(Front)
	if !ok {
		f.Items = []BestTrial{}
	}
	f.Pending = pending
	return &struct{ Body Front }{f}, nil
}

type importanceInput struct {
	ID        string `path:"id" maxLength:"64"`
	Objective int    `query:"objective" minimum:"0"`
}

// Importance tells how much each parameter matters.
type Importance struct {
	Seq       Count             `json:"seq" doc:"operations in the journal that this is of, 0 before the first result"`
	Pending   bool              `json:"pending" doc:"a newer result is being computed: ask again"`
	Method    string            `json:"method" doc:"fanova: as foldlog study importance computes it"`
	Sample    int               `json:"sample" doc:"complete trials that it was computed from"`
	Of        int               `json:"of" doc:"complete trials with a finite value that there were"`
	Explained *Number           `json:"explained" nullable:"true" doc:"part of the variance that is predicted for trials that were not looked at (R squared): if it is low, the rest means little; null with too few trials, or if all values are the same"`
	Items     []ParamImportance `json:"items" doc:"the one that matters most first; none with fewer than two trials"`
}

// ParamImportance is one parameter.
type ParamImportance struct {
	Name     string `json:"name"`
	Share    Number `json:"share" doc:"of what parameters make by themselves; all sum to 1, unless nothing matters"`
	Fraction Number `json:"fraction" doc:"of the whole variance"`
	Spread   Number `json:"spread" doc:"standard deviation of fraction among the trees"`
	Trials   int    `json:"trials" doc:"of the sample that have the parameter"`
}

// importanceSample is from how many trials importance is computed at most: some
// tenths of a second.
const importanceSample = 5000

func (s *Server) studyImportance(ctx context.Context, in *importanceInput) (*struct{ Body Importance }, error) {
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
	v, ok := value.(Importance)
	if !ok {
		v = Importance{Method: analysis.FANOVA.String(), Items: []ParamImportance{}}
	}
	v.Pending = pending
	return &struct{ Body Importance }{v}, nil
}

func importanceOf(snap *study.Snapshot, st *study.Study, objective int) Importance {
	v := Importance{Seq: Count(snap.Seq()), Method: analysis.FANOVA.String(), Items: []ParamImportance{}}
	report, err := analysis.Importances(snap, st, analysis.ImportanceOptions{Objective: objective, Most: importanceSample})
	if err != nil { // too few trials
		return v
	}
	v.Sample, v.Of = report.Trials, report.Of
	if explained := Number(report.Explained); explained == explained {
		v.Explained = &explained
	}
	for _, p := range report.Params {
		v.Items = append(v.Items, ParamImportance{p.Param, Number(p.Share), Number(p.Fraction), Number(p.Spread), p.Trials})
	}
	return v
}
