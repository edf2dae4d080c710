package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"runtime"
	"strings"
	"sync"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/internal/serde"
)

// Options configures Run. The zero value is the documented default.
type Options struct {
	// Workers is how many items are worked on, and how many steps run, at once;
	// the number of processors if 0.
	Workers int
	// Drain, once closed, lets the steps that run come to their end and be
	// recorded, and begins no other.
	Drain <-chan struct{}
	// OnEvent hears of everything, one call at a time. Nil is nobody.
	OnEvent func(Event)
}

// EventKind is what an Event tells about.
type EventKind string

// The kinds of events.
const (
	Began   EventKind = "began"   // an item or a sub-item is begun or resumed
	Started EventKind = "started" // an attempt of a step runs
	Done    EventKind = "done"    // a step is durable
	Failed  EventKind = "failed"  // an attempt failed, and that is durable
	Ended   EventKind = "ended"   // an item or a sub-item is completed or filtered
	Refused EventKind = "refused" // an item was begun by another pipeline, or is at fault
)

// Event is something that happened in a run.
type Event struct {
	Kind EventKind
	Item string
	// Sub says that the item is a sub-item.
	Sub bool
	// Passed is how many steps of an item were done before (of Began).
	Passed int
	// Step and Try say which attempt it is, Try counted from 1.
	Step datagen.Step
	Try  int
	// Err is why it failed or was refused, and Last that it is not tried again.
	Err  error
	Last bool
	// End is how an item ended.
	End datagen.End
}

// Report counts what a run did. Sub-items do not count as items.
type Report struct {
	Completed int `json:"completed"` // items that this run ended
	Filtered  int `json:"filtered"`  // items that this run ended as filtered
	Failed    int `json:"failed"`    // items whose attempts are used up
	Refused   int `json:"refused"`   // items that were begun by another pipeline, or are at fault
	Left      int `json:"left"`      // items that were begun and are to be resumed
	Steps     int `json:"steps"`     // steps that were recorded
	Retries   int `json:"retries"`   // attempts that failed and were followed by another
}

// run is one call of Run.
type run struct {
	pipeline *Pipeline
	log      Log
	// drain is closed by halt, when we are told so or something went wrong.
	drain <-chan struct{}
	halt  func()
	slots chan struct{}

	mu      sync.Mutex
	onEvent func(Event)
	report  Report
}

func (r *run) tell(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case e.Kind == Done:
		r.report.Steps++
	case e.Kind == Failed && !e.Last:
		r.report.Retries++
	}
	if r.onEvent != nil {
		r.onEvent(e)
	}
}

// Run does what is left to do for all sources. Items that are completed or
// filtered are never run again; those that failed are. Every item fails alone: a
// step that fails is no error of Run, and counted in Report.Failed, and an item that is
// refused in Report.Refused, which a program should look at. Errors are those of the
// log and of the sources, and that of ctx: its end stops the steps that run, and
// nothing is recorded of them.
func Run(ctx context.Context, log Log, p *Pipeline, sources iter.Seq2[Source, error], opts Options) (Report, error) {
	if err := p.Check(); err != nil {
		return Report{}, err
	}
	workers := opts.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	drain := make(chan struct{})
	r := &run{pipeline: p, log: log, drain: drain, slots: make(chan struct{}, workers), onEvent: opts.OnEvent}
	r.halt = sync.OnceFunc(func() { close(drain) })
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-opts.Drain:
			r.halt()
		case <-over:
		}
	}()
	err := r.all(ctx, sources, workers)
	return r.report, err
}

// all lets the workers take sources until there are none. The first error lets the
// others come to the end of their steps, and ends the run.
func (r *run) all(ctx context.Context, sources iter.Seq2[Source, error], workers int) error {
	feed, err := r.log.Feed(ctx, sources)
	if err != nil {
		return err
	}
	// Nobody waits for an item that would not be begun.
	taking, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-r.drain:
			stop()
		case <-taking.Done():
		}
	}()
	errs := make([]error, workers)
	var all sync.WaitGroup
	for i := range workers {
		all.Go(func() {
			if errs[i] = r.work(ctx, taking, feed); errs[i] != nil {
				r.halt()
			}
		})
	}
	all.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, key := range feed.Left() {
		r.refuse(key, fmt.Errorf("item %q: %w", key, datagen.ErrFault))
	}
	return errors.Join(errs...)
}

// work takes and works on one item after another.
func (r *run) work(ctx, taking context.Context, feed Feed) error {
	for {
		if isClosed(r.drain) {
			return nil
		}
		taken, err := feed.Next(taking)
		switch {
		case errors.Is(err, io.EOF), err != nil && isClosed(r.drain):
			return nil
		case err != nil:
			return err
		}
		if err := r.taken(ctx, taken); err != nil {
			return err
		}
	}
}

// taken works on an item and counts how it went.
func (r *run) taken(ctx context.Context, t Taken) error {
	defer t.Close()
	if t.Stream.Item().Status.Finished() {
		return nil
	}
	err := r.item(ctx, t.Stream, r.pipeline.Steps, t.Fields)
	var failed *FailedError
	var changed *ChangedError
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil && t.Stream.Item().Status == datagen.StatusFiltered:
		r.report.Filtered++
	case err == nil:
		r.report.Completed++
	case errors.As(err, &failed):
		r.report.Failed++
	case errors.As(err, &changed), errors.Is(err, datagen.ErrFault):
		r.refuse(t.Key, err)
	case errors.Is(err, errDrained):
		r.report.Left++
	default:
		r.report.Left++
		return fmt.Errorf("item %q: %w", t.Key, err)
	}
	return nil
}

// refuse tells that an item is left as it is. The caller holds the lock.
func (r *run) refuse(key string, err error) {
	r.report.Refused++
	if r.onEvent != nil {
		r.onEvent(Event{Kind: Refused, Item: key, Err: err})
	}
}

// failure is an error as the log keeps it. An error with a method Failure says
// itself.
func failure(err error) datagen.Failure {
	var told interface{ Failure() datagen.Failure }
	if errors.As(err, &told) {
		return told.Failure()
	}
	f := datagen.Failure{Type: "error", Dump: dump(err)}
	var p *panicError
	if errors.As(err, &p) {
		f.Type, f.Traceback = "panic", p.stack
	}
	return f
}

// dump is the message of an error as JSON.
func dump(err error) json.RawMessage {
	text := serde.AppendString([]byte(`{"message":`), strings.ToValidUTF8(err.Error(), "\uFFFD"))
	return append(text, '}')
}
