package study

import "fmt"

var (
	reserveFields   = opFields("study", "trial", "number", "template?", "managed")
	abandonFields   = opFields("trial", "reason")
	claimFields     = opFields("trial", "from", "worker", "heartbeat_millis", "epoch", "heartbeat_seq", "params", "state?")
	renewFields     = opFields("trial", "worker", "epoch", "heartbeat_millis", "heartbeat_seq")
	failStaleFields = opFields("trial", "observed_state", "owner", "epoch", "heartbeat_millis", "heartbeat_seq",
		"now_millis", "grace_millis", "reason", "intent?")
	fencedFields         = opFields("trial", "worker", "epoch", "mutation")
	terminalFields       = opFields("trial", "worker", "epoch", "outcome", "intent?")
	finalizedStateFields = opFields("trial", "scope", "blob")
)

func (d *Decoder) reserve(kindSeen bool) Op {
	op := &d.ops.reserve
	*op = LifecycleReserve{}
	t := track(reserveFields, kindSeen)
	for t.next(d) {
		switch t.field {
		case 0:
			op.Study = StudyID(d.s.Uint64())
		case 1:
			op.Trial = d.trialID()
		case 2:
			op.Number = d.s.Uint64()
		case 3:
			op.Template = d.template()
		case 4:
			if !d.s.Bool() {
				d.s.Fail(fmt.Errorf("%w: managed must be true", ErrField))
			}
		}
	}
	op.Extra = t.extra
	return op
}

func (d *Decoder) abandon(kindSeen bool) Op {
	op := new(LifecycleAbandon)
	t := track(abandonFields, kindSeen)
	for t.next(d) {
		switch t.field {
		case 0:
			op.Trial = d.trialID()
		case 1:
			op.Reason = d.s.String()
		}
	}
	op.Extra = t.extra
	return op
}

func (d *Decoder) claim(kindSeen bool) Op {
	op := &d.ops.claim
	*op = LifecycleClaim{Params: op.Params[:0]}
	t := track(claimFields, kindSeen)
	for t.next(d) {
		switch t.field {
		case 0:
			op.Trial = d.trialID()
		case 1:
			op.From = d.state()
		case 2:
			op.Worker = d.s.Uint64()
		case 3:
			op.HeartbeatMillis = d.s.Uint64()
		case 4:
			op.Epoch = d.s.Uint64()
		case 5:
			op.HeartbeatSeq = d.s.Uint64()
		case 6:
			op.Params = d.params(op.Params)
		case 7:
			op.State = d.optBlob()
		}
	}
	op.Extra = t.extra
	return op
}

func (d *Decoder) renew(kindSeen bool) Op {
	op := &d.ops.renew
	*op = LifecycleRenew{}
	t := track(renewFields, kindSeen)
	for t.next(d) {
		switch t.field {
		case 0:
			op.Trial = d.trialID()
		case 1:
			op.Worker = d.s.Uint64()
		case 2:
			op.Epoch = d.s.Uint64()
		case 3:
			op.HeartbeatMillis = d.s.Uint64()
		case 4:
			op.HeartbeatSeq = d.s.Uint64()
		}
	}
	op.Extra = t.extra
	return op
}

func (d *Decoder) failStale(kindSeen bool) Op {
	op := new(LifecycleFailStale)
	t := track(failStaleFields, kindSeen)
	for t.next(d) {
		switch t.field {
		case 0:
			op.Trial = d.trialID()
		case 1:
			op.ObservedState = d.state()
		case 2:
			op.Owner = d.s.Uint64()
		case 3:
			op.Epoch = d.s.Uint64()
		case 4:
			op.HeartbeatMillis = d.s.Uint64()
		case 5:
			op.HeartbeatSeq = d.s.Uint64()
		case 6:
			op.NowMillis = d.s.Uint64()
		case 7:
			op.GraceMillis = d.s.Uint64()
		case 8:
			op.Reason = d.s.String()
		case 9:
			op.Intent = d.intent()
		}
	}
	op.Extra = t.extra
	return op
}

func (d *Decoder) fenced(kindSeen bool) Op {
	op := &d.ops.fenced
	*op = LifecycleFenced{}
	t := track(fencedFields, kindSeen)
	for t.next(d) {
		switch t.field {
		case 0:
			op.Trial = d.trialID()
		case 1:
			op.Worker = d.s.Uint64()
		case 2:
			op.Epoch = d.s.Uint64()
		case 3:
			op.Mutation = d.mutation()
		}
	}
	op.Extra = t.extra
	return op
}

func (d *Decoder) terminal(kindSeen bool) Op {
	op := &d.ops.terminal
	*op = LifecycleTerminal{}
	t := track(terminalFields, kindSeen)
	for t.next(d) {
		switch t.field {
		case 0:
			op.Trial = d.trialID()
		case 1:
			op.Worker = d.s.Uint64()
		case 2:
			op.Epoch = d.s.Uint64()
		case 3:
			op.Outcome = d.outcome()
		case 4:
			op.Intent = d.intent()
		}
	}
	op.Extra = t.extra
	return op
}

func (d *Decoder) finalizedState(kindSeen bool) Op {
	op := new(LifecycleFinalizedState)
	t := track(finalizedStateFields, kindSeen)
	for t.next(d) {
		switch t.field {
		case 0:
			op.Trial = d.trialID()
		case 1:
			op.Scope = d.scope()
		case 2:
			op.Blob = d.blob()
		}
	}
	op.Extra = t.extra
	return op
}
