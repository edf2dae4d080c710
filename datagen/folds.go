package datagen

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
)

// Folds folds every item, each once, in an order that depends on the log alone, after
// one pass over the log. Memory does not follow the log: what is more than some ten
// thousand events goes into a temporary file, without the bytes of blobs.
func (v *View) Folds(ctx context.Context) iter.Seq2[*Item, error] {
	return func(yield func(*Item, error) bool) {
		p := v.log.newParts()
		defer p.close()
		err := v.each(ctx, LightColumns, p.add)
		if err == nil {
			err = p.each(func(events iter.Seq2[Event, error]) error {
				return foldPart(events, func(it *Item) bool { return yield(it, nil) })
			})
		}
		if err != nil && !errors.Is(err, errEnough) {
			yield(nil, fmt.Errorf("fold items: %w", err))
		}
	}
}

// foldPart folds items in the order of their identities.
func foldPart(events iter.Seq2[Event, error], yield func(*Item) bool) error {
	folders, err := foldersOf(events)
	if err != nil {
		return err
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

// foldersOf gives each item a folder.
func foldersOf(events iter.Seq2[Event, error]) (map[string]*Folder, error) {
	folders := map[string]*Folder{}
	for e, err := range events {
		if err != nil {
			return nil, err
		}
		f := folders[e.Item]
		if f == nil {
			f = &Folder{}
			folders[e.Item] = f
		}
		f.Add(e)
	}
	return folders, nil
}

// ByItem yields events so that those of an item follow each other in the order of their
// sequences, in an order of items that depends on the events alone. All are taken before
// the first is yielded; memory is that of Folds.
func ByItem(events iter.Seq2[Event, error]) iter.Seq2[Event, error] {
	return byItem(events, partWeight)
}

// byItem is ByItem with parts of another weight.
func byItem(events iter.Seq2[Event, error], most int64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		p := &parts{most: most}
		defer p.close()
		for e, err := range events {
			if err == nil {
				err = p.add(&e)
			}
			if err != nil {
				yield(e, err)
				return
			}
		}
		err := p.each(func(events iter.Seq2[Event, error]) error {
			var part []Event
			for e, err := range events {
				if err != nil {
					return err
				}
				part = append(part, e)
			}
			slices.SortStableFunc(part, func(a, b Event) int { return cmp.Or(CompareIDs(a.Item, b.Item), cmp.Compare(a.Seq, b.Seq)) })
			for _, e := range part {
				if !yield(e, nil) {
					return errEnough
				}
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield(Event{}, err)
		}
	}
}
