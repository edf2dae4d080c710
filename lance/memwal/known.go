package memwal

import (
	"context"
	"errors"

	"github.com/foldlog/foldlog/objstore"
)

// recent is latestState, from the version on that this table has read last. That one
// must still be there if the next is not: versions are removed from the oldest on, so
// then nothing between was.
func (t *Table) recent(ctx context.Context, id ID) (*state, error) {
	t.mu.Lock()
	s := t.known[id]
	t.mu.Unlock()
	if s == nil {
		return t.remember(latestState(ctx, t.store, id))
	}
	for first := s; ; {
		next, err := readState(ctx, t.store, id, s.version+1)
		if err == nil {
			s = next
			continue
		}
		if errors.Is(err, objstore.ErrNotFound) && s == first {
			_, err = t.store.Stat(ctx, manifestKey(id, s.version))
			if errors.Is(err, objstore.ErrNotFound) {
				return t.remember(latestState(ctx, t.store, id))
			}
		}
		if err != nil && !errors.Is(err, objstore.ErrNotFound) {
			return nil, err
		}
		return t.remember(s, nil)
	}
}

func (t *Table) remember(s *state, err error) (*state, error) {
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == nil {
		t.known = map[ID]*state{}
	}
	if old := t.known[s.id]; old == nil || old.version < s.version {
		t.known[s.id] = s
	}
	return s, nil
}
