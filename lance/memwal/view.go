package memwal

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/foldlog/foldlog/internal/parallel"
	"github.com/foldlog/foldlog/lance"
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

	// mu guards what is decoded of a generation, which never changes.
	mu      sync.Mutex
	keys    *keySet
	values  map[string]valueSet
	account account
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
	return v, states, parallel.Each(len(open), ioWorkers, func(i int) (err error) {
		v.gens[i], err = t.generation(ctx, open[i].id, open[i].g)
		return err
	})
}

// Base is the version of the table in the view.
func (v *View) Base() *lance.Dataset { return v.base }

// Batch is rows of one table of a view.
type Batch struct {
	arrow.RecordBatch
	Place Place
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

// Lookup yields the rows of some keys, each once and the newest, with their addresses for
// Take. Bloom filters say which generations to read, the base's index on the key where to
// look in it. As with Take, a generation that has been merged and removed since is an
// error that Gone tells.
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
