package studycmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/logkind"
	"github.com/foldlog/foldlog/internal/version"
	"github.com/foldlog/foldlog/runner"
	"github.com/foldlog/foldlog/study"
)

// Running is a study run at work: what it hears of its workers.
type Running struct {
	*app
	*runPlan
	r   logkind.StudyReader
	Bar *cli.Progress

	mu       sync.Mutex
	ours     map[uint64]bool // worker ids
	best     study.BestTracker
	failures failures
	waiting  foreign
	troubles troubles
}

// supervise runs the workers and shows what they do. The first interrupt ends
// ctx and lets them finish; a second one stops their commands.
func (a *app) supervise(ctx context.Context, r logkind.StudyReader, p *runPlan) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("study run: %w", err)
	}
	run := a.newRunning(r, p)
	defer run.Bar.Close()
	stopped, unwatch := cli.SecondInterrupt(ctx, run.Bar, "letting the running trials finish; interrupt again to stop them, the next run takes them up", "stopping the running trials")
	defer unwatch()
	s := runner.Supervisor{
		Config: p.Config, Workers: p.workers, Timeout: p.timeout, MaxFailures: p.maxFailures, Argv: []string{self, "study", WorkerCommand},
		Program: version.Program(), Stderr: a.Err(),
		OnEvent: func(_ int, e runner.Event) { run.Event(e) },
		OnStart: run.Started,
		OnEnd: func(_ int, err error) {
			run.Bar.Notef("%v; its trials will be failed as stale in %v, and retried if --retries allows", err, p.Grace)
		},
	}
	stop := run.ShowProgress()
	pushed := run.pushRuns()
	began := time.Now()
	report, err := s.Run(stopped, ctx.Done())
	took := time.Since(began)
	stop()
	pushed()
	run.Bar.Close()
	if refreshErr := r.Refresh(context.Background()); refreshErr != nil && err == nil {
		err = refreshErr
	}
	if printErr := run.print(report, took, err); err == nil {
		err = printErr
	}
	switch {
	case err != nil:
		return cli.WithHint(cli.Failed("study run", p.Journal, err), runHint(p.Journal, err))
	case ctx.Err() != nil:
		return ctx.Err()
	case report.Complete == 0 && report.Failed > 0:
		err := fmt.Errorf("no trial of this run is complete; %s failed", cli.Plural(int64(report.Failed), "trial"))
		hint := "foldlog study show " + p.Journal + " NUMBER says why, with the end of what the trial printed"
		if run.failures.onlyUnmeasured() {
			hint = `the command has to print its result on a line of its own: {"` + run.failures.list[0].missing() + `": 0.5}, or ` + run.failures.list[0].missing() + `=0.5`
		}
		return cli.WithHint(cli.Failed("study run", p.Journal, err), hint)
	}
	return nil
}

// NewRunning is a run that was planned elsewhere, and shows nothing yet. The caller closes
// its bar.
func NewRunning(f logkind.Finder, r logkind.StudyReader, c runner.Config) *Running {
	return (&app{f}).newRunning(r, &runPlan{Config: c})
}

func (a *app) newRunning(r logkind.StudyReader, p *runPlan) *Running {
	return &Running{app: a, runPlan: p, r: r, Bar: a.NewProgress("trials", cli.Items), ours: make(map[uint64]bool)}
}

// Started is told of each worker process.
func (run *Running) Started(i, pid int, worker uint64) {
	run.Debugf("worker process %d has pid %d and worker id %d", i+1, pid, worker)
	run.mu.Lock()
	defer run.mu.Unlock()
	run.ours[worker] = true
}

// runHint says how to go on after workers were killed or trials kept failing; ""
// leaves the hint to others.
func runHint(path string, err error) string {
	var failing *runner.FailingError
	if errors.As(err, &failing) {
		return fmt.Sprintf("foldlog study show %s %d says why; when that is mended, foldlog study retry %s --failed lets the next run try them again", path, failing.Last, path)
	}
	var killed *runner.KilledError
	if errors.As(err, &killed) {
		return "run the same command again: it takes up what is left, after the grace also what the killed workers had"
	}
	return ""
}
