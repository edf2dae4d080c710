package arrowipc

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var meta = arrow.NewMetadata([]string{"writer_epoch", "more"}, []string{"3", ""})

var schema = arrow.NewSchema([]arrow.Field{
	{Name: "number", Type: arrow.PrimitiveTypes.Int64, Metadata: meta}, {Name: "text", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "pair", Type: arrow.StructOf(arrow.Field{Name: "list", Type: arrow.ListOf(arrow.PrimitiveTypes.Int8)}, arrow.Field{Name: "b", Type: arrow.FixedWidthTypes.Boolean})},
	{Name: "word", Type: &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}},
}, &meta)

// batch is n rows that compress very well.
func batch(n int) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	for range n {
		b.Field(0).(*array.Int64Builder).Append(5)
		b.Field(1).(*array.StringBuilder).Append(strings.Repeat("x", 50))
		b.Field(2).(*array.StructBuilder).Append(true)
		b.Field(2).(*array.StructBuilder).FieldBuilder(0).(*array.ListBuilder).AppendEmptyValue()
		b.Field(2).(*array.StructBuilder).FieldBuilder(1).(*array.BooleanBuilder).Append(true)
		_ = b.Field(3).(*array.BinaryDictionaryBuilder).AppendString("word")
	}
	return b.NewRecordBatch()
}

var codecs = map[string][]ipc.Option{"plain": nil, "lz4": {ipc.WithLZ4()}, "zstd": {ipc.WithZstd()}}

func stream(t testing.TB, opts []ipc.Option, batches ...arrow.RecordBatch) []byte {
	t.Helper()
	var b bytes.Buffer
	w := ipc.NewWriter(&b, append(opts, ipc.WithSchema(schema))...)
	for _, rec := range batches {
		ok(t, w.Write(rec))
	}
	ok(t, w.Close())
	return b.Bytes()
}

func file(t testing.TB, opts []ipc.Option, batches ...arrow.RecordBatch) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := ipc.NewFileWriter(&b, append(opts, ipc.WithSchema(schema))...)
	ok(t, err)
	for _, rec := range batches {
		ok(t, w.Write(rec))
	}
	ok(t, w.Close())
	return b.Bytes()
}

// read reads everything, and makes an error of a panic.
func read(b []byte, asFile bool, expected int64) (rows int64, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	if asFile {
		f, err := File(b, expected)
		if err != nil {
			return 0, err
		}
		for i := range f.NumRecords() {
			rec, err := f.RecordBatchAt(i)
			if err != nil {
				return rows, err
			}
			rows += rec.NumRows()
		}
		return rows, nil
	}
	r, err := Stream(b)
	if err != nil {
		return 0, err
	}
	for r.Next() {
		r.RecordBatch().Retain()
		rows += r.RecordBatch().NumRows()
	}
	return rows, r.Err()
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	const rows = 20_000
	for name, opts := range codecs {
		for _, batches := range [][]arrow.RecordBatch{{batch(rows)}, {batch(1), batch(rows - 2), batch(1)}} {
			if n, err := read(stream(t, opts, batches...), false, 0); n != rows || err != nil {
				t.Errorf("%s: %d rows of a stream: %v", name, n, err)
			}
			if n, err := read(file(t, opts, batches...), true, 100*rows); n != rows || err != nil {
				t.Errorf("%s: %d rows of a file: %v", name, n, err)
			}
		}
	}
	if n, err := read(stream(t, nil), false, 0); n != 0 || err != nil {
		t.Errorf("%d rows of an empty stream: %v", n, err)
	}
}

// TestSizesThatAreStatedTakeNoMemory: buffers that say they are 64 GB.
func TestSizesThatAreStatedTakeNoMemory(t *testing.T) {
	for name, opts := range codecs {
		if opts == nil {
			continue
		}
		for _, asFile := range []bool{false, true} {
			b := stream(t, opts, batch(1000))
			if asFile {
				b = file(t, opts, batch(1000))
			}
			size := le.AppendUint64(nil, 8*1000)
			if !bytes.Contains(b, size) {
				t.Fatal("no size was found")
			}
			b = bytes.Replace(b, size, le.AppendUint64(nil, 64<<30), 1)
			taken := allocated(func() {
				if _, err := read(b, asFile, 100_000); err == nil {
					t.Errorf("%s was read", name)
				}
			})
			if taken > 64<<20 {
				t.Errorf("%s: it took %d bytes", name, taken)
			}
		}
	}
}

