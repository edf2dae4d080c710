package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/version"
	"github.com/foldlog/foldlog/runner"
	"github.com/foldlog/foldlog/study"
	"github.com/foldlog/foldlog/study/space"
)

// runFlags is the command line of study run.
type runFlags struct {
	study   string
	trials  uint64
	workers int
	space   string
	metrics []string
	retries uint64
	grace   time.Duration
	json    bool
}

func (a *app) studyRunCmd() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run PATH --trials N [--workers K] [--retries N] [--space FILE] -- COMMAND...",
		Short: "Run the trials of a study as commands, in parallel",
		Long: `Run the trials of a study as commands, in K worker processes. Each takes the
next trial, gets its parameters from the study's sampler, runs COMMAND with {name} replaced by the
parameter of that name ({{ and }} are braces), and finishes the trial.
FOLDLOG_PARAMS has all parameters as JSON; FOLDLOG_STUDY, FOLDLOG_TRIAL,
FOLDLOG_ATTEMPT and FOLDLOG_JOURNAL say which trial it is.

The command prints the metrics stream, or JSON objects one a line, on standard
output. The study's metrics (or those of --metric) become the trial's reports,
their last values its result. Another exit status than 0 fails the trial, with
the end of the output as the reason; --retries tries it again.

--trials is the number of managed trials that the study is to have in all: those
of earlier runs, of "ask --lease" and of "enqueue" count, retries do not, so the
same command continues what was interrupted. Several runs, on several machines
that share the directory, may work on one study. A worker that dies is noticed
after --grace: its trial is failed as stale, and retried if --retries allows.

The first Ctrl-C lets the running commands finish. A second one stops them and
gives their trials back: the next run takes them up, with the same parameters.`,
		Example: "  foldlog study run search.atj --trials 100 --workers 4 --retries 1 -- python train.py --lr {lr}",
		Args:    runArgs,
	}
	flags := c.Flags()
	flags.StringVar(&f.study, "study", "", "the `NAME` of the study, if the journal has several")
	flags.Uint64Var(&f.trials, "trials", 0, "have `N` managed trials in the study in all; 0 runs only what is waiting")
	flags.IntVar(&f.workers, "workers", 1, "work in `K` processes")
	flags.StringVar(&f.space, "space", "", "a `FILE` with the search space, in place of the study's own")
	flags.StringArrayVar(&f.metrics, "metric", nil, "the `NAME` of a metric of the output that is the result, one for each direction (default: the study's)")
	flags.Uint64Var(&f.retries, "retries", 0, "try a failed trial again, `N` times at most")
	flags.DurationVar(&f.grace, "grace", runner.DefaultGrace, "fail the trial of a worker that is silent for this `DURATION`")
	flags.BoolVar(&f.json, "json", false, "print the summary as one JSON object")
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.studyRun(c.Context(), &f, args[0], args[1:])
	}
	return c
}

func runArgs(c *cobra.Command, args []string) error {
	dash := c.ArgsLenAtDash()
	switch {
	case len(args) == 0 || dash == 0:
		return cli.Usagef("study run: PATH is missing")
	case dash < 0 || len(args) == dash:
		return cli.WithHint(cli.Usagef("study run: COMMAND is missing"), "give it after --, as in: foldlog study run search.atj --trials 10 -- python train.py --lr {lr}")
	case dash > 1:
		return cli.Usagef("study run: unexpected argument %q", args[1])
	}
	return nil
}

func (a *app) studyRun(ctx context.Context, f *runFlags, path string, command []string) error {
	if f.workers < 1 || f.workers > 1024 {
		return cli.Usagef("--workers %d: must be from 1 to 1024", f.workers)
	}
	if err := mustExist(path); err != nil {
		return failed("study run", path, err)
	}
	r, err := study.OpenJournalReader(path, nil)
	if err != nil {
		return failed("study run", path, err)
	}
	defer r.Close()
	st, err := pickStudy(r.Snapshot(), path, f.study)
	if err != nil {
		return failed("study run", path, err)
	}
	config := runner.Config{
		Study: st.ID, Command: command, Metrics: f.metrics, Trials: f.trials,
		Retries: f.retries, Grace: f.grace, Journal: path,
	}
	if f.space != "" {
		if config.Space, err = space.Load(f.space); err != nil {
			return fmt.Errorf("study run: read space: %w", err)
		}
	}
	if err := checkRun(config, r.Snapshot()); err != nil {
		return failed("study run", path, err)
	}
	return a.supervise(ctx, r, config, f)
}

