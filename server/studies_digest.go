package server

import (
	"sync"

	"github.com/foldlog/foldlog/study"
)

// digests are what a list says of the studies of a journal and no snapshot has at
// hand. They follow the journal at the cost of what is new.
type digests struct {
	// failed hears of each trial that has failed, at least once. It is not changed.
	failed func(*study.Study, *study.Trial)

	mu  sync.Mutex
	all map[study.StudyID]*studyDigest
}

// studyDigest has looked at a study up to an operation of its journal.
type studyDigest struct {
	seq  uint64
	best study.BestTracker
	// seen counts the trials, live are those that could still change.
	seen int
	live []study.TrialID
	// last is the time of the latest event of any trial, in milliseconds.
	last int64
}

// of is the best trial, nil if there is none, and the time of the latest event.
func (d *digests) of(snap *study.Snapshot, st *study.Study) (best *study.Trial, lastMS int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	one := d.all[st.ID]
	if one == nil || snap.Seq() < one.seq {
		one = &studyDigest{}
	}
	if d.all == nil {
		d.all = map[study.StudyID]*studyDigest{}
	}
	if old := d.all[st.ID]; old == nil || old.seq <= snap.Seq() {
		d.all[st.ID] = one
	}
	one.look(snap, st, d.failed)
	return one.best.Best(snap, st.ID), max(one.last, int64(st.CreatedMillis))
}

func (d *digests) reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = nil
}

func (d *studyDigest) look(snap *study.Snapshot, st *study.Study, failed func(*study.Study, *study.Trial)) {
	take := func(t *study.Trial) {
		if d.take(t); t.State == study.Failed && failed != nil {
			failed(st, t)
		}
	}
	for _, id := range d.live {
		if t, err := snap.Trial(id); err == nil {
			take(t)
		}
	}
	for t := range snap.Trials(st.ID, study.TrialFilter{From: uint64(d.seen)}) {
		take(t)
	}
	d.live = d.live[:0]
	for _, state := range []study.State{study.Waiting, study.Running, study.Paused} {
		for _, id := range st.Live(state) {
			d.live = append(d.live, id)
		}
	}
	d.seq, d.seen = snap.Seq(), st.NumTrials()
}

func (d *studyDigest) take(t *study.Trial) {
	d.last = max(d.last, int64(t.EndedMillis), int64(t.StartedMillis), int64(t.HeartbeatMillis), int64(t.CreatedMillis))
}
