package datafile

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/lance/internal/format"
	"github.com/foldlog/foldlog/lance/internal/wire"
)

// source is a file in memory.
type source []byte

func (s source) ReadRange(_ context.Context, off, n int64) ([]byte, error) {
	if off < 0 || n < 0 || off+n > int64(len(s)) || off+n < off {
		return nil, fmt.Errorf("%w: %d bytes at %d", io.ErrUnexpectedEOF, n, off)
	}
	return bytes.Clone(s[off : off+n]), nil
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// tiny is three rows of an int64, a nullable string and a nullable binary.
func tiny(t testing.TB) []byte {
	t.Helper()
	id, name, blob := array.NewInt64Builder(memory.DefaultAllocator), array.NewStringBuilder(memory.DefaultAllocator),
		array.NewBinaryBuilder(memory.DefaultAllocator, arrow.BinaryTypes.LargeBinary)
	id.AppendValues([]int64{7, 8, 9}, nil)
	name.Append("ab")
	name.AppendNull()
	name.Append("")
	blob.AppendNull()
	blob.Append([]byte{0xde, 0xad})
	blob.Append([]byte{0xbe})
	return write(t, []format.Field{
		{ID: 0, Name: "id", Logical: "int64"}, {ID: 1, Name: "name", Logical: "string", Nullable: true}, {ID: 2, Name: "blob", Logical: "large_binary", Nullable: true},
	}, id.NewArray(), name.NewArray(), blob.NewArray())
}

func write(t testing.TB, fields []format.Field, cols ...arrow.Array) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b, fields)
	ok(t, err)
	ok(t, w.Write(cols))
	ok(t, w.Close())
	return b.Bytes()
}

// TestTheTinyFileIsTheDocumented holds the writer to the worked example of
// docs/format/lance.md. FOLDLOG_BLESS=1 writes the golden anew.
func TestTheTinyFileIsTheDocumented(t *testing.T) {
	got := tiny(t)
	path := filepath.Join("testdata", "tiny.hex")
	if os.Getenv("FOLDLOG_BLESS") != "" {
		ok(t, os.MkdirAll("testdata", 0o755))
		ok(t, os.WriteFile(path, []byte(hex.Dump(got)), 0o644))
	}
	golden, err := os.ReadFile(path)
	ok(t, err)
	if d := cmp.Diff(strings.Split(string(golden), "\n"), strings.Split(hex.Dump(got), "\n")); d != "" {
		t.Error(d)
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "format", "lance.md"))
	ok(t, err)
	lines := strings.Split(string(golden), "\n")
	for _, part := range [][]string{lines[:20], lines[48:55]} {
		if !strings.Contains(string(page), strings.Join(part, "\n")) {
			t.Errorf("docs/format/lance.md does not have the lines from %q", part[0])
		}
	}
}

// makeColumn makes n rows of a type, about one in four null.
func makeColumn(t *testing.T, typ arrow.DataType, n int, nulls string) arrow.Array {
	t.Helper()
	b := array.NewBuilder(memory.DefaultAllocator, typ)
	r := rand.New(rand.NewPCG(1, uint64(n)))
	for i := range n {
		if nulls == "all" || nulls == "some" && r.IntN(4) == 0 {
			b.AppendNull()
			continue
		}
		v := fmt.Sprint(r.IntN(100))
		switch typ.ID() {
		case arrow.STRING, arrow.LARGE_STRING:
			v = strings.Repeat(v, r.IntN(40))
		case arrow.BINARY, arrow.LARGE_BINARY:
			b.(*array.BinaryBuilder).Append(bytes.Repeat([]byte{byte(i)}, r.IntN(90)))
			continue
		case arrow.BOOL:
			v = fmt.Sprint(r.IntN(2) == 0)
		case arrow.TIMESTAMP:
			b.(*array.TimestampBuilder).Append(arrow.Timestamp(r.Int64()))
			continue
		case arrow.DATE32:
			b.(*array.Date32Builder).Append(arrow.Date32(r.IntN(9999)))
			continue
		case arrow.DATE64:
			b.(*array.Date64Builder).Append(arrow.Date64(r.Int64N(99999)))
			continue
		}
		ok(t, b.AppendValueFromString(v))
	}
	return b.NewArray()
}