// checkRun tells a wrong command line from a study that cannot be worked on.
func checkRun(config runner.Config, snap *study.Snapshot) error {
	err := config.Check(snap)
	if !cli.As[*runner.ConfigError](err) {
		return err
	}
	hint := ""
	if st, findErr := snap.Study(config.Study); findErr == nil && config.Metrics == nil && len(st.Config.MetricNames) == 0 {
		hint = "say which with --metric NAME, once for each objective"
	}
	return cli.WithHint(&cli.UsageError{Err: err}, hint)
}

// supervise runs the workers and shows what they do. The first interrupt ends
// ctx and lets them finish; a second one stops their commands.
func (a *app) supervise(ctx context.Context, r *study.JournalReader, config runner.Config, f *runFlags) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("study run: %w", err)
	}
	bar := a.NewProgress("trials", cli.Items)
	defer bar.Close()
	stopped, unwatch := a.watchInterrupts(ctx, bar)
	defer unwatch()
	s := runner.Supervisor{
		Config: config, Workers: f.workers, Argv: []string{self, "study", workerCommand},
		Program: version.Program(), Stderr: a.Err(),
		OnEvent: func(_ int, e runner.Event) { a.showEvent(bar, e) },
		OnStart: func(i, pid int, worker uint64) {
			a.Debugf("worker process %d has pid %d and worker id %d", i+1, pid, worker)
		},
		OnEnd: func(_ int, err error) {
			bar.Notef("%v; its trial will be failed as stale in %v, and retried if --retries allows", err, config.Grace)
		},
	}
	stop := a.showProgress(bar, r, config)
	began := time.Now()
	report, err := s.Run(stopped, ctx.Done())
	stop()
	bar.Close()
	if refreshErr := r.Refresh(context.Background()); refreshErr != nil && err == nil {
		err = refreshErr
	}
	if printErr := a.printRun(r.Snapshot(), config, report, time.Since(began), f.json); err == nil {
		err = printErr
	}
	switch {
	case err != nil:
		return cli.WithHint(failed("study run", config.Journal, err), runHint(err))
	case ctx.Err() != nil:
		return ctx.Err()
	case report.Complete == 0 && report.Failed > 0:
		return failed("study run", config.Journal, fmt.Errorf("no trial of this run is complete; %s failed", plural(int64(report.Failed), "trial")))
	}
	return nil
}

// runHint says how to go on after workers were killed; "" leaves the hint to
// others.
func runHint(err error) string {
	var killed *runner.KilledError
	if errors.As(err, &killed) {
		return "run the same command again: it takes up what is left, after the grace also what the killed workers had"
	}
	return ""
}

// watchInterrupts tells what an interrupt does, and returns a context that a
// second one ends; a third ends the process.
func (a *app) watchInterrupts(first context.Context, bar *cli.Progress) (second context.Context, stop func()) {
	second, cancel := context.WithCancel(context.Background())
	go func() {
		select {
		case <-second.Done():
			return
		case <-first.Done():
		}
		again := make(chan os.Signal, 1)
		signal.Notify(again, os.Interrupt, syscall.SIGTERM)
		bar.Notef("letting the running trials finish; interrupt again to stop them, the next run takes them up")
		select {
		case <-second.Done():
		case <-again:
			bar.Notef("stopping the running trials")
		}
		signal.Stop(again)
		cancel()
	}()
	return second, cancel
}

// showProgress keeps the bar up to date until the returned function is called.
func (a *app) showProgress(bar *cli.Progress, r *study.JournalReader, config runner.Config) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			if r.Refresh(ctx) == nil {
				showState(bar, r.Snapshot(), config)
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
	return func() { cancel(); <-done }
}

