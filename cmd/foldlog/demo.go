package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/cmd/foldlog/internal/cmdline"
	"github.com/foldlog/foldlog/cmd/foldlog/internal/studycmd"
	"github.com/foldlog/foldlog/examples/digits/images"
	"github.com/foldlog/foldlog/examples/digits/trial"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/logkind"
	"github.com/foldlog/foldlog/internal/studyview"
	"github.com/foldlog/foldlog/internal/version"
	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/runner"
	"github.com/foldlog/foldlog/study"
	"github.com/foldlog/foldlog/study/space"
)

// demoSpace is what the demonstration tunes.
const demoSpace = `
lr:         {type: float, low: 1e-4, high: 0.1, log: true}
hidden:     {type: int, low: 64, high: 384, log: true}
dropout:    {type: float, low: 0, high: 0.5}
activation: {type: categorical, choices: [relu, tanh]}
optimizer:  {type: categorical, choices: [adam, sgd]}
`

// demoCommand is a trial of the demonstration: this program again.
var demoCommand = []string{"demo", demoTrainCommand, "--lr", "{lr}", "--hidden", "{hidden}", "--dropout", "{dropout}",
	"--activation", "{activation}", "--optimizer", "{optimizer}", "--slug", "digits"}

const (
	demoTrainCommand = "train"
	demoJournal      = "digits.atj"
	demoMetric       = "val/accuracy"
	// demoGrace is short, so that the killed worker is noticed soon.
	demoGrace = 2 * time.Second
	// demoKillAfter is how many trials finish before a worker is killed.
	demoKillAfter = 4
)

// demoFlags is the command line of the demonstration.
type demoFlags struct {
	dir     string
	trials  uint64
	workers int
	noServe bool
}

func (a *app) demoCmd() *cobra.Command {
	var f demoFlags
	c := &cobra.Command{
		Use:   "demo [--dir DIR] [--trials N] [--workers K] [--no-serve]",
		Short: "Tune a small network on real handwritten digits and make new ones, end to end",
		Long: `Tune a small neural network on real handwritten digits, with several worker
processes on one study journal. One worker is killed on the way: its trial is
failed as stale and tried again by another. Then the best network makes new images
from the real ones: a pipeline that is killed in the middle and goes on where it
was. Both logs are verified, and everything is served as a page in a browser until
an interrupt. The data is in this program; it takes about twenty seconds on two
cores.`,
		Example: "  foldlog demo --dir /tmp/demo",
		Args:    cmdline.Operands(),
	}
	c.Flags().StringVar(&f.dir, "dir", "", "put the journal in `DIR` (default: a new temporary directory)")
	c.Flags().Uint64Var(&f.trials, "trials", 16, "run `N` trials")
	c.Flags().IntVar(&f.workers, "workers", 3, "work in `K` processes; one is killed if there are several")
	c.Flags().BoolVar(&f.noServe, "no-serve", false, "end when the work is done, without a server")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if f.trials < 1 || f.workers < 1 || f.workers > 64 {
			return cli.Usagef("demo: --trials must be at least 1, --workers from 1 to 64")
		}
		return a.demo(c.Context(), &f)
	}
	c.AddCommand(demoTrainCmd(), a.demoImagesCmd())
	return c
}

// demoTrainCmd trains the network once. Its flags are those of package trial.
func demoTrainCmd() *cobra.Command {
	return &cobra.Command{
		Use: demoTrainCommand, Hidden: true, DisableFlagParsing: true,
		Short: "Run one trial of the demonstration",
		Run:   func(_ *cobra.Command, args []string) { os.Exit(trial.Main(args)) },
	}
}

