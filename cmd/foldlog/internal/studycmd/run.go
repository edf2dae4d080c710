package studycmd

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/remote"
	"github.com/foldlog/foldlog/runner"
	"github.com/foldlog/foldlog/runner/studyfile"
	"github.com/foldlog/foldlog/study"
	"github.com/foldlog/foldlog/study/space"
)

// runFlags is the command line of study run.
type runFlags struct {
	study, space string
	runner.Config
	workers        int
	timeout        time.Duration
	maxFailures    uint64
	json, sendRuns bool
}

func (a *app) runCmd() *cobra.Command {
	f := runFlags{Config: runner.Config{Here: "."}}
	c := &cobra.Command{
		Use:        "run PATH|STUDY.yaml [--trials N] [--workers K] [--jobs K] [-- COMMAND...]",
		SuggestFor: []string{"optimize", "start"},
		Short:      "Run the trials of a study as commands, in parallel",
		Long: `Run the trials of a study as commands. Each gets its parameters from the
study's sampler, runs COMMAND with {name} replaced by the parameter of that name
({name:-text} for one that not every trial has; {{ and }} are braces), and ends
with what that printed. FOLDLOG_PARAMS has all parameters as JSON; FOLDLOG_STUDY,
FOLDLOG_TRIAL, FOLDLOG_ATTEMPT and FOLDLOG_JOURNAL say which trial it is.

The command prints the metrics stream, JSON objects one a line, or name=value
pairs on standard output. The study's metrics (or those of --metric) become the
trial's reports, their last values its result. Another exit status than 0 fails the trial, with
the end of the output as the reason; --retries tries it again. All output is in
PATH.logs, all metrics are a run under the directory of PATH. Of a study at a server
they are in the current directory, and the runs are sent there while trials write them.

A study file, STUDY.yaml, holds all of this: space, sampler, command, budget. The
study is created if it is not there; flags and COMMAND win over the file.
"foldlog study init STUDY.yaml" writes one to begin with.

--trials is the number of managed trials that the study is to have in all: those
of earlier runs, of "ask --lease" and of "enqueue" count, retries do not, so the
same command continues what was interrupted. Several runs, on several machines
that share the directory, may work on one study. A worker that dies is noticed
after --grace: its trial is failed as stale, and retried if --retries allows.
A run whose trials fail one after another, --max-failures of them, ends.

The first Ctrl-C lets the running commands finish. A second one stops them and
gives their trials back: the next run takes them up, with the same parameters and
what they saved in FOLDLOG_STATE_DIR.`,
		Example: "  foldlog study run search.atj --trials 100 --workers 4 --retries 1 -- python3 train.py --lr {lr}\n  foldlog study run study.yaml",
		Args:    runArgs,
	}
	f.define(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.studyRun(c, &f, args[0], args[1:])
	}
	return c
}

func (f *runFlags) define(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.study, "study", "", "the `NAME` of the study, if the journal has several")
	flags.Uint64Var(&f.Trials, "trials", 0, "have `N` managed trials in the study in all; 0 runs only what is waiting")
	flags.IntVar(&f.workers, "workers", 1, "work in `K` processes")
	flags.IntVar(&f.Jobs, "jobs", 1, "run `K` trials at once in each process")
	flags.StringVar(&f.space, "space", "", "a `FILE` with the search space, in place of the study's own")
	flags.StringArrayVar(&f.Metrics, "metric", nil, "the `NAME` of a metric of the output that is the result, one for each direction (default: the study's)")
	flags.Uint64Var(&f.Retries, "retries", 0, "try a failed trial again, `N` times at most")
	flags.Uint64Var(&f.maxFailures, "max-failures", runner.DefaultMaxFailures, "end after `N` failed trials in a row, 0 never")
	flags.DurationVar(&f.timeout, "timeout", 0, "begin no trial after this `DURATION`")
	flags.DurationVar(&f.TrialTimeout, "trial-timeout", 0, "fail a trial whose command takes longer than this `DURATION`")
	flags.DurationVar(&f.StopGrace, "stop-grace", runner.DefaultStopGrace, "the `DURATION` that a command has between SIGTERM and SIGKILL")
	flags.DurationVar(&f.Grace, "grace", runner.DefaultGrace, "fail the trial of a worker that is silent for this `DURATION`")
	flags.StringArrayVar(&f.Env, "env", nil, "`NAME=VALUE` for the command's environment, {name} as in COMMAND; again for each further one")
	flags.StringVar(&f.Dir, "workdir", "", "the `DIRECTORY` to run the command in, {trial} and {name} as in COMMAND; it is made")
	flags.StringVar(&f.Logs, "logs", "", "the `DIRECTORY` for the output of the trials, none for nowhere (default: PATH.logs)")
	flags.Int64Var(&f.LogBytes, "log-bytes", runner.DefaultLogBytes, "keep the newest `N` bytes of each trial's output")
	flags.StringVar(&f.Runs, "runs", "", "the `ROOT` under which the trials' metrics are kept as runs, none for nowhere (default: the directory of PATH)")
	flags.BoolVar(&f.sendRuns, "push", true, "send the runs to the server of the study, if it is at one; --push=false keeps them here alone")
	flags.StringVar(&f.State, "state", "", "the `DIRECTORY` for what commands save in FOLDLOG_STATE_DIR, none for nowhere (default: PATH.state)")
	flags.BoolVar(&f.json, "json", false, "print the summary as one JSON object")
}

