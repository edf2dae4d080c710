package study

import (
	"fmt"
	"slices"
	"sync/atomic"
)

// state is everything that operations have made. It is built of persistent
// structures: copying the struct is a snapshot. See [vec] for the stamp.
type state struct {
	seq     uint64
	stamp   uint64
	studies vec[*Study]
	trials  vec[*Trial]
	names   tree[string, StudyID]
	// pending are the trials whose outbox entry is not done.
	pending tree[TrialID, struct{}]
	// blobs and effects are those of scopes and keys of unknown shape, by
	// their text.
	blobs   tree[string, *StateBlob]
	effects tree[string, TrialID]
}

// envelope is what a record says about an operation besides the operation.
type envelope struct {
	seq, worker, at uint64
}

var stamps atomic.Uint64

// freeze gives up the right to change what exists in place, because somebody
// else may see it from now on.
func (st *state) freeze() { st.stamp = stamps.Add(1) }

func (st *state) study(id StudyID) (*Study, error) {
	if uint64(id) >= uint64(st.studies.len()) {
		return nil, noStudy(id)
	}
	return st.studies.at(int(id)), nil
}

func (st *state) trial(id TrialID) (*Trial, error) {
	if uint64(id) >= uint64(st.trials.len()) {
		return nil, noTrial(id)
	}
	return st.trials.at(int(id)), nil
}

// edit returns a version of t that may be changed.
func (st *state) edit(t *Trial) *Trial {
	if t.stamp == st.stamp {
		return t
	}
	c := *t
	c.stamp = st.stamp
	st.trials.set(st.stamp, int(t.ID), &c)
	return &c
}

func (st *state) editStudy(s *Study) *Study {
	if s.stamp == st.stamp {
		return s
	}
	c := *s
	c.stamp = st.stamp
	st.studies.set(st.stamp, int(s.ID), &c)
	return &c
}

// checkNew checks the identity of a new trial and finds the study it is for.
func (st *state) checkNew(study StudyID, trial TrialID, number uint64) (*Study, error) {
	s, err := st.study(study)
	switch {
	case err != nil:
		return nil, err
	case uint64(trial) != uint64(st.trials.len()):
		return nil, fmt.Errorf("%w: trial %d where %d is next", ErrOutOfOrder, trial, st.trials.len())
	case number != uint64(s.trials.len()):
		return nil, fmt.Errorf("%w: number %d where %d is next in study %d", ErrOutOfOrder, number, s.trials.len(), study)
	}
	return s, nil
}

// addTrial creates a waiting trial whose identity has been checked.
func (st *state) addTrial(s *Study, tpl *Template, env *envelope) *Trial {
	s = st.editStudy(s)
	t := &Trial{
		ID:            TrialID(st.trials.len()),
		Study:         s.ID,
		Number:        uint64(s.trials.len()),
		Template:      tpl,
		CreatedMillis: env.at,
		Attempt:       1,
		stamp:         st.stamp,
	}
	if tpl != nil && tpl.Parent != nil && *tpl.Parent < t.ID {
		t.retryOf, t.hasRetryOf = *tpl.Parent, true
		t.Attempt = st.trials.at(int(*tpl.Parent)).Attempt + 1
	}
	s.trials.push(st.stamp, t.ID)
	s.counts[Waiting]++
	s.live[Waiting].set(st.stamp, t.Number, t.ID)
	st.trials.push(st.stamp, t)
	return t
}

// move changes the state of a trial that is being edited.
func (st *state) move(t *Trial, to State, env *envelope) {
	s := st.editStudy(st.studies.at(int(t.Study)))
	s.counts[t.State]--
	s.counts[to]++
	if t.State < Complete {
		s.live[t.State].delete(st.stamp, t.Number)
	}
	switch {
	case to < Complete:
		s.live[to].set(st.stamp, t.Number, t.ID)
		if to == Running {
			t.StartedMillis = env.at
		}
	default:
		t.EndedMillis = env.at
	}
	t.State = to
}

func stateBlob(b *Blob, env *envelope) *StateBlob {
	return &StateBlob{Blob: b.clone(), Seq: env.seq}
}

func newAttr(key string, value []byte, env *envelope) Attr {
	return Attr{Key: key, Value: slices.Clone(value), Seq: env.seq}
}
