package lance

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/foldlog/foldlog/internal/sleep"
	"github.com/foldlog/foldlog/lance/internal/format"
)

// Defaults of [CompactOptions].
const (
	DefaultTargetRows      = 1 << 20
	DefaultTargetBytes     = 1 << 30
	DefaultDeletedFraction = 0.1
)

// CompactOptions says what is worth rewriting. The zero value is the default.
type CompactOptions struct {
	// TargetRows and TargetBytes are how large fragments become; smaller ones are
	// put together. Zero is DefaultTargetRows and DefaultTargetBytes.
	TargetRows, TargetBytes int64
	// DeletedFraction is from what part of deleted rows on a fragment is rewritten
	// alone; zero is DefaultDeletedFraction.
	DeletedFraction float64
}

// CompactStats says what a compaction did.
type CompactStats struct {
	// Removed and Added count fragments.
	Removed, Added int
	// Rows counts the rows that were written anew.
	Rows int64
	// Skipped counts fragments that were left because an index covers them that
	// this package cannot carry over.
	Skipped int
}

func (o CompactOptions) withDefaults() CompactOptions {
	if o.TargetRows == 0 {
		o.TargetRows = DefaultTargetRows
	}
	if o.TargetBytes == 0 {
		o.TargetBytes = DefaultTargetBytes
	}
	if o.DeletedFraction == 0 {
		o.DeletedFraction = DefaultDeletedFraction
	}
	return o
}

// Compact puts small neighbouring fragments together, drops deleted rows, and carries
// BTREE indexes over in the same commit. It returns the version that has the result;
// the receiver if nothing was worth it. The data is streamed.
func (d *Dataset) Compact(ctx context.Context, opts CompactOptions) (*Dataset, CompactStats, error) {
	opts = opts.withDefaults()
	var stats CompactStats
	done := map[uint64]*rewritten{} // by the first old fragment: what is written already
	next, err := d.replanning(ctx, func(d *Dataset) (*Dataset, error) {
		stats = CompactStats{}
		return d.compactOnce(ctx, opts, done, &stats)
	})
	if err != nil {
		return nil, stats, fmt.Errorf("compact: %w", err)
	}
	return next, stats, nil
}

// rewritten is a group of fragments written as one.
type rewritten struct {
	start   time.Time
	old     []format.Fragment
	deleted []*roaring.Bitmap
	frag    format.Fragment
}

// plan returns runs of neighbouring fragments to be written as one.
func (d *Dataset) plan(opts CompactOptions, stats *CompactStats) [][]format.Fragment {
	var groups [][]format.Fragment
	var run []format.Fragment
	var rows, bytes int64
	coverage := ""
	end := func() {
		if len(run) > 1 || len(run) == 1 && d.sparse(run[0], opts) {
			groups = append(groups, run)
		}
		run, rows, bytes = nil, 0, 0
	}
	for _, f := range d.m.Fragments {
		size := fragmentBytes(f)
		cover, movable := d.coverage(f)
		small := f.Live() < opts.TargetRows && size < opts.TargetBytes
		if !movable {
			stats.Skipped++
		}
		if !movable || !small && !d.sparse(f, opts) {
			end()
			continue
		}
		if len(run) > 0 && (cover != coverage || rows+f.Live() > opts.TargetRows || bytes+size > opts.TargetBytes) {
			end()
		}
		run, rows, bytes, coverage = append(run, f), rows+f.Live(), bytes+size, cover
	}
	end()
	return groups
}

func (d *Dataset) sparse(f format.Fragment, opts CompactOptions) bool {
	deleted := f.Rows - f.Live()
	return deleted > 0 && float64(deleted) >= opts.DeletedFraction*float64(f.Rows)
}

func fragmentBytes(f format.Fragment) (n int64) {
	for _, df := range f.Files {
		n += df.Size
	}
	return n
}

// coverage names the indexes that cover a fragment: only fragments with the same may
// become one. A fragment in an index that cannot be carried over must stay.
func (d *Dataset) coverage(f format.Fragment) (names string, movable bool) {
	movable = true
	for _, x := range d.m.Indexes {
		if x.Fragments == nil || !x.Fragments.Contains(uint32(f.ID)) {
			continue
		}
		names += x.UUID.String()
		movable = movable && isBTree(x)
	}
	return names, movable
}

func (d *Dataset) compactOnce(ctx context.Context, opts CompactOptions, done map[uint64]*rewritten, stats *CompactStats) (*Dataset, error) {
	start := time.Now()
	if err := d.m.Writable(); err != nil {
		return nil, err
	}
	groups := d.plan(opts, stats)
	if len(groups) == 0 {
		return d, nil
	}
	var fresh, all []*rewritten
	for _, g := range groups {
		w := done[g[0].ID]
		if w == nil || sleep.Since(w.start) > MaxCommitAge/2 || !slices.EqualFunc(w.old, g, sameRows) {
			w = &rewritten{start: time.Now(), old: g}
			fresh = append(fresh, w)
		}
		if w.start.Before(start) {
			start = w.start
		}
		all = append(all, w)
	}
	d, err := d.reserve(ctx, fresh)
	if err != nil {
		return nil, err
	}
	for _, w := range fresh {
		if err := d.rewrite(ctx, w); err != nil {
			return nil, err
		}
		done[w.old[0].ID] = w
	}
	return d.commitRewrite(ctx, start, all, stats)
}

// sameRows reports whether two states of a fragment have the same rows.
func sameRows(a, b format.Fragment) bool {
	switch {
	case a.ID != b.ID || a.Rows != b.Rows || (a.Deletion == nil) != (b.Deletion == nil):
		return false
	case a.Deletion == nil:
		return true
	}
	return a.Deletion.Path(a.ID) == b.Deletion.Path(b.ID)
}

