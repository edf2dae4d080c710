package study

import "fmt"

// Strange lists what is in an operation that this version does not know: extra
// fields, and values of a shape that is not ours. All of it is kept; verify
// warns about it. Nil means that everything was understood.
func Strange(op Op) []string {
	w := &warnings{}
	switch op := op.(type) {
	case *CreateStudy:
		w.fields("", op.Extra)
		w.fields("config.", op.Config.Extra)
		w.shape(op.Config.Space != nil && op.Config.Space.Raw != "", "config.space")
	case *CreateTrial:
		w.fields("", op.Extra)
		w.template(op.Template)
	case *Transition:
		w.fields("", op.Extra)
	case *ParamsBatch:
		w.fields("", op.Extra)
		w.params(op.Params)
	case *Report:
		w.fields("", op.Extra)
	case *SetValues:
		w.fields("", op.Extra)
	case *SetError:
		w.fields("", op.Extra)
	case *Heartbeat:
		w.fields("", op.Extra)
	case *SetStudyUserAttr:
		w.fields("", op.Extra)
	case *SetTrialUserAttr:
		w.fields("", op.Extra)
	case *PutState:
		w.fields("", op.Extra)
		w.shape(op.Scope.Kind == ScopeOther, "scope")
		w.blob("blob", &op.Blob)
	default:
		w.managed(op)
	}
	return w.list
}

type warnings struct{ list []string }

func (w *warnings) fields(prefix string, fields []Field) {
	for _, f := range fields {
		w.list = append(w.list, fmt.Sprintf("unknown field %s%.80q", prefix, f.Key))
	}
}

func (w *warnings) shape(strange bool, what string) {
	if strange {
		w.list = append(w.list, "unknown shape of "+what)
	}
}

func (w *warnings) blob(what string, b *Blob) { w.shape(b != nil && b.Raw != nil, what) }

func (w *warnings) template(t *Template) {
	if t == nil {
		return
	}
	w.fields("template.", t.Extra)
	for _, f := range t.Fixed {
		w.shape(f.Value.kind == ValueOther, fmt.Sprintf("fixed value %.80q", f.Name))
	}
}

func (w *warnings) params(ps []Param) {
	for _, p := range ps {
		w.fields("params.", p.Extra)
		_, other := p.Dist.(OtherDist)
		w.shape(other, fmt.Sprintf("distribution of %.80q", p.Name))
		w.shape(p.Value.kind == ValueOther, fmt.Sprintf("value of %.80q", p.Name))
	}
}

func (w *warnings) intent(in *Intent) {
	w.shape(in != nil && (in.Raw != nil || in.Retry != nil && in.Retry.Raw != ""), "intent")
}

func (w *warnings) managed(op Op) {
	switch op := op.(type) {
	case *LifecycleReserve:
		w.fields("", op.Extra)
		w.template(op.Template)
	case *LifecycleAbandon:
		w.fields("", op.Extra)
	case *LifecycleClaim:
		w.fields("", op.Extra)
		w.params(op.Params)
		w.blob("state", op.State)
	case *LifecycleRenew:
		w.fields("", op.Extra)
	case *LifecycleFailStale:
		w.fields("", op.Extra)
		w.intent(op.Intent)
	case *LifecycleFenced:
		w.fields("", op.Extra)
		w.mutation(op.Mutation)
	case *LifecycleTerminal:
		w.fields("", op.Extra)
		w.shape(op.Outcome.Raw != nil, "outcome")
		w.blob("outcome.state", op.Outcome.Blob)
		w.intent(op.Intent)
	case *LifecycleFinalizedState:
		w.fields("", op.Extra)
		w.shape(op.Scope.Kind == ScopeOther, "scope")
		w.blob("blob", &op.Blob)
	default:
		w.outbox(op)
	}
}

func (w *warnings) mutation(m Mutation) {
	switch m := m.(type) {
	case *MutateOther:
		w.shape(true, "mutation")
	case *MutateParams:
		w.params(m.Params)
	case *MutateState:
		w.blob("mutation.blob", &m.Blob)
	}
}

func (w *warnings) outbox(op Op) {
	switch op := op.(type) {
	case *OutboxAdvance:
		w.fields("", op.Extra)
		w.shape(op.Key.Raw != "", "key")
		w.shape(op.PhaseRaw != "", "phase")
		w.blob("sampler_state", op.SamplerState)
		w.blob("scheduler_state", op.SchedulerState)
		strange := op.EffectsRaw != nil
		for _, f := range op.Effects {
			strange = strange || f.Raw != nil || f.Retry != nil && f.Retry.Raw != ""
		}
		w.shape(strange, "effects")
	case *OutboxEffectComplete:
		w.fields("", op.Extra)
		w.shape(op.Key.Raw != "", "key")
	case *OutboxReplacement:
		w.fields("", op.Extra)
		w.shape(op.Effect.Raw != "", "effect")
		w.template(op.Template)
		w.shape(op.Attempt.Raw != "", "attempt")
	}
}
