package memwal

import "context"

// recent is latestState, from the version on that this table has read last.
func (t *Table) recent(ctx context.Context, id ID) (*state, error) {
	t.mu.Lock()
	s := t.known[id]
	t.mu.Unlock()
	if s == nil {
		return t.remember(latestState(ctx, t.store, id))
	}
	return t.remember(newest(ctx, t.store, s))
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