func TestEveryTypeIsReadAsWritten(t *testing.T) {
	types := []string{"timestamp:s:-", "timestamp:ms:UTC", "timestamp:us:Europe/Zurich", "timestamp:ns:-"}
	for name := range plainNames() {
		types = append(types, name)
	}
	for _, logical := range types {
		for _, nulls := range []string{"none", "some", "all"} {
			t.Run(logical+" with nulls "+nulls, func(t *testing.T) {
				typ, err := format.ArrowType(logical)
				ok(t, err)
				back, err := format.LogicalType(typ)
				ok(t, err)
				if back != logical {
					t.Errorf("%s comes back as %s", logical, back)
				}
				const n = 100_000 // several pages of the wide ones
				a := makeColumn(t, typ, n, nulls)
				file := write(t, []format.Field{{Name: "c", Logical: logical, Nullable: nulls != "none"}}, a)
				f, err := Open(t.Context(), source(file), int64(len(file)))
				ok(t, err)
				for _, r := range [][2]int64{{0, n}, {0, 1}, {n - 1, n}, {17, 1009}, {n / 2, n/2 + 9}, {5, 5}} {
					got, err := f.Read(t.Context(), 0, r[0], r[1])
					ok(t, err)
					if want := array.NewSlice(a, r[0], r[1]); !array.Equal(want, got) {
						t.Errorf("rows %v differ", r)
					}
				}
			})
		}
	}
}

// plainNames are the logical types without parameters.
func plainNames() map[string]bool {
	names := map[string]bool{}
	for _, n := range strings.Fields("bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 halffloat float double string large_string binary large_binary date32:day date64:ms") {
		names[n] = true
	}
	return names
}

func TestLongValuesHavePagesOfTheirOwn(t *testing.T) {
	b := array.NewBinaryBuilder(memory.DefaultAllocator, arrow.BinaryTypes.LargeBinary)
	for i := range 5 {
		b.Append(make([]byte, 3<<20+i))
		b.Append([]byte("short"))
	}
	file := write(t, []format.Field{{Name: "c", Logical: "large_binary"}}, b.NewArray())
	f, err := Open(t.Context(), source(file), int64(len(file)))
	ok(t, err)
	if n := len(f.columns[0].pages); n != 10 {
		t.Errorf("%d pages", n)
	}
	if end := f.Window(0, 0, 1<<20); end != 1 {
		t.Errorf("a window over a long value ends at %d", end)
	}
	got, err := f.Read(t.Context(), 0, 8, 10)
	ok(t, err)
	if v := got.(*array.LargeBinary); len(v.Value(0)) != 3<<20+4 || string(v.Value(1)) != "short" {
		t.Errorf("read %d and %q", len(v.Value(0)), v.Value(1))
	}
}

func TestWritersRefuseWhatDoesNotFit(t *testing.T) {
	ints := array.NewInt64Builder(memory.DefaultAllocator)
	ints.AppendNull()
	nulls := ints.NewArray()
	for name, c := range map[string]struct {
		field format.Field
		col   arrow.Array
	}{
		"nulls":      {format.Field{Name: "c", Logical: "int64"}, nulls},
		"other type": {format.Field{Name: "c", Logical: "int32", Nullable: true}, nulls},
	} {
		w, err := NewWriter(io.Discard, []format.Field{c.field})
		ok(t, err)
		if err := w.Write([]arrow.Array{c.col}); err == nil {
			t.Errorf("%s: written", name)
		}
	}
	var unsupported *format.UnsupportedError
	if _, err := NewWriter(io.Discard, []format.Field{{Name: "c", Logical: "list"}}); !errors.As(err, &unsupported) {
		t.Errorf("a list: %v", err)
	}
}

