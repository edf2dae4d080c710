package lance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/foldlog/foldlog/lance/internal/format"
)

// indexRunRows is how many new entries are sorted in memory at once.
const indexRunRows = 1 << 20

// CreateIndex builds a BTREE index on a column, or brings it up to date if it is
// there, and returns the version that has it. Its name is the column's with "_idx".
func (d *Dataset) CreateIndex(ctx context.Context, column string) (*Dataset, error) {
	if _, err := d.fieldByName(column); err != nil {
		return nil, fmt.Errorf("create index: %w", err)
	}
	next, err := d.replanning(ctx, func(d *Dataset) (*Dataset, error) {
		return d.refreshIndex(ctx, column, column+"_idx")
	})
	if err != nil {
		return nil, fmt.Errorf("create index: %w", err)
	}
	return next, nil
}

// RefreshIndexes brings every BTREE index up to date, one commit each, and returns
// the latest version; the receiver if nothing had to be done.
func (d *Dataset) RefreshIndexes(ctx context.Context) (*Dataset, error) {
	var names []string
	for _, x := range d.m.Indexes {
		if isBTree(x) && !slices.Contains(names, x.Name) {
			names = append(names, x.Name)
		}
	}
	for _, name := range names {
		next, err := d.replanning(ctx, func(d *Dataset) (*Dataset, error) {
			segments := slices.DeleteFunc(d.m.Index(name), func(x format.Index) bool { return !isBTree(x) })
			if len(segments) == 0 { // dropped meanwhile
				return d, nil
			}
			f := d.fieldByID(segments[0].Fields[0])
			if f == nil {
				return d, nil
			}
			return d.refreshIndex(ctx, f.Name, name)
		})
		if err != nil {
			return nil, fmt.Errorf("refresh index %s: %w", name, err)
		}
		d = next
	}
	return d, nil
}

// replanning runs an operation on ever later versions until another commit does not
// make it plan again.
func (d *Dataset) replanning(ctx context.Context, op func(*Dataset) (*Dataset, error)) (*Dataset, error) {
	for {
		next, err := op(d)
		if !errors.Is(err, errReplan) {
			return next, err
		}
		if d, err = d.Latest(ctx); err != nil {
			return nil, err
		}
	}
}

// refreshIndex replaces the segments of an index by one that covers every fragment.
func (d *Dataset) refreshIndex(ctx context.Context, column, name string) (*Dataset, error) {
	start := time.Now()
	if err := d.m.Writable(); err != nil {
		return nil, err
	}
	field, err := d.fieldByName(column)
	if err != nil {
		return nil, err
	}
	segments := d.m.Index(name)
	covered := roaring.New()
	for _, x := range segments {
		if !isBTree(x) || x.Fields[0] != field.ID {
			return nil, fmt.Errorf("%w: index %s is of another kind or column", ErrConflict, name)
		}
		covered.Or(x.Fragments)
	}
	exists := roaring.New()
	var missing []format.Fragment
	for _, f := range d.m.Fragments {
		exists.Add(uint32(f.ID))
		if !covered.Contains(uint32(f.ID)) {
			missing = append(missing, f)
		}
	}
	if len(segments) == 1 && len(missing) == 0 {
		return d, nil
	}
	x := format.Index{
		Fields: []int32{field.ID}, Name: name, DatasetVersion: d.m.Version, Fragments: exists,
		DetailsURL: format.BTreeDetails, CreatedMS: uint64(time.Now().UnixMilli()),
	}
	if err := d.buildIndex(ctx, &x, *field, segments, missing); err != nil {
		return nil, err
	}
	txn := &format.Transaction{Kind: format.CreateIndex, NewIndexes: []format.Index{x}, RemovedIndexes: segments}
	return d.commit(ctx, change{txn: txn, start: start, apply: func(m *format.Manifest) error {
		m.Indexes = slices.DeleteFunc(m.Indexes, func(old format.Index) bool { return old.Name == name })
		m.Indexes = append(m.Indexes, x)
		return nil
	}})
}

// buildIndex writes the files of an index out of old segments and the rows of
// fragments that they miss: sorted in memory up to a bound, and then merged, as often
// as it takes.
func (d *Dataset) buildIndex(ctx context.Context, x *format.Index, field format.Field, segments []format.Index, missing []format.Fragment) error {
	var older []entries
	for _, s := range segments {
		t, err := d.openBTree(ctx, s)
		if err != nil {
			return err
		}
		older = append(older, d.stillThere(t.all(ctx), s.Fragments))
	}
	scratch := ""
	for first := true; first || len(missing) > 0; first = false {
		run, rest, err := d.sortedRun(ctx, field.Name, missing)
		if err != nil {
			return err
		}
		missing = rest
		x.UUID = format.NewUUID()
		dir := indexDir(x.UUID)
		seq := mergeEntries(append(older, sliceEntries(run))...)
		if x.Files, err = writeBTree(ctx, d.store, dir, field.Logical, btreePageRows, seq); err != nil {
			return err
		}
		if scratch != "" {
			if err := d.dropIndexFiles(ctx, scratch); err != nil {
				return err
			}
		}
		scratch = dir
		if len(missing) > 0 {
			t, err := openBTree(ctx, d, dir, indexFileSize(*x, btreePageData), indexFileSize(*x, btreePageLookup))
			if err != nil {
				return err
			}
			older = []entries{t.all(ctx)}
		}
	}
	return nil
}

func (d *Dataset) dropIndexFiles(ctx context.Context, dir string) error {
	return errors.Join(d.store.Delete(ctx, dir+btreePageData), d.store.Delete(ctx, dir+btreePageLookup))
}

