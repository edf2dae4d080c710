package lance

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/foldlog/foldlog/lance/internal/format"
)

// Merge is a set of rows that are inserted, or replace those of the same key.
type Merge struct {
	// Rows are what is merged. The sequence is read several times and must yield the
	// same rows each time. Of several rows with one key the last counts.
	Rows iter.Seq2[arrow.RecordBatch, error]
	// Key is the column that tells rows apart; empty is the primary key. It cannot
	// be null.
	Key string
	// KeepExisting drops rows whose key the table has, instead of replacing the
	// table's: right for rows that never change.
	KeepExisting bool
	// Differing, with KeepExisting, names columns: a row that says something else there
	// than the table's row of its key, or than another of Rows, is inserted beside it,
	// so that readers see the contradiction. It is for rows that never change, whose
	// copies should be the same.
	Differing []string
	// Tombstone names a bool column of Rows, which is not the table's: where it is
	// true the row says that its key is deleted.
	Tombstone string
	// Progress, if there, is recorded in the same commit.
	Progress *Progress
}

// Progress says that the generations of a MemWAL shard, up to one, are merged. If the
// table says so already, the merge is ErrMerged.
type Progress struct {
	Shard      [16]byte
	Generation uint64
}

// MergeStats says what a merge did.
type MergeStats struct {
	// Inserted counts rows of new keys, Replaced rows whose key the table had,
	// Kept rows that were dropped because of KeepExisting (those that differ are
	// inserted), and Deleted rows of the
	// table that went because of a tombstone.
	Inserted, Replaced, Kept, Deleted int64
}

// MergeProgress returns up to which generation each MemWAL shard is merged, and
// whether the table has a MemWAL at all.
func (d *Dataset) MergeProgress() (map[[16]byte]uint64, bool, error) {
	entries := d.m.Index(format.MemWALName)
	if len(entries) == 0 {
		return nil, false, nil
	}
	done, err := entries[0].MergeProgress()
	if err != nil {
		return nil, true, in(manifestKey(d.m.Version), err)
	}
	out := make(map[[16]byte]uint64, len(done))
	for shard, gen := range done {
		out[shard] = gen
	}
	return out, true, nil
}

// InstallMemWAL adds the system index that MemWAL shards need, unless it is there.
func (d *Dataset) InstallMemWAL(ctx context.Context) (*Dataset, error) {
	next, err := d.replanning(ctx, func(d *Dataset) (*Dataset, error) {
		if len(d.m.Index(format.MemWALName)) > 0 {
			return d, nil
		}
		x := format.NewMemWALIndex(d.m.Version)
		txn := &format.Transaction{Kind: format.CreateIndex, NewIndexes: []format.Index{x}}
		return d.commit(ctx, change{txn: txn, start: time.Now(), apply: func(m *format.Manifest) error {
			m.Indexes = append(m.Indexes, x)
			return nil
		}})
	})
	if err != nil {
		return nil, fmt.Errorf("install mem wal: %w", err)
	}
	return next, nil
}

// merger is a merge under way on one version.
type merger struct {
	d     *Dataset
	spec  Merge
	stats MergeStats
	// last is the number of the last row of a key, and whether it is a tombstone.
	last map[string]mergeRow
	// existing are the addresses of the table's rows by key.
	existing map[string][]uint64
	seen     map[uint64]bool // fragments that existing knows
	// twice are keys of several rows, differ the numbers of rows that are inserted
	// though there are others of their keys; contested are the keys that it decides.
	twice, contested map[string]bool
	differ           map[int64]bool
}

type mergeRow struct {
	row     int64
	deleted bool
}

// Merge inserts or replaces rows in one commit and returns the version that has them.
// Memory follows the keys that are merged, not the table.
func (d *Dataset) Merge(ctx context.Context, spec Merge) (*Dataset, MergeStats, error) {
	if spec.Key == "" {
		spec.Key = d.PrimaryKey()
	}
	if f, err := d.fieldByName(spec.Key); err != nil || !format.IsVariable(f.Logical) {
		return nil, MergeStats{}, fmt.Errorf("merge: %w", &UnsupportedError{What: fmt.Sprintf("a merge on %q, which is not a column of strings or binaries", spec.Key)})
	}
	var stats MergeStats
	next, err := d.replanning(ctx, func(d *Dataset) (*Dataset, error) {
		m := &merger{d: d, spec: spec}
		next, err := m.run(ctx)
		stats = m.stats
		return next, err
	})
	if err != nil {
		return nil, MergeStats{}, fmt.Errorf("merge: %w", err)
	}
	return next, stats, nil
}