func runArgs(c *cobra.Command, args []string) error {
	dash := c.ArgsLenAtDash()
	switch {
	case len(args) == 0 || dash == 0:
		return cli.Usagef("study run: PATH is missing")
	case dash > 1 || dash < 0 && len(args) > 1:
		return cli.WithHint(cli.Usagef("study run: unexpected argument %q", args[1]), "the command stands after --, as in: foldlog study run search.atj --trials 10 -- python3 train.py --lr {lr}")
	case (dash < 0 || len(args) == dash) && !studyfile.Is(args[0]):
		return cli.WithHint(cli.Usagef("study run: COMMAND is missing"), "give it after --, as in: foldlog study run search.atj --trials 10 -- python3 train.py --lr {lr}")
	}
	return nil
}

// runPlan is what study run is going to do.
type runPlan struct {
	runner.Config
	workers        int
	timeout        time.Duration
	maxFailures    uint64
	json, sendRuns bool
	// file is where it stands, nil for the command line.
	file *studyfile.File
}

func (a *app) studyRun(c *cobra.Command, f *runFlags, path string, command []string) error {
	p, err := a.planRun(c, f, path, command)
	if err != nil {
		return err
	}
	path = p.Journal
	r, err := a.OpenReader(c.Context(), path)
	if err != nil {
		return cli.Failed("study run", path, err)
	}
	defer r.Close()
	name := f.study
	if p.file != nil {
		name = p.file.Study.Name
	}
	st, err := pickStudy(r.Snapshot(), path, name)
	if err != nil {
		return cli.Failed("study run", path, err)
	}
	p.Study = st.ID
	if f.space != "" {
		if p.Space, err = space.Load(f.space); err != nil {
			return fmt.Errorf("study run: %w", spaceFailed(f.space, err))
		}
	}
	if err := p.check(r.Snapshot()); err != nil {
		return cli.Failed("study run", path, err)
	}
	return a.supervise(c.Context(), r, p)
}

// localPlaces refuses addresses where directories of this machine are meant: they
// would be made as directories of such names.
func localPlaces(p *runPlan) error {
	for _, place := range []struct{ flag, path string }{
		{"workdir", p.Dir}, {"logs", p.Logs}, {"runs", p.Runs}, {"state", p.State},
	} {
		for _, prefix := range []string{"http:/", "https:/", "server:", "s3:/"} {
			if strings.HasPrefix(place.path, prefix) {
				err := cli.Usagef("--%s %s: must be a directory of this machine", place.flag, place.path)
				return cli.WithHint(err, "foldlog metrics push DIRECTORY --to http://HOST sends the runs in a directory to a server")
			}
		}
	}
	return nil
}

// planRun puts the command line over the study file, if there is one; then the
// study is created if it is not there.
func (a *app) planRun(c *cobra.Command, f *runFlags, path string, command []string) (*runPlan, error) {
	p := &runPlan{Config: f.Config, workers: f.workers, timeout: f.timeout, maxFailures: f.maxFailures, json: f.json, sendRuns: f.sendRuns}
	if p.Journal = path; studyfile.Is(path) {
		if err := p.fromFile(c, path, len(command) > 0); err != nil {
			return nil, fmt.Errorf("study run: %w", err)
		}
	}
	if err := a.useServer(p); err != nil {
		return nil, err
	}
	if p.file == nil {
		p.places()
	}
	if err := localPlaces(p); err != nil {
		return nil, err
	}
	if len(command) > 0 {
		p.Command = command
	}
	switch {
	case p.workers < 1 || p.workers > 1024:
		return nil, cli.Usagef("--workers %d: must be from 1 to 1024", p.workers)
	case p.Jobs < 1 || p.Jobs > runner.MaxJobs:
		return nil, cli.Usagef("--jobs %d: must be from 1 to %d", p.Jobs, runner.MaxJobs)
	case p.timeout < 0:
		return nil, cli.Usagef("--timeout %v: must not be negative", p.timeout)
	}
	if p.file == nil {
		return p, nil
	}
	if c.Flags().Changed("study") {
		return nil, cli.Usagef("--study and a study file exclude each other: the file names the study")
	}
	return p, a.useStudyFile(c.Context(), p)
}

