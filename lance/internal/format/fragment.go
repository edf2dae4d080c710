package format

import (
	"fmt"
	"math"

	"github.com/foldlog/foldlog/lance/internal/wire"
)

// DataFile is one file of a fragment.
type DataFile struct {
	// Path is relative to data/.
	Path string
	// Fields are the ids of the columns in the file; Columns says where each is.
	Fields  []int32
	Columns []int32
	// Major and Minor are the file format's version.
	Major, Minor uint32
	// Size is in bytes, zero if it is not known.
	Size int64
	raw  []byte
}

// Deletion kinds of [DeletionFile].
const (
	DeletionArrow  = 0
	DeletionBitmap = 1
)

// DeletionFile names the deleted rows of a fragment.
type DeletionFile struct {
	Kind        uint64
	ReadVersion uint64
	ID          uint64
	Rows        uint64
	raw         []byte
}

// Path is relative to the dataset.
func (d DeletionFile) Path(fragment uint64) string {
	ext := "arrow"
	if d.Kind == DeletionBitmap {
		ext = "bin"
	}
	return fmt.Sprintf("_deletions/%d-%d-%d.%s", fragment, d.ReadVersion, d.ID, ext)
}

// Fragment is a run of rows that were written together.
type Fragment struct {
	ID       uint64
	Files    []DataFile
	Deletion *DeletionFile
	// Rows counts the physical rows, the deleted ones too.
	Rows  int64
	extra []byte
}

// Live counts the rows that are not deleted.
func (f Fragment) Live() int64 {
	if f.Deletion == nil {
		return f.Rows
	}
	return f.Rows - int64(f.Deletion.Rows)
}

func ints32(fields wire.Message, num int) ([]int32, error) {
	vs, err := fields.AllUints(num)
	if err != nil {
		return nil, err
	}
	out := make([]int32, len(vs))
	for i, v := range vs {
		out[i] = int32(v)
	}
	return out, nil
}

func parseDataFile(b []byte) (DataFile, error) {
	fields, err := wire.Parse(b)
	if err != nil {
		return DataFile{}, err
	}
	d := DataFile{raw: b, Major: uint32(fields.Uint(4)), Minor: uint32(fields.Uint(5))}
	path, _ := fields.Get(1)
	if d.Path = string(path.B); d.Path == "" {
		return d, fmt.Errorf("%w: a file without a path", wire.ErrMalformed)
	}
	size := fields.Uint(6)
	if size > math.MaxInt64 {
		return d, fmt.Errorf("%w: file size %d", wire.ErrMalformed, size)
	}
	d.Size = int64(size)
	if fields.Has(7) { // a file under another base path
		return d, &UnsupportedError{"data files under another base path"}
	}
	if d.Fields, err = ints32(fields, 2); err != nil {
		return d, err
	}
	if d.Columns, err = ints32(fields, 3); err != nil {
		return d, err
	}
	if len(d.Fields) != len(d.Columns) && len(d.Columns) != 0 {
		return d, fmt.Errorf("%w: %d fields in %d columns", wire.ErrMalformed, len(d.Fields), len(d.Columns))
	}
	return d, nil
}

func uints(vs []int32) []uint64 {
	out := make([]uint64, len(vs))
	for i, v := range vs {
		out[i] = uint64(int64(v))
	}
	return out
}

func (d DataFile) message() []byte {
	if d.raw != nil {
		return d.raw
	}
	return wire.Builder(nil).String(1, d.Path).Packed(2, uints(d.Fields)).Packed(3, uints(d.Columns)).
		Uint(4, uint64(d.Major)).Uint(5, uint64(d.Minor)).Uint(6, uint64(d.Size))
}

func parseDeletion(b []byte) (*DeletionFile, error) {
	fields, err := wire.Parse(b)
	if err != nil {
		return nil, err
	}
	d := &DeletionFile{Kind: fields.Uint(1), ReadVersion: fields.Uint(2), ID: fields.Uint(3), Rows: fields.Uint(4), raw: b}
	if d.Kind > DeletionBitmap {
		return nil, &UnsupportedError{fmt.Sprintf("deletion file type %d", d.Kind)}
	}
	return d, nil
}

func (d DeletionFile) message() []byte {
	if d.raw != nil {
		return d.raw
	}
	return wire.Builder(nil).Uint(1, d.Kind).Uint(2, d.ReadVersion).Uint(3, d.ID).Uint(4, d.Rows)
}

// parseFragment reads a DataFragment message.
func parseFragment(b []byte) (Fragment, error) {
	fields, err := wire.Parse(b)
	if err != nil {
		return Fragment{}, fmt.Errorf("fragment: %w", err)
	}
	f := Fragment{Files: room[DataFile](fields, 2, leastFile)}
	for x := range fields.All() {
		var err error
		switch x.Num {
		case 1:
			f.ID = x.V
		case 2:
			var d DataFile
			if d, err = parseDataFile(x.B); err == nil {
				f.Files = append(f.Files, d)
			}
		case 3:
			f.Deletion, err = parseDeletion(x.B)
		case 4:
			f.Rows = int64(x.V)
		default:
			f.extra = append(f.extra, x.Raw...)
		}
		if err != nil {
			return f, fmt.Errorf("fragment %d: %w", f.ID, err)
		}
	}
	deleted := uint64(0)
	if f.Deletion != nil {
		deleted = f.Deletion.Rows
	}
	if len(f.Files) == 0 && f.Rows == 0 { // it would take much more memory than it has bytes
		return f, fmt.Errorf("%w: fragment %d of nothing", wire.ErrMalformed, f.ID)
	}
	if f.ID > math.MaxUint32 || f.Rows < 0 || f.Rows > math.MaxUint32 || deleted > uint64(f.Rows) {
		return f, fmt.Errorf("%w: fragment %d of %d rows, %d deleted", wire.ErrMalformed, f.ID, f.Rows, deleted)
	}
	return f, nil
}

// Message returns the DataFragment message.
func (f Fragment) Message() []byte {
	m := wire.Builder(nil).Uint(1, f.ID)
	for _, d := range f.Files {
		m = m.Bytes(2, d.message())
	}
	if f.Deletion != nil {
		m = m.Bytes(3, f.Deletion.message())
	}
	return m.Uint(4, uint64(f.Rows)).Raw(f.extra)
}

func parseFragments(fields wire.Message, num int) ([]Fragment, error) {
	out := room[Fragment](fields, num, leastFragment)
	for x := range fields.All() {
		if x.Num == num {
			f, err := parseFragment(x.B)
			if err != nil {
				return nil, err
			}
			out = append(out, f)
		}
	}
	return out, nil
}

// DataFileOf describes a file that holds exactly some columns in their order.
func DataFileOf(path string, fields []Field, size int64) DataFile {
	file := DataFile{Path: path, Major: 2, Minor: 0, Size: size}
	for i, f := range fields {
		file.Fields = append(file.Fields, f.ID)
		file.Columns = append(file.Columns, int32(i))
	}
	return file
}
