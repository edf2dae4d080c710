package lance

import (
	"context"
	"fmt"
	"iter"
	"sort"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/foldlog/foldlog/lance/internal/datafile"
	"github.com/foldlog/foldlog/lance/internal/format"
	"github.com/foldlog/foldlog/objstore"
)

// A BTREE index is two data files. page_data.lance has the values of a column, nulls
// first and then in order, beside the addresses of their rows; it is read in pages of
// so many rows. page_lookup.lance has a row per page: its least and greatest value.
const (
	btreePageData   = "page_data.lance"
	btreePageLookup = "page_lookup.lance"
	btreePageRows   = 4096
	btreeMetaRows   = "batch_size"
	btreeMetaRanges = "range_partitioned"
)

// isBTree reports whether an index is one that this package reads and writes.
func isBTree(x format.Index) bool {
	i := strings.LastIndexByte(x.DetailsURL, '.')
	return i >= 0 && strings.EqualFold(x.DetailsURL[i+1:], "BTreeIndexDetails") && len(x.Fields) == 1 && x.Fragments != nil && x.Version == 0
}

// btree is an open index.
type btree struct {
	d        *Dataset
	dir      string
	data     *datafile.File
	pageRows int64
	min, max *keyColumn
	page     []int64
}

func indexDir(id format.UUID) string { return indicesDir + id.String() + "/" }

func indexFileSize(x format.Index, name string) int64 {
	for _, f := range x.Files {
		if f.Path == name {
			return f.Size
		}
	}
	return 0
}

func (d *Dataset) openBTree(ctx context.Context, x format.Index) (*btree, error) {
	dir := indexDir(x.UUID)
	return cached(d.cache, dir, func() (*btree, int64, error) {
		t, err := openBTree(ctx, d, dir, indexFileSize(x, btreePageData), indexFileSize(x, btreePageLookup))
		if err != nil {
			return nil, 0, err
		}
		return t, int64(64*len(t.page)) + indexFileSize(x, btreePageLookup), nil
	})
}

// openBTree opens the index in a directory.
func openBTree(ctx context.Context, d *Dataset, dir string, dataSize, lookupSize int64) (*btree, error) {
	lookup, err := d.openFile(ctx, dir+btreePageLookup, lookupSize)
	if err != nil {
		return nil, err
	}
	t := &btree{d: d, dir: dir, pageRows: btreePageRows}
	if t.data, err = d.openFile(ctx, dir+btreePageData, dataSize); err != nil {
		return nil, err
	}
	if err := t.load(ctx, lookup); err != nil {
		return nil, in(dir+btreePageLookup, err)
	}
	return t, nil
}

func (t *btree) load(ctx context.Context, lookup *datafile.File) error {
	meta := lookup.Metadata()
	if meta[btreeMetaRanges] == "true" {
		return &UnsupportedError{What: "index in several ranges"}
	}
	if s, ok := meta[btreeMetaRows]; ok {
		n, err := strconv.ParseInt(s, 10, 32)
		if err != nil || n <= 0 {
			return fmt.Errorf("%w: index pages of %q rows", ErrCorrupt, s)
		}
		t.pageRows = n
	}
	if lookup.Columns() < 4 || t.data.Columns() < 2 || t.data.Field(1).Logical != "uint64" || lookup.Field(3).Logical != "uint32" {
		return fmt.Errorf("%w: index of %d and %d columns", ErrCorrupt, lookup.Columns(), t.data.Columns())
	}
	var err error
	if t.min, err = keysIn(ctx, lookup, 0); err != nil {
		return err
	}
	if t.max, err = keysIn(ctx, lookup, 1); err != nil {
		return err
	}
	pages, err := lookup.Read(ctx, 3, 0, lookup.Rows())
	if err != nil {
		return err
	}
	for _, p := range pages.(*array.Uint32).Uint32Values() {
		if int64(p) >= (t.data.Rows()+t.pageRows-1)/t.pageRows {
			return fmt.Errorf("%w: index page %d of %d rows", ErrCorrupt, p, t.data.Rows())
		}
		t.page = append(t.page, int64(p))
	}
	return nil
}

func keysIn(ctx context.Context, f *datafile.File, col int) (*keyColumn, error) {
	a, err := f.Read(ctx, col, 0, f.Rows())
	if err != nil {
		return nil, err
	}
	return keysOf(a)
}

