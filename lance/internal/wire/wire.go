// Package wire reads and writes protobuf messages by field number, keeping every
// field that the reader does not know, without generated code.
package wire

import (
	"errors"
	"fmt"
	"iter"
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

// Message is a message that Parse has checked. It takes no memory of its own: its fields
// are found in the bytes each time, so that many small ones cost nothing.
type Message []byte

// Parse checks that a message consists of whole fields.
func Parse(b []byte) (Message, error) {
	for rest := b; len(rest) > 0; {
		n, err := fieldSize(rest)
		if err != nil {
			return nil, err
		}
		rest = rest[n:]
	}
	if b == nil {
		b = []byte{}
	}
	return b, nil
}

// fieldSize is the size of the first field of a message that may be malformed.
func fieldSize(b []byte) (int, error) {
	num, typ, n := protowire.ConsumeTag(b)
	if n < 0 {
		return 0, fmt.Errorf("%w: %v", ErrMalformed, protowire.ParseError(n))
	}
	m := protowire.ConsumeFieldValue(num, typ, b[n:])
	if m < 0 {
		return 0, fmt.Errorf("%w: field %d: %v", ErrMalformed, num, protowire.ParseError(m))
	}
	return n + m, nil
}

// next splits the first field off a message that was checked.
func (m Message) next() (f Field, rest Message) {
	num, typ, n := protowire.ConsumeTag(m)
	f.Num = int(num)
	size := 0
	switch typ {
	case protowire.VarintType:
		f.V, size = protowire.ConsumeVarint(m[n:])
	case protowire.BytesType:
		f.B, size = protowire.ConsumeBytes(m[n:])
		if f.B == nil {
			f.B = []byte{}
		}
	case protowire.Fixed64Type:
		f.V, size = protowire.ConsumeFixed64(m[n:])
	case protowire.Fixed32Type:
		var v uint32
		v, size = protowire.ConsumeFixed32(m[n:])
		f.V = uint64(v)
	default:
		size = protowire.ConsumeFieldValue(num, typ, m[n:])
	}
	f.Raw = m[: n+size : n+size]
	return f, m[n+size:]
}

// All yields the fields in the order in which they stand.
func (m Message) All() iter.Seq[Field] {
	return func(yield func(Field) bool) {
		for len(m) > 0 {
			var f Field
			if f, m = m.next(); !yield(f) {
				return
			}
		}
	}
}

// Last returns the last field, or false of an empty message.
func (m Message) Last() (f Field, ok bool) {
	for len(m) > 0 {
		f, m = m.next()
		ok = true
	}
	return f, ok
}

// Count counts the fields with a number.
func (m Message) Count(num int) (n int) {
	for f := range m.All() {
		if f.Num == num {
			n++
		}
	}
	return n
}

// Get returns the last field with a number, as protobuf wants it of a field that
// does not repeat.
func (m Message) Get(num int) (f Field, ok bool) {
	for x := range m.All() {
		if x.Num == num {
			f, ok = x, true
		}
	}
	return f, ok
}

// Uint returns the value of a varint field, zero if it is absent.
func (m Message) Uint(num int) uint64 {
	f, _ := m.Get(num)
	return f.V
}

// Sub parses the message in a field; an absent field is an empty message.
func (m Message) Sub(num int) (Message, error) {
	f, _ := m.Get(num)
	return Parse(f.B)
}

// Has reports whether a field is present.
func (m Message) Has(num int) bool {
	_, ok := m.Get(num)
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
func (m Message) AllUints(num int) (vs []uint64, err error) {
	for f := range m.All() {
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
	u, _ := fields.Get(1)
	v, _ := fields.Get(2)
	return string(u.B), v.B, nil
}

// Int converts a length or count, refusing what an int32 cannot hold.
func Int(v uint64) (int, error) {
	if v > math.MaxInt32 {
		return 0, fmt.Errorf("%w: count %d", ErrMalformed, v)
	}
	return int(v), nil
}
