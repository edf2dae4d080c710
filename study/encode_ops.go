package study

import "fmt"

func (op *CreateStudy) encode(e *encoder) {
	e.uintField("study", uint64(op.Study))
	e.name("config")
	e.config(&op.Config)
	e.extra(op.Extra)
}

func (e *encoder) config(c *Config) {
	e.lit(`{"name":`)
	e.str(c.Name)
	e.lit(`,"directions":[`)
	for i, d := range c.Directions {
		if i > 0 {
			e.b = append(e.b, ',')
		}
		e.str(d.String())
	}
	e.lit(`],"seed":`)
	if c.Seed == nil {
		e.lit("null")
	} else {
		e.uint(*c.Seed)
	}
	e.name("space")
	e.space(c.Space)
	e.name("resource_unit")
	if c.ResourceUnit == "" {
		e.lit("null")
	} else {
		e.str(c.ResourceUnit)
	}
	e.name("metric_names")
	e.names(c.MetricNames)
	e.extra(c.Extra)
	e.b = append(e.b, '}')
}

func (e *encoder) space(s *Space) {
	switch {
	case s == nil:
		e.lit("null")
		return
	case s.Raw != "":
		e.raw([]byte(s.Raw))
		return
	}
	e.b = append(e.b, '[')
	for i, p := range s.Params {
		if i > 0 {
			e.b = append(e.b, ',')
		}
		e.lit(`{"name":`)
		e.str(p.Name)
		e.name("dist")
		e.dist(p.Dist)
		if len(p.When) > 0 {
			e.name("when")
			e.conditions(p.When)
		}
		e.b = append(e.b, '}')
	}
	e.b = append(e.b, ']')
}

func (e *encoder) names(names []string) {
	if names == nil {
		e.lit("null")
		return
	}
	e.b = append(e.b, '[')
	for i, n := range names {
		if i > 0 {
			e.b = append(e.b, ',')
		}
		e.str(n)
	}
	e.b = append(e.b, ']')
}

func (op *CreateTrial) encode(e *encoder) {
	e.created(op.Study, op.Trial, op.Number, op.Template)
	e.extra(op.Extra)
}

func (e *encoder) created(study StudyID, trial TrialID, number uint64, t *Template) {
	e.uintField("study", uint64(study))
	e.uintField("trial", uint64(trial))
	e.uintField("number", number)
	e.template(t)
}

func (op *Transition) encode(e *encoder) {
	e.uintField("trial", uint64(op.Trial))
	e.state("from", op.From)
	e.state("to", op.To)
	e.extra(op.Extra)
}

func (op *ParamsBatch) encode(e *encoder) {
	e.uintField("trial", uint64(op.Trial))
	e.name("params")
	e.params(op.Params)
	e.extra(op.Extra)
}

func (op *Report) encode(e *encoder) {
	e.uintField("trial", uint64(op.Trial))
	e.uintField("step", op.Step)
	e.name("values")
	e.floats(op.Values)
	e.extra(op.Extra)
}

func (op *SetValues) encode(e *encoder) {
	e.uintField("trial", uint64(op.Trial))
	e.name("values")
	e.floats(op.Values)
	e.extra(op.Extra)
}

func (op *SetError) encode(e *encoder) {
	e.uintField("trial", uint64(op.Trial))
	e.strField("message", op.Message)
	e.extra(op.Extra)
}

func (op *Heartbeat) encode(e *encoder) {
	e.uintField("trial", uint64(op.Trial))
	e.uintField("at_millis", op.AtMillis)
	e.extra(op.Extra)
}

func (op *SetStudyUserAttr) encode(e *encoder) {
	e.uintField("study", uint64(op.Study))
	e.strField("key", op.Key)
	e.name("value")
	e.raw(op.Value)
	e.extra(op.Extra)
}

func (op *SetTrialUserAttr) encode(e *encoder) {
	e.uintField("trial", uint64(op.Trial))
	e.strField("key", op.Key)
	e.name("value")
	e.raw(op.Value)
	e.extra(op.Extra)
}

