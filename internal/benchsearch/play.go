package main

import (
	"context"
	"math"
	"slices"

	"github.com/foldlog/foldlog/study"
	"github.com/foldlog/foldlog/study/analysis"
	"github.com/foldlog/foldlog/study/sampler"
)

// marks are the numbers of trials after which the result is noted.
var marks = []int{100, 300}

// play runs a study of a problem in memory, with a sampler of ours, and returns
// its score at each mark.
func play(p problem, s sampler.Sampler, seed uint64) ([]float64, error) {
	ctx := context.Background()
	st := study.NewMemory(study.MemoryOptions{})
	defer st.Close()
	config := study.Config{Name: p.name, Directions: make([]study.Direction, p.objectives), Seed: &seed}
	id, _, err := study.OpenOrCreate(ctx, st, config)
	if err != nil {
		return nil, err
	}
	return scoresOf(p, func() (v []float64, err error) {
		err = st.Update(ctx, func(tx *study.Tx) error {
			v, err = trial(tx, id, p, s)
			return err
		})
		return v, err
	})
}

// scoresOf runs one trial after another and returns the score at each mark.
func scoresOf(p problem, next func() ([]float64, error)) ([]float64, error) {
	var scores []float64
	var values [][]float64
	for len(values) < marks[len(marks)-1] {
		v, err := next()
		if err != nil {
			return nil, err
		}
		values = append(values, v)
		if slices.Contains(marks, len(values)) {
			scores = append(scores, p.score(values))
		}
	}
	return scores, nil
}

func trial(tx *study.Tx, id study.StudyID, p problem, s sampler.Sampler) ([]float64, error) {
	ref, err := tx.CreateTrial(id, nil)
	if err != nil {
		return nil, err
	}
	st, err := tx.Snapshot().Study(id)
	if err != nil {
		return nil, err
	}
	h := sampler.NewHistory(tx.Snapshot(), st, ref.Number)
	params, get, failed := asker(h, p, s)
	values := p.eval(get)
	if *failed != nil {
		return nil, *failed
	}
	for _, step := range []func() error{
		func() error { return tx.Transition(ref.ID, study.Waiting, study.Running) },
		func() error { return tx.ParamsBatch(ref.ID, *params) },
		func() error { return tx.SetValues(ref.ID, values...) },
		func() error { return tx.Transition(ref.ID, study.Running, study.Complete) },
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// asker suggests the whole space at once if it is known, else one parameter
// after the other.
func asker(h *sampler.History, p problem, s sampler.Sampler) (*[]study.Param, ask, *error) {
	params, failed := new([]study.Param), new(error)
	if p.space != nil {
		*params, *failed = sampler.Suggest(s, h, &study.Space{Params: p.space}, nil)
		return params, func(name string, _ study.Distribution) study.Value {
			for _, have := range *params {
				if have.Name == name {
					return have.Value
				}
			}
			return study.Value{}
		}, failed
	}
	return params, func(name string, dist study.Distribution) study.Value {
		v, err := sampler.SuggestOne(s, h, name, dist)
		if err != nil && *failed == nil {
			*failed = err
		}
		*params = append(*params, study.Param{Name: name, Dist: dist, Value: v})
		return v
	}, failed
}

// score is the regret of the best value, or the hypervolume that is missing
// to the whole box: less is better.
func (p problem) score(values [][]float64) float64 {
	if p.objectives > 1 {
		volume, _ := analysis.Hypervolume(values, reference) // of as many numbers
		return reference[0]*reference[1] - volume.Value
	}
	best := math.Inf(1)
	for _, v := range values {
		best = min(best, v[0])
	}
	return best - p.optimum
}
