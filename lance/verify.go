package lance

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/foldlog/foldlog/lance/internal/format"
	"github.com/foldlog/foldlog/objstore"
)

// VerifyStats counts what a verification looked at.
type VerifyStats struct {
	// Files counts data, deletion, index and transaction files; Bytes is their size.
	Files int
	Bytes int64
	// Rows counts the rows that were decoded, Entries those of indexes.
	Rows, Entries int64
	// Versions counts the versions of the table, where several are looked at.
	Versions int
}

// Verify checks that every file that the version names is there, has its size and
// decodes: all columns of all rows, all deletions, and that every entry of a BTREE
// index is in order and names a row with that value's place. It tells found every
// fault and goes on. Indexes of other kinds are only looked for.
func (d *Dataset) Verify(ctx context.Context, found func(error)) (VerifyStats, error) {
	v := &verifier{found: found, done: map[string]bool{}}
	err := v.version(ctx, d)
	return v.stats, err
}

// VerifyVersions checks every version that is still listed as Verify checks one, the
// newest first and at most limit of them; zero is all. What several versions share is
// checked once. Rows and entries are counted in the latest version alone.
func (d *Dataset) VerifyVersions(ctx context.Context, limit int, found func(error)) (VerifyStats, error) {
	versions, err := d.Versions(ctx)
	if err != nil {
		return VerifyStats{}, err
	}
	if limit > 0 && len(versions) > limit {
		versions = versions[:limit]
	}
	v := &verifier{found: found, done: map[string]bool{}}
	for i, info := range versions {
		before := v.stats
		at, err := d.At(ctx, info.Version)
		switch {
		case errors.Is(err, ErrNotFound): // cleaned up meanwhile
		case ctx.Err() != nil:
			return v.stats, ctx.Err()
		case err != nil:
			found(err)
		default:
			if err := v.version(ctx, at); err != nil {
				return v.stats, err
			}
			v.stats.Versions++
		}
		if i > 0 {
			v.stats.Rows, v.stats.Entries = before.Rows, before.Entries
		}
	}
	return v.stats, nil
}

// version checks a version, except what was checked with another.
func (v *verifier) version(ctx context.Context, d *Dataset) error {
	defer d.guard()()
	v.d = d
	for _, f := range d.m.Fragments {
		if v.first(fragmentName(f)) {
			v.fragment(ctx, f)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	for _, x := range d.m.Indexes {
		if v.first(fmt.Sprint("index ", x.UUID, x.Name)) {
			v.index(ctx, x)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if d.m.TransactionFile != "" && d.m.Inline == nil && v.exists(ctx, transactionsDir+d.m.TransactionFile, 0) {
		_, err := d.transaction(ctx, d.m.Version)
		v.tell(err)
	}
	return ctx.Err()
}

type verifier struct {
	d     *Dataset
	found func(error)
	stats VerifyStats
	done  map[string]bool
}

// fragmentName tells fragments apart that different versions have under one number.
func fragmentName(f format.Fragment) string {
	name := fmt.Sprint("fragment ", f.ID, " ", f.Rows)
	for _, df := range f.Files {
		name += " " + df.Path
	}
	if f.Deletion != nil {
		name += " " + f.Deletion.Path(f.ID)
	}
	return name
}

// first reports whether something is met for the first time.
func (v *verifier) first(what string) bool {
	known := v.done[what]
	v.done[what] = true
	return !known
}

func (v *verifier) tell(err error) {
	if err != nil {
		v.found(err)
	}
}

// exists looks for a file; a size of zero is not known.
func (v *verifier) exists(ctx context.Context, key string, size int64) bool {
	info, err := v.d.store.Stat(ctx, key)
	switch {
	case err != nil:
		v.tell(missing(key, err))
		return false
	case size > 0 && info.Size != size:
		v.tell(&CorruptError{Path: key, Err: fmt.Errorf("%w: %d bytes, the manifest says %d", ErrCorrupt, info.Size, size)})
		return false
	}
	v.stats.Files++
	v.stats.Bytes += info.Size
	return true
}

func (v *verifier) fragment(ctx context.Context, f format.Fragment) {
	there := true
	for _, df := range f.Files {
		there = v.exists(ctx, dataDir+df.Path, df.Size) && there
	}
	if f.Deletion != nil {
		there = v.exists(ctx, f.Deletion.Path(f.ID), 0) && there
	}
	if !there {
		return
	}
	part := *v.d
	part.m = v.d.m.Clone()
	part.m.Fragments = []format.Fragment{f}
	for i, columns := range part.someColumns() {
		rows := int64(0)
		for rec, err := range part.Scan(ctx, ScanOptions{Columns: columns, NoIndex: true}) {
			if err != nil {
				v.tell(err)
				return
			}
			rows += rec.NumRows()
		}
		if i == 0 {
			v.stats.Rows += rows
		}
		if rows != f.Live() {
			v.tell(&CorruptError{Path: manifestKey(v.d.m.Version), Err: fmt.Errorf("%w: fragment %d has %d rows, the manifest says %d", ErrCorrupt, f.ID, rows, f.Live())})
			return
		}
	}
}

// columnsAtOnce is how many columns are verified side by side: few take little memory, and
// several keep a distant store busy.
const columnsAtOnce = 4

// someColumns are the names of the columns, some at a time.
func (d *Dataset) someColumns() [][]string {
	var names []string
	for _, f := range d.schema.Fields() {
		names = append(names, f.Name)
	}
	return slices.Collect(slices.Chunk(names, columnsAtOnce))
}

func (v *verifier) index(ctx context.Context, x format.Index) {
	if !isBTree(x) {
		v.otherIndex(ctx, x)
		return
	}
	dir := indexDir(x.UUID)
	for _, name := range []string{btreePageData, btreePageLookup} {
		if !v.exists(ctx, dir+name, indexFileSize(x, name)) {
			return
		}
	}
	t, err := v.d.openBTree(ctx, x)
	if err != nil {
		v.tell(err)
		return
	}
	last, first := entry{}, true
	for e, err := range t.all(ctx) {
		if err != nil {
			v.tell(err)
			return
		}
		if !first && last.key.compare(e.key) > 0 {
			v.tell(in(dir+btreePageData, fmt.Errorf("%w: values are not in order", ErrCorrupt)))
			return
		}
		if f := v.d.fragment(e.addr >> 32); f != nil && int64(uint32(e.addr)) >= f.Rows {
			v.tell(in(dir+btreePageData, fmt.Errorf("%w: row %d of fragment %d, which has %d", ErrCorrupt, uint32(e.addr), f.ID, f.Rows)))
			return
		}
		last, first = e, false
		v.stats.Entries++
	}
}

func (v *verifier) otherIndex(ctx context.Context, x format.Index) {
	if x.Name == format.MemWALName {
		_, err := x.MergeProgress()
		v.tell(err)
		return
	}
	for _, f := range x.Files {
		v.exists(ctx, indexDir(x.UUID)+f.Path, f.Size)
	}
	if len(x.Files) > 0 {
		return
	}
	for _, err := range v.d.store.List(ctx, objstore.ListOptions{Prefix: indexDir(x.UUID)}) {
		v.tell(err)
		return
	}
	v.tell(&CorruptError{Path: indexDir(x.UUID), Err: errors.Join(ErrCorrupt, objstore.ErrNotFound)})
}
