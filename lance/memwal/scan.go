package memwal

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/foldlog/foldlog/lance"
	"github.com/foldlog/foldlog/lance/internal/arrays"
	"github.com/foldlog/foldlog/lance/internal/datafile"
)

// errStop ends a scan that has all it wants.
var errStop = errors.New("stop")

// scan is a union scan under way.
type scan struct {
	v     *View
	opts  lance.ScanOptions
	key   string
	left  int64
	yield func(Batch, error) bool
	// yielded are the keys of rows of generations: should one go before its end is read,
	// the scan begins anew and leaves them out.
	yielded map[string]bool
	passed  *hider
	based   bool // rows of the base were yielded
}

// Scan yields each key once: the newest row of the shards, and the base's rows whose
// keys no shard has. Keys that are deleted are left out. The filter and the limit hold
// after that. Rows of generations come first, then the base in its order. A generation
// that was merged and removed meanwhile is read from a newer base, unless the addresses of
// rows are asked for, which would not be those of this view: then it is an error that Gone
// tells. Memory is that of a scan, plus the keys of the generations, which are kept from
// scan to scan. Equality in the filter finds rows by the base's indexes, and passes over
// generations by the strings that they are known to have.
func (v *View) Scan(ctx context.Context, opts lance.ScanOptions) iter.Seq2[Batch, error] {
	return func(yield func(Batch, error) bool) {
		s := &scan{v: v, opts: opts, key: v.key, yielded: map[string]bool{}, left: opts.Limit, yield: yield}
		err := s.run(ctx)
		for try := 1; err != nil && gone(err) && !s.based && !opts.WithRowAddress && try < planTries; try++ {
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
	s.passed = &hider{v: s.v, few: selective(s.opts.Filter)}
	for i, src := range s.v.gens {
		if err := s.generation(ctx, i, src, schema); err != nil {
			return err
		}
	}
	return s.base(ctx, schema)
}

// generation yields the rows of a generation that nothing newer hides. A row that the
// filter drops still hides older ones.
func (s *scan) generation(ctx context.Context, i int, src *source, schema *arrow.Schema) error {
	for _, c := range s.opts.Filter {
		may, err := src.mayMatch(ctx, s.v.table, c)
		if err != nil || !may {
			return err
		}
	}
	keys, err := src.keySet(ctx, s.v.table, s.key)
	if err != nil {
		return err
	}
	if err := s.passed.pass(ctx, i); err != nil {
		return err
	}
	return s.rows(ctx, src, schema, true, func(rec arrow.RecordBatch, at keysIn, i int) bool {
		k := at.keys.At(i)
		if keys.dead[at.addrs[i]] || s.yielded[string(k)] || s.passed.hides(k) {
			return false
		}
		s.yielded[string(k)] = true
		return true
	})
}

// base yields the rows of the base whose keys are in no generation. Where an index tells
// which those are, the keys themselves are not read.
func (s *scan) base(ctx context.Context, schema *arrow.Schema) error {
	src := &source{d: s.v.base}
	drop, known, err := s.v.hiddenRows(ctx, s.opts, s.yielded)
	if err != nil {
		return err
	}
	if known && len(drop) == 0 {
		return s.whole(ctx, src, schema)
	}
	if known {
		return s.rows(ctx, src, schema, false, func(_ arrow.RecordBatch, at keysIn, i int) bool {
			s.based = true
			return !drop[at.addrs[i]]
		})
	}
	if err := s.passed.pass(ctx, len(s.v.gens)); err != nil {
		return err
	}
	return s.rows(ctx, src, schema, true, func(_ arrow.RecordBatch, at keysIn, i int) bool {
		s.based = true
		k := at.keys.At(i)
		return !s.passed.hides(k) && !s.yielded[string(k)]
	})
}

// whole yields the base as it is.
func (s *scan) whole(ctx context.Context, src *source, schema *arrow.Schema) error {
	opts := s.opts
	opts.Limit = s.left
	for rec, err := range src.d.Scan(ctx, opts) {
		if err != nil {
			return err
		}
		s.based = true
		if !s.yield(Batch{array.NewRecordBatch(schema, rec.Columns(), rec.NumRows()), Place{}}, nil) {
			return errStop
		}
	}
	return nil
}

// keysIn are the keys, if they were asked for, and the addresses of a batch.
type keysIn struct {
	keys  datafile.ByteView
	addrs []uint64
}

// rows yields the rows of one table that want holds for.
func (s *scan) rows(ctx context.Context, src *source, schema *arrow.Schema, keys bool, want func(rec arrow.RecordBatch, at keysIn, i int) bool) error {
	opts := s.opts
	opts.Columns = []string{}
	for _, f := range schema.Fields() {
		if f.Name != lance.RowAddressColumn {
			opts.Columns = append(opts.Columns, f.Name)
		}
	}
	if keys && !slices.Contains(opts.Columns, s.key) {
		opts.Columns = append(opts.Columns, s.key)
	}
	opts.WithRowAddress = true
	opts.Limit = 0
	for rec, err := range src.d.Scan(ctx, opts) {
		if err != nil {
			return src.named(err)
		}
		at := keysIn{addrs: rec.Column(int(rec.NumCols()) - 1).(*array.Uint64).Uint64Values()}
		if keys {
			var ok bool
			if at.keys, ok = datafile.ViewBytes(rec.Column(slices.Index(opts.Columns, s.key))); !ok {
				return ErrNoKey
			}
		}
		keep := make([]int, 0, len(at.addrs))
		for i := range at.addrs {
			if want(rec, at, i) {
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
		a := rec.Column(rec.Schema().FieldIndices(f.Name)[0])
		if !arrow.TypeEqual(a.DataType(), f.Type) {
			return src.named(fmt.Errorf("%w: column %s holds %s, the table's %s", lance.ErrCorrupt, f.Name, a.DataType(), f.Type))
		}
		a, err := arrays.Pick(a, keep)
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
