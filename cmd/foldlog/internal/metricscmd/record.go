package metricscmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/cmd/foldlog/internal/cmdline"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/metricsview"
	"github.com/foldlog/foldlog/metrics"
	"github.com/foldlog/foldlog/metrics/system"
	"github.com/foldlog/foldlog/metrics/trainlog"
)

// recordGrace is how long record goes on reading after a signal, so that what
// the training run says at its end is in the stream.
const recordGrace = 2 * time.Second

// recordFlags is the command line of record.
type recordFlags struct {
	slug, describe string
	to, meta       []string
	system         bool
	systemEvery    time.Duration
	reading        readingFlags
}

func (a *app) recordCmd() *cobra.Command {
	var flags recordFlags
	c := &cobra.Command{
		Use:   "record --slug SLUG --to TARGET... [--describe TEXT] [--meta K=V]... [--system]",
		Short: "Write a stream from the output of a training run",
		Long: `Write a metrics stream from what a training run prints, and pass that on to
standard output, unless a target is stdout or with --quiet. Targets are
jsonl:PATH, which is appended to, stdout, and http(s)://HOST, a Foldlog server;
without --to it is FOLDLOG_SERVER.

Standard input may have the events of a stream; JSON lines, of which every
number is a metric, those inside objects under "outer/inner"; and lines with
name=value in them. The member "step", or that of --step, is the step;
without it the lines count. Members named by --tag are the metrics' metadata.
Anything else is passed on and not recorded.

The end of the input ends the run, unless it has the events itself and no done
among them. SIGINT and SIGTERM write the interruption and no done. A target that
is full or away never holds the training up: what is lost is counted, told at
the end, and makes the exit status 1.`,
		Example: "  python train.py | foldlog metrics record --slug my-run --to jsonl:run.jsonl --meta lr=0.001\n  python train.py | foldlog metrics record --slug my-run --to jsonl:run.jsonl --to https://foldlog.example --system",
		Args:    cmdline.Operands(),
	}
	f := c.Flags()
	f.StringVar(&flags.slug, "slug", "", "the `SLUG` that names the run (default: that of the input's open)")
	f.StringArrayVar(&flags.to, "to", nil, "a `TARGET`: jsonl:PATH, stdout or http(s)://HOST; again for each further one")
	f.StringVar(&flags.describe, "describe", "", "one line of `TEXT` about the run")
	f.StringArrayVar(&flags.meta, "meta", nil, "a `K=V` of the run's identity; again for each further one")
	f.BoolVar(&flags.system, "system", false, "add CPU, memory and GPU series")
	f.DurationVar(&flags.systemEvery, "system-every", 10*time.Second, "the `DURATION` between two looks of --system")
	flags.reading.addFlags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		rec, err := a.newRecorder(flags)
		if err != nil {
			return advise(err)
		}
		return advise(a.record(c.Context(), rec, flags))
	}
	return c
}

// readingFlags is the command line of how values become metrics.
type readingFlags struct {
	step       string
	tags, skip []string
}

func (f *readingFlags) addFlags(c *cobra.Command) {
	c.Flags().StringVar(&f.step, "step", "step", "the `NAME` whose value is the step")
	c.Flags().StringArrayVar(&f.tags, "tag", nil, "a `NAME` whose value is metadata of the line's metrics")
	c.Flags().StringArrayVar(&f.skip, "skip", nil, "a `NAME` to leave out, in which * stands for any text")
}

func (f *readingFlags) reading() trainlog.Reading {
	r := trainlog.Reading{Step: f.step, Tags: f.tags}
	if len(f.skip) > 0 {
		r.Skip = nameFilter(f.skip)
	}
	return r
}

func (a *app) newRecorder(flags recordFlags) (*trainlog.Recorder, error) {
	rec := &trainlog.Recorder{
		Slug: flags.slug, Description: flags.describe, Reading: flags.reading.reading(),
		Refused: func(err error) { a.Notef("not recorded: %v", err) },
	}
	if flags.slug != "" {
		if err := metrics.CheckSlug(flags.slug); err != nil {
			return nil, &cli.UsageError{Err: fmt.Errorf("--slug: %w", err)}
		}
	}
	var err error
	if rec.Meta, err = metaFlags(flags.meta); err != nil {
		return nil, err
	}
	targets, err := a.targets(flags.to)
	if err != nil {
		return nil, err
	}
	a.tellOtherRuns(flags.slug, targets)
	if rec.Emitter, err = metrics.NewEmitter(metrics.EmitterOptions{Targets: targets, Clock: a.Time}); err != nil {
		return nil, fmt.Errorf("metrics record: %w", hintDirectory(err, targets))
	}
	return rec, nil
}

