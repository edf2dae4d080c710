package memwal

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/foldlog/foldlog/lance"
	"github.com/foldlog/foldlog/lance/internal/arrays"
	"github.com/foldlog/foldlog/lance/internal/datafile"
	"github.com/foldlog/foldlog/lance/internal/format"
	"github.com/foldlog/foldlog/objstore"
)

// source is one table of a view: the base or a generation.
type source struct {
	d          *lance.Dataset
	dir        string // of a generation
	shard      ID
	generation uint64

	once   sync.Once
	filter bloom
}

// Place says which table of a view a row is in. The zero value is the base.
type Place struct {
	Shard      ID
	Generation uint64
}

// View is one consistent state of the table and all its shards: everything that was
// acknowledged before it was made, and maybe some of what came after. It is safe for
// concurrent use.
type View struct {
	table *Table
	base  *lance.Dataset
	// gens are the generations that the base does not have, the newest of a shard
	// first.
	gens []*source
	key  string
}

// planTries is how often a view is planned anew because files went while it was read.
const planTries = 8

// View reads the state of the table now. The shards are read before the base, so a
// generation that is merged meanwhile is seen in one of the two.
func (t *Table) View(ctx context.Context) (*View, error) {
	for try := 1; ; try++ {
		v, _, err := t.plan(ctx)
		if err == nil {
			return v, nil
		}
		if try == planTries || !gone(err) {
			return nil, fmt.Errorf("view: %w", err)
		}
	}
}

// gone reports whether an error may come from files that were cleaned up after they
// had been merged.
func gone(err error) bool {
	return errors.Is(err, objstore.ErrNotFound) || errors.Is(err, lance.ErrNotFound)
}

// plan returns a view and the states of the shards that it was made of.
func (t *Table) plan(ctx context.Context) (*View, []*state, error) {
	states, err := t.states(ctx)
	if err != nil {
		return nil, nil, err
	}
	if states, err = t.inOrder(ctx, states); err != nil {
		return nil, nil, err
	}
	base, err := t.Base(ctx)
	if err != nil {
		return nil, nil, err
	}
	merged, _, err := base.MergeProgress()
	if err != nil {
		return nil, nil, err
	}
	t.forget(states)
	type todo struct {
		id ID
		g  generation
	}
	var open []todo
	for _, s := range states {
		gens := slices.Clone(s.generations)
		newestFirst(gens)
		for _, g := range gens {
			if g.number > merged[s.id] {
				open = append(open, todo{s.id, g})
			}
		}
	}
	v := &View{table: t, base: base, key: base.PrimaryKey(), gens: make([]*source, len(open))}
	if len(open) > 0 && v.key == "" {
		return nil, nil, ErrNoKey
	}
	return v, states, parallel(len(open), func(i int) (err error) {
		v.gens[i], err = t.generation(ctx, open[i].id, open[i].g)
		return err
	})
}

// Base is the version of the table in the view.
func (v *View) Base() *lance.Dataset { return v.base }

// Generations counts the generations in the view.
func (v *View) Generations() int { return len(v.gens) }

// Batch is rows of one table of a view.
type Batch struct {
	arrow.RecordBatch
	Place Place
}

// errStop ends a scan that has all it wants.
var errStop = errors.New("stop")

// scan is a union scan under way.
type scan struct {
	v     *View
	opts  lance.ScanOptions
	key   string
	seen  map[string]bool
	left  int64
	based bool // rows of the base were yielded
	yield func(Batch, error) bool
}

// Scan yields each key once: the newest row of the shards, and the base's rows whose
// keys no shard has. Keys that are deleted are left out. The filter and the limit hold
// after that. Rows of generations come first, then the base in its order. A generation
// that was merged and removed meanwhile is read from a newer base. Memory is that of a
// scan, plus the keys of the generations.
func (v *View) Scan(ctx context.Context, opts lance.ScanOptions) iter.Seq2[Batch, error] {
	return func(yield func(Batch, error) bool) {
		s := &scan{v: v, opts: opts, key: v.key, seen: map[string]bool{}, left: opts.Limit, yield: yield}
		err := s.run(ctx)
		for try := 1; err != nil && gone(err) && !s.based && try < planTries; try++ {
			if s.v, err = v.table.View(ctx); err == nil {
				err = s.run(ctx)
			}
		}
		if err != nil && !errors.Is(err, errStop) {
			yield(Batch{}, err)
		}
	}
}

func (s *scan) run(ctx context.Context) error {
	defer s.v.guard()()
	schema, err := s.v.base.ScanSchema(s.opts)
	if err != nil {
		return err
	}
	for _, src := range s.v.gens {
		if err := s.generation(ctx, src, schema); err != nil {
			return err
		}
	}
	return s.base(ctx, schema)
}

// generation yields the rows of a generation that nothing newer hides. A row that the
// filter drops still hides older ones, so the keys are read apart from the rows.
func (s *scan) generation(ctx context.Context, src *source, schema *arrow.Schema) error {
	hidden := map[uint64]bool{}
	var keys []string
	opts := lance.ScanOptions{Columns: []string{s.key}, WithRowAddress: true}
	tombstones := len(src.d.Schema().FieldIndices(Tombstone)) > 0
	if tombstones {
		opts.Columns = append(opts.Columns, Tombstone)
	}
	for rec, err := range src.d.Scan(ctx, opts) {
		if err != nil {
			return src.named(err)
		}
		view, ok := datafile.ViewBytes(rec.Column(0))
		if !ok {
			return fmt.Errorf("keys of type %s", rec.Column(0).DataType())
		}
		addrs := rec.Column(int(rec.NumCols()) - 1).(*array.Uint64).Uint64Values()
		for i, a := range addrs {
			k := string(view.At(i))
			hidden[a] = s.seen[k] || tombstones && rec.Column(1).(*array.Boolean).Value(i)
			keys = append(keys, k)
		}
	}
	err := s.rows(ctx, src, schema, func(rec arrow.RecordBatch, addrs []uint64, i int) bool {
		if !hidden[addrs[i]] {
			s.seen[s.keyOf(rec, i)] = true // should the generation go before its end is read
		}
		return !hidden[addrs[i]]
	})
	if err != nil {
		return err
	}
	for _, k := range keys {
		s.seen[k] = true
	}
	return nil
}

