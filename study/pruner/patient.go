package pruner

import (
	"math"

	"github.com/foldlog/foldlog/study"
)

// DefaultPatience is how many steps [Patient] waits.
const DefaultPatience = 5

// Patient stops a trial that has not become better for some of its own steps:
// the best of the last Patience+1 reported steps is worse than the best before
// them by more than MinDelta. With another pruner inside, both must agree.
type Patient struct {
	// Patience is how many reported steps may pass, less than 1 for [DefaultPatience].
	Patience int
	// MinDelta is how much worse is still as good.
	MinDelta float64
	// Inner is asked too; nil leaves the decision to Patient.
	Inner Pruner
}

var _ Pruner = Patient{}

// Prune implements [Pruner]. Steps whose value is NaN are no better ones.
func (p Patient) Prune(h *History, t *study.Trial) bool {
	patience := p.Patience
	if patience < 1 {
		patience = DefaultPatience
	}
	curve := t.Curve(0)
	if len(curve) <= patience+1 {
		return false
	}
	split := len(curve) - patience - 1
	before, since := h.bestOf(curve[:split]), h.bestOf(curve[split:])
	if math.IsNaN(since) {
		return p.Inner == nil || p.Inner.Prune(h, t)
	}
	delta := p.MinDelta
	if h.Direction == study.Maximize {
		delta = -delta
	}
	if math.IsNaN(before) || !h.better(before+delta, since) {
		return false
	}
	return p.Inner == nil || p.Inner.Prune(h, t)
}

// Threshold stops a trial whose last value is out of bounds or NaN.
type Threshold struct {
	// Lower and Upper are the bounds, both still allowed; nil is none.
	Lower, Upper *float64
	// Warmup is the first step at which trials are stopped.
	Warmup uint64
}

var _ Pruner = Threshold{}

// Prune implements [Pruner].
func (p Threshold) Prune(_ *History, t *study.Trial) bool {
	step, ok := lastStep(t)
	if !ok || step < p.Warmup {
		return false
	}
	v, _ := valueBy(t, step)
	return math.IsNaN(v) || p.Lower != nil && v < *p.Lower || p.Upper != nil && v > *p.Upper
}