// readAll decodes everything and returns the first error. It must never panic.
func readAll(ctx context.Context, file []byte) error {
	f, err := Open(ctx, source(file), int64(len(file)))
	if err != nil {
		return err
	}
	var errs []error
	for c := range f.columns {
		for lo := int64(0); lo < f.Rows(); {
			hi := min(f.Window(c, lo, 1<<20), lo+10_000)
			a, err := f.Read(ctx, c, lo, hi)
			if err != nil {
				errs = append(errs, err)
				break
			}
			if int64(a.Len()) != hi-lo {
				return fmt.Errorf("%d rows of %d to %d", a.Len(), lo, hi)
			}
			for i := range min(a.Len(), 100) {
				_ = a.ValueStr(i)
			}
			if lo = hi; lo > 200_000 {
				break
			}
		}
	}
	return errors.Join(errs...)
}

// allowed reports whether an error is one that a broken file may give.
func allowed(err error) bool {
	var unsupported *format.UnsupportedError
	return err == nil || errors.Is(err, format.ErrCorrupt) || errors.As(err, &unsupported) || errors.Is(err, io.ErrUnexpectedEOF)
}

// samples are files of every format, by name: those of formats 2.1 and 2.2 were
// written by the real library and are kept in testdata.
func samples(t testing.TB) map[string][]byte {
	t.Helper()
	out := map[string][]byte{"tiny": tiny(t)}
	files, err := filepath.Glob(filepath.Join("testdata", "*.lance"))
	ok(t, err)
	for _, f := range files {
		b, err := os.ReadFile(f)
		ok(t, err)
		out[filepath.Base(f)] = b
	}
	return out
}

func TestSamplesOfEveryFormatDecode(t *testing.T) {
	versions := map[string]bool{}
	for name, b := range samples(t) {
		if err := readAll(t.Context(), b); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		f, err := Open(t.Context(), source(b), int64(len(b)))
		ok(t, err)
		versions[f.version.String()] = true
	}
	if d := cmp.Diff(map[string]bool{"2.0": true, "2.1": true, "2.2": true}, versions); d != "" {
		t.Error(d)
	}
}

func TestTruncatedFilesAreCorrupt(t *testing.T) {
	for name, b := range samples(t) {
		step := max(1, len(b)/150)
		for n := 0; n < len(b); n += step {
			err := readAll(t.Context(), b[:n])
			if err == nil || !allowed(err) {
				t.Errorf("%s cut to %d bytes: error %v", name, n, err)
			}
		}
	}
}

func TestFlippedBitsNeverPanic(t *testing.T) {
	for name, b := range samples(t) {
		r := rand.New(rand.NewPCG(5, 6))
		for range 400 {
			bad := bytes.Clone(b)
			at := r.IntN(len(bad))
			if r.IntN(2) == 0 { // the metadata is where it hurts
				at = len(bad) - 1 - r.IntN(min(len(bad), 4000))
			}
			bad[at] ^= 1 << r.IntN(8)
			if err := readAll(t.Context(), bad); !allowed(err) {
				t.Errorf("%s with a bit of byte %d flipped: %v", name, at, err)
			}
		}
	}
}

