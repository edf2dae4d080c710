package lance

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/foldlog/foldlog/lance/internal/format"
)

// Delete marks the rows that a filter holds for as deleted and returns the version
// without them; the receiver if there are none. An empty filter is refused,
// and Satisfies, which a version cannot tell of.
func (d *Dataset) Delete(ctx context.Context, filter []Condition) (*Dataset, error) {
	if len(filter) == 0 {
		return nil, fmt.Errorf("delete: the filter is empty")
	}
	for _, c := range filter {
		if c.Op == Satisfies {
			return nil, fmt.Errorf("delete: %s cannot be recorded", c)
		}
	}
	next, err := d.replanning(ctx, func(d *Dataset) (*Dataset, error) { return d.deleteOnce(ctx, filter) })
	if err != nil {
		return nil, fmt.Errorf("delete: %w", err)
	}
	return next, nil
}

func (d *Dataset) deleteOnce(ctx context.Context, filter []Condition) (*Dataset, error) {
	start := time.Now()
	var addrs []uint64
	for rec, err := range d.Scan(ctx, ScanOptions{Columns: []string{}, Filter: filter, WithRowAddress: true}) {
		if err != nil {
			return nil, err
		}
		addrs = append(addrs, rec.Column(0).(*array.Uint64).Uint64Values()...)
	}
	if len(addrs) == 0 {
		return d, nil
	}
	updated, removed, err := d.mask(ctx, addrs)
	if err != nil {
		return nil, err
	}
	predicate := make([]string, len(filter))
	for i, c := range filter {
		predicate[i] = c.String()
	}
	txn := &format.Transaction{Kind: format.Delete, Updated: updated, Removed: removed, Predicate: strings.Join(predicate, " AND ")}
	return d.commit(ctx, change{txn: txn, start: start, apply: func(m *format.Manifest) error {
		return replaceFragments(m, updated, removed)
	}})
}

// mask writes deletion files for rows and returns the fragments with them, and the
// ids of fragments of which nothing is left.
func (d *Dataset) mask(ctx context.Context, addrs []uint64) (updated []format.Fragment, removed []uint64, err error) {
	byFragment := map[uint64]*roaring.Bitmap{}
	for _, a := range addrs {
		if byFragment[a>>32] == nil {
			byFragment[a>>32] = roaring.New()
		}
		byFragment[a>>32].Add(uint32(a))
	}
	for _, f := range d.m.Fragments {
		rows := byFragment[f.ID]
		if rows == nil {
			continue
		}
		old, err := d.deletions(ctx, f)
		if err != nil {
			return nil, nil, err
		}
		if old != nil {
			rows.Or(old)
		}
		if int64(rows.GetCardinality()) == f.Rows {
			removed = append(removed, f.ID)
			continue
		}
		if f, err = d.writeDeletions(ctx, f, rows); err != nil {
			return nil, nil, err
		}
		updated = append(updated, f)
	}
	return updated, removed, nil
}

// writeDeletions writes the deleted rows of a fragment as a Roaring bitmap.
func (d *Dataset) writeDeletions(ctx context.Context, f format.Fragment, rows *roaring.Bitmap) (format.Fragment, error) {
	f.Deletion = &format.DeletionFile{Kind: format.DeletionBitmap, ReadVersion: d.m.Version, ID: rand.Uint64(), Rows: rows.GetCardinality()}
	b, err := rows.ToBytes()
	if err != nil {
		return f, err
	}
	return f, d.store.Put(ctx, f.Deletion.Path(f.ID), b)
}

// replaceFragments puts changed fragments in the place of the old and removes others.
func replaceFragments(m *format.Manifest, updated []format.Fragment, removed []uint64) error {
	changed := make(map[uint64]format.Fragment, len(updated))
	for _, u := range updated {
		changed[u.ID] = u
	}
	gone := make(map[uint64]bool, len(removed))
	for _, id := range removed {
		gone[id] = true
	}
	left := len(changed) + len(gone)
	kept := m.Fragments[:0]
	for _, f := range m.Fragments {
		if gone[f.ID] {
			left--
			continue
		}
		if u, ok := changed[f.ID]; ok {
			f = u
			left--
		}
		kept = append(kept, f)
	}
	m.Fragments = kept
	if left != 0 {
		return fmt.Errorf("%w: %d fragments are gone", ErrConflict, left)
	}
	return nil
}
