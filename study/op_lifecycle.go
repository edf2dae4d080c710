package study

// LifecycleReserve is lifecycle-reserve: a managed trial was created, waiting,
// under the budget. Its field "managed" is always true.
type LifecycleReserve struct {
	// Study is the owning study.
	Study StudyID
	// Trial is the new identity, the next one.
	Trial TrialID
	// Number is the ordinal within the study, the next one.
	Number uint64
	// Template is what it was created from, left out if nil.
	Template *Template
	// Extra holds unknown fields.
	Extra []Field
}

// LifecycleAbandon is lifecycle-abandon: a waiting managed trial was given up
// and is failed.
type LifecycleAbandon struct {
	// Trial is the reserved trial.
	Trial TrialID
	// Reason becomes its error.
	Reason string
	// Extra holds unknown fields.
	Extra []Field
}

// LifecycleClaim is lifecycle-claim: a managed trial was started at a new
// epoch.
type LifecycleClaim struct {
	// Trial is the trial being claimed.
	Trial TrialID
	// From is the state it was in: Waiting or Paused.
	From State
	// Worker is the new owner.
	Worker uint64
	// HeartbeatMillis is the owner's first heartbeat.
	HeartbeatMillis uint64
	// Epoch is one more than before.
	Epoch uint64
	// HeartbeatSeq is the first in the new epoch.
	HeartbeatSeq uint64
	// Params are written with the claim.
	Params []Param
	// State is trial-owned state written with the claim, left out if nil.
	State *Blob
	// Extra holds unknown fields.
	Extra []Field
}

// LifecycleRenew is lifecycle-renew: an owner's heartbeat.
type LifecycleRenew struct {
	// Trial is the owned trial.
	Trial TrialID
	// Worker and Epoch are the fence.
	Worker, Epoch uint64
	// HeartbeatMillis is the caller's timestamp.
	HeartbeatMillis uint64
	// HeartbeatSeq is larger than the one before.
	HeartbeatSeq uint64
	// Extra holds unknown fields.
	Extra []Field
}

// LifecycleFailStale is lifecycle-fail-stale: a trial whose owner was silent
// for the grace is failed, if it still is what was observed.
type LifecycleFailStale struct {
	// Trial is the observed trial.
	Trial TrialID
	// ObservedState is the observed state.
	ObservedState State
	// Owner, Epoch, HeartbeatMillis and HeartbeatSeq are the rest of the
	// observation.
	Owner, Epoch                  uint64
	HeartbeatMillis, HeartbeatSeq uint64
	// NowMillis is HeartbeatMillis plus the time that the sweeper's own
	// monotonic clock saw nothing move.
	NowMillis uint64
	// GraceMillis is the threshold.
	GraceMillis uint64
	// Reason becomes the trial's error.
	Reason string
	// Intent opens the outbox entry, left out if nil.
	Intent *Intent
	// Extra holds unknown fields.
	Extra []Field
}

// LifecycleFenced is lifecycle-fenced: one change by the owner.
type LifecycleFenced struct {
	// Trial is the owned trial.
	Trial TrialID
	// Worker and Epoch are the fence.
	Worker, Epoch uint64
	// Mutation is the change.
	Mutation Mutation
	// Extra holds unknown fields.
	Extra []Field
}

// LifecycleTerminal is lifecycle-terminal: the owner ended the trial.
type LifecycleTerminal struct {
	// Trial is the owned trial.
	Trial TrialID
	// Worker and Epoch are the fence.
	Worker, Epoch uint64
	// Outcome is how it ended.
	Outcome Outcome
	// Intent opens the outbox entry, left out if nil.
	Intent *Intent
	// Extra holds unknown fields.
	Extra []Field
}

// LifecycleFinalizedState is lifecycle-finalized-state: the state blob of an
// ended managed trial is replaced.
type LifecycleFinalizedState struct {
	// Trial is the ended trial.
	Trial TrialID
	// Scope is exactly the trial's.
	Scope Scope
	// Blob replaces the one before.
	Blob Blob
	// Extra holds unknown fields.
	Extra []Field
}

// Mutation is what lifecycle-fenced changes, one of the pointer types below.
// Our shapes follow the enums of the golden: one key, or a bare string.
type Mutation interface {
	encodeMutation(e *encoder)
}

type (
	// MutateReport is {"Report":{"step":..,"values":[..]}}.
	MutateReport struct {
		Step   uint64
		Values []float64
	}
	// MutateParams is {"ParamsBatch":{"params":[..]}}.
	MutateParams struct{ Params []Param }
	// MutateUserAttr is {"SetUserAttr":{"key":..,"value":..}}.
	MutateUserAttr struct {
		Key   string
		Value []byte
	}
	// MutateState is {"PutState":{"blob":..}}: the trial's own state.
	MutateState struct{ Blob Blob }
	// MutateError is {"SetError":{"message":..}}.
	MutateError struct{ Message string }
	// MutatePause is "Pause": the trial is given back, to be claimed again.
	MutatePause struct{}
	// MutateOther is a mutation of unknown shape, verbatim. Folding it
	// changes nothing but checks the fence.
	MutateOther struct{ Raw []byte }
)

// Outcome is how lifecycle-terminal ends a trial. Our shapes are
// {"Complete":{"values":[..]}}, {"Pruned":{}} and {"Failed":{"error":".."}},
// each with an optional "state" blob at the end.
type Outcome struct {
	// State is Complete, Pruned or Failed.
	State State
	// Values has one value per direction if State is Complete.
	Values []float64
	// Error is the reason if State is Failed.
	Error string
	// Blob is the trial's last state, left out if nil.
	Blob *Blob
	// Raw is an outcome of another shape, verbatim. The other fields hold what could be
	// recognised of it; if not even the state could, that is Failed.
	Raw []byte
}

// Completed is the outcome with these values.
func Completed(values ...float64) Outcome { return Outcome{State: Complete, Values: values} }

// PrunedEarly is the outcome of a trial that was stopped early.
func PrunedEarly() Outcome { return Outcome{State: Pruned} }

// FailedWith is the outcome of a trial that went wrong.
func FailedWith(reason string) Outcome { return Outcome{State: Failed, Error: reason} }

// Kind implements [Op].
func (*LifecycleReserve) Kind() string { return "lifecycle-reserve" }

// Kind implements [Op].
func (*LifecycleAbandon) Kind() string { return "lifecycle-abandon" }

// Kind implements [Op].
func (*LifecycleClaim) Kind() string { return "lifecycle-claim" }

// Kind implements [Op].
func (*LifecycleRenew) Kind() string { return "lifecycle-renew" }

// Kind implements [Op].
func (*LifecycleFailStale) Kind() string { return "lifecycle-fail-stale" }

// Kind implements [Op].
func (*LifecycleFenced) Kind() string { return "lifecycle-fenced" }

// Kind implements [Op].
func (*LifecycleTerminal) Kind() string { return "lifecycle-terminal" }

// Kind implements [Op].
func (*LifecycleFinalizedState) Kind() string { return "lifecycle-finalized-state" }
