package sampler

import (
	"fmt"

	"github.com/foldlog/foldlog/study"
)

// Asker suggests the parameters of one trial one by one, for programs that find
// out which there are while the trial runs. Parameters that every finished trial
// had, with the same distribution, are suggested together; one that only some
// had is suggested from those. What is suggested depends on the history alone,
// not on the order of the questions. Not for concurrent use.
type Asker struct {
	sampler Sampler
	history *History
	common  []study.SpaceParam
	// values are those of common, nil until one is asked for.
	values []study.Value
}

// NewAsker returns an asker for the trial that the history is for.
func NewAsker(s Sampler, h *History) *Asker {
	return &Asker{sampler: s, history: h, common: h.common()}
}

// Suggest returns the value of one parameter. The error is that of [Suggest].
func (a *Asker) Suggest(name string, dist study.Distribution) (study.Value, error) {
	for i, p := range a.common {
		if p.Name != name || !sameDist(p.Dist, dist) {
			continue
		}
		if a.values == nil {
			values, err := sample(a.sampler, a.history, a.common)
			if err != nil {
				return study.Value{}, err
			}
			a.values = values
		}
		return a.values[i], nil
	}
	alone := []study.SpaceParam{{Name: name, Dist: dist}}
	values, err := sample(a.sampler, a.history.of(alone), alone)
	if err != nil {
		return study.Value{}, err
	}
	return values[0], nil
}

// SuggestOne is one question to a new [Asker].
func SuggestOne(s Sampler, h *History, name string, dist study.Distribution) (study.Value, error) {
	return NewAsker(s, h).Suggest(name, dist)
}

func sample(s Sampler, h *History, space []study.SpaceParam) ([]study.Value, error) {
	for _, p := range space {
		if err := checkDist(p.Dist); err != nil {
			return nil, fmt.Errorf("parameter %q: %w", p.Name, err)
		}
	}
	values, err := s.Sample(h, space)
	if err == nil && len(values) != len(space) {
		err = fmt.Errorf("%w: a sampler returned %d values for %d parameters", study.ErrInvalid, len(values), len(space))
	}
	return values, err
}