// keyOf returns the key of a row of a batch that has the key's column.
func (s *scan) keyOf(rec arrow.RecordBatch, i int) string {
	view, _ := datafile.ViewBytes(rec.Column(rec.Schema().FieldIndices(s.key)[0]))
	return string(view.At(i))
}

// base yields the rows of the base whose keys are in no generation.
func (s *scan) base(ctx context.Context, schema *arrow.Schema) error {
	return s.rows(ctx, &source{d: s.v.base}, schema, func(keys arrow.RecordBatch, _ []uint64, i int) bool {
		s.based = true
		return len(s.seen) == 0 || !s.seen[s.keyOf(keys, i)]
	})
}

// rows yields the rows of one table that want holds for.
func (s *scan) rows(ctx context.Context, src *source, schema *arrow.Schema, want func(rec arrow.RecordBatch, addrs []uint64, i int) bool) error {
	opts := s.opts
	opts.Columns = nil
	for _, f := range schema.Fields() {
		if f.Name != lance.RowAddressColumn {
			opts.Columns = append(opts.Columns, f.Name)
		}
	}
	if s.key != "" && !slices.Contains(opts.Columns, s.key) {
		opts.Columns = append(opts.Columns, s.key)
	}
	opts.WithRowAddress = true
	opts.Limit = 0
	for rec, err := range src.d.Scan(ctx, opts) {
		if err != nil {
			return src.named(err)
		}
		addrs := rec.Column(int(rec.NumCols()) - 1).(*array.Uint64).Uint64Values()
		keep := make([]int, 0, len(addrs))
		for i := range addrs {
			if want(rec, addrs, i) {
				keep = append(keep, i)
			}
		}
		if err := s.emit(src, rec, schema, keep); err != nil {
			return err
		}
	}
	return nil
}

func (s *scan) emit(src *source, rec arrow.RecordBatch, schema *arrow.Schema, keep []int) error {
	if s.opts.Limit > 0 && int64(len(keep)) > s.left {
		keep = keep[:s.left]
	}
	if len(keep) == 0 {
		return nil
	}
	cols := make([]arrow.Array, schema.NumFields())
	for i, f := range schema.Fields() {
		a, err := arrays.Pick(rec.Column(rec.Schema().FieldIndices(f.Name)[0]), keep)
		if err != nil {
			return err
		}
		cols[i] = a
	}
	b := Batch{array.NewRecordBatch(schema, cols, int64(len(keep))), Place{src.shard, src.generation}}
	if !s.yield(b, nil) {
		return errStop
	}
	if s.left -= int64(len(keep)); s.opts.Limit > 0 && s.left == 0 {
		return errStop
	}
	return nil
}

// mayHave asks the bloom filter of a generation that we wrote ourselves; another's hash
// might differ.
func (src *source) mayHave(ctx context.Context, keys []any) bool {
	src.once.Do(func() {
		if src.d.Writer() == format.WriterName+" "+format.WriterVersion {
			if b, err := src.d.Store().Get(ctx, bloomName, 4<<20); err == nil {
				src.filter = parseBloom(b)
			}
		}
	})
	for _, k := range keys {
		if src.filter.may(keyHash([]byte(k.(string)))) {
			return true
		}
	}
	return false
}

// Lookup yields the rows of some keys, each once and the newest. Bloom filters say
// which generations to read, the base's index on the key where to look in it.
func (v *View) Lookup(ctx context.Context, keys []string, columns []string) iter.Seq2[Batch, error] {
	var values []any
	for _, k := range keys {
		values = append(values, k)
	}
	part := &View{table: v.table, base: v.base, key: v.key}
	for _, src := range v.gens {
		if src.mayHave(ctx, values) {
			part.gens = append(part.gens, src)
		}
	}
	return part.Scan(ctx, lance.ScanOptions{
		Columns: columns, WithRowAddress: true,
		Filter: []lance.Condition{{Column: v.key, Op: lance.In, Values: values}},
	})
}

// Take reads rows of one table of the view by their addresses. If the generation has
// been merged and removed since, it is an error for which errors.Is(err,
// objstore.ErrNotFound) holds: look the keys up again in a new view.
func (v *View) Take(ctx context.Context, p Place, addrs []uint64, columns []string) (arrow.RecordBatch, error) {
	if p == (Place{}) {
		return v.base.Take(ctx, addrs, columns)
	}
	i := slices.IndexFunc(v.gens, func(s *source) bool { return s.shard == p.Shard && s.generation == p.Generation })
	if i < 0 {
		return nil, fmt.Errorf("generation %d of shard %s is not in the view", p.Generation, p.Shard)
	}
	if columns == nil {
		for _, f := range v.base.Schema().Fields() {
			columns = append(columns, f.Name)
		}
	}
	rec, err := v.gens[i].d.Take(ctx, addrs, columns)
	return rec, v.gens[i].named(err)
}