func TestHostileLengthsAreRefused(t *testing.T) {
	good := tiny(t)
	foot := len(good) - footerSize
	for name, change := range map[string]func(b []byte){
		"column table beyond the end":   func(b []byte) { binary.LittleEndian.PutUint64(b[foot+8:], 1<<62) },
		"buffer table beyond the end":   func(b []byte) { binary.LittleEndian.PutUint64(b[foot+16:], uint64(len(b))) },
		"no global buffer":              func(b []byte) { binary.LittleEndian.PutUint32(b[foot+24:], 0) },
		"four thousand million columns": func(b []byte) { binary.LittleEndian.PutUint32(b[foot+28:], 1<<32-1) },
	} {
		b := bytes.Clone(good)
		change(b)
		if err := readAll(t.Context(), b); !errors.Is(err, format.ErrCorrupt) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	b := bytes.Clone(good)
	binary.LittleEndian.PutUint16(b[foot+32:], 2)
	binary.LittleEndian.PutUint16(b[foot+34:], 9)
	var unsupported *format.UnsupportedError
	if err := readAll(t.Context(), b); !errors.As(err, &unsupported) || unsupported.What != "data file version 2.9" {
		t.Errorf("a file of the future: %v", err)
	}
}

// fuzzed bounds what one input may cost: rows of a column, and columns.
const (
	fuzzedRows    = 2000
	fuzzedColumns = 40
)

// readFew is readAll for inputs that are many: some rows of some columns, in parts.
func readFew(ctx context.Context, file []byte) error {
	f, err := Open(ctx, source(file), int64(len(file)))
	if err != nil {
		return err
	}
	var errs []error
	for c := range min(f.Columns(), fuzzedColumns) {
		for lo := int64(0); lo < min(f.Rows(), fuzzedRows); {
			a, end, err := f.ReadSome(ctx, c, lo, min(f.Window(c, lo, 64<<10), lo+fuzzedRows/4), 64<<10)
			if err != nil {
				errs = append(errs, err)
				break
			}
			if end <= lo || int64(a.Len()) != end-lo {
				return fmt.Errorf("%d rows of %d to %d", a.Len(), lo, end)
			}
			_, _ = a.ValueStr(0), a.ValueStr(a.Len()-1)
			lo = end
		}
	}
	return errors.Join(errs...)
}

// FuzzDataFile begins with files of some kilobytes; those of a hundred and more take
// milliseconds each.
func FuzzDataFile(f *testing.F) {
	for _, b := range samples(f) {
		if len(b) < 16<<10 {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := readFew(t.Context(), b); !allowed(err) {
			t.Error(err)
		}
	})
}

// repeating is a file of rows that are all the one item of a dictionary.
func repeating(t *testing.T, rows, item int) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b, []format.Field{{Name: "v", Logical: "string"}})
	ok(t, err)
	items := wire.Builder(nil).Bytes(encBinary, wire.Builder(nil).Bytes(1, nullable(1, wire.Builder(nil).Bytes(1, flatEncoding(64, 1)))).
		Bytes(2, flatEncoding(8, 2)).Uint(3, uint64(item+1)))
	dict := wire.Builder(nil).Bytes(encDictionary, wire.Builder(nil).Bytes(1, nullable(1, wire.Builder(nil).Bytes(1, flatEncoding(8, 0)))).
		Bytes(2, items).Uint(3, 1))
	ok(t, w.page(w.cols[0], int64(rows), dict, bytes.Repeat([]byte{1}, rows), le.AppendUint64(nil, uint64(item)), bytes.Repeat([]byte("x"), item)))
	w.rows = int64(rows)
	ok(t, w.Close())
	return b.Bytes()
}

// TestValuesThatAreThereOnceAreReadInParts: a page of 200 KB with 10 GB of values.
func TestValuesThatAreThereOnceAreReadInParts(t *testing.T) {
	const rows, item, most = 100_000, 100_000, 1 << 20
	file := repeating(t, rows, item)
	f, err := Open(t.Context(), source(file), int64(len(file)))
	ok(t, err)
	a, end, err := f.ReadSome(t.Context(), 0, 5, f.Window(0, 5, most), most)
	ok(t, err)
	if n := end - 5; n != most/item || int64(a.Len()) != n || a.(*array.String).Value(3) != strings.Repeat("x", item) {
		t.Errorf("%d rows, up to %d", a.Len(), end)
	}
	if _, err := f.ReadWithin(t.Context(), 0, 0, rows, most); !errors.Is(err, ErrTooMuch) {
		t.Errorf("10 GB within a MiB: %v", err)
	}
	if a, end, err = f.ReadSome(t.Context(), 0, 7, 9, 10); err != nil || end != 8 || a.Len() != 1 {
		t.Errorf("up to %d: %v", end, err)
	}
}

