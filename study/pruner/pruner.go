// Package pruner tells which running trials are not worth going on with, from
// what the trials of a study have reported: [Percentile] and [Median] against
// the finished ones, [Halving] and [Hyperband] against all that got as far,
// [Threshold] against fixed bounds, [Patient] against the trial's own past.
package pruner

import (
	"math"

	"github.com/foldlog/foldlog/study"
)

// Pruner decides about trials. It keeps nothing between two calls: what it says
// is a pure function of its own fields, the history and the trial's reports.
// Pruners look at the first values of reports, and work on studies with one
// objective. Pruners are safe for concurrent use.
//
// NaN is a report like any other, worse than every number. A trial all of
// whose reports are NaN is pruned as soon as a pruner looks at it at all.
type Pruner interface {
	// Prune tells whether a trial should stop at its last step. A trial
	// without reports goes on.
	Prune(h *History, t *study.Trial) bool
}

// History is what a pruner knows of a study.
type History struct {
	// Direction is that of the objective.
	Direction study.Direction
	// Seed is the study's seed, 0 without one.
	Seed uint64
	// Trials are all trials that have reported, but those that wait or failed, by
	// number. The trial that is asked about may be among them or not.
	Trials []*study.Trial
}

// NewHistory is the history of a study.
func NewHistory(snap *study.Snapshot, st *study.Study) *History {
	h := &History{}
	if len(st.Config.Directions) > 0 { // a foreign journal may have a study without
		h.Direction = st.Config.Directions[0]
	}
	if st.Config.Seed != nil {
		h.Seed = *st.Config.Seed
	}
	for t := range snap.Trials(st.ID, study.TrialFilter{}) {
		if t.State != study.Waiting && t.State != study.Failed && t.NumReports() > 0 {
			h.Trials = append(h.Trials, t)
		}
	}
	return h
}

// None never prunes.
type None struct{}

var _ Pruner = None{}

// Prune implements [Pruner].
func (None) Prune(*History, *study.Trial) bool { return false }

// better tells whether a is strictly better than b.
func (h *History) better(a, b float64) bool { return study.CompareValues(h.Direction, a, b) < 0 }

// bestOf is the best of some points, NaN if none is a number.
func (h *History) bestOf(points []study.Point) float64 {
	best := math.NaN()
	for _, p := range points {
		if h.better(p.Value, best) {
			best = p.Value
		}
	}
	return best
}

// lastStep is the largest step of a trial's reports.
func lastStep(t *study.Trial) (step uint64, ok bool) {
	for s := range t.Reports() {
		step, ok = max(step, s), true
	}
	return step, ok
}

// valueBy is the value that a trial had reported last by a step. Of reports of
// the same step the one written last counts.
func valueBy(t *study.Trial, step uint64) (v float64, ok bool) {
	var at uint64
	for s, values := range t.Reports() {
		if s <= step && (!ok || s >= at) && len(values) > 0 {
			at, v, ok = s, values[0], true
		}
	}
	return v, ok
}

// valueFrom is the value of a trial at the first step that is not below one.
func valueFrom(t *study.Trial, step uint64) (v float64, ok bool) {
	var at uint64
	for s, values := range t.Reports() {
		if s >= step && (!ok || s <= at) && len(values) > 0 {
			at, v, ok = s, values[0], true
		}
	}
	return v, ok
}
