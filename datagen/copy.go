package datagen

import (
	"context"
	"fmt"

	"github.com/foldlog/foldlog/lance"
	"github.com/foldlog/foldlog/lance/memwal"
	"github.com/foldlog/foldlog/objstore"
)

// Copy writes the state into an empty store, as one table without shards, and returns how
// many events it has; copies of an event that contradict each other stay. It is
// lance.ErrExists if there is a table already. What it reads is kept from clean-up
// meanwhile, whatever its age. The copy is read back before it becomes visible: until Copy
// returns nil the store holds no event. Progress, if not nil, gets the bytes copied so far
// and those of the whole table, without the generations that are merged into it.
func (v *View) Copy(ctx context.Context, to objstore.Store, progress func(done, total int64)) (events int64, err error) {
	err = v.held(ctx, func(m *memwal.View) error {
		d, err := m.Flatten(ctx, to, v.log.merging, lance.CopyOptions{Progress: progress})
		if err == nil {
			events = d.Rows()
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("copy log: %w", err)
	}
	return events, nil
}
