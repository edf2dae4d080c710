package lance

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/foldlog/foldlog/lance/internal/datafile"
	"github.com/foldlog/foldlog/lance/internal/format"
)

// RowAddressColumn is the name of the column of row addresses: the fragment's id in
// the upper half, the row's number in it below. Addresses hold for one version;
// compaction moves rows.
const RowAddressColumn = "_rowaddr"

// DefaultBatchRows is the most rows in a batch.
const DefaultBatchRows = 8192

// windowBytes is about how much of a column is read at once.
const windowBytes = 1 << 20

// mostBytes is how many bytes the values may have that are read of a column at once,
// whatever they have in the file: those that repeat are there once.
const mostBytes = 16 * windowBytes

// ScanOptions selects what a scan yields. The zero value is everything.
type ScanOptions struct {
	// Columns names the columns in the order wanted; nil is all of them, an empty
	// list none.
	Columns []string
	// Filter holds for the rows that are yielded; all its conditions must.
	Filter []Condition
	// Limit is the most rows; zero is no limit.
	Limit int64
	// BatchRows is the most rows in a batch; zero is DefaultBatchRows. A batch may
	// have fewer: memory is what bounds it.
	BatchRows int
	// WithRowAddress adds RowAddressColumn as the last column.
	WithRowAddress bool
	// NoIndex reads every row even where an index could tell which match.
	NoIndex bool
	// Fragments, if not nil, are the only fragments that are read, by their ids;
	// indexes are not used then.
	Fragments []uint64
	// Without, if not nil, is asked of every fragment that no index covers whether it
	// need not be read, because the caller knows that nothing in it matches.
	Without func(fragment uint64) bool
}

// scanner is a scan under way.
type scanner struct {
	d      *Dataset
	opts   ScanOptions
	conds  []condition
	schema *arrow.Schema
	left   int64
	yield  func(arrow.RecordBatch, error) bool
}

// ScanSchema returns the schema of the batches that a scan would yield.
func (d *Dataset) ScanSchema(opts ScanOptions) (*arrow.Schema, error) {
	fields := d.schema.Fields()
	if opts.Columns != nil {
		fields = nil
		for _, name := range opts.Columns {
			at := d.schema.FieldIndices(name)
			if len(at) != 1 {
				return nil, fmt.Errorf("no column %q", name)
			}
			fields = append(fields, d.schema.Field(at[0]))
		}
	}
	if opts.WithRowAddress {
		fields = append(slices.Clone(fields), arrow.Field{Name: RowAddressColumn, Type: arrow.PrimitiveTypes.Uint64})
	}
	return arrow.NewSchema(fields, nil), nil
}

// Scan yields the rows in batches, in the order of the fragments; rows that an index
// found come first. Memory is about a megabyte per column, or the largest value. After
// an error it ends. A scan that lasts longer than a minute holds a [Pin], so that it can
// take as long as it likes; one of a version that was opened by its number rests until
// then on nobody removing that version.
func (d *Dataset) Scan(ctx context.Context, opts ScanOptions) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		defer d.guard()()
		s := &scanner{d: d, opts: opts, left: opts.Limit, yield: yield}
		if err := s.run(ctx); err != nil && err != errStop {
			yield(nil, fmt.Errorf("scan: %w", err))
		}
	}
}

// errStop ends a scan that has all it wants.
var errStop = errors.New("scan: stop")

func (s *scanner) run(ctx context.Context) (err error) {
	if s.schema, err = s.d.ScanSchema(s.opts); err != nil {
		return err
	}
	if s.conds, err = s.d.conditions(s.opts.Filter); err != nil {
		return err
	}
	if s.opts.BatchRows <= 0 {
		s.opts.BatchRows = DefaultBatchRows
	}
	frags := s.d.m.Fragments
	switch {
	case s.opts.Fragments != nil:
		frags = slices.DeleteFunc(slices.Clone(frags), func(f format.Fragment) bool { return !slices.Contains(s.opts.Fragments, f.ID) })
	case !s.opts.NoIndex:
		if frags, err = s.byIndex(ctx); err != nil {
			return err
		}
	}
	for _, frag := range frags {
		if s.opts.Without != nil && s.opts.Without(frag.ID) {
			continue
		}
		if err := s.fragment(ctx, frag); err != nil {
			return err
		}
	}
	return nil
}

// emit yields a batch, cut to the limit.
func (s *scanner) emit(cols []arrow.Array, n int64) error {
	if n == 0 {
		return nil
	}
	if s.opts.Limit > 0 && n > s.left {
		for i := range cols {
			cols[i] = array.NewSlice(cols[i], 0, s.left)
		}
		n = s.left
	}
	if !s.yield(array.NewRecordBatch(s.schema, cols, n), nil) {
		return errStop
	}
	if s.left -= n; s.opts.Limit > 0 && s.left == 0 {
		return errStop
	}
	return nil
}