func (op *PutState) encode(e *encoder) {
	e.name("scope")
	e.scope(op.Scope)
	e.name("blob")
	e.blob(&op.Blob)
	e.extra(op.Extra)
}

func (op *LifecycleReserve) encode(e *encoder) {
	e.created(op.Study, op.Trial, op.Number, op.Template)
	e.name("managed")
	e.lit("true")
	e.extra(op.Extra)
}

func (op *LifecycleAbandon) encode(e *encoder) {
	e.uintField("trial", uint64(op.Trial))
	e.strField("reason", op.Reason)
	e.extra(op.Extra)
}

func (op *LifecycleClaim) encode(e *encoder) {
	e.uintField("trial", uint64(op.Trial))
	e.state("from", op.From)
	e.uintField("worker", op.Worker)
	e.uintField("heartbeat_millis", op.HeartbeatMillis)
	e.uintField("epoch", op.Epoch)
	e.uintField("heartbeat_seq", op.HeartbeatSeq)
	e.name("params")
	e.params(op.Params)
	e.blobField("state", op.State)
	e.extra(op.Extra)
}

func (e *encoder) fence(trial TrialID, worker, epoch uint64) {
	e.uintField("trial", uint64(trial))
	e.uintField("worker", worker)
	e.uintField("epoch", epoch)
}

func (op *LifecycleRenew) encode(e *encoder) {
	e.fence(op.Trial, op.Worker, op.Epoch)
	e.uintField("heartbeat_millis", op.HeartbeatMillis)
	e.uintField("heartbeat_seq", op.HeartbeatSeq)
	e.extra(op.Extra)
}

func (op *LifecycleFailStale) encode(e *encoder) {
	e.uintField("trial", uint64(op.Trial))
	e.state("observed_state", op.ObservedState)
	e.uintField("owner", op.Owner)
	e.uintField("epoch", op.Epoch)
	e.uintField("heartbeat_millis", op.HeartbeatMillis)
	e.uintField("heartbeat_seq", op.HeartbeatSeq)
	e.uintField("now_millis", op.NowMillis)
	e.uintField("grace_millis", op.GraceMillis)
	e.strField("reason", op.Reason)
	e.intent(op.Intent)
	e.extra(op.Extra)
}

func (op *LifecycleFenced) encode(e *encoder) {
	e.fence(op.Trial, op.Worker, op.Epoch)
	e.name("mutation")
	if op.Mutation == nil {
		e.fail(fmt.Errorf("%w: no mutation", ErrInvalid))
		return
	}
	op.Mutation.encodeMutation(e)
	e.extra(op.Extra)
}

func (m *MutateReport) encodeMutation(e *encoder) {
	e.lit(`{"Report":{"step":`)
	e.uint(m.Step)
	e.name("values")
	e.floats(m.Values)
	e.lit("}}")
}

func (m *MutateParams) encodeMutation(e *encoder) {
	e.lit(`{"ParamsBatch":{"params":`)
	e.params(m.Params)
	e.lit("}}")
}

func (m *MutateUserAttr) encodeMutation(e *encoder) {
	e.lit(`{"SetUserAttr":{"key":`)
	e.str(m.Key)
	e.name("value")
	e.raw(m.Value)
	e.lit("}}")
}

func (m *MutateState) encodeMutation(e *encoder) {
	e.lit(`{"PutState":{"blob":`)
	e.blob(&m.Blob)
	e.lit("}}")
}

func (m *MutateError) encodeMutation(e *encoder) {
	e.lit(`{"SetError":{"message":`)
	e.str(m.Message)
	e.lit("}}")
}

func (m *MutatePause) encodeMutation(e *encoder) { e.lit(`"Pause"`) }

func (m *MutateOther) encodeMutation(e *encoder) { e.raw(m.Raw) }

func (op *LifecycleTerminal) encode(e *encoder) {
	e.fence(op.Trial, op.Worker, op.Epoch)
	e.name("outcome")
	e.outcome(&op.Outcome)
	e.intent(op.Intent)
	e.extra(op.Extra)
}