func (a *app) demo(ctx context.Context, f *demoFlags) error {
	path, err := f.path()
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	if err := a.demoCreate(ctx, path); err != nil {
		return cli.Failed("demo", path, err)
	}
	r, err := study.OpenJournalReader(path, journal.ReaderOptions{})
	if err != nil {
		return cli.Failed("demo", path, err)
	}
	defer r.Close()
	report, took, err := a.demoRun(ctx, r, path, f)
	if err != nil {
		return cli.Failed("demo", path, err)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := a.demoShow(ctx, r, path, report, took); err != nil || f.noServe {
		return cli.Failed("demo", path, err)
	}
	return cli.Failed("demo", path, a.demoServe(ctx, filepath.Dir(path)))
}

// demoServe serves what the demonstration made: at the usual address, or at any
// that is free.
func (a *app) demoServe(ctx context.Context, root string) error {
	address := defaultAddress
	l, err := net.Listen("tcp", address)
	if err != nil {
		address = "127.0.0.1:0"
	} else if err := l.Close(); err != nil {
		return err
	}
	a.say("\nAll of it in a browser, until Ctrl-C:")
	return a.serve(ctx, root, &serveOptions{address: address})
}

func (f *demoFlags) path() (string, error) {
	if f.dir == "" {
		dir, err := os.MkdirTemp("", "foldlog-demo-")
		return filepath.Join(dir, demoJournal), err
	}
	return filepath.Join(f.dir, demoJournal), os.MkdirAll(f.dir, 0o777)
}

func (a *app) demoCreate(ctx context.Context, path string) error {
	declared, err := space.Parse("demo", []byte(demoSpace))
	if err != nil {
		return err
	}
	j, err := study.CreateJournal(ctx, path, journal.WriterOptions{Program: version.Program()})
	if errors.Is(err, journal.ErrExist) {
		return cli.WithHint(err, "give another --dir, or remove "+path+" and "+path+".d")
	}
	if err != nil {
		return err
	}
	seed := uint64(1)
	_, _, err = study.OpenOrCreate(ctx, j, study.Config{
		Name: "digits", Directions: []study.Direction{study.Maximize}, MetricNames: []string{demoMetric},
		Space: declared, Seed: &seed, ResourceUnit: "Epochs",
	})
	return errors.Join(err, j.Close())
}

// demoRun runs the trials, and kills a worker when some have finished.
func (a *app) demoRun(ctx context.Context, r logkind.StudyReader, path string, f *demoFlags) (runner.Report, time.Duration, error) {
	self, err := os.Executable()
	if err != nil {
		return runner.Report{}, 0, err
	}
	a.say("Tuning a small neural network on 1,797 handwritten digits: %d trials, %d worker processes, one journal.", f.trials, f.workers)
	a.say("  %s\n", path)
	config := runner.Config{
		Command: append([]string{self}, demoCommand...), Trials: f.trials, Retries: 1, Grace: demoGrace, Journal: path,
		Runs: filepath.Dir(path),
	}
	run := studycmd.NewRunning(a.Finder, r, config)
	defer run.Bar.Close()
	v := &demoVictim{Running: run, armed: f.workers > 1, pids: map[int]int{}, trials: map[int]uint64{}}
	s := runner.Supervisor{
		Config: config, Workers: f.workers, Argv: []string{self, "study", studycmd.WorkerCommand}, Program: version.Program(),
		Term: 500 * time.Millisecond, Stderr: a.Err(), OnStart: v.started, OnEvent: v.event,
	}
	stop := run.ShowProgress()
	defer stop()
	began := time.Now()
	report, err := s.Run(context.Background(), ctx.Done())
	return report, time.Since(began), err
}

// say prints a line of the demonstration, which is its result.
func (a *app) say(format string, args ...any) {
	fmt.Fprintln(a.Out(), fmt.Sprintf(format, args...))
}

// demoVictim kills the worker that starts a trial once enough have finished.
type demoVictim struct {
	*studycmd.Running

	mu       sync.Mutex
	armed    bool
	finished int
	pids     map[int]int    // of the operating system, by process
	trials   map[int]uint64 // numbers of those that run, by process
}

func (v *demoVictim) started(process, pid int, worker uint64) {
	v.Running.Started(process, pid, worker)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.pids[process] = pid
}

func (v *demoVictim) event(process int, e runner.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch e.Kind {
	case runner.Started:
		v.trials[process] = e.Number
		if v.armed && v.finished >= demoKillAfter {
			v.kill(process)
		}
		return
	case runner.Finished:
		v.finished++
		delete(v.trials, process)
	}
	v.Running.Event(e)
}

// kill takes a worker away as a full machine or a lost node would.
func (v *demoVictim) kill(process int) {
	p, err := os.FindProcess(v.pids[process])
	if err != nil {
		return
	}
	if p.Kill() == nil {
		v.armed = false
		v.Bar.Notef("killed worker process %d (SIGKILL) while it ran trial %d; its silence will be noticed in %v",
			process+1, v.trials[process], demoGrace)
	}
}

func (a *app) demoShow(ctx context.Context, r logkind.StudyReader, path string, report runner.Report, took time.Duration) error {
	if err := r.Refresh(ctx); err != nil {
		return err
	}
	snap := r.Snapshot()
	a.say("%d trials complete, %d failed as stale, %d retried, in %s.\n", report.Complete, report.Stale, report.Retried, cli.Duration(took))
	a.say("The best trials:")
	if err := a.demoBest(snap); err != nil {
		return err
	}
	a.say("\nThe journal, checked from its first byte to its last:")
	if err := a.verify(ctx, []string{path}, logkind.VerifyOptions{}, printVerification); err != nil {
		return err
	}
	if err := a.demoImages(ctx, snap, path); err != nil {
		return err
	}
	a.say("\nWhere to look next:")
	for _, line := range []string{
		"foldlog study trials %s     every trial, the killed one and its retry among them",
		"foldlog study best %s       the best, with all parameters",
		"foldlog inspect %s          writers, sizes, time span",
		"foldlog cat %s | head       the log itself: one line of JSON for everything that happened",
	} {
		a.say("  "+line, path)
	}
	log := logkind.DatagenRef{Root: filepath.Dir(path), Pipeline: images.Pipeline, Experiment: images.Experiment}
	a.say("  foldlog datagen status %s     items by status and step", log)
	a.say("  foldlog datagen item %s digit-00/variants:0 --trajectory     how an image came about", log)
	a.say("  foldlog serve %s     all of it in a browser", log.Root)
	return nil
}

func (a *app) demoBest(snap *study.Snapshot) error {
	ranked, err := snap.Ranked(0, 0)
	if err != nil {
		return err
	}
	t := cli.NewTable(cli.Column{Title: "TRIAL", Align: cli.Right}, cli.Column{Title: demoMetric, Align: cli.Right},
		cli.Column{Title: "ATTEMPT", Align: cli.Right}, cli.Column{Title: "PARAMETERS"})
	t.Bold = a.Color()
	for _, tr := range ranked[:min(5, len(ranked))] {
		t.Row(strconv.FormatUint(tr.Number, 10), strconv.FormatFloat(tr.Values[0], 'f', 4, 64),
			strconv.FormatUint(tr.Attempt, 10), studyview.ParamsText(tr.Params))
	}
	return t.Write(a.Out())
}
