package wire

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/foldlog/foldlog/internal/serde"
)

// Count is a 64-bit counter or identity. It travels as a string, since a JSON
// number loses digits in browsers.
type Count uint64

// MarshalJSON implements json.Marshaler.
func (c Count) MarshalJSON() ([]byte, error) {
	return append(strconv.AppendUint([]byte{'"'}, uint64(c), 10), '"'), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *Count) UnmarshalJSON(b []byte) error {
	text := serde.Text(b)
	n, err := strconv.ParseUint(text, 10, 64)
	*c = Count(n)
	return err
}

// Schema implements huma.SchemaProvider.
func (Count) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: "uint64", Pattern: "^[0-9]+$", Description: "a 64-bit number as a string"}
}

// Number is a float that may be "NaN", "Infinity" or "-Infinity".
type Number float64

// MarshalJSON implements json.Marshaler.
func (n Number) MarshalJSON() ([]byte, error) { return serde.AppendFloat(nil, float64(n)), nil }

// UnmarshalJSON implements json.Unmarshaler.
func (n *Number) UnmarshalJSON(b []byte) error {
	switch s := serde.Text(b); s {
	case "NaN":
		*n = Number(math.NaN())
	case "Infinity":
		*n = Number(math.Inf(1))
	case "-Infinity":
		*n = Number(math.Inf(-1))
	default:
		f, err := strconv.ParseFloat(s, 64)
		*n = Number(f)
		return err
	}
	return nil
}

// Schema implements huma.SchemaProvider.
func (Number) Schema(huma.Registry) *huma.Schema { return numberSchema() }

func numberSchema() *huma.Schema {
	return &huma.Schema{OneOf: []*huma.Schema{
		{Type: huma.TypeNumber}, {Type: huma.TypeString, Enum: []any{"NaN", "Infinity", "-Infinity"}},
	}, Description: "a number, or NaN or an infinity as a string"}
}

// Numbers is a column of values.
type Numbers []float64

// MarshalJSON implements json.Marshaler.
func (ns Numbers) MarshalJSON() ([]byte, error) { return ns.json(), nil }

func (ns Numbers) json() []byte {
	b := append(make([]byte, 0, 2+12*len(ns)), '[')
	for i, v := range ns {
		if i > 0 {
			b = append(b, ',')
		}
		b = serde.AppendFloat(b, v)
	}
	return append(b, ']')
}

// UnmarshalJSON implements json.Unmarshaler.
func (ns *Numbers) UnmarshalJSON(b []byte) error {
	var list []Number
	err := json.Unmarshal(b, &list)
	*ns = make(Numbers, len(list))
	for i, n := range list {
		(*ns)[i] = float64(n)
	}
	return err
}

// Schema implements huma.SchemaProvider.
func (Numbers) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeArray, Items: numberSchema()}
}

// Integer is a step. One beyond 2^53 travels as a string.
type Integer int64

const exact = 1 << 53

func (n Integer) append(b []byte) []byte {
	if n > -exact && n < exact {
		return strconv.AppendInt(b, int64(n), 10)
	}
	return append(strconv.AppendInt(append(b, '"'), int64(n), 10), '"')
}

// MarshalJSON implements json.Marshaler.
func (n Integer) MarshalJSON() ([]byte, error) { return n.append(nil), nil }

// UnmarshalJSON implements json.Unmarshaler.
func (n *Integer) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseInt(serde.Text(b), 10, 64)
	*n = Integer(v)
	return err
}

// Schema implements huma.SchemaProvider.
func (Integer) Schema(huma.Registry) *huma.Schema { return integerSchema() }

func integerSchema() *huma.Schema {
	return &huma.Schema{OneOf: []*huma.Schema{{Type: huma.TypeInteger}, {Type: huma.TypeString, Pattern: "^-?[0-9]+$"}},
		Description: "an integer, as a string beyond 2^53"}
}

// Integers is a column of steps or times.
type Integers []int64

// MarshalJSON implements json.Marshaler.
func (ns Integers) MarshalJSON() ([]byte, error) { return ns.json(), nil }

func (ns Integers) json() []byte {
	b := append(make([]byte, 0, 2+8*len(ns)), '[')
	for i, v := range ns {
		if i > 0 {
			b = append(b, ',')
		}
		b = Integer(v).append(b)
	}
	return append(b, ']')
}

// UnmarshalJSON implements json.Unmarshaler.
func (ns *Integers) UnmarshalJSON(b []byte) error {
	var list []Integer
	err := json.Unmarshal(b, &list)
	*ns = make(Integers, len(list))
	for i, n := range list {
		(*ns)[i] = int64(n)
	}
	return err
}

// Schema implements huma.SchemaProvider.
func (Integers) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeArray, Items: integerSchema()}
}

// Object is a JSON object as it was written.
type Object json.RawMessage

// MarshalJSON implements json.Marshaler.
func (o Object) MarshalJSON() ([]byte, error) {
	if len(o) == 0 {
		return []byte("{}"), nil
	}
	return o, nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (o *Object) UnmarshalJSON(b []byte) error {
	*o = append(Object(nil), b...)
	return nil
}

// Schema implements huma.SchemaProvider.
func (Object) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
}

// Any is any JSON value as it was written.
type Any json.RawMessage

// MarshalJSON implements json.Marshaler.
func (a Any) MarshalJSON() ([]byte, error) {
	if len(a) == 0 {
		return []byte("null"), nil
	}
	return a, nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (a *Any) UnmarshalJSON(b []byte) error {
	*a = append(Any(nil), b...)
	return nil
}

// Schema implements huma.SchemaProvider.
func (Any) Schema(huma.Registry) *huma.Schema { return &huma.Schema{Description: "any JSON value"} }

// RawArray is an array of JSON values as they were written.
type RawArray []byte

// MarshalJSON implements json.Marshaler.
func (a RawArray) MarshalJSON() ([]byte, error) {
	if len(a) == 0 {
		return []byte("[]"), nil
	}
	return a, nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (a *RawArray) UnmarshalJSON(b []byte) error {
	*a = append(RawArray(nil), b...)
	return nil
}

// Schema implements huma.SchemaProvider.
func (RawArray) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeArray, Items: &huma.Schema{}, Description: "any JSON values"}
}
