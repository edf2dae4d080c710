package lancetest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// pk marks the primary key.
var pk = arrow.NewMetadata([]string{"lance-schema:unenforced-primary-key"}, []string{"true"})

// Schema has a column of every type that is read and written. The key is "id".
var Schema = arrow.NewSchema([]arrow.Field{
	{Name: "id", Type: arrow.BinaryTypes.String, Metadata: pk},
	{Name: "seq", Type: arrow.PrimitiveTypes.Int64},
	{Name: "group", Type: arrow.BinaryTypes.String},
	{Name: "i8", Type: arrow.PrimitiveTypes.Int8, Nullable: true},
	{Name: "i16", Type: arrow.PrimitiveTypes.Int16, Nullable: true},
	{Name: "i32", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
	{Name: "u8", Type: arrow.PrimitiveTypes.Uint8, Nullable: true},
	{Name: "u16", Type: arrow.PrimitiveTypes.Uint16},
	{Name: "u32", Type: arrow.PrimitiveTypes.Uint32, Nullable: true},
	{Name: "u64", Type: arrow.PrimitiveTypes.Uint64, Nullable: true},
	{Name: "f32", Type: arrow.PrimitiveTypes.Float32, Nullable: true},
	{Name: "f64", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
	{Name: "flag", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
	{Name: "str", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "text", Type: arrow.BinaryTypes.LargeString, Nullable: true},
	{Name: "bin", Type: arrow.BinaryTypes.Binary, Nullable: true},
	{Name: "blob", Type: arrow.BinaryTypes.LargeBinary, Nullable: true},
	{Name: "ts", Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}},
	{Name: "local", Type: &arrow.TimestampType{Unit: arrow.Millisecond}, Nullable: true},
	{Name: "day", Type: arrow.FixedWidthTypes.Date32, Nullable: true},
	{Name: "none", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "nothing", Type: arrow.BinaryTypes.String, Nullable: true},
}, nil)

// ID is the key of a row.
func ID(i int) string { return fmt.Sprintf("ev-%08d", i) }

// Batch makes rows [lo, hi) of Schema. A row depends on its number alone.
func Batch(lo, hi int) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, Schema)
	for i := lo; i < hi; i++ {
		r := rand.New(rand.NewPCG(uint64(i), 7))
		for k, f := range Schema.Fields() {
			fill(b.Field(k), f.Name, i, r)
		}
	}
	return b.NewRecordBatch()
}

func fill(b array.Builder, name string, i int, r *rand.Rand) {
	null := r.IntN(4) == 0
	switch x := b.(type) {
	case *array.StringBuilder:
		fillString(x, name, i, r, null)
		return
	case *array.Int64Builder:
		if name == "seq" {
			x.Append(int64(i))
		} else {
			x.AppendNull()
		}
		return
	case *array.Uint16Builder:
		x.Append(uint16(i))
		return
	}
	if name == "ts" {
		b.(*array.TimestampBuilder).Append(arrow.Timestamp(1_700_000_000_000_000 + int64(i)*137))
		return
	}
	if null {
		b.AppendNull()
		return
	}
	switch x := b.(type) {
	case *array.Int8Builder:
		x.Append(int8(r.IntN(256) - 128))
	case *array.Int16Builder:
		x.Append(int16(i % 3))
	case *array.Int32Builder:
		x.Append(int32(r.Uint32()))
	case *array.Uint8Builder:
		x.Append(uint8(r.IntN(256)))
	case *array.Uint32Builder:
		x.Append(uint32(i / 100))
	case *array.Uint64Builder:
		x.Append(r.Uint64())
	case *array.Float32Builder:
		x.Append(float32(r.NormFloat64()))
	case *array.Float64Builder:
		x.Append([]float64{r.NormFloat64(), math.Inf(1), math.Copysign(0, -1), 1e308, 5}[r.IntN(5)])
	case *array.BooleanBuilder:
		x.Append(r.IntN(2) == 0)
	case *array.LargeStringBuilder:
		x.Append(strings.Repeat("lorem ipsum ", r.IntN(30)) + fmt.Sprint(i))
	case *array.TimestampBuilder:
		x.Append(arrow.Timestamp(r.Int64N(2_000_000_000_000)))
	case *array.Date32Builder:
		x.Append(arrow.Date32(r.IntN(30000)))
	case *array.BinaryBuilder:
		fillBinary(x, name, i, r)
	}
}

func fillString(x *array.StringBuilder, name string, i int, r *rand.Rand, null bool) {
	switch {
	case name == "id":
		x.Append(ID(i))
	case name == "group":
		x.Append(fmt.Sprintf("group-%d", i%7))
	case name == "nothing" || null:
		x.AppendNull()
	default:
		x.Append([]string{"", "ünïcode ✓", "plain", fmt.Sprintf("value %d", i)}[r.IntN(4)])
	}
}

// fillBinary makes small binaries, and blobs of which a few are large.
func fillBinary(x *array.BinaryBuilder, name string, i int, r *rand.Rand) {
	n := r.IntN(20)
	if name == "blob" {
		if n = r.IntN(600); i%500 == 3 {
			n = 1_500_000
		}
	}
	v := make([]byte, n)
	for k := range v[:n/2] {
		v[k] = byte(r.Uint32())
	}
	x.Append(v)
}

// Text returns every row of a batch as a line.
func Text(rec arrow.RecordBatch) []string {
	out := make([]string, rec.NumRows())
	for c := range int(rec.NumCols()) {
		a := rec.Column(c)
		for i := range out {
			v := "null"
			if a.IsValid(i) {
				v = a.ValueStr(i)
			}
			if len(v) > 60 {
				v = fmt.Sprintf("%s…%d…%x", v[:20], len(v), hash(v))
			}
			out[i] += fmt.Sprintf("%s=%s ", rec.ColumnName(c), v)
		}
	}
	return out
}

func hash(s string) uint32 {
	h := uint32(2166136261)
	for i := range len(s) {
		h = (h ^ uint32(s[i])) * 16777619
	}
	return h
}