func (m *merger) run(ctx context.Context) (*Dataset, error) {
	start := time.Now()
	if m.spec.Progress != nil { // before any work, and again in the commit
		if _, err := m.progressed(m.d.m); err != nil {
			return nil, err
		}
	}
	if err := m.gather(); err != nil {
		return nil, err
	}
	if err := m.find(ctx); err != nil {
		return nil, err
	}
	if err := m.compare(ctx); err != nil {
		return nil, err
	}
	frags, err := m.d.writeFragments(ctx, m.rows())
	if err != nil {
		return nil, err
	}
	updated, removed, err := m.masks(ctx)
	if err != nil {
		return nil, err
	}
	if len(frags)+len(updated)+len(removed) == 0 && m.spec.Progress == nil {
		return m.d, nil
	}
	txn := &format.Transaction{Kind: format.Update, Fragments: frags, Updated: updated, Removed: removed}
	if p := m.spec.Progress; p != nil {
		txn.Compacted = []format.Compacted{{Shard: p.Shard, Generation: p.Generation}}
	}
	return m.d.commit(ctx, change{
		txn: txn, start: start,
		check: func(latest *format.Manifest) error { return m.recheck(ctx, latest) },
		apply: func(next *format.Manifest) error {
			indexes, err := m.progressed(next)
			if err != nil {
				return err
			}
			next.Indexes = indexes
			if err := addFragments(next, frags); err != nil {
				return err
			}
			return replaceFragments(next, updated, removed)
		},
	})
}

// progressed returns the indexes with the progress recorded.
func (m *merger) progressed(next *format.Manifest) ([]format.Index, error) {
	p := m.spec.Progress
	if p == nil {
		return next.Indexes, nil
	}
	at := slices.IndexFunc(next.Indexes, func(x format.Index) bool { return x.Name == format.MemWALName })
	if at < 0 {
		return nil, fmt.Errorf("%w: the table has no MemWAL", ErrConflict)
	}
	done, err := next.Indexes[at].MergeProgress()
	if err != nil {
		return nil, err
	}
	if done[p.Shard] >= p.Generation {
		return nil, ErrMerged
	}
	x, err := next.Indexes[at].WithProgress(format.Compacted{Shard: p.Shard, Generation: p.Generation})
	if err != nil {
		return nil, err
	}
	indexes := slices.Clone(next.Indexes)
	indexes[at] = x
	return indexes, nil
}

// gather reads the keys and keeps the last row of each.
func (m *merger) gather() error {
	m.last, m.twice = map[string]mergeRow{}, map[string]bool{}
	row := int64(0)
	for rec, err := range m.spec.Rows {
		if err != nil {
			return err
		}
		keys, dead, err := m.keys(rec)
		if err != nil {
			return err
		}
		for i := range int(rec.NumRows()) {
			if keys.arr.IsNull(i) {
				return fmt.Errorf("row %d has no key", row)
			}
			k := string(keys.bytes(i))
			if _, again := m.last[k]; again && m.comparing() {
				m.twice[k] = true
			}
			m.last[k] = mergeRow{row, dead != nil && dead.IsValid(i) && dead.Value(i)}
			row++
		}
	}
	return nil
}

// keys returns a batch's keys and tombstones.
func (m *merger) keys(rec arrow.RecordBatch) (*keyColumn, *array.Boolean, error) {
	at := rec.Schema().FieldIndices(m.spec.Key)
	if len(at) != 1 {
		return nil, nil, fmt.Errorf("batch has %d columns named %q", len(at), m.spec.Key)
	}
	keys, err := keysOf(rec.Column(at[0]))
	if err != nil {
		return nil, nil, err
	}
	if keys.bytes == nil {
		return nil, nil, fmt.Errorf("column %q of a batch holds %s", m.spec.Key, rec.Column(at[0]).DataType())
	}
	if m.spec.Tombstone == "" {
		return keys, nil, nil
	}
	at = rec.Schema().FieldIndices(m.spec.Tombstone)
	if len(at) == 0 {
		return keys, nil, nil
	}
	dead, ok := rec.Column(at[0]).(*array.Boolean)
	if !ok {
		return nil, nil, fmt.Errorf("tombstones of type %s", rec.Column(at[0]).DataType())
	}
	return keys, dead, nil
}

