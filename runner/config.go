package runner

import (
	"cmp"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/foldlog/foldlog/internal/child"
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
	// DefaultStopGrace is how long a command may take to end after it was asked.
	DefaultStopGrace = child.StopPatience
	// DefaultLogBytes is how much of a trial's output its log keeps.
	DefaultLogBytes = 16 << 20
	// MaxJobs is how many trials one process runs at once at most.
	MaxJobs = 256
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
	// Jobs is how many trials run at once in this process, 1 if 0.
	Jobs int
	// Retries is how often a failed trial is tried again.
	Retries uint64
	// Grace is how long a worker may be silent; 0 is [DefaultGrace].
	Grace time.Duration
	// TrialTimeout is how long a command may run, 0 without a limit. The trial
	// of one that takes longer is failed.
	TrialTimeout time.Duration
	// StopGrace is how long a command that is stopped has between SIGTERM and
	// SIGKILL, 0 for [DefaultStopGrace].
	StopGrace time.Duration
	// Dir is the command's working directory, "" for our own. It may have
	// placeholders, and is made.
	Dir string
	// Env are further variables of the command's environment, NAME=VALUE. The
	// values may have placeholders.
	Env []string
	// Here is what {here} stands for.
	Here string
	// Journal is the path of the journal, for FOLDLOG_JOURNAL and for results
	// that came too late.
	Journal string
	// Logs is the directory of the trials' logs, "" for none: standard output
	// and error of a trial in STUDY/NUMBER.log, which keeps the newest
	// LogBytes (0 for [DefaultLogBytes]) together with NUMBER.log.1 beside it.
	Logs     string
	LogBytes int64
	// Runs is the root under which every trial's metrics are kept as a run, in
	// the layout of package metrics, "" for none.
	Runs string
	// State is the directory below which every trial has one for its
	// checkpoints (FOLDLOG_STATE_DIR), "" for none.
	State string
}

// prepared is a Config that was checked against its study.
type prepared struct {
	Config
	command    command
	dir        template
	env        []template
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
	p.Jobs = max(p.Jobs, 1)
	p.Grace = cmp.Or(p.Grace, DefaultGrace)
	p.StopGrace = cmp.Or(p.StopGrace, DefaultStopGrace)
	p.LogBytes = cmp.Or(p.LogBytes, DefaultLogBytes)
	if err := p.parse(); err != nil {
		return nil, err
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	return p, nil
}

// parse takes the texts with placeholders apart.
func (p *prepared) parse() (err error) {
	if p.command, err = parseCommand(p.Command); err != nil {
		return &ConfigError{"command", err}
	}
	if p.dir, err = parseTemplate(p.Dir); err != nil {
		return wrongf("workdir", "working directory %q: %w", p.Dir, err)
	}
	for _, text := range p.Env {
		name, _, ok := strings.Cut(text, "=")
		if !ok || name == "" || strings.ContainsRune(text, 0) {
			return wrongf("env", "variable %q is not NAME=VALUE", text)
		}
		t, err := parseTemplate(text)
		if err != nil {
			return wrongf("env", "variable %q: %w", name, err)
		}
		p.env = append(p.env, t)
	}
	return nil
}

// ConfigError is a [Config] that is wrong for its study, or for any.
type ConfigError struct {
	// Field is the key of a study file (package studyfile) that it is about, ""
	// for none.
	Field string
	// Err says what is wrong.
	Err error
}

// Error implements error.
func (e *ConfigError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong.
func (e *ConfigError) Unwrap() error { return e.Err }

func wrongf(field, format string, args ...any) error {
	return &ConfigError{field, fmt.Errorf(format, args...)}
}

func (p *prepared) check() error {
	switch {
	case p.Grace < MinGrace:
		return wrongf("grace", "grace of %v is shorter than %v", p.Grace, MinGrace)
	case p.TrialTimeout < 0 || p.StopGrace < 0:
		return wrongf("trial_timeout", "a time limit is negative")
	case p.Jobs > MaxJobs:
		return wrongf("jobs", "%d jobs, at most %d run in one process", p.Jobs, MaxJobs)
	case p.LogBytes < 0:
		return wrongf("log_size", "a log of %d bytes", p.LogBytes)
	case p.Space != nil && p.Space.Raw != "":
		return errors.New("the study declares a search space of an unknown shape")
	case len(p.Metrics) == 0:
		return wrongf("metrics", "the study names no metrics: say which of the command's metrics are the result")
	case len(p.Metrics) != len(p.directions):
		return wrongf("metrics", "metrics named: %d, objectives of the study: %d", len(p.Metrics), len(p.directions))
	}
	for i, m := range p.Metrics {
		if slices.Contains(p.Metrics[:i], m) {
			return wrongf("metrics", "metric %q stands twice", m)
		}
	}
	if program := p.command[0]; program.fixed() && (p.Dir == "" || filepath.Base(program[0].text) == program[0].text) {
		if _, err := exec.LookPath(program[0].text); err != nil {
			return wrongf("command", "the command cannot be run: %w", err)
		}
	}
	if err := sampler.Check(p.sampler, study.Config{Directions: p.directions, Space: p.Space}); err != nil {
		return err
	}
	return p.checkNames()
}

// paramNames lists the parameters of a space for a person, the first ones of many.
func paramNames(s *study.Space) string {
	var names []string
	for i, param := range s.Params {
		if i == 8 {
			names = append(names, "...")
			break
		}
		names = append(names, param.Name)
	}
	return strings.Join(names, ", ")
}

// checkNames refuses placeholders for what no trial will have.
func (p *prepared) checkNames() error {
	if p.Space == nil {
		return nil // enqueued trials may bring every parameter
	}
	for _, part := range []struct {
		field string
		texts []template
	}{{"command", p.command}, {"workdir", []template{p.dir}}, {"env", p.env}} {
		for _, name := range command(part.texts).names() {
			known := func(s study.SpaceParam) bool { return s.Name == name }
			if !slices.Contains(ownNames, name) && !slices.ContainsFunc(p.Space.Params, known) {
				return wrongf(part.field, "%s names {%s}, which is no parameter (there are %s); write {{ and }} for braces", fieldNames[part.field], name, paramNames(p.Space))
			}
		}
	}
	return nil
}

// fieldNames are what fields with placeholders are called.
var fieldNames = map[string]string{"command": "the command", "workdir": "the working directory", "env": "the environment"}
