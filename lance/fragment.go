package lance

import (
	"context"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/foldlog/foldlog/lance/internal/arrowipc"
	"github.com/foldlog/foldlog/lance/internal/datafile"
	"github.com/foldlog/foldlog/lance/internal/format"
)

// fragmentReader reads the columns of one fragment.
type fragmentReader struct {
	d       *Dataset
	frag    format.Fragment
	deleted *roaring.Bitmap
	columns map[string]columnReader
}

// columnReader is a column in a file; no file means that every row is null.
type columnReader struct {
	file *datafile.File
	col  int
	typ  arrow.DataType
}

func (d *Dataset) openFragment(ctx context.Context, frag format.Fragment) (*fragmentReader, error) {
	r := &fragmentReader{d: d, frag: frag, columns: map[string]columnReader{}}
	var err error
	if r.deleted, err = d.deletions(ctx, frag); err != nil {
		return nil, err
	}
	for _, df := range frag.Files {
		f, err := d.openFile(ctx, dataDir+df.Path, df.Size)
		if err != nil {
			return nil, err
		}
		if f.Rows() != frag.Rows {
			return nil, in(dataDir+df.Path, fmt.Errorf("%w: %d rows in a fragment of %d", ErrCorrupt, f.Rows(), frag.Rows))
		}
		if err := r.addColumns(df, f); err != nil {
			return nil, in(dataDir+df.Path, err)
		}
	}
	return r, nil
}

func (r *fragmentReader) addColumns(df format.DataFile, f *datafile.File) error {
	for i, id := range df.Fields {
		field := r.d.fieldByID(id)
		if field == nil {
			continue // of another version of the schema
		}
		at := i
		if len(df.Columns) > 0 {
			at = int(df.Columns[i])
		}
		if at < 0 || at >= f.Columns() {
			return fmt.Errorf("%w: column %d of %d", ErrCorrupt, at, f.Columns())
		}
		if got := f.Field(at).Logical; got != field.Logical {
			return fmt.Errorf("%w: column %s holds %s, the schema says %s", ErrCorrupt, field.Name, got, field.Logical)
		}
		r.columns[field.Name] = columnReader{file: f, col: at}
	}
	return nil
}

// column returns the reader of a column of the schema.
func (r *fragmentReader) column(name string) (columnReader, error) {
	c, ok := r.columns[name]
	if ok && c.typ != nil {
		return c, nil
	}
	f, err := r.d.fieldByName(name)
	if err != nil {
		return c, err
	}
	if c.typ, err = format.ArrowType(f.Logical); err != nil {
		return c, err
	}
	return c, nil
}

// some decodes rows from lo up to hi, or fewer, and returns where they end: see
// datafile.File.ReadSome.
func (c columnReader) some(ctx context.Context, lo, hi, most int64) (arrow.Array, int64, error) {
	if c.file == nil {
		return nulls(c.typ, hi-lo), hi, nil
	}
	return c.file.ReadSome(ctx, c.col, lo, hi, most)
}

// window returns how far from lo to read at once.
func (c columnReader) window(lo, hi, budget int64) int64 {
	if c.file == nil {
		return hi
	}
	return min(hi, c.file.Window(c.col, lo, budget))
}

// rowBytes is about the size of a row, at least one byte.
func (c columnReader) rowBytes(row int64) int64 {
	if c.file == nil {
		return 1
	}
	return c.file.RowBytes(c.col, row)
}

// mergeGap is up to how many bytes are read and dropped to save a request.
const mergeGap = 8 << 10

// readRows decodes rows with some numbers, which go up, with ranged reads. Values that are
// stored once for many rows and would be more bytes than most are datafile.ErrTooMuch.
func (c columnReader) readRows(ctx context.Context, rows []int64, most int64) (arrow.Array, error) {
	if c.file == nil {
		return nulls(c.typ, int64(len(rows))), nil
	}
	var parts []arrow.Array
	for i := 0; i < len(rows); {
		gap := max(1, mergeGap/c.rowBytes(rows[i]))
		j := i + 1
		for j < len(rows) && rows[j]-rows[j-1] <= gap {
			j++
		}
		a, err := c.file.ReadWithin(ctx, c.col, rows[i], rows[j-1]+1, most)
		if err != nil {
			return nil, err
		}
		if int64(j-i) != rows[j-1]+1-rows[i] {
			local := make([]int, 0, j-i)
			for _, r := range rows[i:j] {
				local = append(local, int(r-rows[i]))
			}
			if a, err = pick(a, local); err != nil {
				return nil, err
			}
		}
		parts = append(parts, a)
		i = j
	}
	switch len(parts) {
	case 0:
		return nulls(c.typ, 0), nil
	case 1:
		return parts[0], nil
	}
	return array.Concatenate(parts, memory.DefaultAllocator)
}

const maxDeletionFile = 1 << 30

// deletions returns the deleted rows of a fragment, nil if there are none. The
// result is shared and must not be changed.
func (d *Dataset) deletions(ctx context.Context, frag format.Fragment) (*roaring.Bitmap, error) {
	if frag.Deletion == nil {
		return nil, nil
	}
	path := frag.Deletion.Path(frag.ID)
	return cached(d.cache, path, func() (*roaring.Bitmap, int64, error) {
		b, err := d.store.Get(ctx, path, maxDeletionFile)
		if err != nil {
			return nil, 0, missing(path, err)
		}
		var bm *roaring.Bitmap
		if frag.Deletion.Kind == format.DeletionBitmap {
			bm, err = format.ReadBitmap(b)
		} else {
			bm, err = arrowDeletions(b, int64(frag.Deletion.Rows))
		}
		if err == nil {
			err = checkDeletions(bm, frag)
		}
		if err != nil {
			return nil, 0, in(path, fmt.Errorf("%w: %w", ErrCorrupt, err))
		}
		return bm, int64(bm.GetSizeInBytes()), nil
	})
}

func checkDeletions(bm *roaring.Bitmap, frag format.Fragment) error {
	if n := bm.GetCardinality(); n != frag.Deletion.Rows {
		return fmt.Errorf("%d deleted rows, the manifest says %d", n, frag.Deletion.Rows)
	}
	if !bm.IsEmpty() && int64(bm.Maximum()) >= frag.Rows {
		return fmt.Errorf("row %d of %d is deleted", bm.Maximum(), frag.Rows)
	}
	return nil
}

// arrowDeletions reads an Arrow file of one column of row numbers, which the manifest says
// how many they are.
func arrowDeletions(b []byte, rows int64) (bm *roaring.Bitmap, err error) {
	defer guard(&err)
	r, err := arrowipc.File(b, 5*rows)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	bm = roaring.New()
	for i := range r.NumRecords() {
		rec, err := r.RecordBatchAt(i)
		if err != nil {
			return nil, err
		}
		if rec.NumCols() != 1 {
			return nil, fmt.Errorf("%d columns of deleted rows", rec.NumCols())
		}
		switch a := rec.Column(0).(type) {
		case *array.Uint32:
			bm.AddMany(a.Uint32Values())
		case *array.Int32:
			for _, v := range a.Int32Values() {
				bm.Add(uint32(v))
			}
		default:
			return nil, fmt.Errorf("deleted rows of type %s", a.DataType())
		}
	}
	return bm, nil
}
