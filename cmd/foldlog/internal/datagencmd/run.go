package datagencmd

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/cmd/foldlog/internal/cmdline"
	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/datagen/pipeline"
	"github.com/foldlog/foldlog/datagen/pipeline/pipefile"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/logkind"
)

// runFlags is the command line of datagen run.
type runFlags struct {
	root, items, key, experiment, run string
	workers                           int
	json                              bool
}

func (a *app) runCmd() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run PIPELINE.yaml [--root ROOT] [--items FILE.jsonl] [--workers N]",
		Short: "Run a pipeline whose steps are commands, and go on where it stopped",
		Long: `Run a pipeline whose steps are commands in any language. A command gets the item
as one JSON object on standard input and prints the fields that change as a JSON
object. Each step that ends well is one durable checkpoint; what is complete is
never run again, so the same command continues what was interrupted. Items that
failed are tried again from the step that failed. Any number of runs, on any
number of machines that share the root, may work on one experiment at once.

The items are a JSON value a line: a key, or {"key": ..., "fields": {...},
"tags": {...}}; with --key an object with the fields themselves, of which FIELD is
the key. --items - reads them from standard input. A pipeline file says what is done
with each, in steps, loops, branches, maps and filters (docs/guide/datagen.md has all):

  pipeline: stories
  steps:
    - {step: write, run: [python3, write.py], retry: 3}
    - {step: judge, run: [python3, judge.py]}
    - {filter: good, keep: score > 1}

The first Ctrl-C lets the running steps finish and be recorded. A second one stops
them; they run again the next time.`,
		Example: "  foldlog datagen run digits.yaml --items digits.jsonl --workers 8",
		Args:    cmdline.Operands("PIPELINE.yaml"),
	}
	flags := c.Flags()
	rootVar(c, &f.root)
	flags.StringVar(&f.items, "items", "", "a `FILE` with an item a line, - for standard input (default: the one that the pipeline names)")
	flags.StringVar(&f.key, "key", "", "lines of items are the fields themselves, and `FIELD` is the key (default: what the pipeline says)")
	flags.StringVar(&f.experiment, "experiment", "", "work on the experiment `NAME` and not on that of the pipeline")
	flags.StringVar(&f.run, "run", "", "the `NAME` of this run in the log (default: drawn at random)")
	flags.IntVar(&f.workers, "workers", 0, "work on `N` items at once (default: the number of processors)")
	flags.BoolVar(&f.json, "json", false, "print the report as one JSON object")
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.datagenRun(c.Context(), &f, args[0])
	}
	return c
}

func (a *app) datagenRun(ctx context.Context, f *runFlags, path string) error {
	if f.workers < 0 || f.workers > 4096 {
		return cli.Usagef("--workers %d: must be from 1 to 4096", f.workers)
	}
	file, err := pipefile.Load(path)
	if err != nil {
		return cli.Failed("datagen run", path, err)
	}
	if f.experiment != "" {
		if err := datagen.CheckName(f.experiment); err != nil {
			return &cli.UsageError{Err: fmt.Errorf("--experiment: %w", err)}
		}
		file.Experiment = f.experiment
	}
	if f.items != "" {
		file.Items = f.items
	}
	if f.key != "" {
		file.Key = f.key
	}
	if file.Items == "" {
		return cli.WithHint(cli.Usagef("datagen run: there are no items"), "give --items FILE.jsonl, or a line items: FILE.jsonl in the pipeline")
	}
	in, err := a.OpenInput(file.Items)
	if err != nil {
		return cli.Failed("datagen run: open items", file.Items, err)
	}
	defer in.Close()
	ref := logkind.DatagenRef{Root: a.DatagenRoot(f.root), Pipeline: file.Pipeline, Experiment: file.Experiment}
	if err := a.RootServer(&ref); err != nil {
		return err
	}
	sources := pipefile.Sources(file.Items, in, filepath.Dir(file.Items), file.Key)
	if file.Items != "-" { // the first line of standard input may be long in coming
		next, stop := iter.Pull2(sources)
		defer stop()
		if sources, err = begun(next); err != nil {
			return cli.Failed("datagen run", path, err)
		}
	}
	return cli.Failed("datagen run", path, a.runPipeline(ctx, f, ref, file, sources))
}

// begun looks at the first source, so that a file that is none of items makes no log.
func begun(next func() (pipeline.Source, error, bool)) (iter.Seq2[pipeline.Source, error], error) {
	s, err, ok := next()
	if ok && err != nil {
		return nil, err
	}
	return func(yield func(pipeline.Source, error) bool) {
		for ok && yield(s, err) {
			s, err, ok = next()
		}
	}, nil
}