// tellOtherRuns tells of files that hold a run of another slug: they are one run, with
// the newest name.
func (a *app) tellOtherRuns(slug string, targets []metrics.Target) {
	for _, t := range targets {
		if t.Kind != metrics.TargetJSONL || slug == "" {
			continue
		}
		info, err := os.Stat(t.Path)
		if err != nil || !info.Mode().IsRegular() { // a pipe would wait for its writer
			continue
		}
		f, err := os.Open(t.Path)
		if err != nil {
			continue // opening it for writing will tell
		}
		if was, err := metricsview.FirstSlug(f); err == nil && was != "" && was != slug {
			a.Notef("%s holds the run %s, which goes on as %s; another run is better kept in another file", t, cli.Safe(was), cli.Safe(slug))
		}
		f.Close()
	}
}

// hintDirectory names the directory that a file of the targets lacks, if that is the error.
func hintDirectory(err error, targets []metrics.Target) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, t := range targets {
		if t.Kind != metrics.TargetJSONL {
			continue
		}
		if dir := filepath.Dir(t.Path); !isThere(dir) {
			return cli.WithHint(err, "make the directory "+dir+" first")
		}
	}
	return err
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// targets reads --to, FOLDLOG_SERVER and FOLDLOG_TOKEN.
func (a *app) targets(to []string) ([]metrics.Target, error) {
	if server := a.Var("FOLDLOG_SERVER"); len(to) == 0 && server != "" {
		to = []string{server}
	}
	if len(to) == 0 {
		return nil, cli.Usagef("--to is missing: jsonl:PATH, stdout or http(s)://HOST")
	}
	var targets []metrics.Target
	for _, text := range to {
		t, err := metrics.ParseTarget(text)
		if err != nil {
			return nil, &cli.UsageError{Err: fmt.Errorf("--to: %w", err)}
		}
		switch t.Kind {
		case metrics.TargetStdout:
			t.Stdout = lossyOutput{a.Out()}
		case metrics.TargetHTTP:
			t.Token = a.Var("FOLDLOG_TOKEN")
		}
		targets = append(targets, t)
	}
	return targets, nil
}

// metaFlags makes metadata of K=V; what is a JSON number, true, false or null
// is one.
func metaFlags(pairs []string) (metrics.Metadata, error) {
	values, err := keyValues("meta", pairs)
	if err != nil {
		return "", err
	}
	var m metrics.Metadata
	for _, key := range slices.Sorted(maps.Keys(values)) {
		m = m.Merge(metaValue(key, values[key]))
	}
	return m, nil
}

func metaValue(key, value string) metrics.Metadata {
	quoted := metrics.Meta(key, value)
	if raw, ok := scalarJSON(value); ok {
		name := metrics.Meta(key, "")
		return name[:len(name)-len(`""}`)] + metrics.Metadata(raw) + "}"
	}
	return quoted
}

// scalarJSON tells a JSON number, true, false or null from other text.
func scalarJSON(text string) (raw string, ok bool) {
	switch text {
	case "true", "false", "null":
		return text, true
	}
	var dec metrics.Decoder
	var e metrics.Event
	line := `{"ts_ms":0,"step":0,"kind":"metric","name":"x","value":` + text + `,"metadata":{}}`
	if text == "" || text[0] == '"' || dec.Decode([]byte(line), &e) != nil || !e.Value.IsFinite() || e.Lenient != 0 || e.Extra != "" {
		return "", false
	}
	return text, true
}

// record reads standard input to its end, or until a while after a signal.
func (a *app) record(ctx context.Context, rec *trainlog.Recorder, flags recordFlags) error {
	pass := a.passThrough(flags.to)
	lines := metrics.NewMixed(0, rec.Item)
	stopSystem, samples := a.watchSystem(flags)
	chunks := readChunks(a.In())
	signal, grace := ctx.Done(), (<-chan time.Time)(nil)
	var inputErr error
	for open := true; open; {
		select {
		case c, ok := <-chunks:
			if !ok || c.err != nil {
				inputErr, open = c.err, false
				break
			}
			pass.write(c.b)
			lines.Write(c.b)
			c.release()
		case s := <-samples:
			for _, v := range s {
				rec.Metric(v.Name, v.Value, v.Metadata)
			}
		case <-signal:
			signal, grace = nil, time.After(recordGrace)
			a.Notef("interrupted; reading on for a moment")
		case <-grace:
			open = false
		}
	}
	lines.Close()
	if !rec.Done() {
		awaitSignal(ctx)
	}
	stopSystem()
	report := rec.End(signalOf(ctx))
	return errors.Join(a.told(ctx, rec, pass, report), cli.Failed("read", "standard input", inputErr))
}

