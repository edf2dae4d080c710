package analysis

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/foldlog/foldlog/study"
)

// Defaults of [ImportanceOptions].
const (
	// DefaultTrees is how many trees fANOVA has, DefaultPermutationTrees the
	// permutations.
	DefaultTrees            = 64
	DefaultPermutationTrees = 24
	// MaxTrees is the most there may be.
	MaxTrees = 10_000
)

// Method is how importance is computed.
type Method int

// The methods.
const (
	// FANOVA takes the variance of a random forest over the whole space apart:
	// an importance is the part that a parameter makes by itself, averaged over
	// all others (Hutter, Hoos and Leyton-Brown 2014). The marginals are exact.
	FANOVA Method = iota
	// Permutation is how much worse the forest predicts trials that it was not
	// grown from when the values of a parameter are exchanged among them. It
	// has interactions in it, and is about where the trials are.
	Permutation
)

// String is the method's name on a command line.
func (m Method) String() string {
	switch m {
	case FANOVA:
		return "fanova"
	case Permutation:
		return "permutation"
	}
	return fmt.Sprintf("Method(%d)", int(m))
}

// ImportanceOptions configures [Importances]. The zero value is the default.
type ImportanceOptions struct {
	// Method is how it is computed.
	Method Method
	// Objective is which value it is about, from 0.
	Objective int
	// Trees is how many trees the forest has; 0 is the default of the method.
	Trees int
	// Seed decides what is random.
	Seed uint64
	// Ranks looks at the ranks of the values and not at the values, so that a
	// few trials that went astray do not outweigh all others.
	Ranks bool
	// Most is how many trials are looked at, evenly spread over all if there are
	// more; 0 is all.
	Most int
}

// Importance is how much one parameter matters.
type Importance struct {
	// Param is its name.
	Param string
	// Share is its part of all that parameters make by themselves: the shares
	// sum to 1, unless nothing matters and all are 0.
	Share float64
	// Fraction is its part of the whole variance. What the fractions of FANOVA
	// leave of 1 are interactions; those of Permutation may sum to more.
	Fraction float64
	// Spread is the standard deviation of the fraction among the trees.
	Spread float64
	// Trials is how many of the trials have the parameter.
	Trials int
}

// ImportanceReport is the answer of [Importances].
type ImportanceReport struct {
	// Params are the parameters, the most important first.
	Params []Importance
	// Trials is how many trials it was computed from, Of how many there were, and
	// Left how many more completed ones have a value that is NaN or infinite.
	Trials, Of, Left int
	// Explained is the part of the variance that the forest predicts for trials
	// it has not seen (R²). If it is low, the importances mean little. NaN if
	// the values are all the same.
	Explained float64
}

// Importances says how much each parameter of a study matters to an objective.
//
// It is computed from completed trials with a finite value. Numbers count in the
// scale that they are drawn in, a logarithmic one too, and from end to end of
// their ranges; choices have no order. A parameter that some trials lack counts
// for what its values change where it is there, times how often that is; that it
// is there at all counts for the parameter that decides so. The error wraps
// [ErrTooFew] if fewer than two trials are left, and [ErrOptions].
func Importances(snap *study.Snapshot, st *study.Study, o ImportanceOptions) (*ImportanceReport, error) {
	if err := o.settle(st); err != nil {
		return nil, err
	}
	report := new(ImportanceReport)
	var trials []*study.Trial
	var y []float64
	for t := range snap.Trials(st.ID, study.TrialFilter{States: []study.State{study.Complete}}) {
		if v, ok := result(t, o.Objective); ok {
			trials, y = append(trials, t), append(y, v)
		} else {
			report.Left++
		}
	}
	report.Of = len(trials)
	if o.Most > 0 && len(trials) > o.Most {
		for i := range o.Most {
			k := i * len(trials) / o.Most
			trials[i], y[i] = trials[k], y[k]
		}
		trials, y = trials[:o.Most], y[:o.Most]
	}
	if report.Trials = len(trials); len(trials) < 2 {
		return nil, fmt.Errorf("importance: %w: %d completed trials with a finite value", ErrTooFew, len(trials))
	}
	var columns []*column
	for _, p := range readParams(st, trials) {
		columns = append(columns, p.column())
	}
	scale(y, o.Ranks)
	f := grow(columns, y, o.Trees, o.leaf(), o.Seed)
	report.Explained = f.explained()
	report.Params = f.importances(o.apart(f))
	return report, nil
}