// runPipeline runs a pipeline and shows how it goes. The first interrupt ends ctx
// and lets steps finish; a second one stops them.
func (a *app) runPipeline(ctx context.Context, f *runFlags, ref logkind.DatagenRef, file *pipefile.File, sources iter.Seq2[pipeline.Source, error]) (err error) {
	bar := a.NewProgress("items", cli.Items)
	defer bar.Close()
	outages := &outageTeller{note: bar.Notef}
	w, l, err := openBefore(ctx, ref, f.run, outages)
	if err != nil {
		return err
	}
	running, unwatch := cli.SecondInterrupt(ctx, bar, "letting the running steps finish; interrupt again to stop them, the next run does them again", "stopping the running steps")
	defer unwatch()
	defer func() { err = errors.Join(err, w.Close(context.WithoutCancel(running))) }()
	a.Debugf("run %s writes %s", w.Run(), ref)
	defer a.maintaining(l, datagen.DefaultMaintainEvery)()
	show := &progress{app: a, bar: bar}
	began := time.Now()
	report, err := pipeline.Run(running, pipeline.OnLog(l, w), file.Steps, show.counted(sources), pipeline.Options{
		Workers: f.workers, Drain: ctx.Done(), OnEvent: show.event,
	})
	bar.Close()
	done := RunReport{Path: ref.String(), Run: w.Run(), TookMS: time.Since(began).Milliseconds(), Report: report}
	count, waited := outages.total()
	done.Outages, done.WaitedMS = count, waited.Milliseconds()
	if printErr := a.printRun(&done, f.json); err == nil {
		err = printErr
	}
	switch {
	case err != nil && !errors.Is(err, context.Canceled):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case report.Failed+report.Refused > 0:
		return cli.WithHint(fmt.Errorf("%s failed, %s refused", cli.Plural(int64(report.Failed), "item"), cli.Plural(int64(report.Refused), "item")),
			"foldlog datagen failures "+ref.String()+" says why; the same command tries them again")
	}
	return err
}

// maintaining takes part in the election of who maintains a log, once a while has
// gone by: a short run leaves that to others. The returned function ends it.
func (a *app) maintaining(l *datagen.Log, after time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-ctx.Done():
			return
		case <-time.After(after):
		}
		err := l.Maintain(ctx, datagen.MaintainOptions{Report: func(s datagen.MaintainStats, err error) {
			if err != nil {
				a.Debugf("maintenance: %v", err)
			} else {
				a.Debugf("maintenance: %s merged, %s compacted", cli.Plural(s.Merged, "event"), cli.Plural(int64(s.Compacted.Removed), "fragment"))
			}
		}})
		if err != nil {
			a.Debugf("maintenance: %v", err)
		}
	}()
	return func() { cancel(); <-done }
}

// progress shows a run as it goes. Event is called once at a time.
type progress struct {
	*app
	bar                    *cli.Progress
	read                   atomic.Int64 // items
	ended, running, failed int64
}

// counted counts the items as they are read.
func (p *progress) counted(sources iter.Seq2[pipeline.Source, error]) iter.Seq2[pipeline.Source, error] {
	return func(yield func(pipeline.Source, error) bool) {
		for s, err := range sources {
			p.read.Add(1)
			if !yield(s, err) {
				return
			}
		}
	}
}

func (p *progress) event(e pipeline.Event) {
	name := e.Item + " " + e.Step.Instance
	switch e.Kind {
	case pipeline.Began:
		if !e.Sub {
			p.running++
		}
		if e.Passed > 0 && p.Verbose {
			p.bar.Notef("%s goes on after %s", e.Item, cli.Plural(int64(e.Passed), "step"))
		}
	case pipeline.Ended:
		if !e.Sub {
			p.running--
			p.ended++
		}
	case pipeline.Done:
		if p.Verbose {
			p.bar.Notef("%s is done", name)
		}
	case pipeline.Failed:
		p.failedAttempt(name, e)
	case pipeline.Refused:
		p.bar.Notef("%v; it is left as it is", e.Err)
	}
	p.bar.Set(p.ended, p.read.Load())
	p.bar.Say(fmt.Sprintf("%d running, %d failed", p.running, p.failed))
}

func (p *progress) failedAttempt(name string, e pipeline.Event) {
	if !e.Last {
		p.bar.Notef("%s failed, and is tried again: %v", name, e.Err)
		return
	}
	if !e.Sub {
		p.running--
		p.failed++
	}
	p.bar.Notef("%s failed: %v", name, e.Err)
}

// RunReport is the output of `foldlog datagen run --json`.
type RunReport struct {
	Path   string `json:"path"`
	Run    string `json:"run"` // as the log names it
	TookMS int64  `json:"took_ms"`
	pipeline.Report
	Outages  int   `json:"outages"`   // of the storage, one that the run gave up on included
	WaitedMS int64 `json:"waited_ms"` // how long they took together
}

func (a *app) printRun(r *RunReport, asJSON bool) error {
	if asJSON {
		return cli.WriteJSON(a.Out(), r)
	}
	took := cli.Duration(time.Duration(r.TookMS) * time.Millisecond)
	pairs := [][2]string{
		{"log", cli.Safe(r.Path)},
		{"this run", fmt.Sprintf("%d completed, %d filtered, %d failed, in %s", r.Completed, r.Filtered, r.Failed, took)},
		{"steps", strconv.Itoa(r.Steps)},
	}
	for _, p := range []struct {
		label string
		n     int
		more  string
	}{
		{"tried again", r.Retries, ""}, {"refused", r.Refused, ", left as they are"}, {"left", r.Left, ", to be resumed by the next run"},
	} {
		if p.n > 0 {
			pairs = append(pairs, [2]string{p.label, strconv.Itoa(p.n) + p.more})
		}
	}
	if r.Outages > 0 {
		pairs = append(pairs, [2]string{"outages", fmt.Sprintf("%d of the storage, %s in all", r.Outages, cli.Duration(time.Duration(r.WaitedMS)*time.Millisecond))})
	}
	return cli.WriteFields(a.Out(), pairs...)
}
