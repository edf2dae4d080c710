package datagen

import (
	"context"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/foldlog/foldlog/lance"
	"github.com/foldlog/foldlog/lance/memwal"
)

// pass goes over all events of a view. Identities that it has seen in generations it
// does not see again, in other generations, in the base or in a newer state.
type pass struct {
	v       *View
	columns func(*arrow.Schema) []string
	event   func(*Event) bool
	batch   func(arrow.RecordBatch) error
	seen    map[string]bool
	based   bool // rows of the base were passed on
}

func (p *pass) run(ctx context.Context, m *memwal.View) error {
	for _, src := range m.Sources() {
		if src.Place == (memwal.Place{}) {
			if err := p.base(ctx, src.Data); err != nil {
				return err
			}
			continue
		}
		g, err := p.v.log.cache.get(ctx, src)
		if err != nil {
			return err
		}
		for i := range g.events {
			e := &g.events[i]
			if p.seen[e.ID] {
				continue
			}
			p.seen[e.ID] = true
			if !p.event(e) {
				return errEnough
			}
		}
	}
	return nil
}

func (p *pass) base(ctx context.Context, d *lance.Dataset) error {
	key := fields[colEventID].Name
	opts := lance.ScanOptions{Columns: p.columns(d.Schema())}
	if len(p.seen) > 0 && !slices.Contains(opts.Columns, key) {
		opts.Columns = append(opts.Columns, key)
	}
	for rec, err := range d.Scan(ctx, opts) {
		if err != nil && p.based {
			return fmt.Errorf("the pass cannot go on in a newer state: %v", err)
		}
		if err != nil {
			return err
		}
		p.based = true
		if err := p.unseen(rec, key); err != nil {
			return err
		}
	}
	return nil
}

// unseen passes on the rows of a batch that were not in a generation.
func (p *pass) unseen(rec arrow.RecordBatch, key string) error {
	if len(p.seen) == 0 {
		return p.batch(rec)
	}
	ids, ok := rec.Column(rec.Schema().FieldIndices(key)[0]).(texts)
	if !ok {
		return fmt.Errorf("%w: column %s", ErrSchema, key)
	}
	from := int64(0)
	for i := range rec.NumRows() {
		if !p.seen[ids.Value(int(i))] {
			continue
		}
		if err := p.part(rec, from, i); err != nil {
			return err
		}
		from = i + 1
	}
	return p.part(rec, from, rec.NumRows())
}

func (p *pass) part(rec arrow.RecordBatch, from, to int64) error {
	switch {
	case from == to:
		return nil
	case from == 0 && to == rec.NumRows():
		return p.batch(rec)
	}
	cols := make([]arrow.Array, rec.NumCols())
	for i := range cols {
		cols[i] = array.NewSlice(rec.Column(i), from, to)
	}
	return p.batch(array.NewRecordBatch(rec.Schema(), cols, to-from))
}
