package datagen

import "encoding/json"

// codecVersion is that of the codecs below.
const codecVersion = 1

// Set is the change that replaces a field's value. Its codec is that of the kind of
// value itself; a program with codecs of its own makes a Change with its Type.
func Set(name string, v Value) Change {
	return Change{Field: Field{Name: name, Type: string(v.Kind), Codec: codecVersion, Value: v}}
}

// Append is the change that adds a value to those of a field, as Set.
func Append(name string, v Value) Change {
	c := Set(name, v)
	c.Append = true
	return c
}

// IntValue is an integer.
func IntValue(i int64) Value { return Value{Kind: Int, Int: i} }

// FloatValue is a number, which may be NaN or infinite.
func FloatValue(f float64) Value { return Value{Kind: Float, Float: f} }

// BoolValue is true or false.
func BoolValue(b bool) Value { return Value{Kind: Bool, Bool: b} }

// StrValue is a text, which must be UTF-8.
func StrValue(s string) Value { return Value{Kind: Str, Str: s} }

// JSONValue is a JSON value, which must be spelled as CanonicalJSON does.
func JSONValue(raw json.RawMessage) Value { return Value{Kind: JSON, JSON: raw} }

// BlobValue is bytes, which must not change until they are written.
func BlobValue(b []byte) Value { return Value{Kind: Blob, Blob: NewBlob(b)} }
