package pipeline

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/foldlog/foldlog/datagen"
)

// walk goes through a pipeline for one item. It belongs to one goroutine.
type walk struct {
	*run
	stream Stream
	steps  []Node
	sub    bool // it is a sub-item
	// done are the instances that the log had when the walk began, in its order;
	// the walk has come past so many of them.
	done   []string
	passed int
}

// place is where in the pipeline a walk is.
type place struct {
	path      string // of the nodes around, with a slash at the end
	iteration *int64
}

func (at place) step(name string, index int64) datagen.Step {
	return datagen.Step{Name: name, Index: index, Instance: at.path + name, Iteration: at.iteration}
}

var (
	errFiltered = errors.New("filtered")
	// errDrained ends a walk between two steps.
	errDrained = errors.New("drained")
)

// ChangedError says that the log has a step which the pipeline does not come to:
// the item was begun by another pipeline.
type ChangedError struct {
	// Item is the item, and Step an instance that the log has.
	Item, Step string
	// Due is the instance that the pipeline would run before it, "" if it ends.
	Due string
}

// Error implements error.
func (e *ChangedError) Error() string {
	due := "ends"
	if e.Due != "" {
		due = fmt.Sprintf("comes to %q", e.Due)
	}
	return fmt.Sprintf("item %q was begun by another pipeline: the log has step %q where this one %s", e.Item, e.Step, due)
}

// FailedError says that a step of an item failed in all its attempts. That is
// recorded in the log.
type FailedError struct {
	Item string
	Step datagen.Step
	// Attempts were made in this run.
	Attempts int
	Err      error
}

// Error implements error.
func (e *FailedError) Error() string {
	return fmt.Sprintf("item %q: step %q: %v", e.Item, e.Step.Instance, e.Err)
}

// Unwrap returns the error of the last attempt.
func (e *FailedError) Unwrap() error { return e.Err }

// item does what is left to do for an item or a sub-item.
func (r *run) item(ctx context.Context, s Stream, steps []Node, input func() ([]datagen.Change, error)) error {
	w := &walk{run: r, stream: s, steps: steps, sub: s.Item().Parent != ""}
	for _, step := range s.Item().Steps {
		w.done = append(w.done, step.Instance)
	}
	id := s.Item().ID
	r.tell(Event{Kind: Began, Item: id, Sub: w.sub, Passed: len(w.done)})
	err := w.whole(ctx, input)
	switch {
	case err == nil:
		r.tell(Event{Kind: Ended, Item: id, Sub: w.sub, End: datagen.EndCompleted})
	case errors.Is(err, errFiltered):
		r.tell(Event{Kind: Ended, Item: id, Sub: w.sub, End: datagen.EndFiltered})
		err = nil
	}
	return err
}

func (w *walk) whole(ctx context.Context, input func() ([]datagen.Change, error)) error {
	if err := w.input(ctx, input); err != nil {
		return err
	}
	if err := w.nodes(ctx, place{}, w.steps); err != nil {
		return err
	}
	if err := w.unpassed(""); err != nil {
		return err
	}
	return w.stream.End(ctx, datagen.EndCompleted)
}

// input records what an item begins with; what the log has counts.
func (w *walk) input(ctx context.Context, input func() ([]datagen.Change, error)) error {
	step := place{}.step(InputStep, 0)
	if w.pass(step.Instance) || input == nil || len(w.done) > 0 {
		return nil
	}
	changes, err := input()
	switch {
	case err != nil:
		return w.fail(ctx, step, 1, err, true)
	case len(changes) == 0:
		return nil
	}
	return w.stream.Checkpoint(ctx, step, changes)
}

// next is the first instance of the log that the walk has not come past, "" if
// there is none. An item is worked on in one order, so that no other can be due.
func (w *walk) next() string {
	if w.passed == len(w.done) {
		return ""
	}
	return w.done[w.passed]
}