// btreePage is one page in memory.
type btreePage struct {
	values *keyColumn
	ids    []uint64
}

func (t *btree) readPage(ctx context.Context, page int64) (*btreePage, error) {
	return cached(t.d.cache, fmt.Sprintf("%s#%d", t.dir, page), func() (*btreePage, int64, error) {
		p, err := t.readRows(ctx, page*t.pageRows, min((page+1)*t.pageRows, t.data.Rows()))
		if err != nil {
			return nil, 0, err
		}
		return p, int64(len(p.ids)) * (8 + t.data.RowBytes(0, page*t.pageRows)), nil
	})
}

func (t *btree) readRows(ctx context.Context, lo, hi int64) (*btreePage, error) {
	cols := make([]arrow.Array, 2)
	err := each(ctx, 2, func(i int) (err error) {
		cols[i], err = t.data.Read(ctx, i, lo, hi)
		return err
	})
	if err != nil {
		return nil, in(t.dir+btreePageData, err)
	}
	values, err := keysOf(cols[0])
	if err != nil {
		return nil, in(t.dir+btreePageData, err)
	}
	return &btreePage{values, cols[1].(*array.Uint64).Uint64Values()}, nil
}

// lookup returns the addresses of the rows whose value is k, which is not null.
func (t *btree) lookup(ctx context.Context, k key, addrs []uint64) ([]uint64, error) {
	n := len(t.page)
	first := sort.Search(n, func(i int) bool { return t.max.compare(i, k) >= 0 })
	for i := first; i < n && t.min.compare(i, k) <= 0; i++ {
		p, err := t.readPage(ctx, t.page[i])
		if err != nil {
			return nil, err
		}
		at := sort.Search(len(p.ids), func(j int) bool { return p.values.compare(j, k) >= 0 })
		for ; at < len(p.ids) && p.values.compare(at, k) == 0; at++ {
			addrs = append(addrs, p.ids[at])
		}
	}
	return addrs, nil
}

// entry is a value and the address of its row.
type entry struct {
	key  key
	addr uint64
}

func (e entry) compare(o entry) int {
	if c := e.key.compare(o.key); c != 0 {
		return c
	}
	switch {
	case e.addr < o.addr:
		return -1
	case e.addr > o.addr:
		return 1
	}
	return 0
}

type entries = iter.Seq2[entry, error]

// all yields every entry in order, reading forwards.
func (t *btree) all(ctx context.Context) entries {
	return func(yield func(entry, error) bool) {
		for lo := int64(0); lo < t.data.Rows(); {
			hi := min(lo+t.pageRows, t.data.Rows())
			p, err := t.readRows(ctx, lo, hi)
			if err != nil {
				yield(entry{}, err)
				return
			}
			for i, id := range p.ids {
				if !yield(entry{p.values.at(i), id}, nil) {
					return
				}
			}
			lo = hi
		}
	}
}

// mergeEntries yields the entries of ordered sequences in order.
func mergeEntries(seqs ...entries) entries {
	if len(seqs) == 1 {
		return seqs[0]
	}
	return func(yield func(entry, error) bool) {
		type head struct {
			next func() (entry, error, bool)
			e    entry
		}
		var heads []*head
		for _, s := range seqs {
			next, stop := iter.Pull2(s)
			defer stop()
			e, err, ok := next()
			if err != nil {
				yield(e, err)
				return
			}
			if ok {
				heads = append(heads, &head{next, e})
			}
		}
		for len(heads) > 0 {
			least := 0
			for i := range heads {
				if heads[i].e.compare(heads[least].e) < 0 {
					least = i
				}
			}
			h := heads[least]
			if !yield(h.e, nil) {
				return
			}
			e, err, ok := h.next()
			if err != nil {
				yield(e, err)
				return
			}
			if h.e = e; !ok {
				heads = append(heads[:least], heads[least+1:]...)
			}
		}
	}
}

