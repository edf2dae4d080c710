package memwal

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/foldlog/foldlog/internal/parallel"
	"github.com/foldlog/foldlog/lance"
	"github.com/foldlog/foldlog/lance/internal/format"
	"github.com/foldlog/foldlog/lance/internal/pins"
	"github.com/foldlog/foldlog/objstore"
)

// Table is a Lance table with its shards. It is safe for concurrent use.
type Table struct {
	store objstore.Store

	mu   sync.Mutex
	base *lance.Dataset
	gens map[string]*source
	// known are the states of shards that were read last. They are not changed.
	known map[ID]*state

	// pins is what collecting has seen of readers' pins.
	pins pins.Watch
	// cached is what generations keep in memory, in bytes.
	cached atomic.Int64
}

// Open opens the table at the root of a store.
func Open(ctx context.Context, store objstore.Store) (*Table, error) {
	d, err := lance.Open(ctx, store, lance.OpenOptions{})
	if err != nil {
		return nil, err
	}
	return &Table{store: store, base: d, gens: map[string]*source{}}, nil
}

// Base returns the latest version of the table without its shards.
func (t *Table) Base(ctx context.Context) (*lance.Dataset, error) {
	t.mu.Lock()
	base := t.base
	t.mu.Unlock()
	d, err := base.Latest(ctx)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if d.Version() > t.base.Version() {
		t.base = d
	}
	return d, nil
}

// install returns the latest version with its MemWAL installed.
func (t *Table) install(ctx context.Context) (*lance.Dataset, error) {
	d, err := t.Base(ctx)
	if err != nil {
		return nil, err
	}
	return d.InstallMemWAL(ctx)
}

// ShardInfo describes a shard.
type ShardInfo struct {
	ID ID
	// Version is the number of its latest manifest, which every change moves.
	Version uint64
	// Epoch is the number of the latest claim.
	Epoch uint64
	// Sealed says that the shard takes no more rows.
	Sealed bool
	// Generations are those that its manifest names, Unmerged those of them that the
	// table does not have yet; Rows is how many rows these have, as far as known.
	Generations, Unmerged int
	Rows                  int64
}

// Unmerged is what shards have that the table does not have yet, in rows as far as known
// and in generations.
func Unmerged(shards []ShardInfo) (rows, generations int64) {
	for _, s := range shards {
		rows += s.Rows
		generations += int64(s.Unmerged)
	}
	return rows, generations
}

// Shards describes the shards in the order of their ids.
func (t *Table) Shards(ctx context.Context) ([]ShardInfo, error) {
	states, err := t.states(ctx)
	if err != nil {
		return nil, err
	}
	d, err := t.Base(ctx)
	if err != nil {
		return nil, err
	}
	merged, _, err := d.MergeProgress()
	if err != nil {
		return nil, err
	}
	var out []ShardInfo
	for _, s := range states {
		info := ShardInfo{ID: s.id, Version: s.version, Epoch: s.epoch, Sealed: s.status == statusSealed, Generations: len(s.generations)}
		for _, g := range s.generations {
			if g.number > merged[s.id] {
				info.Unmerged++
				info.Rows += int64(g.rows)
			}
		}
		out = append(out, info)
	}
	return out, nil
}

// states reads the latest manifest of every shard.
func (t *Table) states(ctx context.Context) ([]*state, error) {
	var ids []ID
	for info, err := range t.store.List(ctx, objstore.ListOptions{Prefix: root, Delimiter: true}) {
		if err != nil {
			return nil, err
		}
		if id, err := ParseID(strings.TrimSuffix(strings.TrimPrefix(info.Key, root), "/")); err == nil {
			ids = append(ids, id)
		}
	}
	states := make([]*state, len(ids))
	err := parallel.Each(len(ids), ioWorkers, func(i int) error {
		s, err := t.recent(ctx, ids[i])
		if errors.Is(err, objstore.ErrNotFound) {
			return nil // not claimed yet, or removed meanwhile
		}
		states[i] = s
		return err
	})
	return slices.DeleteFunc(states, func(s *state) bool { return s == nil }), err
}

// ioWorkers is how many reads one call has under way at once.
const ioWorkers = 16

// MergeOptions says what becomes of rows whose keys the table has. The zero value is
// that the newest replaces them.
type MergeOptions struct {
	// KeepExisting says that rows never change: the table's are kept.
	KeepExisting bool
	// Differing, with KeepExisting, are columns in which the copies of a row should be
	// the same: see lance.Merge.
	Differing []string
}

// maxMergeBytes bounds the keys that one merge holds in memory, by the size of the
// generations.
const maxMergeBytes = 256 << 20

