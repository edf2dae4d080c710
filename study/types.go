package study

import (
	"fmt"
	"strings"
)

// StudyID names a study: journal-wide, from 0, in the order of creation.
type StudyID uint64

// TrialID names a trial: journal-wide, from 0, in the order of creation.
type TrialID uint64

// State is where a trial is in its life.
type State uint8

// The states of a trial. Nothing leaves Complete, Pruned and Failed.
const (
	Waiting State = iota
	Running
	Paused
	Complete
	Pruned
	Failed
	numStates
)

var stateNames = [numStates]string{"Waiting", "Running", "Paused", "Complete", "Pruned", "Failed"}

// String is the spelling in the journal.
func (s State) String() string {
	if s < numStates {
		return stateNames[s]
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// Terminal tells whether nothing can follow.
func (s State) Terminal() bool { return s >= Complete }

// ParseState reads a state's name, ignoring case.
func ParseState(name string) (State, error) {
	for i, n := range stateNames {
		if strings.EqualFold(n, name) {
			return State(i), nil
		}
	}
	return 0, fmt.Errorf("%w: unknown trial state %.40q (Waiting, Running, Paused, Complete, Pruned or Failed)", ErrInvalid, name)
}

// moves has a bit for every state that may follow another.
var moves = [numStates]uint8{
	Waiting: 1<<Running | 1<<Failed,
	Running: 1<<Complete | 1<<Pruned | 1<<Failed | 1<<Paused,
	Paused:  1<<Running | 1<<Failed,
}

// CanMove tells whether the state machine lets a trial go from one state to
// the other: Waiting to Running or Failed; Running to Complete, Pruned, Failed
// or Paused; Paused to Running or Failed.
func CanMove(from, to State) bool {
	return from < numStates && to < numStates && moves[from]&(1<<to) != 0
}

// Direction says which values of an objective are better.
type Direction uint8

// The two directions.
const (
	Minimize Direction = iota
	Maximize
)

// String is the spelling in the journal.
func (d Direction) String() string {
	if d == Maximize {
		return "Maximize"
	}
	return "Minimize"
}

// ParseDirection reads a direction's name, ignoring case.
func ParseDirection(name string) (Direction, error) {
	switch {
	case strings.EqualFold(name, "Minimize"):
		return Minimize, nil
	case strings.EqualFold(name, "Maximize"):
		return Maximize, nil
	}
	return 0, fmt.Errorf("%w: unknown direction %.40q (minimize or maximize)", ErrInvalid, name)
}

// Field is a field of an operation that this version does not know. It is kept
// and written back; verify warns about it.
type Field struct {
	// Key is the unescaped name.
	Key string
	// Raw is the value as it was read.
	Raw string
}

// Config is the stored configuration of a study (create-study).
type Config struct {
	// Name is the study's name.
	Name string
	// Directions has one entry per objective, at least one.
	Directions []Direction
	// Seed is the samplers' seed, all 64 bits; nil is null.
	Seed *uint64
	// Space is the declared search space, nil is null.
	Space *Space
	// ResourceUnit is what steps count, "Steps" usually; empty is null.
	ResourceUnit string
	// MetricNames names the objectives; nil is null.
	MetricNames []string
	// Extra holds unknown fields.
	Extra []Field
}

// Space is a declared search space. Our shape is an array of
// {"name":...,"dist":...} in the order of declaration.
type Space struct {
	// Params are the declared parameters.
	Params []SpaceParam
	// Raw is another shape, verbatim; Params is empty then.
	Raw string
}

// Dist is what a space declares a parameter to be drawn from, nil for one that it does
// not declare. A nil space declares nothing.
func (s *Space) Dist(name string) Distribution {
	if s == nil {
		return nil
	}
	for _, p := range s.Params {
		if p.Name == name {
			return p.Dist
		}
	}
	return nil
}

// SpaceParam is one declared parameter.
type SpaceParam struct {
	// Name is the parameter's name.
	Name string
	// Dist is what it may be.
	Dist Distribution
	// When are the conditions under which a trial has the parameter, all of
	// them; nil is always.
	When []Condition
}

// Template is what a trial was created from.
type Template struct {
	// Fixed are parameter values given in advance, in the order written.
	Fixed []FixedParam
	// Parent is the trial that this one repeats, nil is null.
	Parent *TrialID
	// Extra holds unknown fields.
	Extra []Field
}

// FixedParam is one value given in advance.
type FixedParam struct {
	// Name is the parameter's name.
	Name string
	// Value is its value.
	Value Value
}

// Param is one sampled parameter.
type Param struct {
	// Name is the parameter's name.
	Name string
	// Dist is what it was drawn from.
	Dist Distribution
	// Value is what was drawn.
	Value Value
	// Extra holds unknown fields.
	Extra []Field
}

// ScopeKind is what a state blob belongs to.
type ScopeKind uint8

// The scopes. ScopeOther is one that this version does not know.
const (
	ScopeSampler ScopeKind = iota
	ScopeScheduler
	ScopeTrial
	ScopeOther
)

var scopeNames = [...]string{"Sampler", "Scheduler", "Trial"}

// Scope names what a state blob belongs to: {"Sampler":study},
// {"Scheduler":study} or {"Trial":trial}.
type Scope struct {
	// Kind is the sort of owner.
	Kind ScopeKind
	// ID is the owning study's or trial's id.
	ID uint64
	// Raw is a scope of unknown shape, verbatim.
	Raw string
}

// SamplerScope is the scope of a study's sampler.
func SamplerScope(id StudyID) Scope { return Scope{Kind: ScopeSampler, ID: uint64(id)} }

// SchedulerScope is the scope of a study's scheduler.
func SchedulerScope(id StudyID) Scope { return Scope{Kind: ScopeScheduler, ID: uint64(id)} }

// TrialScope is the scope of a trial.
func TrialScope(id TrialID) Scope { return Scope{Kind: ScopeTrial, ID: uint64(id)} }

// Blob is a piece of state that some algorithm keeps in the journal:
// {"kind":...,"version":...,"data":...}.
type Blob struct {
	// Kind names the algorithm.
	Kind string
	// Version is the version of Data.
	Version uint64
	// Data is JSON: canonical when written here, verbatim when read.
	Data []byte
	// Raw is a blob of another shape, verbatim; the rest is empty then.
	Raw []byte
}

// Fence is the right to change a managed trial: it holds as long as the trial
// is running at this epoch and owned by this worker.
type Fence struct {
	// Trial is the owned trial.
	Trial TrialID
	// Worker is the owner.
	Worker uint64
	// Epoch counts the claims of the trial, from 1.
	Epoch uint64
}

// Attempt says which try of how many a trial is: {"number":2,"max":4}.
type Attempt struct {
	// Number counts from 1; 0 if a read shape was unknown.
	Number uint64
	// Max is how many there may be in all, 0 without a cap.
	Max uint64
	// Raw is another shape, verbatim.
	Raw string
}
