package lance

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/foldlog/foldlog/lance/internal/datafile"
	"github.com/foldlog/foldlog/lance/internal/format"
)

// key is a value of any column type in a form that orders as the column does: nulls
// first, then numbers by n, bytes by s. NaN is above every other float.
type key struct {
	n    uint64
	s    string
	some bool
}

func (k key) compare(o key) int {
	if k.some != o.some {
		if o.some {
			return -1
		}
		return 1
	}
	if c := cmp.Compare(k.n, o.n); c != 0 {
		return c
	}
	return strings.Compare(k.s, o.s)
}

func signed(v int64) uint64 { return uint64(v) ^ 1<<63 }

func floating(f float64) uint64 {
	switch {
	case math.IsNaN(f):
		return math.MaxUint64
	case f == 0:
		f = 0 // one zero
	}
	b := math.Float64bits(f)
	if b>>63 == 1 {
		return ^b
	}
	return b | 1<<63
}

func unfloating(n uint64) float64 {
	switch {
	case n == math.MaxUint64:
		return math.NaN()
	case n>>63 == 1:
		return math.Float64frombits(n &^ (1 << 63))
	}
	return math.Float64frombits(^n)
}

// keyColumn reads an array's values as keys.
type keyColumn struct {
	arr   arrow.Array
	num   func(i int) uint64
	bytes func(i int) []byte
}

func numbers[T any](a arrow.Array, value func(int) T, order func(T) uint64) *keyColumn {
	return &keyColumn{arr: a, num: func(i int) uint64 { return order(value(i)) }}
}

func signedOf[T ~int8 | ~int16 | ~int32 | ~int64](v T) uint64       { return signed(int64(v)) }
func unsignedOf[T ~uint8 | ~uint16 | ~uint32 | ~uint64](v T) uint64 { return uint64(v) }

// keysOf prepares an array for comparison.
func keysOf(a arrow.Array) (*keyColumn, error) {
	switch x := a.(type) {
	case *array.Boolean:
		return &keyColumn{arr: a, num: func(i int) uint64 {
			if x.Value(i) {
				return 1
			}
			return 0
		}}, nil
	case *array.Int8:
		return numbers(a, x.Value, signedOf[int8]), nil
	case *array.Int16:
		return numbers(a, x.Value, signedOf[int16]), nil
	case *array.Int32:
		return numbers(a, x.Value, signedOf[int32]), nil
	case *array.Int64:
		return numbers(a, x.Value, signedOf[int64]), nil
	case *array.Uint8:
		return numbers(a, x.Value, unsignedOf[uint8]), nil
	case *array.Uint16:
		return numbers(a, x.Value, unsignedOf[uint16]), nil
	case *array.Uint32:
		return numbers(a, x.Value, unsignedOf[uint32]), nil
	case *array.Uint64:
		return numbers(a, x.Value, unsignedOf[uint64]), nil
	case *array.Float16:
		return &keyColumn{arr: a, num: func(i int) uint64 { return floating(float64(x.Value(i).Float32())) }}, nil
	case *array.Float32:
		return &keyColumn{arr: a, num: func(i int) uint64 { return floating(float64(x.Value(i))) }}, nil
	case *array.Float64:
		return numbers(a, x.Value, floating), nil
	case *array.Timestamp:
		return numbers(a, x.Value, signedOf[arrow.Timestamp]), nil
	case *array.Date32:
		return numbers(a, x.Value, signedOf[arrow.Date32]), nil
	case *array.Date64:
		return numbers(a, x.Value, signedOf[arrow.Date64]), nil
	}
	if v, ok := datafile.ViewBytes(a); ok {
		return &keyColumn{arr: a, bytes: v.At}, nil
	}
	return nil, &UnsupportedError{What: fmt.Sprintf("comparing values of %s", a.DataType())}
}

// at returns row i as a key of its own.
func (c *keyColumn) at(i int) key {
	switch {
	case c.arr.IsNull(i):
		return key{}
	case c.bytes != nil:
		return key{s: string(c.bytes(i)), some: true}
	}
	return key{n: c.num(i), some: true}
}

// compare orders row i against a key.
func (c *keyColumn) compare(i int, k key) int {
	switch null := c.arr.IsNull(i); {
	case null && k.some:
		return -1
	case null:
		return 0
	case !k.some:
		return 1
	case c.bytes != nil:
		return compareBytes(c.bytes(i), k.s)
	}
	return cmp.Compare(c.num(i), k.n)
}

func compareBytes(b []byte, s string) int {
	if string(b) == s { // does not allocate
		return 0
	}
	return bytes.Compare(b, []byte(s))
}