// behind tells whether the walk has come past everything that the log had, so
// that the fields are those of this place.
func (w *walk) behind() bool { return w.passed == len(w.done) }

// pass tells whether an instance is done, and comes past it.
func (w *walk) pass(instance string) bool {
	if w.behind() || w.next() != instance {
		return false
	}
	w.passed++
	return true
}

// wentInto tells whether the log goes on with a step of this path.
func (w *walk) wentInto(path string) bool { return strings.HasPrefix(w.next(), path) }

// unpassed is the error if the log goes on while this pipeline comes to due.
func (w *walk) unpassed(due string) error {
	if w.behind() {
		return nil
	}
	return &ChangedError{w.stream.Item().ID, w.next(), due}
}

func (w *walk) nodes(ctx context.Context, at place, nodes []Node) error {
	for _, n := range nodes {
		if err := w.node(ctx, at, n); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) node(ctx context.Context, at place, n Node) error {
	switch n := n.(type) {
	case *Step:
		return w.step(ctx, at.step(n.Name, n.index), n.Retry, at, n.Run)
	case *Filter:
		return w.filter(ctx, at, n)
	case *Loop:
		return w.loop(ctx, at, n)
	case *Branch:
		return w.branch(ctx, at, n)
	case *Map:
		return w.fanOut(ctx, at, n)
	}
	return fmt.Errorf("a node is a %T", n)
}

// state is the item as it stands at a place.
func (w *walk) state(at place) State {
	s := State{Item: w.stream.Item(), Iteration: -1, log: w.log}
	if at.iteration != nil {
		s.Iteration = *at.iteration
	}
	return s
}

// cond asks the condition of the node at a place, about the state at another.
// What it fails with is a failure of the item.
func (w *walk) cond(ctx context.Context, at, of place, name string, index int64, c Cond) (bool, error) {
	state := w.state(of)
	yes, err := protect(func() (bool, error) { return c(&state) })
	if err == nil {
		return yes, nil
	}
	step := at.step(name, index)
	return false, w.fail(ctx, step, 1, fmt.Errorf("condition: %w", err), true)
}

// filter is recorded whichever way it goes. If it is the last that was recorded,
// the item may still have to be ended.
func (w *walk) filter(ctx context.Context, at place, n *Filter) error {
	step := at.step(n.Name, n.index)
	passed := w.pass(step.Instance)
	if passed && !w.behind() {
		return nil
	}
	if !passed {
		if err := w.unpassed(step.Instance); err != nil {
			return err
		}
	}
	keep, err := w.cond(ctx, at, at, n.Name, n.index, n.Keep)
	switch {
	case err != nil:
		return err
	case keep && passed:
		return nil
	case passed:
		err = w.stream.End(ctx, datagen.EndFiltered)
	case keep:
		err = w.stream.Checkpoint(ctx, step, nil)
	default:
		err = w.stream.Finish(ctx, step, nil, datagen.EndFiltered)
	}
	if err != nil {
		return err
	}
	if !passed {
		w.tell(Event{Kind: Done, Item: w.stream.Item().ID, Sub: w.sub, Step: step, Try: 1})
	}
	if keep {
		return nil
	}
	return errFiltered
}

func (w *walk) loop(ctx context.Context, at place, n *Loop) error {
	for round := int64(0); n.Max == 0 || round < int64(n.Max); round++ {
		path := fmt.Sprintf("%s%s#%d/", at.path, n.Name, round)
		if !w.behind() && !w.wentInto(path) {
			return nil // it went on behind the loop
		}
		inner := place{path, &round}
		if err := w.nodes(ctx, inner, n.Steps); err != nil {
			return err
		}
		if n.Until == nil || !w.behind() {
			continue
		}
		if over, err := w.cond(ctx, at, inner, n.Name, n.index, n.Until); err != nil || over {
			return err
		}
	}
	return nil
}

func (w *walk) branch(ctx context.Context, at place, n *Branch) error {
	for i := range n.Cases {
		c := &n.Cases[i]
		inner := place{fmt.Sprintf("%s%s=%s/", at.path, n.Name, n.caseName(i)), at.iteration}
		taken := w.wentInto(inner.path)
		if w.behind() {
			taken = true
			if c.When != nil {
				var err error
				if taken, err = w.cond(ctx, at, at, n.Name, n.index, c.When); err != nil {
					return err
				}
			}
		}
		if taken {
			return w.nodes(ctx, inner, c.Steps)
		}
	}
	return nil
}

// step runs a step unless it is done.
func (w *walk) step(ctx context.Context, step datagen.Step, retry Retry, at place, fn Func) error {
	if w.pass(step.Instance) {
		return nil
	}
	if err := w.unpassed(step.Instance); err != nil {
		return err
	}
	for try := 1; ; try++ {
		call, err := w.attempt(ctx, step, try, at, fn)
		if err == nil { // what the log refuses is the step's failure
			if err = w.record(ctx, call); !errors.Is(err, datagen.ErrEvent) {
				return err
			}
		}
		if stop := w.stopped(ctx, err); stop != nil {
			return stop
		}
		last := try >= max(retry.Attempts, 1)
		if err := w.fail(ctx, step, try, err, last); err != nil {
			return err
		}
		if err := w.wait(ctx, retry.pause(try)); err != nil {
			return err
		}
	}
}

// stopped is why nothing is to be recorded of an attempt that ended with err.
func (w *walk) stopped(ctx context.Context, err error) error {
	if errors.Is(err, errDrained) {
		return err
	}
	return ctx.Err()
}

// attempt runs a step once there is a free worker.
func (w *walk) attempt(ctx context.Context, step datagen.Step, try int, at place, fn Func) (*Call, error) {
	select {
	case <-w.drain:
		return nil, errDrained
	default:
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-w.drain:
		return nil, errDrained
	case w.slots <- struct{}{}:
	}
	defer func() { <-w.slots }()
	call := &Call{State: w.state(at), Step: step, Try: try}
	w.tell(Event{Kind: Started, Item: call.Item.ID, Sub: w.sub, Step: step, Try: try})
	_, err := protect(func() (struct{}, error) { return struct{}{}, fn(ctx, call) })
	return call, err
}

// record makes a step durable.
func (w *walk) record(ctx context.Context, c *Call) error {
	var err error
	if c.filter {
		err = w.stream.Finish(ctx, c.Step, c.changes, datagen.EndFiltered)
	} else {
		err = w.stream.Checkpoint(ctx, c.Step, c.changes)
	}
	if err != nil {
		return err
	}
	w.tell(Event{Kind: Done, Item: c.Item.ID, Sub: w.sub, Step: c.Step, Try: c.Try})
	if c.filter {
		return errFiltered
	}
	return nil
}

// fail records a failure, and is a FailedError if no attempt is left.
func (w *walk) fail(ctx context.Context, step datagen.Step, try int, cause error, last bool) error {
	if err := w.stream.Fail(ctx, &step, failure(cause)); err != nil {
		return err
	}
	id := w.stream.Item().ID
	w.tell(Event{Kind: Failed, Item: id, Sub: w.sub, Step: step, Try: try, Err: cause, Last: last})
	if last {
		return &FailedError{id, step, try, cause}
	}
	return nil
}

// wait waits for the next attempt.
func (w *walk) wait(ctx context.Context, pause time.Duration) error {
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-w.drain:
		return errDrained
	case <-ctx.Done():
		return ctx.Err()
	}
}

// panicError is a panic of somebody's function.
type panicError struct {
	value any
	stack string
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// protect turns a panic into an error.
func protect[T any](fn func() (T, error)) (v T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &panicError{p, string(debug.Stack())}
		}
	}()
	return fn()
}
