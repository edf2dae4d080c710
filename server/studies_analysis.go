package server

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/foldlog/foldlog/study"
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
	Seq     Count             `json:"seq" doc:"operations in the journal that this is of, 0 before the first result"`
	Pending bool              `json:"pending" doc:"a newer result is being computed: ask again"`
	Method  string            `json:"method"`
	Sample  int               `json:"sample" doc:"complete trials that it was computed from"`
	Of      int               `json:"of" doc:"complete trials that there were"`
	Items   []ParamImportance `json:"items" doc:"the one that matters most first"`
}

// ParamImportance is one parameter.
type ParamImportance struct {
	Name       string `json:"name"`
	Importance Number `json:"importance" doc:"part of the variance of the ranks that the parameter alone explains, from 0 to 1"`
	Trials     int    `json:"trials" doc:"of the sample that have the parameter"`
}

const importanceMethod = "variance of ranks between up to 10 bins of the parameter, corrected for chance"

// importanceSample is how many trials importance is computed from at most.
const importanceSample = 20_000

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
		v = Importance{Method: importanceMethod, Items: []ParamImportance{}}
	}
	v.Pending = pending
	return &struct{ Body Importance }{v}, nil
}

func importanceOf(snap *study.Snapshot, st *study.Study, objective int) Importance {
	v := Importance{Seq: Count(snap.Seq()), Method: importanceMethod, Items: []ParamImportance{}}
	var trials []*study.Trial
	for t := range snap.Trials(st.ID, study.TrialFilter{States: []study.State{study.Complete}}) {
		if objective < len(t.Values) && t.Values[objective] == t.Values[objective] {
			trials = append(trials, t)
		}
	}
	v.Of = len(trials)
	if len(trials) > importanceSample {
		even := make([]*study.Trial, importanceSample)
		for i := range even {
			even[i] = trials[i*len(trials)/importanceSample]
		}
		trials = even
	}
	v.Sample = len(trials)
	ranks := ranksOf(trials, objective)
	byParam := map[string][]binned{}
	for i, t := range trials {
		for _, p := range t.Params {
			byParam[p.Name] = append(byParam[p.Name], binned{valueKey(p.Text()), ranks[i]})
		}
	}
	for name, list := range byParam {
		v.Items = append(v.Items, ParamImportance{name, Number(explained(list)), len(list)})
	}
	slices.SortFunc(v.Items, func(a, b ParamImportance) int {
		return cmp.Or(cmp.Compare(b.Importance, a.Importance), cmp.Compare(a.Name, b.Name))
	})
	return v
}

// ranksOf are the places of the trials by value; equal values share one.
func ranksOf(trials []*study.Trial, objective int) []float64 {
	order := make([]int, len(trials))
	for i := range order {
		order[i] = i
	}
	value := func(i int) float64 { return trials[i].Values[objective] }
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(value(a), value(b)) })
	ranks := make([]float64, len(trials))
	for i := 0; i < len(order); {
		j := i
		for j < len(order) && value(order[j]) == value(order[i]) {
			j++
		}
		for k := i; k < j; k++ {
			ranks[order[k]] = float64(i+j-1) / 2
		}
		i = j
	}
	return ranks
}

// binned is one trial as one parameter sees it.
type binned struct {
	key  sortKey
	rank float64
}

// bins is into how many groups the values of a parameter are put.
const bins = 10

// explained is the part of the variance of the ranks that lies between the groups
// of a parameter's values, less what chance would give (epsilon squared).
func explained(list []binned) float64 {
	slices.SortFunc(list, func(a, b binned) int { return a.key.compare(b.key, false) })
	n := len(list)
	mean := 0.0
	for _, b := range list {
		mean += b.rank / float64(n)
	}
	total, between, groups := 0.0, 0.0, 0
	for i := 0; i < n; groups++ {
		end := max((groups+1)*n/bins, i+1)
		for end < n && list[end].key == list[end-1].key {
			end++
		}
		end = min(end, n)
		sum := 0.0
		for _, b := range list[i:end] {
			sum += b.rank
			total += (b.rank - mean) * (b.rank - mean)
		}
		size := float64(end - i)
		between += size * (sum/size - mean) * (sum/size - mean)
		i = end
	}
	if total == 0 || n <= groups {
		return 0
	}
	within := (total - between) / float64(n-groups)
	return min(max((between-float64(groups-1)*within)/total, 0), 1)
}
