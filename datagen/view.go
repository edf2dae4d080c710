package datagen

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/foldlog/foldlog/lance"
	"github.com/foldlog/foldlog/lance/memwal"
)

// View is one state of a log: everything that was acknowledged before it was made. It
// is safe for concurrent use. If maintenance removes files that it was to read, it goes
// on in a newer state, which has all that the older one had.
type View struct {
	log *Log

	mu sync.Mutex
	v  *memwal.View
}

// View returns the state of the log now. Callers at the same time share it.
func (l *Log) View(ctx context.Context) (*View, error) {
	v, err := l.views.fresh(ctx)
	if err != nil {
		return nil, fmt.Errorf("read log: %w", err)
	}
	return &View{log: l, v: v}, nil
}

func (v *View) state() *memwal.View {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.v
}

// maxPlans is how often a read begins anew because files went while it ran.
const maxPlans = 8

// read calls do with the state, and anew with a newer one while files are gone.
func (v *View) read(ctx context.Context, do func(*memwal.View) error) error {
	for try := 1; ; try++ {
		err := do(v.state())
		if err == nil || !memwal.Gone(err) || try == maxPlans || errors.Is(err, ErrNoItem) {
			return err
		}
		next, again := v.log.views.fresh(ctx)
		if again != nil {
			return errors.Join(err, again)
		}
		v.mu.Lock()
		v.v = next
		v.mu.Unlock()
	}
}

// find reads all copies of an item's events.
func (v *View) find(ctx context.Context, item string) (*found, error) {
	return v.lookUp(ctx, "item_id", item, func(e *Event) bool { return e.Item == item })
}

// lookUp reads all copies of the events of which an indexed column has a value.
func (v *View) lookUp(ctx context.Context, column, value string, is func(*Event) bool) (f *found, err error) {
	err = v.read(ctx, func(m *memwal.View) error {
		f = &found{}
		for _, src := range m.Sources() {
			if src.Place != (memwal.Place{}) {
				err = v.log.inGeneration(ctx, src, column, value, is, f)
			} else {
				err = v.log.inBase(ctx, src.Data, column, value, f)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return f, err
}

func (l *Log) inGeneration(ctx context.Context, src memwal.Source, column, value string, is func(*Event) bool, f *found) error {
	g, err := l.cache.get(ctx, src)
	if err != nil {
		return err
	}
	if column == "item_id" {
		for _, i := range g.items[value] {
			f.add(g.events[i], src.Place)
		}
		return nil
	}
	for i := range g.events {
		if is(&g.events[i]) {
			f.add(g.events[i], src.Place)
		}
	}
	return nil
}

func (l *Log) inBase(ctx context.Context, d *lance.Dataset, column, value string, f *found) error {
	opts := lance.ScanOptions{
		Columns: LightColumns(d.Schema()), Filter: []lance.Condition{{Column: column, Value: value}},
		Without: l.values.without(ctx, d, column, value),
	}
	for rec, err := range d.Scan(ctx, opts) {
		if err != nil {
			return err
		}
		for e, err := range Decode(rec) {
			if err != nil {
				return err
			}
			f.add(e, memwal.Place{})
		}
	}
	return nil
}

func (f *found) add(e Event, p memwal.Place) {
	f.events = append(f.events, e)
	f.places = append(f.places, p)
}

// Item folds an item as it was at a moment; ErrNoItem if there was nothing of it.
func (v *View) Item(ctx context.Context, id string, at AsOf) (*Item, error) {
	f, err := v.find(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("read item %q: %w", id, err)
	}
	it, err := FoldAt(f.events, at)
	if err == nil && it == nil {
		err = ErrNoItem
	}
	if err != nil {
		return nil, fmt.Errorf("item %q: %w", id, err)
	}
	return it, nil
}

// Events are those of an item in the order of the fold, each once; ErrNoItem if there
// are none. Blobs are without their bytes.
func (v *View) Events(ctx context.Context, id string) ([]Event, error) {
	f, err := v.find(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("read item %q: %w", id, err)
	}
	if len(f.events) == 0 {
		return nil, fmt.Errorf("item %q: %w", id, ErrNoItem)
	}
	var folder Folder
	folder.Add(f.events...)
	return folder.Events(), nil
}

// Tree folds all items of a root; ErrNoItem if there are none.
func (v *View) Tree(ctx context.Context, root string) ([]*Node, error) {
	f, err := v.lookUp(ctx, "root_item_id", root, func(e *Event) bool { return e.Root == root })
	if err != nil {
		return nil, fmt.Errorf("read tree of %q: %w", root, err)
	}
	if len(f.events) == 0 {
		return nil, fmt.Errorf("tree of %q: %w", root, ErrNoItem)
	}
	folders := map[string]*Folder{}
	for _, e := range f.events {
		if folders[e.Item] == nil {
			folders[e.Item] = &Folder{}
		}
		folders[e.Item].Add(e)
	}
	var items []*Item
	for _, folder := range folders {
		items = append(items, folder.Item())
	}
	return Tree(items), nil
}

// All yields every event once, those of generations first. Blobs are without their
// bytes. Memory is that of a scan and of the identities of the events in generations.
// Clean-up keeps what it reads, whatever its age, from the call on.
func (v *View) All(ctx context.Context) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		err := v.each(ctx, LightColumns, func(e *Event) error {
			if !yield(*e, nil) {
				return errEnough
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield(Event{}, fmt.Errorf("read log: %w", err))
		}
	}
}

// errEnough ends a pass whose caller has all it wants.
var errEnough = errors.New("enough")

// each passes over all events, each once, with some of their columns.
func (v *View) each(ctx context.Context, columns func(*arrow.Schema) []string, take func(*Event) error) error {
	return v.pass(ctx, columns, take, func(rec arrow.RecordBatch) error { return decodeAll(rec, take) })
}

// pass goes over all events, each once: event gets those of generations, batch the rows
// of the base with some of the columns.
func (v *View) pass(ctx context.Context, columns func(*arrow.Schema) []string, event func(*Event) error, batch func(arrow.RecordBatch) error) error {
	p := newPass(v, columns, event, batch)
	return v.held(ctx, func(m *memwal.View) error { return p.run(ctx, m) })
}

// held is read for what cannot begin anew half way: it keeps the files of the state from
// clean-up, whatever their age. A log that cannot be written to is read without.
func (v *View) held(ctx context.Context, do func(*memwal.View) error) error {
	return v.read(ctx, func(m *memwal.View) error {
		pin, err := m.Pin(ctx)
		switch {
		case err == nil:
			defer pin.Release()
		case memwal.Gone(err), ctx.Err() != nil:
			return err
		}
		return do(m)
	})
}

func decodeAll(rec arrow.RecordBatch, take func(*Event) error) error {
	for e, err := range Decode(rec) {
		if err == nil {
			err = take(&e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
