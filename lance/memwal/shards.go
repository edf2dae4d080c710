package memwal

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/foldlog/foldlog/internal/sleep"
	"github.com/foldlog/foldlog/lance"
)

// Source is one table of a view: a generation, or the base.
type Source struct {
	// Place is the zero value for the base.
	Place Place
	// Data has the rows. A generation has besides the table's columns a column
	// Tombstone, and all but its key may be null.
	Data *lance.Dataset
}

// Sources are the tables of the view, the generations first, the newest of a shard
// before the older ones, and the base last. They are for readers that must see every
// copy of a key, which Scan hides. A generation that has been merged and removed since
// reads as objstore.ErrNotFound: its rows are in the base of a new view.
func (v *View) Sources() []Source {
	out := make([]Source, 0, len(v.gens)+1)
	for _, g := range v.gens {
		out = append(out, Source{Place{g.shard, g.generation}, g.d})
	}
	return append(out, Source{Data: v.base})
}

// Gone reports whether an error may come from files that were cleaned up after their
// rows had been merged: a new view has the rows.
func Gone(err error) bool { return gone(err) }

// Shard describes one shard. A shard that was never claimed, or is merged and removed,
// is objstore.ErrNotFound.
func (t *Table) Shard(ctx context.Context, id ID) (ShardInfo, error) {
	s, err := latestState(ctx, t.store, id)
	if err != nil {
		return ShardInfo{}, fmt.Errorf("shard %s: %w", id, err)
	}
	info := ShardInfo{ID: s.id, Version: s.version, Epoch: s.epoch, Sealed: s.status == statusSealed, Generations: len(s.generations)}
	return info, nil
}

// Seal claims a shard, which fences its writer, replays its log and seals it: nothing
// is ever acknowledged in it again. A sealed shard is left as it is. A shard that a
// sharding spec names is claimed but not sealed.
func (t *Table) Seal(ctx context.Context, id ID) error {
	var err error
	for pause := time.Millisecond; pause < time.Second; pause += pause / 2 {
		if _, err = t.seal(ctx, id); err == nil {
			return nil
		}
		if !errors.Is(err, ErrFenced) {
			break
		}
		if err := sleep.For(ctx, rand.N(pause)); err != nil { // others are sealing it too
			return err
		}
	}
	return fmt.Errorf("seal shard %s: %w", id, err)
}
