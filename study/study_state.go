package study

import "iter"

// Study is one study as a snapshot saw it. It is immutable and may be kept.
type Study struct {
	// ID is journal-wide.
	ID StudyID
	// Config is the stored configuration.
	Config Config
	// CreatedMillis is the creating writer's wall clock, Unix milliseconds.
	CreatedMillis uint64
	// SamplerState and SchedulerState are the seams' states, nil without.
	SamplerState, SchedulerState *StateBlob

	counts   Counts
	reserved uint64
	trials   vec[TrialID]
	live     [3]tree[uint64, TrialID] // Waiting, Running, Paused by number
	attrs    tree[string, Attr]
	asked    tree[string, TrialID] // by askedKey
	stamp    uint64
}

// Counts is the number of trials in every state, indexed by [State].
type Counts [numStates]int

// Total is the number of trials in all.
func (c Counts) Total() (n int) {
	for _, k := range c {
		n += k
	}
	return n
}

// DeletedAttr is the attribute that hides a study and sets its name free, unless
// its value is false or null. The operations of the study stay.
const DeletedAttr = SystemPrefix + "deleted"

// Deleted tells whether the study is hidden: see [DeletedAttr].
func (s *Study) Deleted() bool {
	a, ok := s.attrs.get(DeletedAttr)
	return ok && string(a.Value) != "false" && string(a.Value) != "null"
}

// NumTrials is the number of trials.
func (s *Study) NumTrials() int { return s.trials.len() }

// Counts is the number of trials in every state.
func (s *Study) Counts() Counts { return s.counts }

// Reserved is what counts against a trial budget: reservations that were not
// abandoned and are no replacements.
func (s *Study) Reserved() uint64 { return s.reserved }

// Attr finds a user attribute.
func (s *Study) Attr(key string) (Attr, bool) { return s.attrs.get(key) }

// Attrs yields the user attributes in the order of their keys.
func (s *Study) Attrs() iter.Seq2[string, Attr] { return s.attrs.all() }

// Live yields number and id of the trials that are in a state that is not
// terminal, by number. It costs nothing for the others.
func (s *Study) Live(state State) iter.Seq2[uint64, TrialID] {
	if state >= Complete {
		return func(func(uint64, TrialID) bool) {}
	}
	return s.live[state].all()
}

// FirstLive is the first of [Study.Live].
func (s *Study) FirstLive(state State) (TrialID, bool) {
	if state >= Complete {
		return 0, false
	}
	_, id, ok := s.live[state].first()
	return id, ok
}

// OutboxEntry is what must happen after a managed trial ended.
type OutboxEntry struct {
	// Key names it.
	Key EntryKey
	// Intent is what the end of the trial asked for.
	Intent Intent
	// Phase is the one that comes next; PhaseDone when nothing is left.
	Phase Phase
	// Effects are those of the intent, then those that callbacks found.
	Effects []EffectState
	// Opaque tells that parts were written in a shape that this version does
	// not know, so that there may be more effects than it sees.
	Opaque bool

	stamp uint64
}

// EffectState is one effect and whether it has taken place.
type EffectState struct {
	Effect
	// Done tells that it has.
	Done bool
	// Replacement is the trial that a replacement created, if Done.
	Replacement TrialID
}

// EffectKey names effect i of the entry.
func (e *OutboxEntry) EffectKey(i int) EffectKey {
	return EffectKey{Trial: e.Key.Trial, Epoch: e.Key.Epoch, Effect: e.Effects[i].Name}
}

// find returns the index of an effect, -1 without.
func (e *OutboxEntry) find(name string) int {
	for i := range e.Effects {
		if e.Effects[i].Name == name && e.Effects[i].Raw == nil {
			return i
		}
	}
	return -1
}

// settled tells whether nothing that this version can see is left to do.
func (e *OutboxEntry) settled() bool {
	for i := range e.Effects {
		if !e.Effects[i].Done && e.Effects[i].Raw == nil {
			return false
		}
	}
	return true
}