// find looks the keys up in the table.
func (m *merger) find(ctx context.Context) error {
	m.existing, m.seen = map[string][]uint64{}, map[uint64]bool{}
	var keys []any
	for k := range m.last {
		keys = append(keys, k)
	}
	for _, f := range m.d.m.Fragments {
		m.seen[f.ID] = true
	}
	if len(keys) == 0 {
		return nil
	}
	return m.scan(ctx, m.d, keys, func(k string, addr uint64) { m.existing[k] = append(m.existing[k], addr) })
}

func (m *merger) scan(ctx context.Context, d *Dataset, keys []any, found func(string, uint64)) error {
	opts := ScanOptions{
		Columns: []string{m.spec.Key}, WithRowAddress: true,
		Filter: []Condition{{Column: m.spec.Key, Op: In, Values: keys}},
	}
	for rec, err := range d.Scan(ctx, opts) {
		if err != nil {
			return err
		}
		keys, err := keysOf(rec.Column(0))
		if err != nil {
			return err
		}
		addrs := rec.Column(1).(*array.Uint64).Uint64Values()
		for i, a := range addrs {
			found(string(keys.bytes(i)), a)
		}
	}
	return nil
}

// recheck looks for our keys in fragments that others added meanwhile.
func (m *merger) recheck(ctx context.Context, latest *format.Manifest) error {
	part := *m.d
	part.m = latest.Clone()
	part.m.Fragments = slices.DeleteFunc(part.m.Fragments, func(f format.Fragment) bool { return m.seen[f.ID] })
	var keys []any
	for k := range m.last {
		keys = append(keys, k)
	}
	if len(part.m.Fragments) == 0 || len(keys) == 0 {
		return nil
	}
	again := false
	err := m.scan(ctx, &part, keys, func(k string, _ uint64) {
		_, known := m.existing[k]
		again = again || !known || !m.spec.KeepExisting || m.comparing()
	})
	if err == nil && again {
		return errReplan
	}
	for _, f := range part.m.Fragments {
		m.seen[f.ID] = true
	}
	return err
}

// rows yields what is inserted, without the column of tombstones.
func (m *merger) rows() iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		m.stats = MergeStats{}
		row := int64(0)
		for rec, err := range m.spec.Rows {
			if err != nil {
				yield(nil, err)
				return
			}
			keys, _, err := m.keys(rec)
			if err != nil {
				yield(nil, err)
				return
			}
			var keep []int
			for i := range int(rec.NumRows()) {
				if m.wanted(keys.bytes(i), row) {
					keep = append(keep, i)
				}
				row++
			}
			out, err := m.selected(rec, keep)
			if !yield(out, err) || err != nil {
				return
			}
		}
	}
}

// wanted decides about a row and counts it.
func (m *merger) wanted(k []byte, row int64) bool {
	last := m.last[string(k)]
	_, exists := m.existing[string(k)]
	switch {
	case m.differ[row]:
		m.stats.Inserted++
		return true
	case last.row != row:
		return false
	case m.contested[string(k)]:
		m.stats.Kept++
		return false
	case last.deleted && exists:
		m.stats.Deleted++
		return false
	case last.deleted:
		return false
	case exists && m.spec.KeepExisting:
		m.stats.Kept++
		return false
	case exists:
		m.stats.Replaced++
	default:
		m.stats.Inserted++
	}
	return true
}

// selected returns rows of a batch in the table's columns.
func (m *merger) selected(rec arrow.RecordBatch, keep []int) (arrow.RecordBatch, error) {
	var cols []arrow.Array
	var fields []arrow.Field
	for i, f := range rec.Schema().Fields() {
		if f.Name == m.spec.Tombstone && m.spec.Tombstone != "" {
			continue
		}
		a, err := pick(rec.Column(i), keep)
		if err != nil {
			return nil, err
		}
		cols, fields = append(cols, a), append(fields, f)
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), cols, int64(len(keep))), nil
}

// masks deletes the rows of the table that are replaced or deleted.
func (m *merger) masks(ctx context.Context) ([]format.Fragment, []uint64, error) {
	var addrs []uint64
	for k, rows := range m.existing {
		if !m.spec.KeepExisting || m.last[k].deleted {
			addrs = append(addrs, rows...)
		}
	}
	return m.d.mask(ctx, addrs)
}
