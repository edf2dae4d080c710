package pruner

import (
	"math"
	"slices"

	"github.com/foldlog/foldlog/study"
)

// DefaultStartup is how many trials with reports must be complete before
// [Percentile] and [Median] prune.
const DefaultStartup = 5

// Percentile stops a trial whose best value so far is worse than all but the
// best Percentile parts in a hundred of the complete trials had at the same
// step: what they had reported last by then. Trials that had reported nothing
// but NaN by then do not count.
type Percentile struct {
	// Percentile is above 0 and at most 100; else it is 50.
	Percentile float64
	// Startup is how many trials must be complete, less than 1 for [DefaultStartup].
	Startup int
	// Warmup is the first step at which trials are stopped.
	Warmup uint64
}

// Median is [Percentile] at 50: it stops a trial whose best value so far is worse
// than the median of the complete trials at the same step.
type Median struct {
	// Startup is how many trials must be complete, less than 1 for [DefaultStartup].
	Startup int
	// Warmup is the first step at which trials are stopped.
	Warmup uint64
}

var (
	_ Pruner = Percentile{}
	_ Pruner = Median{}
)

// Prune implements [Pruner].
func (p Median) Prune(h *History, t *study.Trial) bool {
	return Percentile{50, p.Startup, p.Warmup}.Prune(h, t)
}

// Prune implements [Pruner].
func (p Percentile) Prune(h *History, t *study.Trial) bool {
	step, ok := lastStep(t)
	if !ok || step < p.Warmup {
		return false
	}
	startup, part := p.Startup, p.Percentile
	if startup < 1 {
		startup = DefaultStartup
	}
	if !(part > 0 && part <= 100) {
		part = 50
	}
	complete := 0
	var others []float64
	for _, o := range h.Trials {
		if o.State != study.Complete || o.ID == t.ID {
			continue
		}
		complete++
		if v, ok := valueBy(o, step); ok && !math.IsNaN(v) {
			others = append(others, v)
		}
	}
	if complete < startup {
		return false
	}
	best := h.bestOf(t.Curve(0))
	if math.IsNaN(best) {
		return true
	}
	return len(others) > 0 && h.better(h.quantile(others, part), best)
}

// quantile is the value that part in a hundred of the values are better than,
// between two of them in proportion.
func (h *History) quantile(values []float64, part float64) float64 {
	slices.SortFunc(values, func(a, b float64) int { return study.CompareValues(h.Direction, a, b) })
	at := part / 100 * float64(len(values)-1)
	low := int(at)
	high := min(low+1, len(values)-1)
	if f := at - float64(low); f > 0 && values[low] != values[high] {
		return values[low]*(1-f) + values[high]*f
	}
	return values[low]
}