// merge brings generations of a shard into the table, oldest first, one commit for as
// many as fit, and returns up to which number the table has them.
func (t *Table) merge(ctx context.Context, s *state, opts MergeOptions) (total lance.MergeStats, upTo uint64, err error) {
	for {
		d, err := t.Base(ctx)
		if err != nil {
			return total, upTo, err
		}
		merged, _, err := d.MergeProgress()
		if err != nil {
			return total, upTo, err
		}
		upTo = merged[s.id]
		group := nextToMerge(s, upTo)
		if len(group) == 0 {
			return total, upTo, nil
		}
		last := group[len(group)-1].number
		_, stats, err := d.Merge(ctx, lance.Merge{
			Rows: t.rowsOf(ctx, s.id, group), KeepExisting: opts.KeepExisting, Differing: opts.Differing, Tombstone: Tombstone,
			Progress: &lance.Progress{Shard: s.id, Generation: last},
		})
		if errors.Is(err, lance.ErrMerged) {
			continue // by another, or by us with the answer lost
		}
		if err != nil {
			return total, upTo, err
		}
		total.Inserted += stats.Inserted
		total.Replaced += stats.Replaced
		total.Kept += stats.Kept
		total.Deleted += stats.Deleted
	}
}

func nextToMerge(s *state, upTo uint64) []generation {
	gens := slices.Clone(s.generations)
	newestFirst(gens)
	slices.Reverse(gens)
	var group []generation
	bytes := uint64(0)
	for _, g := range gens {
		if g.number <= upTo {
			continue
		}
		if bytes += max(g.memory, 1); len(group) > 0 && bytes > maxMergeBytes {
			break
		}
		group = append(group, g)
	}
	return group
}

// aheadGens and aheadBytes bound how many generations a merge reads ahead at once.
const (
	aheadGens  = 16
	aheadBytes = 16 << 20
)

// rowsOf yields the rows of generations in their order. Those that are small are read
// several at a time, for on a distant store it is the requests that take long.
func (t *Table) rowsOf(ctx context.Context, id ID, gens []generation) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		for left := gens; len(left) > 0; {
			n, bytes := 1, left[0].size()
			for n < len(left) && n < aheadGens && bytes+left[n].size() <= aheadBytes {
				bytes += left[n].size()
				n++
			}
			if !t.yieldRows(ctx, id, left[:n], yield) {
				return
			}
			left = left[n:]
		}
	}
}

// size is about the size of a generation in bytes; one that is not known is not small.
func (g generation) size() uint64 {
	if g.memory == 0 {
		return aheadBytes
	}
	return g.memory
}

// yieldRows streams one generation, or reads several at once and yields them in turn.
func (t *Table) yieldRows(ctx context.Context, id ID, gens []generation, yield func(arrow.RecordBatch, error) bool) bool {
	if len(gens) == 1 {
		for rec, err := range t.rowsOfOne(ctx, id, gens[0]) {
			if !yield(rec, err) || err != nil {
				return false
			}
		}
		return true
	}
	recs := make([][]arrow.RecordBatch, len(gens))
	err := parallel.Each(len(gens), ioWorkers, func(i int) error {
		for rec, err := range t.rowsOfOne(ctx, id, gens[i]) {
			if err != nil {
				return err
			}
			recs[i] = append(recs[i], rec)
		}
		return nil
	})
	if err != nil {
		yield(nil, err)
		return false
	}
	for _, rec := range slices.Concat(recs...) {
		if !yield(rec, nil) {
			return false
		}
	}
	return true
}

func (t *Table) rowsOfOne(ctx context.Context, id ID, g generation) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		src, err := t.generation(ctx, id, g)
		if err != nil {
			yield(nil, err)
			return
		}
		for rec, err := range src.d.Scan(ctx, lance.ScanOptions{}) {
			if !yield(rec, src.named(err)) || err != nil {
				return
			}
		}
	}
}

// generation opens a generation, once.
func (t *Table) generation(ctx context.Context, id ID, g generation) (*source, error) {
	dir := shardDir(id) + g.dir
	t.mu.Lock()
	src := t.gens[dir]
	t.mu.Unlock()
	if src != nil {
		return src, nil
	}
	d, err := lance.Open(ctx, objstore.Prefix(t.store, dir), lance.OpenOptions{Version: 1, NoPin: true})
	if err != nil {
		if errors.Is(err, lance.ErrNotFound) {
			err = &lance.CorruptError{Path: format.ManifestKey(1), Err: fmt.Errorf("%w: %w", lance.ErrCorrupt, err)}
		}
		return nil, inGeneration(id, g.number, dir, err)
	}
	src = &source{d: d, dir: dir, shard: id, generation: g.number}
	t.mu.Lock()
	defer t.mu.Unlock()
	if first := t.gens[dir]; first != nil {
		return first, nil
	}
	t.gens[dir] = src
	return src, nil
}

// forget drops generations that no shard names any more.
func (t *Table) forget(states []*state) {
	named := map[string]bool{}
	for _, s := range states {
		for _, g := range s.generations {
			named[shardDir(s.id)+g.dir] = true
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for id := range t.known {
		if !slices.ContainsFunc(states, func(s *state) bool { return s.id == id }) {
			delete(t.known, id)
		}
	}
	for dir := range t.gens {
		if !named[dir] {
			t.gens[dir].forgotten(t)
			delete(t.gens, dir)
		}
	}
}
