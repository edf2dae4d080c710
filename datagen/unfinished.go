package datagen

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/foldlog/foldlog/lance"
	"github.com/foldlog/foldlog/lance/memwal"
)

// Unfinished is what is to be done in a state of a log: the class of every item, and
// the items that were begun and have not ended. Close gives up what it holds.
type Unfinished struct {
	classes *Classes
	parts   *parts
}

// Unfinished passes over the columns that tell the classes, and then reads whole rows of
// nothing but the items that are Resumable. Memory is what Classes keeps of each item;
// events of more than some ten thousand go into a temporary file, without the bytes of
// blobs.
func (v *View) Unfinished(ctx context.Context) (*Unfinished, error) {
	var u *Unfinished
	err := v.held(ctx, func(m *memwal.View) error {
		u.Close()
		u = &Unfinished{classes: new(Classes), parts: v.log.newParts()}
		add := func(e *Event) error { u.classes.AddEvent(e); return nil }
		if err := newPass(v, ClassColumns, add, u.classes.Add).run(ctx, m); err != nil {
			return err
		}
		return v.log.resumable(ctx, m, u)
	})
	if err != nil {
		u.Close()
		return nil, fmt.Errorf("find what is to be resumed: %w", err)
	}
	return u, nil
}

// resumable takes the events of the items that are to be resumed. Copies are left to the
// folds.
func (l *Log) resumable(ctx context.Context, m *memwal.View, u *Unfinished) error {
	for _, src := range m.Sources() {
		if src.Place == (memwal.Place{}) {
			if err := u.base(ctx, src.Data); err != nil {
				return err
			}
			continue
		}
		g, err := l.cache.get(ctx, src)
		if err != nil {
			return err
		}
		for i := range g.events {
			if e := &g.events[i]; u.classes.Of(e.Item) == Resumable {
				if err := u.parts.add(e); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (u *Unfinished) base(ctx context.Context, d *lance.Dataset) error {
	var last string
	var is, any bool
	holds := func(a arrow.Array, i int) bool {
		items, ok := a.(texts)
		if !ok || items.IsNull(i) {
			return false
		}
		if item := items.Value(i); item != last || !any {
			// The rows of an item lie beside each other, most of them.
			last, is, any = strings.Clone(item), u.classes.Of(item) == Resumable, true
		}
		return is
	}
	opts := lance.ScanOptions{Columns: LightColumns(d.Schema()),
		Filter: []lance.Condition{{Column: fields[colItem].Name, Op: lance.Satisfies, Holds: holds}}}
	for rec, err := range d.Scan(ctx, opts) {
		if err != nil {
			return err
		}
		if err := decodeAll(rec, u.parts.add); err != nil {
			return err
		}
	}
	return nil
}

// Classes are the classes of all items.
func (u *Unfinished) Classes() *Classes { return u.classes }

// Folds folds the items that are to be resumed, each once, in an order that depends on
// the log alone. It can be called once.
func (u *Unfinished) Folds() iter.Seq2[*Item, error] {
	return func(yield func(*Item, error) bool) {
		err := u.parts.each(func(events iter.Seq2[Event, error]) error {
			return foldPart(events, func(it *Item) bool { return yield(it, nil) })
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield(nil, fmt.Errorf("fold items: %w", err))
		}
	}
}

// Close removes the temporary file. Nil is none.
func (u *Unfinished) Close() {
	if u != nil {
		u.parts.close()
	}
}
