package sampler

import (
	"fmt"
	"math/rand/v2"

	"github.com/foldlog/foldlog/study"
)

// Sampler is a search algorithm. A sampler keeps nothing between two calls:
// what it suggests is a pure function of its own fields, the history and the
// space. So a study that was stopped goes on as if it had not been, any process
// may ask, and one worker with the same seed gets the same suggestions again.
// Samplers are safe for concurrent use.
type Sampler interface {
	// Sample returns a value for every parameter of a space, in its order.
	// The values lie within their distributions and on their steps. The
	// distributions have been checked.
	Sample(h *History, space []study.SpaceParam) ([]study.Value, error)
}

// History is what a sampler knows of a study when it suggests.
type History struct {
	// Directions has one entry per objective.
	Directions []study.Direction
	// Seed is the study's seed, 0 without one.
	Seed uint64
	// Number is the trial that gets the suggestion.
	Number uint64
	// Trials are the other trials that have parameters, by number: finished
	// ones, and those that run or pause.
	Trials []*study.Trial
	// apart tells that only a part of the trial's parameters is asked for, which
	// other trials may not have.
	apart bool
}

// NewHistory is the history of a study for one of its trials. It looks at every
// trial once.
func NewHistory(snap *study.Snapshot, st *study.Study, number uint64) *History {
	h := &History{Directions: st.Config.Directions, Number: number}
	if st.Config.Seed != nil {
		h.Seed = *st.Config.Seed
	}
	h.Trials = make([]*study.Trial, 0, st.NumTrials())
	for t := range snap.Trials(st.ID, study.TrialFilter{}) {
		if t.Number != number && t.State != study.Waiting && len(t.Params) > 0 {
			h.Trials = append(h.Trials, t)
		}
	}
	return h
}

// rng is a stream of random numbers of this study, trial and purpose.
func (h *History) rng(purpose uint64) *rand.Rand {
	return rand.New(rand.NewPCG(h.Seed^purpose, h.Number))
}

// Suggest returns the parameters of a trial: those of fixed, and for the rest of
// the space what the sampler suggests, in the order of the space. Fixed names
// that the space lacks, or has under a condition that does not hold, follow with
// the distribution of that one value or of the space. The
// error, of a distribution that cannot be drawn from or of a sampler that
// cannot go on, wraps [study.ErrInvalid] and names the parameter.
func Suggest(s Sampler, h *History, space *study.Space, fixed []study.FixedParam) ([]study.Param, error) {
	given := make(map[string]study.Value, len(fixed))
	for _, f := range fixed {
		given[f.Name] = f.Value
	}
	params, err := suggestSpace(s, h, space, given)
	if err != nil {
		return nil, err
	}
	for _, f := range fixed {
		v, ok := given[f.Name]
		if !ok {
			continue
		}
		delete(given, f.Name)
		dist, err := distOf(space, f.Name, v)
		if err != nil {
			return nil, fmt.Errorf("parameter %q: %w", f.Name, err)
		}
		params = append(params, study.Param{Name: f.Name, Dist: dist, Value: v})
	}
	return params, nil
}

// common are the parameters that all completed and pruned trials have, with one
// distribution, in the order of the first of these trials.
func (h *History) common() []study.SpaceParam {
	var space []study.SpaceParam
	first := true
	for _, t := range h.Trials {
		if t.State != study.Complete && t.State != study.Pruned {
			continue
		}
		if first {
			first = false
			for _, p := range t.Params {
				space = append(space, study.SpaceParam{Name: p.Name, Dist: p.Dist})
			}
			continue
		}
		kept := space[:0]
		for i, s := range space {
			f := finder{s.Name, i}
			if p, ok := f.in(t); ok && sameDist(p.Dist, s.Dist) {
				kept = append(kept, s)
			}
		}
		space = kept
	}
	return space
}

// finder finds a parameter of one trial after another: mostly where the one
// before had it.
type finder struct {
	name string
	at   int
}

func (f *finder) in(t *study.Trial) (*study.Param, bool) {
	if f.at < len(t.Params) && t.Params[f.at].Name == f.name {
		return &t.Params[f.at], true
	}
	for k := range t.Params {
		if t.Params[k].Name == f.name {
			f.at = k
			return &t.Params[k], true
		}
	}
	return nil, false
}

// hashName is the 64-bit FNV-1a hash of a name.
func hashName(name string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 1099511628211
	}
	return h
}

var errNoObjective = fmt.Errorf("sampler: %w: the study has no objective", study.ErrInvalid)

func oneObjective(name string, h *History) error {
	if n := len(h.Directions); n != 1 {
		return fmt.Errorf("%w: sampler %s works on one objective, the study has %d", study.ErrInvalid, name, n)
	}
	return nil
}
