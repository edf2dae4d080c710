package pipeline

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/foldlog/foldlog/datagen"
)

// fanOut does the steps of a map with every sub-item, and reduces. Sub-items are
// named after the instance of the map, so that each round of a loop has its own.
func (w *walk) fanOut(ctx context.Context, at place, n *Map) error {
	step := at.step(n.Name, n.index)
	if w.pass(step.Instance) {
		return nil
	}
	if err := w.unpassed(step.Instance); err != nil {
		return err
	}
	state := w.state(at)
	parts, err := protect(func() ([]Part, error) { return n.Over(ctx, &state) })
	if err != nil {
		return w.fail(ctx, step, 1, err, true)
	}
	subs, err := w.subItems(ctx, step, n, parts)
	if err != nil {
		var failed *FailedError
		if errors.As(err, &failed) {
			return w.fail(ctx, step, 1, err, true)
		}
		return err
	}
	return w.step(ctx, step, n.Retry, at, func(ctx context.Context, c *Call) error {
		if n.Reduce == nil {
			return nil
		}
		return n.Reduce(ctx, c, subs)
	})
}

// subItems works on all sub-items, so many at once. After a failure that ends
// the map no further one is begun.
func (w *walk) subItems(ctx context.Context, step datagen.Step, n *Map, parts []Part) ([]*datagen.Item, error) {
	subs, errs := make([]*datagen.Item, len(parts)), make([]error, len(parts))
	width := n.Parallel
	if width == 0 {
		width = len(parts)
	}
	turns := make(chan struct{}, max(width, 1))
	halt := make(chan struct{})
	stop := sync.OnceFunc(func() { close(halt) })
	var all sync.WaitGroup
	for i := range parts {
		select {
		case turns <- struct{}{}:
		case <-halt:
		case <-w.drain:
			errs[i] = errDrained
		}
		if errs[i] != nil || isClosed(halt) {
			break
		}
		all.Go(func() {
			defer func() { <-turns }()
			subs[i], errs[i] = w.subItem(ctx, step, n, int64(i), parts[i])
			if errs[i] != nil {
				stop()
			}
		})
	}
	all.Wait()
	return subs, worst(errs)
}

// worst is the error that says most: of the log, then of a sub-item, then that
// we were stopped.
func worst(errs []error) error {
	var failed, drained error
	for _, err := range errs {
		var f *FailedError
		switch {
		case err == nil:
		case errors.Is(err, errDrained):
			drained = err
		case errors.As(err, &f):
			if failed == nil {
				failed = err
			}
		default:
			return err
		}
	}
	if failed != nil {
		return failed
	}
	return drained
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (w *walk) subItem(ctx context.Context, step datagen.Step, n *Map, index int64, part Part) (*datagen.Item, error) {
	// A slash would make the parent's name unclear.
	of := strings.ReplaceAll(step.Instance, "/", "~")
	s, err := w.stream.Sub(ctx, of, index, part.Tags)
	if err != nil {
		return nil, err
	}
	if s.Item().Status.Finished() {
		return s.Item(), nil
	}
	defer s.Close(context.WithoutCancel(ctx))
	err = w.run.item(ctx, s, n.Steps, func() ([]datagen.Change, error) { return part.Fields, nil })
	var failed *FailedError
	if n.KeepGoing && errors.As(err, &failed) {
		err = nil
	}
	return s.Item(), err
}
