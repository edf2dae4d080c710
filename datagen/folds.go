package datagen

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
)

// Folds folds every item, each once, in an order that depends on the log alone.
// Memory is that of some hundred thousand events with their values, without the bytes
// of blobs; a large log is passed over several times.
func (v *View) Folds(ctx context.Context) iter.Seq2[*Item, error] {
	return func(yield func(*Item, error) bool) {
		events := uint64(0)
		err := v.each(ctx, ClassColumns, func(*Event) bool { events++; return true }, func(rec arrow.RecordBatch) error {
			events += uint64(rec.NumRows())
			return nil
		})
		if err != nil {
			yield(nil, fmt.Errorf("fold items: %w", err))
			return
		}
		parts := events/foldAtOnce + 1
		for part := range parts {
			err := v.foldPart(ctx, part, parts, func(it *Item) bool { return yield(it, nil) })
			if errors.Is(err, errEnough) {
				return
			}
			if err != nil {
				yield(nil, fmt.Errorf("fold items: %w", err))
				return
			}
		}
	}
}

// foldPart folds the items of one part of all, in the order of their identities.
func (v *View) foldPart(ctx context.Context, part, parts uint64, yield func(*Item) bool) error {
	folders := map[string]*Folder{}
	for e, err := range v.All(ctx) {
		if err != nil {
			return err
		}
		if partOf(e.Item, parts) != part {
			continue
		}
		f := folders[e.Item]
		if f == nil {
			f = &Folder{}
			folders[e.Item] = f
		}
		f.Add(e)
	}
	ids := make([]string, 0, len(folders))
	for id := range folders {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, CompareIDs)
	for _, id := range ids {
		if !yield(folders[id].Item()) {
			return errEnough
		}
		delete(folders, id)
	}
	return nil
}

// partOf is the part that an item belongs to, the same in every process.
func partOf(item string, parts uint64) uint64 {
	if parts == 1 {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(item))
	return h.Sum64() % parts
}