func (o *ImportanceOptions) settle(st *study.Study) error {
	switch {
	case o.Method != FANOVA && o.Method != Permutation:
		return fmt.Errorf("importance: %w: %v", ErrOptions, o.Method)
	case o.Objective < 0 || o.Objective >= len(st.Config.Directions):
		return fmt.Errorf("importance: %w: objective %d of %d", ErrOptions, o.Objective, len(st.Config.Directions))
	case o.Trees < 0 || o.Trees > MaxTrees:
		return fmt.Errorf("importance: %w: %d trees", ErrOptions, o.Trees)
	case o.Trees == 0 && o.Method == FANOVA:
		o.Trees = DefaultTrees
	case o.Trees == 0:
		o.Trees = DefaultPermutationTrees
	}
	return nil
}

// leaf is the least weight of a leaf. Permutations need predictions, which are
// better with some trials in each leaf.
func (o *ImportanceOptions) leaf() int {
	if o.Method == Permutation {
		return 3
	}
	return 1
}

// scale centres values and brings them into a range in which squares do not
// overflow; or it puts their ranks in their place, ties sharing one.
func scale(y []float64, ranks bool) {
	if ranks {
		order := make([]int, len(y))
		for i := range order {
			order[i] = i
		}
		slices.SortFunc(order, func(a, b int) int { return cmp.Compare(y[a], y[b]) })
		rank := make([]float64, len(y))
		for i := 0; i < len(order); {
			j := i + 1
			for j < len(order) && y[order[j]] == y[order[i]] {
				j++
			}
			for _, k := range order[i:j] {
				rank[k] = float64(i+j-1) / 2
			}
			i = j
		}
		copy(y, rank)
	}
	lo, hi := slices.Min(y), slices.Max(y)
	half := halfRange(lo, hi)
	if half == 0 {
		clear(y)
		return
	}
	mean := 0.0
	for i := range y {
		y[i] = halfRange(lo, y[i])/half - 1
		mean += y[i] / float64(len(y))
	}
	for i := range y {
		y[i] -= mean
	}
}

// apart computes for every tree which part of the variance each column makes. A
// tree without variance has nil.
func (o *ImportanceOptions) apart(f *forest) [][]float64 {
	all := make([][]float64, len(f.trees))
	parallel(len(f.trees), func() func(int) {
		s := newSurface(f)
		return func(i int) {
			parts := make([]float64, len(f.columns))
			var whole float64
			if o.Method == FANOVA {
				whole = s.variances(f.trees[i], parts)
			} else {
				whole = f.exchange(f.trees[i], rand.New(rand.NewPCG(o.Seed, uint64(i)|1<<63)), parts)
			}
			if !(whole > 1e-12) {
				return
			}
			for k := range parts {
				parts[k] /= whole
			}
			all[i] = parts
		}
	})
	return all
}

// importances sums the parts of the trees up, the greatest first.
func (f *forest) importances(apart [][]float64) []Importance {
	list := make([]Importance, len(f.columns))
	sum := 0.0
	for i, c := range f.columns {
		var m moments
		for _, parts := range apart {
			if parts != nil {
				m.add(parts[i], 1)
			}
		}
		list[i] = Importance{Param: c.name, Trials: c.trials, Fraction: max(m.mean, 0), Spread: math.Sqrt(m.variance())}
		sum += list[i].Fraction
	}
	if sum > 0 {
		for i := range list {
			list[i].Share = list[i].Fraction / sum
		}
	}
	slices.SortStableFunc(list, func(a, b Importance) int { return cmp.Compare(b.Share, a.Share) })
	return list
}