// writeBTree writes an index of ordered entries into a directory of a store and
// returns its files.
func writeBTree(ctx context.Context, store objstore.Store, dir, logical string, pageRows int64, seq entries) ([]format.IndexFile, error) {
	t, err := format.ArrowType(logical)
	if err != nil {
		return nil, err
	}
	w := &btreeWriter{ctx: ctx, pageRows: pageRows}
	if err := w.open(store, dir, logical, t); err != nil {
		return nil, err
	}
	defer w.abort()
	for e, err := range seq {
		if err == nil {
			err = w.add(e)
		}
		if err != nil {
			return nil, err
		}
	}
	return w.close(store, dir)
}

type btreeWriter struct {
	ctx      context.Context
	pageRows int64
	dst      objstore.Writer
	data     *datafile.Writer
	logical  string

	values, mins, maxs array.Builder
	ids                []uint64
	first, last        key
	nulls              uint32
	nullCounts, pages  []uint32
}

func (w *btreeWriter) open(store objstore.Store, dir, logical string, t arrow.DataType) (err error) {
	w.logical = logical
	w.values = array.NewBuilder(memory.DefaultAllocator, t)
	w.mins = array.NewBuilder(memory.DefaultAllocator, t)
	w.maxs = array.NewBuilder(memory.DefaultAllocator, t)
	if w.dst, err = store.Create(w.ctx, dir+btreePageData); err != nil {
		return err
	}
	w.data, err = datafile.NewWriter(w.dst, []format.Field{
		{ID: 0, Name: "values", Logical: logical, Nullable: true},
		{ID: 1, Name: "ids", Logical: "uint64"},
	})
	if err != nil {
		w.abort()
	}
	return err
}

func (w *btreeWriter) abort() { _ = w.dst.Abort() }

func (w *btreeWriter) add(e entry) error {
	if err := appendKey(w.values, e.key); err != nil {
		return err
	}
	if !e.key.some {
		w.nulls++
	} else if !w.first.some {
		w.first = e.key
	}
	w.last = e.key
	if w.ids = append(w.ids, e.addr); int64(len(w.ids)) == w.pageRows {
		return w.page()
	}
	return nil
}

func (w *btreeWriter) page() error {
	if len(w.ids) == 0 {
		return nil
	}
	ids := array.NewUint64Builder(memory.DefaultAllocator)
	ids.AppendValues(w.ids, nil)
	if err := w.data.Write([]arrow.Array{w.values.NewArray(), ids.NewArray()}); err != nil {
		return err
	}
	if err := appendKey(w.mins, w.first); err != nil {
		return err
	}
	if err := appendKey(w.maxs, w.last); err != nil {
		return err
	}
	w.pages = append(w.pages, uint32(len(w.pages)))
	w.nullCounts = append(w.nullCounts, w.nulls)
	w.ids, w.first, w.nulls = w.ids[:0], key{}, 0
	return nil
}

func (w *btreeWriter) close(store objstore.Store, dir string) ([]format.IndexFile, error) {
	if err := w.page(); err != nil {
		return nil, err
	}
	if err := w.data.Close(); err != nil {
		return nil, err
	}
	if err := w.dst.Close(); err != nil {
		return nil, err
	}
	dst, err := store.Create(w.ctx, dir+btreePageLookup)
	if err != nil {
		return nil, err
	}
	defer dst.Abort()
	lookup, err := datafile.NewWriter(dst, []format.Field{
		{ID: 0, Name: "min", Logical: w.logical, Nullable: true},
		{ID: 1, Name: "max", Logical: w.logical, Nullable: true},
		{ID: 2, Name: "null_count", Logical: "uint32"},
		{ID: 3, Name: "page_idx", Logical: "uint32"},
	}, [2]string{btreeMetaRows, strconv.FormatInt(w.pageRows, 10)}, [2]string{btreeMetaRanges, "false"})
	if err != nil {
		return nil, err
	}
	counts, pages := array.NewUint32Builder(memory.DefaultAllocator), array.NewUint32Builder(memory.DefaultAllocator)
	counts.AppendValues(w.nullCounts, nil)
	pages.AppendValues(w.pages, nil)
	if err := lookup.Write([]arrow.Array{w.mins.NewArray(), w.maxs.NewArray(), counts.NewArray(), pages.NewArray()}); err != nil {
		return nil, err
	}
	if err := lookup.Close(); err != nil {
		return nil, err
	}
	return []format.IndexFile{{Path: btreePageData, Size: w.data.Size()}, {Path: btreePageLookup, Size: lookup.Size()}}, dst.Close()
}