// keyOf converts a value that a caller gave for a column.
func keyOf(t arrow.DataType, v any) (key, error) {
	if v == nil {
		return key{}, nil
	}
	if k, ok := numberKey(t, v); ok {
		k.some = true
		return k, nil
	}
	return key{}, fmt.Errorf("a value of type %T for a column of %s", v, t)
}

func numberKey(t arrow.DataType, v any) (key, bool) {
	switch t.ID() {
	case arrow.STRING, arrow.LARGE_STRING, arrow.BINARY, arrow.LARGE_BINARY:
		switch x := v.(type) {
		case string:
			return key{s: x}, true
		case []byte:
			return key{s: string(x)}, true
		}
		return key{}, false
	case arrow.BOOL:
		b, ok := v.(bool)
		if b {
			return key{n: 1}, ok
		}
		return key{}, ok
	case arrow.TIMESTAMP:
		if x, ok := v.(time.Time); ok {
			ts, err := arrow.TimestampFromTime(x, t.(*arrow.TimestampType).Unit)
			return key{n: signed(int64(ts))}, err == nil
		}
	case arrow.DATE32:
		if x, ok := v.(time.Time); ok {
			return key{n: signed(int64(arrow.Date32FromTime(x)))}, true
		}
	case arrow.DATE64:
		if x, ok := v.(time.Time); ok {
			return key{n: signed(int64(arrow.Date64FromTime(x)))}, true
		}
	}
	return arithmeticKey(t, v)
}

// arithmeticKey converts Go's numbers, refusing what the column cannot hold apart.
func arithmeticKey(t arrow.DataType, v any) (key, bool) {
	i, isInt := toInt64(v)
	switch t.ID() {
	case arrow.INT8, arrow.INT16, arrow.INT32, arrow.INT64, arrow.TIMESTAMP, arrow.DATE32, arrow.DATE64:
		return key{n: signed(i)}, isInt
	case arrow.UINT8, arrow.UINT16, arrow.UINT32, arrow.UINT64:
		if u, ok := v.(uint64); ok {
			return key{n: u}, true
		}
		return key{n: uint64(i)}, isInt && i >= 0
	case arrow.FLOAT16, arrow.FLOAT32, arrow.FLOAT64:
		switch x := v.(type) {
		case float64:
			return key{n: floating(x)}, true
		case float32:
			return key{n: floating(float64(x))}, true
		}
		f := float64(i)
		return key{n: floating(f)}, isInt && f < 1<<63 && i == int64(f)
	}
	return key{}, false
}

func toInt64(v any) (int64, bool) {
	switch x := v.(type) {
	case int:
		return int64(x), true
	case int8:
		return int64(x), true
	case int16:
		return int64(x), true
	case int32:
		return int64(x), true
	case int64:
		return x, true
	case uint8:
		return int64(x), true
	case uint16:
		return int64(x), true
	case uint32:
		return int64(x), true
	case uint64:
		return int64(x), x <= math.MaxInt64
	case arrow.Timestamp:
		return int64(x), true
	case arrow.Date32:
		return int64(x), true
	case arrow.Date64:
		return int64(x), true
	}
	return 0, false
}

// appendKey appends a key of a column's type to a builder.
func appendKey(b array.Builder, k key) error {
	if !k.some {
		b.AppendNull()
		return nil
	}
	i := int64(k.n ^ 1<<63)
	switch x := b.(type) {
	case *array.StringBuilder:
		x.Append(k.s)
	case *array.LargeStringBuilder:
		x.Append(k.s)
	case *array.BinaryBuilder:
		x.Append([]byte(k.s))
	case *array.BooleanBuilder:
		x.Append(k.n == 1)
	case *array.Int8Builder:
		x.Append(int8(i))
	case *array.Int16Builder:
		x.Append(int16(i))
	case *array.Int32Builder:
		x.Append(int32(i))
	case *array.Int64Builder:
		x.Append(i)
	case *array.Uint8Builder:
		x.Append(uint8(k.n))
	case *array.Uint16Builder:
		x.Append(uint16(k.n))
	case *array.Uint32Builder:
		x.Append(uint32(k.n))
	case *array.Uint64Builder:
		x.Append(k.n)
	case *array.Float32Builder:
		x.Append(float32(unfloating(k.n)))
	case *array.Float64Builder:
		x.Append(unfloating(k.n))
	case *array.TimestampBuilder:
		x.Append(arrow.Timestamp(i))
	case *array.Date32Builder:
		x.Append(arrow.Date32(i))
	case *array.Date64Builder:
		x.Append(arrow.Date64(i))
	default:
		return &format.UnsupportedError{What: fmt.Sprintf("an index on %s", b.Type())}
	}
	return nil
}
