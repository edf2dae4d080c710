package runner

import (
	"time"

	"github.com/foldlog/foldlog/study"
)

// minReserveGrace is the least time that others have between a reservation and
// its claim.
const minReserveGrace = time.Second

// reservations are what one process knows of trials that wait.
type reservations struct {
	// taken are those that a loop of ours is about to claim.
	taken map[study.TrialID]bool
	// seen is since when, on our own clock, a reservation of somebody else has
	// been lying there. A trial that waits has done so since it was made, so that
	// nobody has to look in between.
	seen map[study.TrialID]time.Time
}

// take finds a trial that may be claimed, nil if there is none, and keeps it
// from the other loops until it is released.
func (w *worker) take(snap *study.Snapshot) *study.Trial {
	w.mu.Lock()
	defer w.mu.Unlock()
	for t := range snap.LiveTrials(w.Study, study.Paused) {
		if w.mayGoOn(snap, t) && w.mayTake(t) {
			return t
		}
	}
	var seen map[study.TrialID]time.Time
	for t := range snap.LiveTrials(w.Study, study.Waiting) {
		if !t.Managed || w.held.taken[t.ID] {
			continue
		}
		if t.Template == nil && t.Reserver != w.st.Worker() {
			since, ok := w.held.seen[t.ID]
			if !ok {
				since = time.Now()
			}
			if seen == nil {
				seen = make(map[study.TrialID]time.Time)
			}
			if seen[t.ID] = since; time.Since(since) < max(w.Grace, minReserveGrace) {
				continue
			}
		}
		if w.mayTake(t) {
			return t
		}
	}
	w.held.seen = seen
	return nil
}

// mayTake is called under the lock.
func (w *worker) mayTake(t *study.Trial) bool {
	if w.held.taken[t.ID] {
		return false
	}
	if w.held.taken == nil {
		w.held.taken = make(map[study.TrialID]bool)
	}
	w.held.taken[t.ID] = true
	return true
}

// takeOwn takes the reservation that a loop has just made. The error is errTaken if
// somebody was faster.
func (w *worker) takeOwn(id study.TrialID) (*study.Trial, error) {
	t, err := w.st.Snapshot().Trial(id)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if t.State != study.Waiting || !w.mayTake(t) {
		return nil, errTaken
	}
	return t, nil
}

// release lets others have the trial, if it still waits.
func (w *worker) release(id study.TrialID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.held.taken, id)
}

// mayGoOn tells whether a trial that pauses is to be taken up by the next worker.
func (w *worker) mayGoOn(snap *study.Snapshot, t *study.Trial) bool {
	st, err := snap.Study(w.Study)
	return err == nil && isGivenBack(t) && !OnHold(st, t)
}

// isGivenBack tells whether a trial was stopped with its worker, to go on with
// the next.
func isGivenBack(t *study.Trial) bool {
	a, ok := t.Attr(givenBackAttr)
	return ok && t.Managed && string(a.Value) == "true"
}
