package runner

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"time"

	"github.com/foldlog/foldlog/study"
	"github.com/foldlog/foldlog/study/pruner"
	"github.com/foldlog/foldlog/study/sampler"
)

const (
	// DefaultGrace is how long a worker may be silent before its trial is
	// failed as stale.
	DefaultGrace = study.DefaultGrace
	// MinGrace is the shortest grace that leaves time for a heartbeat.
	MinGrace = 100 * time.Millisecond
)

// Config says what a worker does.
type Config struct {
	// Study is the study to work on.
	Study study.StudyID
	// Command is the command line of a trial, with placeholders.
	Command []string
	// Space is drawn from; nil is the space that the study declares.
	Space *study.Space
	// Metrics are the names in the output that the objectives go by, one per
	// direction; nil is the study's metric names.
	Metrics []string
	// Trials is the budget: how many trials the study may have in all, retries
	// not counted. 0 runs only what is waiting.
	Trials uint64
	// Retries is how often a failed trial is tried again.
	Retries uint64
	// Grace is how long a worker may be silent; 0 is [DefaultGrace].
	Grace time.Duration
	// Dir is the command's working directory, "" for our own.
	Dir string
	// Journal is the path of the journal, for FOLDLOG_JOURNAL and for results
	// that came too late.
	Journal string
}

// prepared is a Config that was checked against its study.
type prepared struct {
	Config
	command    command
	sampler    sampler.Sampler
	pruner     pruner.Pruner
	name       string
	directions []study.Direction
}

// Check tells whether a study can be worked on with this configuration. The error
// is a [*ConfigError] if another one could.
func (c Config) Check(snap *study.Snapshot) error {
	_, err := c.prepare(snap)
	return err
}

func (c Config) prepare(snap *study.Snapshot) (*prepared, error) {
	st, err := snap.Study(c.Study)
	if err != nil {
		return nil, err
	}
	p := &prepared{Config: c, name: st.Config.Name, directions: st.Config.Directions}
	if p.Space == nil {
		p.Space = st.Config.Space
	}
	if p.Metrics == nil {
		p.Metrics = st.Config.MetricNames
	}
	if p.sampler, err = sampler.Of(st); err != nil {
		return nil, err
	}
	if p.pruner, err = pruner.Of(st); err != nil {
		return nil, err
	}
	if p.Grace == 0 {
		p.Grace = DefaultGrace
	}
	if p.command, err = parseCommand(c.Command); err != nil {
		return nil, &ConfigError{err}
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	return p, nil
}

// ConfigError is a [Config] that is wrong for its study, or for any.
type ConfigError struct {
	// Err says what is wrong.
	Err error
}

// Error implements error.
func (e *ConfigError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong.
func (e *ConfigError) Unwrap() error { return e.Err }

func wrongf(format string, args ...any) error { return &ConfigError{fmt.Errorf(format, args...)} }

func (p *prepared) check() error {
	switch {
	case p.Grace < MinGrace:
		return wrongf("grace of %v is shorter than %v", p.Grace, MinGrace)
	case p.Space != nil && p.Space.Raw != "":
		return errors.New("the study declares a search space of an unknown shape")
	case len(p.Metrics) == 0:
		return wrongf("the study names no metrics: say which of the command's metrics are the result")
	case len(p.Metrics) != len(p.directions):
		return wrongf("metrics named: %d, objectives of the study: %d", len(p.Metrics), len(p.directions))
	}
	for i, m := range p.Metrics {
		if slices.Contains(p.Metrics[:i], m) {
			return wrongf("metric %q stands twice", m)
		}
	}
	if program := p.command[0]; len(program) == 1 && p.Dir == "" {
		if _, err := exec.LookPath(program[0].text); err != nil {
			return wrongf("the command cannot be run: %w", err)
		}
	}
	if err := sampler.Check(p.sampler, study.Config{Directions: p.directions, Space: p.Space}); err != nil {
		return err
	}
	if p.Space == nil {
		return nil // enqueued trials may bring every parameter
	}
	for _, name := range p.command.names() {
		known := func(s study.SpaceParam) bool { return s.Name == name }
		if !slices.ContainsFunc(p.Space.Params, known) {
			return wrongf("the command names {%s}, which is no parameter; write {{ and }} for braces", name)
		}
	}
	return nil
}
