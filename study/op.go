package study

// Op is one operation of a study journal: one of the 22 pointer types of this
// package that are named after the kinds of the format.
type Op interface {
	// Kind is the spelling in the journal, like "create-study".
	Kind() string
	encode(e *encoder)
	apply(st *state, env *envelope) error
}

// CreateStudy is create-study: a study was created.
type CreateStudy struct {
	// Study is the new identity, the next one.
	Study StudyID
	// Config is the stored configuration.
	Config Config
	// Extra holds unknown fields.
	Extra []Field
}

// CreateTrial is create-trial: a raw trial was created.
type CreateTrial struct {
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

// Transition is transition: a raw trial changed state.
type Transition struct {
	// Trial is the trial.
	Trial TrialID
	// From is the state it was in.
	From State
	// To is the state it is in now.
	To State
	// Extra holds unknown fields.
	Extra []Field
}

// ParamsBatch is params-batch: sampled parameters, all or nothing.
type ParamsBatch struct {
	// Trial is the trial.
	Trial TrialID
	// Params is the batch in the order it was written.
	Params []Param
	// Extra holds unknown fields.
	Extra []Field
}

// Report is report: an intermediate value.
type Report struct {
	// Trial is the trial.
	Trial TrialID
	// Step is in the study's resource unit.
	Step uint64
	// Values are the reported values, non-finite ones included.
	Values []float64
	// Extra holds unknown fields.
	Extra []Field
}

// SetValues is set-values: the final objective values.
type SetValues struct {
	// Trial is the trial.
	Trial TrialID
	// Values has one value per direction.
	Values []float64
	// Extra holds unknown fields.
	Extra []Field
}

// SetError is set-error: a failure message.
type SetError struct {
	// Trial is the trial.
	Trial TrialID
	// Message is verbatim.
	Message string
	// Extra holds unknown fields.
	Extra []Field
}

// Heartbeat is heartbeat: a raw trial's sign of life.
type Heartbeat struct {
	// Trial is the trial.
	Trial TrialID
	// AtMillis is the caller's timestamp, never the writer's clock.
	AtMillis uint64
	// Extra holds unknown fields.
	Extra []Field
}

// SetStudyUserAttr is set-study-user-attr: insert or replace.
type SetStudyUserAttr struct {
	// Study is the owning study.
	Study StudyID
	// Key is the user's key.
	Key string
	// Value is JSON: canonical when written here, verbatim when read.
	Value []byte
	// Extra holds unknown fields.
	Extra []Field
}

// SetTrialUserAttr is set-trial-user-attr: insert or replace on a raw trial.
type SetTrialUserAttr struct {
	// Trial is the owning trial.
	Trial TrialID
	// Key is the user's key.
	Key string
	// Value is JSON: canonical when written here, verbatim when read.
	Value []byte
	// Extra holds unknown fields.
	Extra []Field
}

// PutState is put-state: a state blob was written.
type PutState struct {
	// Scope is what it belongs to.
	Scope Scope
	// Blob replaces the one before.
	Blob Blob
	// Extra holds unknown fields.
	Extra []Field
}

// Kind implements [Op].
func (*CreateStudy) Kind() string { return "create-study" }

// Kind implements [Op].
func (*CreateTrial) Kind() string { return "create-trial" }

// Kind implements [Op].
func (*Transition) Kind() string { return "transition" }

// Kind implements [Op].
func (*ParamsBatch) Kind() string { return "params-batch" }

// Kind implements [Op].
func (*Report) Kind() string { return "report" }

// Kind implements [Op].
func (*SetValues) Kind() string { return "set-values" }

// Kind implements [Op].
func (*SetError) Kind() string { return "set-error" }

// Kind implements [Op].
func (*Heartbeat) Kind() string { return "heartbeat" }

// Kind implements [Op].
func (*SetStudyUserAttr) Kind() string { return "set-study-user-attr" }

// Kind implements [Op].
func (*SetTrialUserAttr) Kind() string { return "set-trial-user-attr" }

// Kind implements [Op].
func (*PutState) Kind() string { return "put-state" }