// reserve takes fragment ids, which the indexes need before the rewrite commits.
func (d *Dataset) reserve(ctx context.Context, groups []*rewritten) (*Dataset, error) {
	if len(groups) == 0 {
		return d, nil
	}
	var first uint64
	txn := &format.Transaction{Kind: format.ReserveFragments, Reserved: uint64(len(groups))}
	next, err := d.commit(ctx, change{txn: txn, start: time.Now(), apply: func(m *format.Manifest) (err error) {
		first, err = m.Reserve(uint64(len(groups)))
		return err
	}})
	if err != nil {
		return nil, err
	}
	for i, g := range groups {
		g.frag.ID = first + uint64(i)
	}
	return next, nil
}

// rewrite streams the live rows of a group into a new data file.
func (d *Dataset) rewrite(ctx context.Context, g *rewritten) error {
	part := *d
	part.m = d.m.Clone()
	part.m.Fragments = g.old
	w, err := newFragmentWriter(ctx, d.store, d.m.Fields)
	if err != nil {
		return err
	}
	defer w.abort()
	for rec, err := range part.Scan(ctx, ScanOptions{}) {
		if err == nil {
			err = w.write(rec)
		}
		if err != nil {
			return err
		}
	}
	for _, f := range g.old {
		deleted, err := d.deletions(ctx, f)
		if err != nil {
			return err
		}
		g.deleted = append(g.deleted, deleted)
	}
	frag, err := w.close()
	frag.ID = g.frag.ID
	g.frag = frag
	return err
}

// move returns where a row is after the rewrite, false if it was deleted or is not in
// a group.
func move(groups []*rewritten) func(addr uint64) (uint64, bool) {
	type place struct {
		id      uint64
		base    uint64
		deleted *roaring.Bitmap
	}
	places := map[uint64]place{}
	for _, g := range groups {
		base := uint64(0)
		for i, f := range g.old {
			places[f.ID] = place{g.frag.ID, base, g.deleted[i]}
			base += uint64(f.Live())
		}
	}
	return func(addr uint64) (uint64, bool) {
		p, ok := places[addr>>32]
		if !ok {
			return addr, true
		}
		row := uint64(uint32(addr))
		if p.deleted != nil {
			if p.deleted.Contains(uint32(row)) {
				return 0, false
			}
			row -= p.deleted.Rank(uint32(row))
		}
		return p.id<<32 | (p.base + row), true
	}
}

// remap writes an index anew for the moved rows. Its order stays, so it is streamed.
func (d *Dataset) remap(ctx context.Context, x format.Index, groups []*rewritten) (format.Index, error) {
	t, err := d.openBTree(ctx, x)
	if err != nil {
		return x, err
	}
	field := d.fieldByID(x.Fields[0])
	if field == nil {
		return x, fmt.Errorf("index %s is on a column that is gone", x.Name)
	}
	moved := move(groups)
	seq := func(yield func(entry, error) bool) {
		for e, err := range t.all(ctx) {
			addr, ok := moved(e.addr)
			if e.addr = addr; (err != nil || ok) && !yield(e, err) {
				return
			}
		}
	}
	next := x.Changed()
	next.UUID = format.NewUUID()
	next.Fragments = x.Fragments.Clone()
	for _, g := range groups {
		if x.Fragments.Contains(uint32(g.old[0].ID)) {
			for _, f := range g.old {
				next.Fragments.Remove(uint32(f.ID))
			}
			next.Fragments.Add(uint32(g.frag.ID))
		}
	}
	next.Files, err = writeBTree(ctx, d.store, indexDir(next.UUID), field.Logical, t.pageRows, seq)
	return next, err
}

// commitRewrite carries the indexes over and commits.
func (d *Dataset) commitRewrite(ctx context.Context, start time.Time, groups []*rewritten, stats *CompactStats) (*Dataset, error) {
	txn := &format.Transaction{Kind: format.Rewrite}
	for _, g := range groups {
		txn.Groups = append(txn.Groups, format.Group{Old: g.old, New: []format.Fragment{g.frag}})
		stats.Removed += len(g.old)
		stats.Added++
		stats.Rows += g.frag.Rows
	}
	replaced := map[format.UUID]format.Index{}
	for _, x := range d.m.Indexes {
		if !isBTree(x) || !slices.ContainsFunc(groups, func(g *rewritten) bool { return x.Fragments.Contains(uint32(g.old[0].ID)) }) {
			continue
		}
		next, err := d.remap(ctx, x, groups)
		if err != nil {
			return nil, fmt.Errorf("index %s: %w", x.Name, err)
		}
		replaced[x.UUID] = next
		txn.Rewritten = append(txn.Rewritten, format.RewrittenIndex{Old: x.UUID, New: next})
	}
	return d.commit(ctx, change{txn: txn, start: start, apply: func(m *format.Manifest) error {
		for i, x := range m.Indexes {
			if next, ok := replaced[x.UUID]; ok {
				m.Indexes[i] = next
			}
		}
		return rewriteFragments(m, groups)
	}})
}

// rewriteFragments puts each group's fragment where the first of its old ones was.
func rewriteFragments(m *format.Manifest, groups []*rewritten) error {
	for _, g := range groups {
		at := slices.IndexFunc(m.Fragments, func(f format.Fragment) bool { return f.ID == g.old[0].ID })
		if at < 0 || at+len(g.old) > len(m.Fragments) || !slices.EqualFunc(m.Fragments[at:at+len(g.old)], g.old, sameRows) {
			return fmt.Errorf("%w: fragments have changed", errReplan)
		}
		m.Fragments = slices.Replace(m.Fragments, at, at+len(g.old), g.frag)
	}
	return nil
}
