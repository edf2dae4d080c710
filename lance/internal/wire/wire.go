// Package wire reads and writes protobuf messages by field number, keeping every
// field that the reader does not know, without generated code.
package wire

import (
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// ErrMalformed is the cause of every error of a message that does not parse.
var ErrMalformed = errors.New("malformed message")

// Field is one field of a message.
type Field struct {
	// Num is the field number.
	Num int
	// V is the value of a varint or fixed-width field.
	V uint64
	// B is the value of a length-delimited field, nil for the others. It shares
	// memory with the message.
	B []byte
	// Raw is the whole field with its tag.
	Raw []byte
}

// Int32 is the value of an int32 field.
func (f Field) Int32() int32 { return int32(f.V) }

// Parse splits a message into its fields in the order in which they stand.
func Parse(b []byte) ([]Field, error) {
	var fields []Field
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return nil, fmt.Errorf("%w: %v", ErrMalformed, protowire.ParseError(n))
		}
		f := Field{Num: int(num)}
		m := 0
		switch typ {
		case protowire.VarintType:
			f.V, m = protowire.ConsumeVarint(b[n:])
		case protowire.BytesType:
			f.B, m = protowire.ConsumeBytes(b[n:])
			if m >= 0 && f.B == nil {
				f.B = []byte{}
			}
		case protowire.Fixed64Type:
			f.V, m = protowire.ConsumeFixed64(b[n:])
		case protowire.Fixed32Type:
			var v uint32
			v, m = protowire.ConsumeFixed32(b[n:])
			f.V = uint64(v)
		default:
			m = protowire.ConsumeFieldValue(num, typ, b[n:])
		}
		if m < 0 {
			return nil, fmt.Errorf("%w: field %d: %v", ErrMalformed, num, protowire.ParseError(m))
		}
		f.Raw = b[: n+m : n+m]
		b = b[n+m:]
		fields = append(fields, f)
	}
	return fields, nil
}

// Get returns the last field with a number, as protobuf wants it of a field that
// does not repeat.
func Get(fields []Field, num int) (Field, bool) {
	for i := len(fields) - 1; i >= 0; i-- {
		if fields[i].Num == num {
			return fields[i], true
		}
	}
	return Field{}, false
}

// Uint returns the value of a varint field, zero if it is absent.
func Uint(fields []Field, num int) uint64 {
	f, _ := Get(fields, num)
	return f.V
}

// Sub parses the message in a field; an absent field is an empty message.
func Sub(fields []Field, num int) ([]Field, error) {
	f, _ := Get(fields, num)
	return Parse(f.B)
}

// Has reports whether a field is present.
func Has(fields []Field, num int) bool {
	_, ok := Get(fields, num)
	return ok
}

// uints appends the values of one occurrence of a repeated varint field, packed or
// not.
func uints(dst []uint64, f Field) ([]uint64, error) {
	if f.B == nil {
		return append(dst, f.V), nil
	}
	for b := f.B; len(b) > 0; {
		v, n := protowire.ConsumeVarint(b)
		if n < 0 {
			return nil, fmt.Errorf("%w: packed field %d: %v", ErrMalformed, f.Num, protowire.ParseError(n))
		}
		dst = append(dst, v)
		b = b[n:]
	}
	return dst, nil
}

// AllUints collects every value of a repeated varint field.
func AllUints(fields []Field, num int) (vs []uint64, err error) {
	for _, f := range fields {
		if f.Num == num {
			if vs, err = uints(vs, f); err != nil {
				return nil, err
			}
		}
	}
	return vs, nil
}

// Builder is a message under construction. Its methods return the longer message.
type Builder []byte

// Uint adds a varint field, unless the value is zero.
func (m Builder) Uint(num int, v uint64) Builder {
	if v == 0 {
		return m
	}
	return m.UintAlways(num, v)
}

// UintAlways adds a varint field.
func (m Builder) UintAlways(num int, v uint64) Builder {
	m = protowire.AppendTag(m, protowire.Number(num), protowire.VarintType)
	return protowire.AppendVarint(m, v)
}

// Int32 adds an int32 field, unless the value is zero.
func (m Builder) Int32(num int, v int32) Builder { return m.Uint(num, uint64(int64(v))) }

// Bool adds a bool field, unless it is false.
func (m Builder) Bool(num int, v bool) Builder {
	if !v {
		return m
	}
	return m.UintAlways(num, 1)
}

// Bytes adds a length-delimited field, empty or not.
func (m Builder) Bytes(num int, v []byte) Builder {
	m = protowire.AppendTag(m, protowire.Number(num), protowire.BytesType)
	return protowire.AppendBytes(m, v)
}

// String adds a string field, unless it is empty.
func (m Builder) String(num int, v string) Builder {
	if v == "" {
		return m
	}
	m = protowire.AppendTag(m, protowire.Number(num), protowire.BytesType)
	return protowire.AppendString(m, v)
}

// Packed adds a packed repeated varint field, unless there are no values.
func (m Builder) Packed(num int, vs []uint64) Builder {
	if len(vs) == 0 {
		return m
	}
	var p []byte
	for _, v := range vs {
		p = protowire.AppendVarint(p, v)
	}
	return m.Bytes(num, p)
}

// Raw adds whole fields as they stand.
func (m Builder) Raw(fields []byte) Builder { return append(m, fields...) }

// Any is a google.protobuf.Any message.
func Any(url string, value []byte) Builder {
	return Builder(nil).String(1, url).Bytes(2, value)
}

// ParseAny splits a google.protobuf.Any message.
func ParseAny(b []byte) (url string, value []byte, err error) {
	fields, err := Parse(b)
	if err != nil {
		return "", nil, err
	}
	u, _ := Get(fields, 1)
	v, _ := Get(fields, 2)
	return string(u.B), v.B, nil
}

// Int converts a length or count, refusing what an int32 cannot hold twice over.
func Int(v uint64) (int, error) {
	if v > math.MaxInt32 {
		return 0, fmt.Errorf("%w: count %d", ErrMalformed, v)
	}
	return int(v), nil
}
