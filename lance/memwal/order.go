package memwal

import (
	"context"
	"errors"
	"slices"

	"github.com/foldlog/foldlog/internal/parallel"
	"github.com/foldlog/foldlog/objstore"
)

// inOrder makes states that were read one after the other agree: whoever claims and
// seals a shard may go on in its own with what it found there, so a view that has the
// second must have all of the first. A shard that was claimed since it was read is read
// again, until none was while the others were looked at.
func (t *Table) inOrder(ctx context.Context, states []*state) ([]*state, error) {
	if len(states) < 2 {
		return states, nil
	}
	states = slices.Clone(states)
	for {
		later := make([]*state, len(states))
		err := parallel.Each(len(states), ioWorkers, func(i int) (err error) {
			later[i], err = claimedSince(ctx, t.store, states[i])
			return err
		})
		if err != nil {
			return nil, err
		}
		changed := false
		for i, s := range later {
			if s != nil {
				states[i], changed = s, true
			}
		}
		if !changed {
			return states, nil
		}
	}
}

// claimedSince returns the latest state of a shard if another owner than that of a
// state has written it.
func claimedSince(ctx context.Context, store objstore.Store, s *state) (*state, error) {
	if s.status == statusSealed {
		return nil, nil
	}
	next, err := readState(ctx, store, s.id, s.version+1)
	if errors.Is(err, objstore.ErrNotFound) {
		return nil, nil
	}
	if err == nil {
		next, err = newest(ctx, store, next)
	}
	if err != nil || next.epoch == s.epoch && next.status == s.status {
		return nil, err
	}
	return next, nil
}