// flat lays out tables; every offset points forwards.
type flat struct{ b []byte }

// table adds a table of four-byte fields, which point at what set says; it returns where
// they are, by number.
func (f *flat) table(nums ...int) (at int, places map[int]int) {
	most := 0
	for _, n := range nums {
		most = max(most, n)
	}
	vtable := len(f.b)
	f.b = le.AppendUint16(f.b, uint16(4+2*(most+1)))
	f.b = le.AppendUint16(f.b, uint16(4+4*len(nums)))
	entries := make([]byte, 2*(most+1))
	for i, n := range nums {
		le.PutUint16(entries[2*n:], uint16(4+4*i))
	}
	f.b = append(f.b, entries...)
	at = len(f.b)
	f.b = le.AppendUint32(f.b, uint32(at-vtable))
	places = map[int]int{}
	for _, n := range nums {
		places[n] = len(f.b)
		f.b = append(f.b, 0, 0, 0, 0)
	}
	return at, places
}

func (f *flat) point(from, to int) { le.PutUint32(f.b[from:], uint32(to-from)) }

// vector adds n offsets and returns where it begins; aim makes all point at one place.
func (f *flat) vector(n int) int {
	at := len(f.b)
	f.b = append(le.AppendUint32(f.b, uint32(n)), make([]byte, 4*n)...)
	return at
}

func (f *flat) aim(vector, to int) {
	for i := range int(le.Uint32(f.b[vector:])) {
		f.point(vector+4+4*i, to)
	}
}

// sharing is a stream whose schema has columns that share their children, each level as
// often as wide says.
func sharing(levels, wide int) []byte {
	f := &flat{b: make([]byte, 4)}
	message, m := f.table(0, 1, 2)
	f.point(0, message)
	f.b[m[0]], f.b[m[1]] = 4, headerSchema
	schema, s := f.table(1)
	f.point(m[2], schema)
	from := s[1]
	for range levels {
		vector := f.vector(wide)
		f.point(from, vector)
		column, c := f.table(0, 2, 3, 5)
		f.aim(vector, column)
		f.b[c[2]] = 13 // a struct
		name := len(f.b)
		f.b = append(f.b, 0, 0, 0, 0, 0)
		f.point(c[0], name)
		kind, _ := f.table(0)
		f.point(c[3], kind)
		from = c[5]
	}
	f.point(from, f.vector(0))
	return append(le.AppendUint32(le.AppendUint32(nil, continuation), uint32(len(f.b))), f.b...)
}

// TestColumnsThatShareTheirChildrenAreRefused: they would be many more than bytes.
func TestColumnsThatShareTheirChildrenAreRefused(t *testing.T) {
	if _, err := read(sharing(3, 1), false, 0); err != nil {
		t.Errorf("columns of their own: %v", err)
	}
	taken := allocated(func() {
		if _, err := read(sharing(6, 12), false, 0); err == nil {
			t.Error("three million columns were read")
		}
	})
	if taken > 1<<20 {
		t.Errorf("it took %d bytes", taken)
	}
	if _, err := read(sharing(200, 1), false, 0); err == nil {
		t.Error("columns 200 deep were read")
	}
}

func allocated(call func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	call()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func FuzzArrow(f *testing.F) {
	for _, opts := range codecs {
		f.Add(stream(f, opts, batch(3)), false)
		f.Add(file(f, opts, batch(3)), true)
	}
	f.Add(sharing(2, 2), false)
	f.Fuzz(func(t *testing.T, b []byte, asFile bool) {
		taken := allocated(func() { _, _ = read(b, asFile, 1000) })
		if most := uint64(len(b))*100 + 80<<20; taken > most {
			t.Errorf("%d bytes took %d", len(b), taken)
		}
	})
}
