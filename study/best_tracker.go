package study

import (
	"math"
	"slices"
)

// BestTracker follows the best trial of a study of one objective, as
// [Snapshot.Best] has it, at the cost of what is new: each look takes in the
// trials that were created or have ended since the last one. The zero value has
// seen nothing. One tracker is for one study, and for snapshots that grow.
type BestTracker struct {
	next uint64 // the first number not seen
	open map[uint64]struct{}
	best *Trial
}

// Best returns the best completed trial, nil if there is none or the study has
// several objectives.
func (b *BestTracker) Best(snap *Snapshot, study StudyID) *Trial {
	st, err := snap.Study(study)
	if err != nil || len(st.Config.Directions) != 1 {
		return nil
	}
	if b.open == nil {
		b.open = make(map[uint64]struct{})
	}
	for number := range b.open {
		if t, err := snap.TrialByNumber(study, number); err == nil && t.State.Terminal() {
			delete(b.open, number)
			b.take(st, t)
		}
	}
	for t := range snap.Trials(study, TrialFilter{From: b.next}) {
		b.next = t.Number + 1
		if !t.State.Terminal() {
			b.open[t.Number] = struct{}{}
			continue
		}
		b.take(st, t)
	}
	return b.best
}

func (b *BestTracker) take(st *Study, t *Trial) {
	if t.State != Complete || len(t.Values) != 1 || len(st.Config.Directions) != 1 || slices.ContainsFunc(t.Values, math.IsNaN) {
		return
	}
	if b.best != nil {
		c := CompareValues(st.Config.Directions[0], t.Values[0], b.best.Values[0])
		if c > 0 || c == 0 && t.Number > b.best.Number {
			return
		}
	}
	b.best = t
}
