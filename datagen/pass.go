package datagen

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/foldlog/foldlog/lance"
	"github.com/foldlog/foldlog/lance/memwal"
)

// pass goes over all events of a view. What it has seen in generations it does not see
// again, in other generations, in the base or in a newer state. Copies of an event that
// differ are events of their own, so that lists agree with folds about them.
type pass struct {
	v       *View
	columns func(*arrow.Schema) []string
	event   func(*Event) error
	batch   func(arrow.RecordBatch) error
	kinds   []Kind // nil is all
	// seen has what the first copy of an event says, more what others say.
	seen  map[string]uint64
	more  map[contents]bool
	based bool // rows of the base were passed on
	// again are identities that the base has too.
	again []string
}

// newPass is a pass that gives event those of generations, and batch the rows of the
// base with some of its columns.
func newPass(v *View, columns func(*arrow.Schema) []string, event func(*Event) error, batch func(arrow.RecordBatch) error) *pass {
	return &pass{v: v, columns: columns, event: event, batch: batch, seen: map[string]uint64{}, more: map[contents]bool{}}
}

// contents stands for all that an event says.
type contents struct {
	id  string
	sum uint64
}

// contentSeed is that of sums of contents, which do not leave the process.
var contentSeed = maphash.MakeSeed()

func sumOf(e *Event) uint64 { return maphash.Bytes(contentSeed, AppendEvent(nil, e)) }

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
			if p.kinds != nil && !slices.Contains(p.kinds, e.Kind) {
				continue
			}
			if err := p.offer(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// filter is what the rows of the base must satisfy.
func (p *pass) filter() []lance.Condition {
	if p.kinds == nil {
		return nil
	}
	in := make([]any, len(p.kinds))
	for i, k := range p.kinds {
		in[i] = string(k)
	}
	return []lance.Condition{{Column: fields[colKind].Name, Op: lance.In, Values: in}}
}

// offer passes an event on that is new, or differs from its copies before.
func (p *pass) offer(e *Event) error {
	if !p.fresh(e) {
		return nil
	}
	return p.event(e)
}

// fresh reports whether an event is new, or differs from its copies before.
func (p *pass) fresh(e *Event) bool {
	sum := sumOf(e)
	first, again := p.seen[e.ID]
	if !again {
		p.seen[e.ID] = sum
		return true
	}
	c := contents{e.ID, sum}
	if first == sum || p.more[c] {
		return false
	}
	p.more[c] = true
	return true
}

func (p *pass) base(ctx context.Context, d *lance.Dataset) error {
	key := fields[colEventID].Name
	p.again = nil
	opts := lance.ScanOptions{Columns: p.columns(d.Schema()), Filter: p.filter()}
	if len(p.seen) > 0 && !slices.Contains(opts.Columns, key) {
		opts.Columns = append(opts.Columns, key)
	}
	for rec, err := range d.Scan(ctx, opts) {
		if err != nil && p.based {
			return tooLate(err)
		}
		if err != nil {
			return err
		}
		p.based = true
		if err := p.unseen(rec, key); err != nil {
			return err
		}
	}
	return p.copies(ctx, d, key)
}

// tooLate is the error of a pass that has passed rows of the base on. It does not wrap that
// files are gone, which would make the pass begin anew.
func tooLate(err error) error {
	if !memwal.Gone(err) {
		return err
	}
	return fmt.Errorf("the pass cannot go on in a newer state: %v", err)
}

// copiesAtOnce is how many identities are looked up at once.
const copiesAtOnce = 1000

// copies compares what the base has with what generations have of the same events.
func (p *pass) copies(ctx context.Context, d *lance.Dataset, key string) error {
	for ids := range slices.Chunk(p.again, copiesAtOnce) {
		in := make([]any, len(ids))
		for i, id := range ids {
			in[i] = id
		}
		opts := lance.ScanOptions{Columns: LightColumns(d.Schema()), Filter: []lance.Condition{{Column: key, Op: lance.In, Values: in}}}
		for rec, err := range d.Scan(ctx, opts) {
			if err != nil {
				return tooLate(err)
			}
			if err := decodeAll(rec, p.offer); err != nil {
				return err
			}
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
		if _, seen := p.seen[ids.Value(int(i))]; !seen {
			continue
		}
		p.again = append(p.again, string([]byte(ids.Value(int(i)))))
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
