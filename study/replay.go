package study

import (
	"fmt"

	"github.com/foldlog/foldlog/journal"
)

// Replay folds the records of a journal and keeps count of what it could not
// tell the meaning of: unknown fields, and inner shapes that are kept verbatim.
// It is what verify and inspect look through. Not for concurrent use.
type Replay struct {
	d     Decoder
	fold  *Fold
	seen  map[oddity]*sighted
	order []oddity
	more  int
	now   uint64 // the operation being looked at
}

var _ journal.Applier = (*Replay)(nil)

// oddity is one sort of thing to note. Word is "unknown field" or "unknown
// shape", name says of what.
type oddity struct{ word, name string }

type sighted struct {
	ops         int
	first, last uint64
}

// maxOddities bounds the memory of a replay whatever it is fed.
const maxOddities = 100

// NewReplay returns a replay of an empty journal.
func NewReplay() *Replay {
	r := new(Replay)
	r.Reset()
	return r
}

// Apply implements [journal.Applier]. The error is a [*ReplayError].
func (r *Replay) Apply(rec *journal.Record) error {
	op, err := applyRecord(&r.d, r.fold, rec)
	if err != nil {
		return err
	}
	r.now = rec.Seq
	r.look(op)
	return nil
}

// Reset implements [journal.Applier].
func (r *Replay) Reset() {
	r.fold = NewFold()
	r.seen, r.order, r.more = map[oddity]*sighted{}, nil, 0
}

// Snapshot is the state after the records so far.
func (r *Replay) Snapshot() *Snapshot { return r.fold.Snapshot() }

// Notes says what was odd, a line for each sort of thing in the order of its
// first sighting: `3 operations have an unknown field "x" (first: operation
// 12)`.
func (r *Replay) Notes() []string {
	var notes []string
	for _, o := range r.order {
		s := r.seen[o]
		subject, where := fmt.Sprintf("%d operations have", s.ops), fmt.Sprintf("first: operation %d", s.first)
		if s.ops == 1 {
			subject, where = "1 operation has", fmt.Sprintf("operation %d", s.first)
		}
		notes = append(notes, fmt.Sprintf("%s an %s %s (%s)", subject, o.word, o.name, where))
	}
	if r.more > 0 {
		notes = append(notes, fmt.Sprintf("%d more unknown fields and shapes of other names", r.more))
	}
	return notes
}

func (r *Replay) note(word, name string) {
	o := oddity{word, name}
	s := r.seen[o]
	switch {
	case s == nil && len(r.order) == maxOddities:
		r.more++
		return
	case s == nil:
		s = &sighted{first: r.now}
		r.seen[o] = s
		r.order = append(r.order, o)
	case s.last == r.now:
		return
	}
	s.ops++
	s.last = r.now
}

func (r *Replay) extra(fields []Field) {
	for _, f := range fields {
		if f.Key != RequestField {
			r.note("unknown field", fmt.Sprintf("%.80q", f.Key))
		}
	}
}

// shape notes something that is verbatim.
func (r *Replay) shape(opaque bool, name string) {
	if opaque {
		r.note("unknown shape", "of "+name)
	}
}

// look notes what is odd about an operation.
func (r *Replay) look(op Op) {
	switch op := op.(type) {
	case *CreateStudy:
		r.extra(op.Extra)
		r.extra(op.Config.Extra)
		r.space(op.Config.Space)
	case *CreateTrial:
		r.extra(op.Extra)
		r.template(op.Template)
	case *Transition:
		r.extra(op.Extra)
	case *ParamsBatch:
		r.extra(op.Extra)
		r.params(op.Params)
	case *Report:
		r.extra(op.Extra)
	case *SetValues:
		r.extra(op.Extra)
	case *SetError:
		r.extra(op.Extra)
	case *Heartbeat:
		r.extra(op.Extra)
	case *SetStudyUserAttr:
		r.extra(op.Extra)
	case *SetTrialUserAttr:
		r.extra(op.Extra)
	case *PutState:
		r.extra(op.Extra)
		r.shape(op.Scope.Kind == ScopeOther, "scope")
		r.blob(&op.Blob)
	default:
		r.lookManaged(op)
	}
}

func (r *Replay) lookManaged(op Op) {
	switch op := op.(type) {
	case *LifecycleReserve:
		r.extra(op.Extra)
		r.template(op.Template)
	case *LifecycleAbandon:
		r.extra(op.Extra)
	case *LifecycleClaim:
		r.extra(op.Extra)
		r.params(op.Params)
		r.blob(op.State)
	case *LifecycleRenew:
		r.extra(op.Extra)
	case *LifecycleFailStale:
		r.extra(op.Extra)
		r.intent(op.Intent)
	case *LifecycleFenced:
		r.extra(op.Extra)
		r.mutation(op.Mutation)
	case *LifecycleTerminal:
		r.extra(op.Extra)
		r.shape(op.Outcome.Raw != nil, "outcome")
		r.blob(op.Outcome.Blob)
		r.intent(op.Intent)
	case *LifecycleFinalizedState:
		r.extra(op.Extra)
		r.shape(op.Scope.Kind == ScopeOther, "scope")
		r.blob(&op.Blob)
	case *OutboxAdvance:
		r.extra(op.Extra)
		r.advance(op)
	case *OutboxEffectComplete:
		r.extra(op.Extra)
		r.shape(op.Key.Raw != "", "effect key")
	case *OutboxReplacement:
		r.extra(op.Extra)
		r.template(op.Template)
		r.shape(op.Effect.Raw != "", "effect key")
		r.shape(op.Attempt.Raw != "", "attempt")
	}
}

func (r *Replay) advance(op *OutboxAdvance) {
	r.shape(op.Key.Raw != "", "outbox key")
	r.shape(op.PhaseRaw != "", "phase")
	r.blob(op.SamplerState)
	r.blob(op.SchedulerState)
	r.shape(op.EffectsRaw != nil, "effects")
	for i := range op.Effects {
		r.shape(op.Effects[i].Raw != nil, "effect")
		r.attempt(op.Effects[i].Retry)
	}
}

func (r *Replay) mutation(m Mutation) {
	switch m := m.(type) {
	case *MutateParams:
		r.params(m.Params)
	case *MutateState:
		r.blob(&m.Blob)
	case *MutateOther:
		r.shape(true, "mutation")
	}
}

func (r *Replay) intent(in *Intent) {
	if in != nil {
		r.shape(in.Raw != nil, "intent")
		r.attempt(in.Retry)
	}
}

func (r *Replay) attempt(a *Attempt) {
	if a != nil {
		r.shape(a.Raw != "", "attempt")
	}
}

func (r *Replay) blob(b *Blob) {
	if b != nil {
		r.shape(b.Raw != nil, "state blob")
	}
}

func (r *Replay) template(t *Template) {
	if t == nil {
		return
	}
	r.extra(t.Extra)
	for _, f := range t.Fixed {
		r.shape(f.Value.Kind() == ValueOther, "value")
	}
}

func (r *Replay) params(ps []Param) {
	for i := range ps {
		r.extra(ps[i].Extra)
		r.dist(ps[i].Dist)
		r.shape(ps[i].Value.Kind() == ValueOther, "value")
	}
}

func (r *Replay) space(s *Space) {
	if s == nil {
		return
	}
	r.shape(s.Raw != "", "search space")
	for _, p := range s.Params {
		r.dist(p.Dist)
	}
}

func (r *Replay) dist(d Distribution) {
	_, other := d.(OtherDist)
	r.shape(other, "distribution")
}