// stillThere leaves out entries of fragments that a segment does not cover any more.
func (d *Dataset) stillThere(seq entries, covered *roaring.Bitmap) entries {
	exists := map[uint64]bool{}
	for _, f := range d.m.Fragments {
		exists[f.ID] = covered.Contains(uint32(f.ID))
	}
	return func(yield func(entry, error) bool) {
		for e, err := range seq {
			if (err != nil || exists[e.addr>>32]) && !yield(e, err) {
				return
			}
		}
	}
}

func sliceEntries(run []entry) entries {
	return func(yield func(entry, error) bool) {
		for _, e := range run {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// sortedRun reads the column of as many fragments as fit, and returns the others.
func (d *Dataset) sortedRun(ctx context.Context, column string, frags []format.Fragment) (run []entry, rest []format.Fragment, err error) {
	for i, f := range frags {
		if len(run) > 0 && int64(len(run))+f.Live() > indexRunRows {
			rest = frags[i:]
			break
		}
		part := *d
		part.m = d.m.Clone()
		part.m.Fragments = []format.Fragment{f}
		for rec, err := range part.Scan(ctx, ScanOptions{Columns: []string{column}, WithRowAddress: true}) {
			if err == nil {
				run, err = appendEntries(run, rec)
			}
			if err != nil {
				return nil, nil, err
			}
		}
	}
	slices.SortFunc(run, entry.compare)
	return run, rest, nil
}

func appendEntries(run []entry, rec arrow.RecordBatch) ([]entry, error) {
	values, err := keysOf(rec.Column(0))
	if err != nil {
		return nil, err
	}
	addrs, err := keysOf(rec.Column(1))
	if err != nil {
		return nil, err
	}
	for i := range int(rec.NumRows()) {
		run = append(run, entry{values.at(i), addrs.num(i)})
	}
	return run, nil
}

// usable returns the segments of an index that can look up a column, and the
// fragments that they cover.
func (d *Dataset) usable(column string) ([]format.Index, *roaring.Bitmap) {
	f, err := d.fieldByName(column)
	if err != nil {
		return nil, nil
	}
	var segments []format.Index
	covered := roaring.New()
	for _, x := range d.m.Indexes {
		if isBTree(x) && x.Fields[0] == f.ID && (len(segments) == 0 || segments[0].Name == x.Name) {
			segments = append(segments, x)
			covered.Or(x.Fragments)
		}
	}
	return segments, covered
}

// byIndex yields the rows that an index finds, and returns the fragments that must
// still be read.
func (s *scanner) byIndex(ctx context.Context) ([]format.Fragment, error) {
	for _, c := range s.conds {
		segments, covered := s.d.usable(c.column)
		if c.lookupKeys() == nil || len(segments) == 0 {
			continue
		}
		addrs, err := s.d.lookup(ctx, segments, c.lookupKeys())
		var unsupported *UnsupportedError
		if errors.As(err, &unsupported) {
			continue // an index that we cannot read only costs its help
		}
		if err != nil {
			return nil, err
		}
		var rest []format.Fragment
		for _, f := range s.d.m.Fragments {
			if !covered.Contains(uint32(f.ID)) {
				rest = append(rest, f)
			}
		}
		return rest, s.indexed(ctx, addrs)
	}
	return s.d.m.Fragments, nil
}

// lookup returns the addresses of rows with some values, in order and each once, of
// the fragments that the segments cover.
func (d *Dataset) lookup(ctx context.Context, segments []format.Index, keys []key) ([]uint64, error) {
	var addrs []uint64
	for _, x := range segments {
		t, err := d.openBTree(ctx, x)
		if err != nil {
			return nil, err
		}
		from := len(addrs)
		for _, k := range keys {
			if addrs, err = t.lookup(ctx, k, addrs); err != nil {
				return nil, err
			}
		}
		kept := addrs[:from]
		for _, a := range addrs[from:] {
			if x.Fragments.Contains(uint32(a >> 32)) {
				kept = append(kept, a)
			}
		}
		addrs = kept
	}
	slices.Sort(addrs)
	return slices.Compact(addrs), nil
}

// indexed yields rows by their addresses, after the filter.
func (s *scanner) indexed(ctx context.Context, addrs []uint64) error {
	for len(addrs) > 0 {
		n := 1
		for n < len(addrs) && addrs[n]>>32 == addrs[0]>>32 {
			n++
		}
		frag := s.d.fragment(addrs[0] >> 32)
		if frag != nil { // gone with all its rows otherwise
			if err := s.indexedFragment(ctx, *frag, addrs[:n]); err != nil {
				return err
			}
		}
		addrs = addrs[n:]
	}
	return nil
}

func (s *scanner) indexedFragment(ctx context.Context, frag format.Fragment, addrs []uint64) error {
	r, err := s.d.openFragment(ctx, frag)
	if err != nil {
		return err
	}
	var rows []int64
	for _, a := range addrs {
		row := int64(a & 0xffffffff)
		if row >= frag.Rows {
			return fmt.Errorf("%w: an index names row %d of fragment %d, which has %d", ErrCorrupt, row, frag.ID, frag.Rows)
		}
		if r.deleted == nil || !r.deleted.Contains(uint32(row)) {
			rows = append(rows, row)
		}
	}
	for _, c := range s.conds {
		if len(rows) == 0 {
			return nil
		}
		col, err := r.column(c.column)
		if err != nil {
			return err
		}
		a, err := col.readRows(ctx, rows, maxTaken)
		if err != nil {
			return err
		}
		kept, err := c.keep(a, upTo(len(rows)))
		if err != nil {
			return err
		}
		out := make([]int64, len(kept))
		for i, k := range kept {
			out[i] = rows[k]
		}
		rows = out
	}
	cols, err := s.columns(r)
	if err != nil {
		return err
	}
	return s.sparse(ctx, r, cols, rows)
}
