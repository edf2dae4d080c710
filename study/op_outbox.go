package study

// Intent is what must happen after a managed trial ended:
// {"retry":null} or {"retry":{"number":2,"max":4}}. Both callbacks run in any
// case.
type Intent struct {
	// Retry asks for a replacement, the given attempt; nil for none.
	Retry *Attempt
	// Raw is an intent of another shape, verbatim.
	Raw []byte
}

// EntryKey names the outbox entry of one ended trial:
// {"trial":5,"epoch":2}.
type EntryKey struct {
	// Trial is the ended trial.
	Trial TrialID
	// Epoch is the epoch it ended in.
	Epoch uint64
	// Raw is a key of another shape, verbatim.
	Raw string
}

// EffectKey names one effect of an entry: {"trial":5,"epoch":2,"effect":"x"}.
// It is the idempotency key of the effect.
type EffectKey struct {
	// Trial and Epoch name the entry.
	Trial TrialID
	Epoch uint64
	// Effect is the name of the effect within its entry.
	Effect string
	// Raw is a key of another shape, verbatim.
	Raw string
}

// Entry is the key of the entry that the effect belongs to.
func (k EffectKey) Entry() EntryKey { return EntryKey{Trial: k.Trial, Epoch: k.Epoch} }

// RetryEffect is the name of the effect that an intent to retry stands for.
const RetryEffect = "retry"

// Phase is the next thing that an outbox entry waits for: "Sampler",
// "Scheduler" or "Effects"; PhaseDone after that.
type Phase uint8

// The phases in their order. PhaseOther is one that this version does not
// know.
const (
	PhaseSampler Phase = iota
	PhaseScheduler
	PhaseEffects
	PhaseDone
	PhaseOther
)

var phaseNames = [...]string{"Sampler", "Scheduler", "Effects", "Done", "Other"}

// String is the spelling in the journal.
func (p Phase) String() string { return phaseNames[min(p, PhaseOther)] }

// Effect is something that a callback asked for: {"name":"x","payload":..}
// for an external one, {"name":"x","retry":{"number":2,"max":4}} for a
// replacement.
type Effect struct {
	// Name is unique within the entry.
	Name string
	// Retry makes it a replacement.
	Retry *Attempt
	// Payload is the JSON that an external handler gets: canonical when
	// written here, verbatim when read.
	Payload []byte
	// Raw is an effect of another shape, verbatim.
	Raw []byte
}

// OutboxAdvance is outbox-advance: a phase of an entry is done, together with
// the state that its callback left.
type OutboxAdvance struct {
	// Key is the entry.
	Key EntryKey
	// Phase is the one being committed.
	Phase Phase
	// PhaseRaw is a phase of unknown shape, verbatim.
	PhaseRaw string
	// SamplerState and SchedulerState replace the study's blobs, left out if
	// nil.
	SamplerState, SchedulerState *Blob
	// Effects were discovered at this boundary.
	Effects []Effect
	// EffectsRaw are effects that are no array, verbatim.
	EffectsRaw []byte
	// Extra holds unknown fields.
	Extra []Field
}

// OutboxEffectComplete is outbox-effect-complete: an external effect has been
// carried out.
type OutboxEffectComplete struct {
	// Key is the effect.
	Key EffectKey
	// Extra holds unknown fields.
	Extra []Field
}

// OutboxReplacement is outbox-replacement: the replacement of an ended trial
// was created, and its effect is complete.
type OutboxReplacement struct {
	// Effect is the idempotency key.
	Effect EffectKey
	// Study receives the replacement.
	Study StudyID
	// Trial is the new identity, the next one.
	Trial TrialID
	// Number is the ordinal within the study, the next one.
	Number uint64
	// Template holds the parameters of the source, left out if nil.
	Template *Template
	// Attempt says which try it is.
	Attempt Attempt
	// RetryOf is the failed source, left out if nil.
	RetryOf *TrialID
	// Extra holds unknown fields.
	Extra []Field
}

// Kind implements [Op].
func (*OutboxAdvance) Kind() string { return "outbox-advance" }

// Kind implements [Op].
func (*OutboxEffectComplete) Kind() string { return "outbox-effect-complete" }

// Kind implements [Op].
func (*OutboxReplacement) Kind() string { return "outbox-replacement" }