// watchSystem samples the machine until stop is called, if --system asks for it.
func (a *app) watchSystem(flags recordFlags) (stop func(), samples <-chan []system.Value) {
	if !flags.system {
		return func() {}, nil
	}
	machine := system.Open()
	if machine.NoCPU != nil {
		a.Notef("--system: %v", machine.NoCPU)
	}
	if machine.NoGPU != nil {
		a.Debugf("--system: no nvidia-smi, no GPU series")
	}
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	out := make(chan []system.Value)
	ended.Go(func() { machine.Watch(ctx, max(flags.systemEvery, 100*time.Millisecond), out) })
	return func() {
		cancel()
		ended.Wait()
	}, out
}

// signalLag is how long after the end of the input a signal may still come. A
// Ctrl-C ends the training run, and with it the input, at about the same moment.
const signalLag = 100 * time.Millisecond

func awaitSignal(ctx context.Context) {
	timer := time.NewTimer(signalLag)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// told says what became of everything. A signal is the error if nothing is
// lost.
func (a *app) told(ctx context.Context, rec *trainlog.Recorder, pass *passing, report metrics.Report) error {
	for _, t := range report.Targets {
		a.Notef("%s", t.String())
		if t.Page != "" {
			a.Notef("see %s", t.Page)
		}
	}
	var lost []error
	if n := report.Lost(); n > 0 || report.Err() != nil {
		lost = append(lost, fmt.Errorf("%s lost: %w", cli.Plural(n, "event"), orSlow(report.Err())))
	}
	if n, first := rec.Unread(); n > 0 {
		lost = append(lost, fmt.Errorf("%s not recorded, the first: %w", cli.Plural(n, "line"), first))
	}
	if pass.lost > 0 {
		lost = append(lost, fmt.Errorf("%s not passed on: %w", cli.Size(pass.lost), pass.err))
	}
	if len(lost) > 0 {
		return fmt.Errorf("metrics record: %w", errors.Join(lost...))
	}
	if !rec.Opened() {
		a.Notef("nothing was recorded: the input has no events, JSON lines or name=value")
	}
	return ctx.Err()
}

func orSlow(err error) error {
	if err == nil {
		return metrics.ErrSlow
	}
	return err
}

// signalOf is the name of the signal that ended a context, "" if it goes on.
func signalOf(ctx context.Context) string {
	var signal *cli.SignalError
	switch {
	case ctx.Err() == nil:
		return ""
	case errors.As(context.Cause(ctx), &signal):
		return signal.Name
	}
	return "cancellation"
}

// passing copies the input on until nobody reads it any more.
type passing struct {
	w    io.Writer // nil for nowhere
	lost int64     // bytes
	err  error
}

func (a *app) passThrough(to []string) *passing {
	if a.Quiet || slices.Contains(to, "stdout") {
		return &passing{}
	}
	return &passing{w: a.Out()}
}

func (p *passing) write(b []byte) {
	if p.w == nil {
		return
	}
	if p.err != nil {
		p.lost += int64(len(b))
		return
	}
	n, err := lossyOutput{p.w}.Write(b)
	if err != nil {
		p.err, p.lost = err, int64(len(b)-n)
	}
}

// lossyOutput keeps a closed standard output from ending the command quietly:
// here it is a loss that is to be told.
type lossyOutput struct{ w io.Writer }

func (o lossyOutput) Write(p []byte) (int, error) {
	n, err := o.w.Write(p)
	if errors.Is(err, cli.ErrOutputClosed) {
		err = metrics.ErrPipeClosed
	}
	return n, err
}

// inputChunk is a piece of standard input.
type inputChunk struct {
	b       []byte
	err     error
	release func()
}

// readChunks reads in a goroutine of its own, which a signal leaves behind.
func readChunks(in io.Reader) <-chan inputChunk {
	out, free := make(chan inputChunk), make(chan []byte, 2)
	free <- make([]byte, 64<<10)
	free <- make([]byte, 64<<10)
	go func() {
		defer close(out)
		for buf := range free {
			n, err := in.Read(buf)
			if n > 0 {
				out <- inputChunk{b: buf[:n], release: func() { free <- buf }}
			} else {
				free <- buf
			}
			if err != nil && err != io.EOF {
				out <- inputChunk{err: err}
			}
			if err != nil {
				return
			}
		}
	}()
	return out
}