// showState counts trials as the budget does: retries are part of the trial
// that they repeat.
func showState(bar *cli.Progress, snap *study.Snapshot, config runner.Config) {
	st, err := snap.Study(config.Study)
	if err != nil {
		return
	}
	counts := st.Counts()
	live := int64(counts[study.Waiting] + counts[study.Running] + counts[study.Paused])
	total := max(int64(config.Trials), int64(st.Reserved()))
	bar.Set(max(int64(st.Reserved())-live, 0), total)
	words := strconv.Itoa(counts[study.Running]) + " running"
	if best, err := snap.Best(config.Study); err == nil && len(best) == 1 {
		words += fmt.Sprintf(", best %s (trial %d)", valuesText(best[0].Values), best[0].Number)
	}
	bar.Say(words)
}

// showEvent tells what a person should know.
func (a *app) showEvent(bar *cli.Progress, e runner.Event) {
	switch e.Kind {
	case runner.Started:
		if a.Verbose {
			bar.Notef("trial %d started (worker %d, epoch %d)", e.Number, e.Worker, e.Epoch)
		}
	case runner.Finished:
		first, _, _ := strings.Cut(e.Text, "\n")
		if e.State == study.Failed.String() {
			bar.Notef("trial %d failed: %s", e.Number, first)
		} else if a.Verbose {
			bar.Notef("trial %d is %s", e.Number, strings.ToLower(e.State))
		}
	case runner.FailedStale:
		bar.Notef("trial %d failed as %s", e.Number, e.Text)
	case runner.Retried:
		bar.Notef("trial %d %s, as attempt %d", e.Number, e.Text, e.Attempt)
	case runner.GivenBack:
		bar.Notef("trial %d was given back; the next run takes it up", e.Number)
	case runner.Late:
		bar.Notef("trial %d: result came too late: %s", e.Number, e.Text)
	case runner.TakenOver:
		bar.Notef("took the journal over from %s, which had stopped", e.Text)
	case runner.Trouble:
		bar.Notef("trouble, tried again: %s", e.Text)
	}
}

// runSummary is the output of `foldlog study run --json`.
type runSummary struct {
	Path   string `json:"path"`
	Study  string `json:"study"`
	TookMS int64  `json:"took_ms"`
	runner.Report
	States stateCounts `json:"states"` // of the study's trials, after the run
	Best   []bestTrial `json:"best"`   // the best trial, or the Pareto front
}

func (a *app) printRun(snap *study.Snapshot, config runner.Config, report runner.Report, took time.Duration, asJSON bool) error {
	st, err := snap.Study(config.Study)
	if err != nil {
		return err
	}
	s := summarizeStudy(snap, st)
	if asJSON {
		return cli.WriteJSON(a.Out(), runSummary{config.Journal, s.Name, took.Milliseconds(), report, s.States, s.Best})
	}
	pairs := [][2]string{
		{"study", s.Name},
		{"this run", fmt.Sprintf("%d complete, %d failed, %d given back, %d retried, in %s",
			report.Complete, report.Failed, report.GivenBack, report.Retried, cli.Duration(took))},
		{"all trials", s.States.String()},
	}
	if report.Pruned > 0 {
		pairs = append(pairs, [2]string{"pruned", strconv.Itoa(report.Pruned)})
	}
	if report.Stale > 0 {
		pairs = append(pairs, [2]string{"failed as stale", strconv.Itoa(report.Stale)})
	}
	if report.Late > 0 {
		pairs = append(pairs, [2]string{"came too late", fmt.Sprintf("%d, kept in %s", report.Late, runner.LatePath(config.Journal))})
	}
	best, err := snap.Best(config.Study)
	if err != nil {
		return err
	}
	label := "best"
	if len(st.Config.Directions) > 1 {
		label = "Pareto front"
	}
	for _, t := range best {
		pairs = append(pairs, [2]string{label, fmt.Sprintf("trial %d: %s  %s", t.Number, valuesText(t.Values), paramsText(t.Params))})
	}
	return cli.WriteFields(a.Out(), pairs...)
}

// valuesText spells objective values for people.
func valuesText(values []float64) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = strconv.FormatFloat(v, 'g', 6, 64)
	}
	return strings.Join(texts, ", ")
}

// paramsText spells parameters for people: "lr=0.01 opt=adam".
func paramsText(params []study.Param) string {
	texts := make([]string, len(params))
	for i, p := range params {
		value := p.Text()
		if p.Value.Kind() == study.ValueF64 {
			value = strconv.FormatFloat(p.Value.F64(), 'g', 4, 64)
		}
		texts[i] = p.Name + "=" + value
	}
	return strings.Join(texts, " ")
}