// columns returns the readers of the columns that are yielded.
func (s *scanner) columns(r *fragmentReader) ([]columnReader, error) {
	var out []columnReader
	for _, f := range s.schema.Fields() {
		if s.opts.WithRowAddress && f.Name == RowAddressColumn {
			continue
		}
		c, err := r.column(f.Name)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

func (s *scanner) fragment(ctx context.Context, frag format.Fragment) error {
	r, err := s.d.openFragment(ctx, frag)
	if err != nil {
		return err
	}
	cols, err := s.columns(r)
	if err != nil {
		return err
	}
	if len(s.conds) > 0 {
		return s.filtered(ctx, r, cols)
	}
	cursors := make([]*cursor, len(cols))
	for i, c := range cols {
		cursors[i] = &cursor{columnReader: c}
	}
	for lo := int64(0); lo < frag.Rows; {
		hi, err := fill(ctx, cursors, lo, min(frag.Rows, lo+int64(s.opts.BatchRows)))
		if err != nil {
			return err
		}
		if err := s.dense(r, cursors, lo, hi); err != nil {
			return err
		}
		lo = hi
	}
	return nil
}

// dense yields rows [lo, hi) without those that are deleted.
func (s *scanner) dense(r *fragmentReader, cursors []*cursor, lo, hi int64) error {
	rows := liveRows(r, lo, hi)
	cols := make([]arrow.Array, 0, len(cursors)+1)
	for _, c := range cursors {
		a := c.slice(lo, hi)
		if rows != nil {
			var err error
			if a, err = pick(a, rows); err != nil {
				return err
			}
		}
		cols = append(cols, a)
	}
	n := hi - lo
	if rows != nil {
		n = int64(len(rows))
	}
	if s.opts.WithRowAddress {
		cols = append(cols, addresses(r.frag.ID, absolute(lo, hi, rows)))
	}
	return s.emit(cols, n)
}

// liveRows returns the numbers, from lo, of the rows in [lo, hi) that are not
// deleted; nil if none is deleted.
func liveRows(r *fragmentReader, lo, hi int64) []int {
	if r.deleted == nil || r.deleted.CardinalityInRange(uint64(lo), uint64(hi)) == 0 {
		return nil
	}
	rows := make([]int, 0, hi-lo)
	for i := lo; i < hi; i++ {
		if !r.deleted.Contains(uint32(i)) {
			rows = append(rows, int(i-lo))
		}
	}
	return rows
}

func absolute(lo, hi int64, rows []int) []int64 {
	if rows == nil {
		out := make([]int64, hi-lo)
		for i := range out {
			out[i] = lo + int64(i)
		}
		return out
	}
	out := make([]int64, len(rows))
	for i, r := range rows {
		out[i] = lo + int64(r)
	}
	return out
}

// filtered reads the columns of the filter first, and of the others only the rows
// that match.
func (s *scanner) filtered(ctx context.Context, r *fragmentReader, cols []columnReader) error {
	cursors := make([]*cursor, len(s.conds))
	for i, c := range s.conds {
		col, err := r.column(c.column)
		if err != nil {
			return err
		}
		cursors[i] = &cursor{columnReader: col}
	}
	for lo := int64(0); lo < r.frag.Rows; {
		hi, err := fill(ctx, cursors, lo, min(r.frag.Rows, lo+int64(s.opts.BatchRows)))
		if err != nil {
			return err
		}
		rows := liveRows(r, lo, hi)
		if rows == nil {
			rows = upTo(int(hi - lo))
		}
		for i, c := range s.conds {
			if rows, err = c.keep(cursors[i].slice(lo, hi), rows); err != nil {
				return err
			}
		}
		if err := s.sparse(ctx, r, cols, absolute(lo, hi, rows)); err != nil {
			return err
		}
		lo = hi
	}
	return nil
}

func upTo(n int) []int {
	rows := make([]int, n)
	for i := range rows {
		rows[i] = i
	}
	return rows
}

// sparse yields rows with some numbers, in batches that fit into memory.
func (s *scanner) sparse(ctx context.Context, r *fragmentReader, cols []columnReader, rows []int64) error {
	most := int64(len(rows))
	for len(rows) > 0 {
		perRow := int64(1)
		for _, c := range cols {
			perRow += c.rowBytes(rows[0])
		}
		n := min(most, int64(len(rows)), int64(s.opts.BatchRows), max(1, int64(len(cols)+1)*windowBytes/perRow))
		if s.opts.Limit > 0 {
			n = min(n, s.left)
		}
		out := make([]arrow.Array, len(cols), len(cols)+1)
		err := each(ctx, len(cols), func(i int) (err error) {
			out[i], err = cols[i].readRows(ctx, rows[:n], mostBytes)
			return err
		})
		if errors.Is(err, datafile.ErrTooMuch) && n > 1 {
			most = n / 2
			continue
		}
		if err != nil {
			return err
		}
		if s.opts.WithRowAddress {
			out = append(out, addresses(r.frag.ID, rows[:n]))
		}
		if err := s.emit(out, n); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// cursor reads a column forwards, a window at a time.
type cursor struct {
	columnReader
	lo, hi int64
	arr    arrow.Array
}

// fill makes every cursor hold rows from lo, and returns up to where all do.
func fill(ctx context.Context, cursors []*cursor, lo, hi int64) (int64, error) {
	var stale []*cursor
	for _, c := range cursors {
		if lo >= c.hi || c.arr == nil {
			stale = append(stale, c)
		}
	}
	err := each(ctx, len(stale), func(i int) (err error) {
		c := stale[i]
		end := hi
		if c.file != nil {
			end = c.window(lo, c.file.Rows(), windowBytes)
		}
		c.lo = lo
		c.arr, c.hi, err = c.some(ctx, lo, end, mostBytes)
		return err
	})
	if err != nil {
		return 0, err
	}
	for _, c := range cursors {
		hi = min(hi, c.hi)
	}
	return hi, nil
}

func (c *cursor) slice(lo, hi int64) arrow.Array {
	if lo == c.lo && hi == c.hi {
		return c.arr
	}
	return array.NewSlice(c.arr, lo-c.lo, hi-c.lo)
}