// useServer spells the journal of a run at a server so that its worker processes find
// it.
func (a *app) useServer(p *runPlan) error {
	c, at, err := a.Server(p.Journal)
	if c != nil {
		p.Journal = remote.Address(c.Base, at)
	}
	return err
}

// beside is where the logs of trials lie: beside the journal, or, of one at a server,
// in the current directory.
func beside(journal string) string {
	if _, at, away, _ := remote.Parse(journal, ""); away {
		return path.Base(at)
	}
	return journal
}

// fromFile takes what the command line does not say from a study file.
func (p *runPlan) fromFile(c *cobra.Command, path string, hasCommand bool) error {
	f, err := studyfile.Load(path)
	if err != nil {
		return missingStudyFile(path, err)
	}
	if len(f.Config.Command) == 0 && !hasCommand {
		return f.At("command", errors.New("it is missing; give one there, or after --"))
	}
	given, flags := *p, c.Flags()
	p.file, p.Config = f, f.Config
	p.Command, p.Metrics = f.Config.Command, given.Metrics
	keep := func(flag string, set func()) {
		if flags.Changed(flag) {
			set()
		}
	}
	keep("trials", func() { p.Trials = given.Trials })
	keep("retries", func() { p.Retries = given.Retries })
	keep("trial-timeout", func() { p.TrialTimeout = given.TrialTimeout })
	keep("stop-grace", func() { p.StopGrace = given.StopGrace })
	keep("grace", func() { p.Grace = given.Grace })
	keep("env", func() { p.Env = append(p.Env, given.Env...) })
	keep("workdir", func() { p.Dir = given.Dir })
	keep("logs", func() { p.Logs = given.Logs })
	keep("log-bytes", func() { p.LogBytes = given.LogBytes })
	keep("runs", func() { p.Runs = given.Runs })
	keep("state", func() { p.State = given.State })
	if p.Jobs = max(f.Config.Jobs, 1); flags.Changed("jobs") {
		p.Jobs = given.Jobs
	}
	if p.workers = max(f.Workers, 1); flags.Changed("workers") {
		p.workers = given.workers
	}
	if p.timeout = f.Timeout; flags.Changed("timeout") {
		p.timeout = given.timeout
	}
	if p.maxFailures = f.MaxFailures; flags.Changed("max-failures") {
		p.maxFailures = given.maxFailures
	}
	p.none()
	return nil
}

// missingStudyFile says how a study file that is not there is made.
func missingStudyFile(path string, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return cli.WithHint(err, "check the path; foldlog study init "+path+" writes a study file to begin with")
}

// places are where everything is kept unless the command line says otherwise.
func (p *runPlan) places() {
	for _, d := range []struct {
		path  *string
		usual string
	}{{&p.Logs, runner.LogsPath(beside(p.Journal))}, {&p.State, runner.StatePath(beside(p.Journal))}, {&p.Runs, runner.RunsPath(beside(p.Journal))}} {
		if *d.path == "" {
			*d.path = d.usual
		}
	}
	p.none()
}

// none are the places that the command line does without.
func (p *runPlan) none() {
	for _, path := range []*string{&p.Logs, &p.State, &p.Runs} {
		if *path == "none" {
			*path = ""
		}
	}
}

// check tells a wrong command line from a study that cannot be worked on.
func (p *runPlan) check(snap *study.Snapshot) error {
	err := p.Config.Check(snap)
	if !cli.As[*runner.ConfigError](err) {
		return err
	}
	if p.file != nil {
		return p.file.Explain(err)
	}
	hint := ""
	if st, findErr := snap.Study(p.Study); findErr == nil && p.Metrics == nil && len(st.Config.MetricNames) == 0 {
		hint = "say which with --metric NAME, once for each objective"
	}
	return cli.WithHint(&cli.UsageError{Err: err}, hint)
}