func (e *encoder) outcome(o *Outcome) {
	switch {
	case o.Raw != nil:
		e.raw(o.Raw)
		return
	case o.State == Complete:
		e.lit(`{"Complete":{"values":`)
		e.floats(o.Values)
	case o.State == Failed:
		e.lit(`{"Failed":{"error":`)
		e.str(o.Error)
	case o.State == Pruned && o.Blob == nil:
		e.lit(`{"Pruned":{}}`)
		return
	case o.State == Pruned:
		e.lit(`{"Pruned":{"state":`)
		e.blob(o.Blob)
		e.lit("}}")
		return
	default:
		e.fail(fmt.Errorf("%w: %v is no outcome", ErrInvalid, o.State))
		return
	}
	e.blobField("state", o.Blob)
	e.lit("}}")
}

func (e *encoder) intent(in *Intent) {
	if in == nil {
		return
	}
	e.name("intent")
	switch {
	case in.Raw != nil:
		e.raw(in.Raw)
	case in.Retry == nil:
		e.lit(`{"retry":null}`)
	default:
		e.lit(`{"retry":`)
		e.attempt(in.Retry)
		e.b = append(e.b, '}')
	}
}

func (op *LifecycleFinalizedState) encode(e *encoder) {
	e.uintField("trial", uint64(op.Trial))
	e.name("scope")
	e.scope(op.Scope)
	e.name("blob")
	e.blob(&op.Blob)
	e.extra(op.Extra)
}

func (e *encoder) entryKey(k EntryKey) {
	if k.Raw != "" {
		e.raw([]byte(k.Raw))
		return
	}
	e.lit(`{"trial":`)
	e.uint(uint64(k.Trial))
	e.uintField("epoch", k.Epoch)
	e.b = append(e.b, '}')
}

func (e *encoder) effectKey(k EffectKey) {
	if k.Raw != "" {
		e.raw([]byte(k.Raw))
		return
	}
	e.lit(`{"trial":`)
	e.uint(uint64(k.Trial))
	e.uintField("epoch", k.Epoch)
	e.strField("effect", k.Effect)
	e.b = append(e.b, '}')
}

func (op *OutboxAdvance) encode(e *encoder) {
	e.name("key")
	e.entryKey(op.Key)
	e.name("phase")
	switch {
	case op.PhaseRaw != "":
		e.raw([]byte(op.PhaseRaw))
	case op.Phase > PhaseEffects:
		e.fail(fmt.Errorf("%w: phase %v cannot be committed", ErrInvalid, op.Phase))
	default:
		e.str(op.Phase.String())
	}
	e.blobField("sampler_state", op.SamplerState)
	e.blobField("scheduler_state", op.SchedulerState)
	e.name("effects")
	if op.EffectsRaw != nil {
		e.raw(op.EffectsRaw)
	} else {
		e.effects(op.Effects)
	}
	e.extra(op.Extra)
}

func (e *encoder) effects(fx []Effect) {
	e.b = append(e.b, '[')
	for i := range fx {
		if i > 0 {
			e.b = append(e.b, ',')
		}
		e.effect(&fx[i])
	}
	e.b = append(e.b, ']')
}

func (e *encoder) effect(f *Effect) {
	if f.Raw != nil {
		e.raw(f.Raw)
		return
	}
	e.lit(`{"name":`)
	e.str(f.Name)
	if f.Retry != nil {
		e.name("retry")
		e.attempt(f.Retry)
	} else {
		e.name("payload")
		e.raw(f.Payload)
	}
	e.b = append(e.b, '}')
}

func (op *OutboxEffectComplete) encode(e *encoder) {
	e.name("key")
	e.effectKey(op.Key)
	e.extra(op.Extra)
}

func (op *OutboxReplacement) encode(e *encoder) {
	e.name("effect")
	e.effectKey(op.Effect)
	e.created(op.Study, op.Trial, op.Number, op.Template)
	e.name("attempt")
	e.attempt(&op.Attempt)
	if op.RetryOf != nil {
		e.uintField("retry_of", uint64(*op.RetryOf))
	}
	e.extra(op.Extra)
}