// TestPagesOfFewBytesAreReadInParts: rows that take nothing in a file take memory.
func TestPagesOfFewBytesAreReadInParts(t *testing.T) {
	const rows = 1<<31 - 1
	for logical, perRow := range map[string]int64{"int64": 8, "large_string": 8, "string": 4, "int8": 1} {
		meta := wire.Builder(nil).Bytes(1, encodingMessage("/lance.encodings.ColumnEncoding", nil)).
			Bytes(2, wire.Builder(nil).Uint(3, rows).Bytes(4, encodingMessage("/lance.encodings.ArrayEncoding", nullable(3, nil))))
		var b bytes.Buffer
		w, err := NewWriter(&b, []format.Field{{Name: "v", Logical: logical, Nullable: true}})
		ok(t, err)
		w.rows, w.cols[0].meta = rows, meta
		ok(t, w.Close())
		f, err := Open(t.Context(), source(b.Bytes()), int64(b.Len()))
		ok(t, err)
		if end := f.Window(0, 0, 1<<20); end > 1<<20/perRow {
			t.Errorf("%s: %d rows are read at once", logical, end)
		}
		if n := f.RowBytes(0, 0); n < perRow {
			t.Errorf("%s: a row takes %d bytes", logical, n)
		}
		if perRow == 1 {
			continue
		}
		if _, err := f.Read(t.Context(), 0, 0, rows); !errors.Is(err, format.ErrCorrupt) {
			t.Errorf("%s: error %v", logical, err)
		}
	}
}

// TestColumnsThatShareTheirMetadataAreRefused: they would cost more memory than the file
// has bytes.
func TestColumnsThatShareTheirMetadataAreRefused(t *testing.T) {
	var fields []format.Field
	for i := range 4 {
		fields = append(fields, format.Field{ID: int32(i), Name: fmt.Sprint(i), Logical: "int64", Nullable: true})
	}
	var b bytes.Buffer
	w, err := NewWriter(&b, fields)
	ok(t, err)
	w.rows = 1000
	meta := w.cols[0].meta
	for range w.rows {
		meta = meta.Bytes(2, wire.Builder(nil).Uint(3, 1).Bytes(4, encodingMessage("/lance.encodings.ArrayEncoding", nullable(3, nil))))
	}
	w.cols[0].meta = meta
	ok(t, w.Close())
	raw := b.Bytes()
	table := raw[le.Uint64(raw[len(raw)-footerSize+8:]):]
	for i := range fields {
		copy(table[16*i:16*i+16], table[:16])
	}
	if _, err := Open(t.Context(), source(raw), int64(len(raw))); !errors.Is(err, format.ErrCorrupt) {
		t.Errorf("error %v", err)
	}
}

// TestLevelsThatAreNoNumbersAreRefused in a constant page.
func TestLevelsThatAreNoNumbersAreRefused(t *testing.T) {
	levels := wire.Builder(nil).Bytes(compVariable, nil)
	layout := wire.Builder(nil).Packed(5, []uint64{3}).Bytes(6, []byte{5, 0, 0, 0, 0, 0, 0, 0}).Bytes(8, levels).Uint(10, 3)
	block := le.AppendUint64(le.AppendUint64(nil, 64), 16+32) // width, start of the bytes
	for _, end := range []uint64{0, 0, 0, 0} {
		block = le.AppendUint64(block, end)
	}
	body := wire.Builder(nil).Bytes(layoutConstant, layout)
	p := &page{rows: 3, body: body, buffers: []span{{0, 0}, {0, int64(len(block))}}}
	dec, err := parsePageLayout(p, arrow.PrimitiveTypes.Int64)
	ok(t, err)
	if _, err := dec.decode(t.Context(), reader{source(block), p}, 0, 3, maxExpanded); !errors.Is(err, format.ErrCorrupt) {
		t.Errorf("error %v", err)
	}
}

// Encodings that nest without end would take the stack with them.
func TestNullableWithinNullableIsRefused(t *testing.T) {
	nested := nullable(1, wire.Builder(nil).Bytes(1, flatEncoding(64, 0)))
	if bits, _, err := flatOf(nested); err != nil || bits != 64 {
		t.Errorf("one level: %d bits, error %v", bits, err)
	}
	deeper := nullable(1, wire.Builder(nil).Bytes(1, nested))
	if _, _, err := flatOf(deeper); !errors.As(err, new(*format.UnsupportedError)) {
		t.Errorf("two levels: error %v", err)
	}
}
