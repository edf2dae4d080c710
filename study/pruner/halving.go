package pruner

import (
	"math"
	"slices"

	"github.com/foldlog/foldlog/study"
)

// DefaultReduction is how many trials compete for one place in the next rung
// of [Halving].
const DefaultReduction = 4

// Halving is asynchronous successive halving, after L. Li and others, "A System
// for Massively Parallel Hyperparameter Tuning" (2020): rungs stand at the steps
// Min, Min*Reduction, Min*Reduction² and so on, and a trial goes on while its
// value at the highest rung it has reached is among the best 1/Reduction of all
// that have reached that rung, but at least the best one. The value at a rung is
// that of the first report from its step on. A trial may be overtaken by others
// later. NaN is never among the best.
type Halving struct {
	// Min is the step of the first rung, 0 for 1.
	Min uint64
	// Reduction is [DefaultReduction] if it is less than 2.
	Reduction int
	// Rate leaves out that many of the lowest rungs.
	Rate int
}

var _ Pruner = Halving{}

// Prune implements [Pruner].
func (p Halving) Prune(h *History, t *study.Trial) bool {
	return p.prune(h, t, func(*study.Trial) bool { return true })
}

// prune lets a trial compete with those that are in its bracket.
func (p Halving) prune(h *History, t *study.Trial, rival func(*study.Trial) bool) bool {
	step, ok := lastStep(t)
	if !ok {
		return false
	}
	reduction := p.reduction()
	rung, ok := p.rung(step)
	if !ok {
		return false
	}
	own, _ := valueFrom(t, rung)
	if math.IsNaN(own) {
		return true
	}
	ahead, all := 0, 1
	for _, o := range h.Trials {
		if o.ID == t.ID || !rival(o) {
			continue
		}
		v, ok := valueFrom(o, rung)
		if !ok {
			continue
		}
		all++
		if h.better(v, own) {
			ahead++
		}
	}
	return ahead >= max(all/reduction, 1)
}

func (p Halving) reduction() int {
	if p.Reduction < 2 {
		return DefaultReduction
	}
	return p.Reduction
}

// rung is the step of the highest rung not above a step.
func (p Halving) rung(step uint64) (uint64, bool) {
	at, factor := max(p.Min, 1), uint64(p.reduction())
	for range p.Rate {
		if at > math.MaxUint64/factor {
			return 0, false
		}
		at *= factor
	}
	if step < at {
		return 0, false
	}
	for at <= step/factor {
		at *= factor
	}
	return at, true
}

// DefaultHyperbandReduction is the reduction of [Hyperband].
const DefaultHyperbandReduction = 3

// Hyperband runs [Halving] in several brackets, after L. Li and others,
// "Hyperband" (2018): each leaves out one rung more at the bottom, so that some
// trials get a longer chance. The study's seed and the number of a trial decide
// its bracket; brackets that stop early get more trials. Trials compete within
// their bracket.
type Hyperband struct {
	// Min is the step of the first rung, 0 for 1.
	Min uint64
	// Max is the step at which a trial is over. 0 takes the largest step that a
	// complete trial has reported; until there is one, nothing is pruned.
	Max uint64
	// Reduction is [DefaultHyperbandReduction] if it is less than 2.
	Reduction int
}

var _ Pruner = Hyperband{}

// Prune implements [Pruner].
func (p Hyperband) Prune(h *History, t *study.Trial) bool {
	shares := p.shares(h)
	if shares == nil {
		return false
	}
	own := bracket(h.Seed, t.Number, shares)
	halving := Halving{Min: p.Min, Reduction: p.reduction(), Rate: own}
	return halving.prune(h, t, func(o *study.Trial) bool { return bracket(h.Seed, o.Number, shares) == own })
}

func (p Hyperband) reduction() int {
	if p.Reduction < 2 {
		return DefaultHyperbandReduction
	}
	return p.Reduction
}

// shares says how many of the trials each bracket gets, relative to the others;
// nil if it is not known how far trials go.
func (p Hyperband) shares(h *History) []uint64 {
	end := p.Max
	if end == 0 {
		for _, t := range h.Trials {
			if step, ok := lastStep(t); ok && t.State == study.Complete {
				end = max(end, step)
			}
		}
	}
	if end == 0 {
		return nil
	}
	end = min(end, maxSteps) // so that shares can be added up
	factor := uint64(p.reduction())
	n := 1
	for at := min(max(p.Min, 1), maxSteps); at <= end/factor; at *= factor {
		n++
	}
	shares := make([]uint64, n)
	for rate := range shares {
		left := n - rate // rungs that this bracket has
		shares[rate] = uint64(math.Ceil(float64(n) * math.Pow(float64(factor), float64(left-1)) / float64(left)))
	}
	return shares
}

// bracket is the bracket of a trial.
func bracket(seed, number uint64, shares []uint64) int {
	sum := uint64(0)
	for _, n := range shares {
		sum += n
	}
	at := mix(seed^mix(number)) % sum
	return slices.IndexFunc(shares, func(n uint64) bool {
		if at < n {
			return true
		}
		at -= n
		return false
	})
}

// mix is the finalizer of splitmix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
