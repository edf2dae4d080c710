package study

import (
	"iter"
)

// Snapshot is an immutable, consistent view of a journal's state. It may be
// kept and shared; it never shows what is not settled.
type Snapshot struct{ st state }

// Seq is the sequence number of the last operation seen, 0 without.
func (s *Snapshot) Seq() uint64 { return s.st.seq }

// NumStudies is the number of studies, deleted ones included.
func (s *Snapshot) NumStudies() int { return s.st.studies.len() }

// NumTrials is the number of trials in all studies.
func (s *Snapshot) NumTrials() int { return s.st.trials.len() }

// Study finds a study. The error wraps [ErrNotFound].
func (s *Snapshot) Study(id StudyID) (*Study, error) { return s.st.study(id) }

// StudyByName finds a study that is not deleted by its name, the first if a
// journal has several of that name.
func (s *Snapshot) StudyByName(name string) (*Study, bool) {
	id, ok := s.st.names.get(name)
	if !ok {
		return nil, false
	}
	return s.st.studies.at(int(id)), true
}

// Studies yields the studies in the order of creation, deleted ones too.
func (s *Snapshot) Studies() iter.Seq[*Study] {
	return func(yield func(*Study) bool) {
		for _, st := range s.st.studies.from(0) {
			if !yield(st) {
				return
			}
		}
	}
}

// Trial finds a trial. The error wraps [ErrNotFound].
func (s *Snapshot) Trial(id TrialID) (*Trial, error) { return s.st.trial(id) }

// TrialByNumber finds a trial of a study by its ordinal. The error wraps
// [ErrNotFound].
func (s *Snapshot) TrialByNumber(study StudyID, number uint64) (*Trial, error) {
	st, err := s.st.study(study)
	if err != nil {
		return nil, err
	}
	if number >= uint64(st.trials.len()) {
		return nil, &NumberError{Study: study, Number: number}
	}
	return s.st.trials.at(int(st.trials.at(int(number)))), nil
}

// TrialFilter chooses trials of a study. The zero value chooses all.
type TrialFilter struct {
	// States are the states wanted; empty means any.
	States []State
	// From is the first number wanted, for paging: pass the last number seen
	// plus one.
	From uint64
	// Limit is how many are wanted at most, 0 without a limit.
	Limit int
}

func (f TrialFilter) mask() (m uint8) {
	for _, s := range f.States {
		m |= 1 << s
	}
	if m == 0 {
		m = 1<<numStates - 1
	}
	return m
}

// Trials yields trials of a study by number, nothing if there is no such
// study. It builds nothing: trials are handed out as they are.
func (s *Snapshot) Trials(study StudyID, filter TrialFilter) iter.Seq[*Trial] {
	return func(yield func(*Trial) bool) {
		st, err := s.st.study(study)
		if err != nil || filter.From >= uint64(st.trials.len()) {
			return
		}
		mask, n := filter.mask(), 0
		for _, id := range st.trials.from(int(filter.From)) {
			t := s.st.trials.at(int(id))
			if mask&(1<<t.State) == 0 {
				continue
			}
			if !yield(t) {
				return
			}
			if n++; n == filter.Limit {
				return
			}
		}
	}
}

// LiveTrials yields the trials of a study in one state that is not terminal, by
// number, at no cost for the others.
func (s *Snapshot) LiveTrials(study StudyID, state State) iter.Seq[*Trial] {
	return func(yield func(*Trial) bool) {
		st, err := s.st.study(study)
		if err != nil {
			return
		}
		for _, id := range st.Live(state) {
			if !yield(s.st.trials.at(int(id))) {
				return
			}
		}
	}
}

// State returns the blob of a scope, nil without.
func (s *Snapshot) State(scope Scope) *StateBlob {
	switch scope.Kind {
	case ScopeSampler:
		if st, err := s.st.study(StudyID(scope.ID)); err == nil {
			return st.SamplerState
		}
	case ScopeScheduler:
		if st, err := s.st.study(StudyID(scope.ID)); err == nil {
			return st.SchedulerState
		}
	case ScopeTrial:
		if t, err := s.st.trial(TrialID(scope.ID)); err == nil {
			return t.Blob
		}
	default:
		b, _ := s.st.blobs.get(scope.Raw)
		return b
	}
	return nil
}

// NumPending is the number of outbox entries that are not done.
func (s *Snapshot) NumPending() int { return s.st.pending.len() }

// Pending yields the outbox entries that are not done, by trial.
func (s *Snapshot) Pending() iter.Seq2[*Trial, *OutboxEntry] {
	return func(yield func(*Trial, *OutboxEntry) bool) {
		for id := range s.st.pending.all() {
			if t := s.st.trials.at(int(id)); !yield(t, t.Outbox) {
				return
			}
		}
	}
}

// Lineage returns a trial and the trials that it repeats, newest first: itself,
// its parent, that one's parent. The error wraps [ErrNotFound].
func (s *Snapshot) Lineage(id TrialID) ([]*Trial, error) {
	t, err := s.st.trial(id)
	if err != nil {
		return nil, err
	}
	chain := []*Trial{t}
	for {
		parent, ok := t.Parent()
		if !ok || parent >= t.ID {
			return chain, nil
		}
		t = s.st.trials.at(int(parent))
		chain = append(chain, t)
	}
}
