package metrics

import (
	"errors"
	"sync"
)

// Options says what run it is and where its events go.
type Options struct {
	// Slug names the run: the same for every resume of an experiment.
	Slug string
	// Description is one line for people.
	Description string
	// Open is the run's identity; see [OpenMetadata].
	Open Metadata
	// Metadata is what the runtime adds to every metric; it wins over the
	// caller's.
	Metadata Metadata
	EmitterOptions
}

// Runtime is the handle of what runs an experiment: it opens, annotates and
// ends the stream. The experiment itself gets a [Run]. It is safe for
// concurrent use.
type Runtime struct {
	emitter *Emitter
	slug    string

	mu          sync.Mutex
	metadata    Metadata
	merged      map[Metadata]Metadata
	step        int64
	interrupted bool
	ended       bool
}

// Start opens the targets and writes the open event, first of all and on its
// way at once. It fails if the open is beyond the limits ([LimitError]) or a
// file cannot be opened ([TargetError]).
func Start(opts Options) (*Runtime, error) {
	open, err := NewOpen(opts.Slug, opts.Description, opts.Open)
	if err != nil {
		return nil, err
	}
	rt := &Runtime{slug: opts.Slug}
	if err := rt.SetMetadata(opts.Metadata); err != nil {
		return nil, err
	}
	if rt.emitter, err = NewEmitter(opts.EmitterOptions); err != nil {
		return nil, err
	}
	if err := rt.emitter.Emit(&open); err != nil {
		rt.emitter.Close()
		return nil, err
	}
	return rt, nil
}

// Run returns the handle for the experiment, which can do nothing but report
// metrics.
func (rt *Runtime) Run() *Run { return &Run{rt} }

// SetMetadata replaces what the runtime adds to the metrics from now on, for
// example the stage.
func (rt *Runtime) SetMetadata(m Metadata) error {
	m, err := m.compact()
	if err != nil {
		return err
	}
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.metadata = m
	rt.merged = map[Metadata]Metadata{}
	return nil
}

// Annotate writes an annotation at a step; see [Checkpoint] and its like.
func (rt *Runtime) Annotate(step int64, n Note) error {
	e, err := n.Event(step)
	if err != nil {
		return err
	}
	return rt.emitter.Emit(&e)
}

// Interrupt writes that a signal stopped the run, and makes Done end the
// stream without its done event. A checkpoint may still be annotated.
func (rt *Runtime) Interrupt(step int64, signal string) error {
	rt.mu.Lock()
	rt.interrupted = true
	rt.mu.Unlock()
	return rt.Annotate(step, Interrupted(signal, step))
}

// Fail ends a run that went wrong: the failure, then done. The report is
// Done's.
func (rt *Runtime) Fail(step int64, cause error) Report {
	err := rt.Annotate(step, Failed(cause.Error()))
	r := rt.Done()
	if err != nil && !errors.Is(err, ErrClosed) {
		r.Targets = append(r.Targets, TargetReport{Target: "annotation", Err: err})
	}
	return r
}

// Done ends the run: it writes the done event, unless the run was
// interrupted, waits until everything is written, synced and sent, and tells
// what became of it.
func (rt *Runtime) Done() Report {
	rt.mu.Lock()
	write := !rt.interrupted && !rt.ended
	rt.ended = true
	rt.mu.Unlock()
	if write {
		e := NewDone(rt.slug)
		// A line of a checked slug fits, and a closed emitter has its report.
		_ = rt.emitter.Emit(&e)
	}
	return rt.emitter.Close()
}

// Close ends the stream without done, as for a process that stops and will be
// resumed.
func (rt *Runtime) Close() Report {
	rt.mu.Lock()
	rt.ended = true
	rt.mu.Unlock()
	return rt.emitter.Close()
}

// Step is the step of the latest metric.
func (rt *Runtime) Step() int64 {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return rt.step
}

// maxMerged bounds the metadata that are kept merged.
const maxMerged = 4096

// merge returns the caller's metadata with the runtime's, checked.
func (rt *Runtime) merge(step int64, m Metadata) (Metadata, error) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.step = step
	if merged, ok := rt.merged[m]; ok {
		return merged, nil
	}
	checked, err := NewMetric(step, "metric", Number{}, m)
	if err != nil {
		return "", err
	}
	if len(rt.merged) >= maxMerged {
		clear(rt.merged)
	}
	merged := checked.Metadata.Merge(rt.metadata)
	rt.merged[m] = merged
	return merged, nil
}

// Run is the handle of an experiment. It is safe for concurrent use.
type Run struct{ rt *Runtime }

// Metric reports one number at a step: Metric(4, "train/loss", Float(2.7), m).
// It allocates nothing for metadata it has seen, and does not wait for disk or
// network, except for a queue that is full: see [DefaultPatience]. Errors:
// [ErrName], [ErrMetadata], a [LimitError], and [ErrClosed] after the end.
func (r *Run) Metric(step int64, name string, value Number, metadata Metadata) error {
	if err := checkName(name); err != nil {
		return err
	}
	merged, err := r.rt.merge(step, metadata)
	if err != nil {
		return err
	}
	e := Event{Kind: KindMetric, Step: step, Name: name, Value: value, Metadata: merged}
	return r.rt.emitter.Emit(&e)
}
