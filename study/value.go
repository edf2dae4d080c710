package study

import (
	"math"
	"strconv"

	"github.com/foldlog/foldlog/internal/serde"
)

// ValueKind is the type of a parameter's value.
type ValueKind uint8

// The kinds of values. ValueOther is one that this version does not know.
const (
	ValueF64 ValueKind = iota
	ValueI64
	ValueCat
	ValueBool
	ValueOther
)

// Value is a parameter's value: {"F64":x}, {"I64":n}, {"Cat":index} or
// {"Bool":b}. The zero value is the float 0.
type Value struct {
	bits uint64
	raw  string
	kind ValueKind
}

// F64 is a float value, non-finite ones included.
func F64(f float64) Value { return Value{kind: ValueF64, bits: math.Float64bits(f)} }

// I64 is an integer value.
func I64(i int64) Value { return Value{kind: ValueI64, bits: uint64(i)} }

// Cat is the choice with that index.
func Cat(index uint64) Value { return Value{kind: ValueCat, bits: index} }

// Bool is a truth value.
func Bool(b bool) Value {
	v := Value{kind: ValueBool}
	if b {
		v.bits = 1
	}
	return v
}

// Kind is the type of the value.
func (v Value) Kind() ValueKind { return v.kind }

// F64 is the float, if the kind is ValueF64.
func (v Value) F64() float64 { return math.Float64frombits(v.bits) }

// I64 is the integer, if the kind is ValueI64.
func (v Value) I64() int64 { return int64(v.bits) }

// Cat is the index, if the kind is ValueCat.
func (v Value) Cat() uint64 { return v.bits }

// Bool is the truth value, if the kind is ValueBool.
func (v Value) Bool() bool { return v.bits != 0 }

// Equal tells whether both are the same value; NaN equals NaN.
func (v Value) Equal(o Value) bool { return v == o }

// String is the JSON in the journal.
func (v Value) String() string { return string(v.append(nil)) }

func (v Value) append(dst []byte) []byte {
	switch v.kind {
	case ValueF64:
		dst = append(dst, `{"F64":`...)
		dst = serde.AppendFloat(dst, v.F64())
	case ValueI64:
		dst = append(dst, `{"I64":`...)
		dst = strconv.AppendInt(dst, v.I64(), 10)
	case ValueCat:
		dst = append(dst, `{"Cat":`...)
		dst = strconv.AppendUint(dst, v.bits, 10)
	case ValueBool:
		dst = append(dst, `{"Bool":`...)
		dst = strconv.AppendBool(dst, v.Bool())
	default:
		return append(dst, v.raw...)
	}
	return append(dst, '}')
}

// Text is the value as people, commands and CSV readers get it: a text without
// its quotes, anything else as [Value.AppendJSON].
func (p Param) Text() string { return serde.Text(p.Value.AppendJSON(nil, p.Dist)) }

// AppendParams appends the plain JSON object of parameters, in their order.
func AppendParams(dst []byte, params []Param) []byte {
	dst = append(dst, '{')
	for i, p := range params {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(serde.AppendString(dst, p.Name), ':')
		dst = p.Value.AppendJSON(dst, p.Dist)
	}
	return append(dst, '}')
}

// AppendJSON appends the plain JSON value that a person or a command would
// want: the number, the truth value, or the choice's own value. Without a
// distribution that knows the choice, a category is its index.
func (v Value) AppendJSON(dst []byte, d Distribution) []byte {
	switch v.kind {
	case ValueF64:
		return serde.AppendFloat(dst, v.F64())
	case ValueI64:
		return strconv.AppendInt(dst, v.I64(), 10)
	case ValueBool:
		return strconv.AppendBool(dst, v.Bool())
	case ValueCat:
		if c, ok := d.(*CatDist); ok && v.bits < uint64(len(c.Choices)) {
			return append(dst, c.Choices[v.bits].Value.JSON...)
		}
		return strconv.AppendUint(dst, v.bits, 10)
	}
	return append(dst, v.raw...)
}
