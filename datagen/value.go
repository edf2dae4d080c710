package datagen

import "encoding/json"

// ValueKind is the kind of a value (column value_kind).
type ValueKind string

// The kinds of values.
const (
	Int   ValueKind = "int"
	Float ValueKind = "float"
	Bool  ValueKind = "bool"
	Str   ValueKind = "str"
	JSON  ValueKind = "json"
	Blob  ValueKind = "blob"
)

// Value is the value of a field. Only the field of its kind is used; the zero
// value is no value at all.
type Value struct {
	Kind ValueKind
	Int  int64
	// Float may be NaN or infinite.
	Float float64
	Bool  bool
	Str   string
	// JSON is canonical JSON; null is the value null.
	JSON json.RawMessage
	Blob BlobRef
}

// BlobRef stands for the bytes of a blob until they are asked for ([View.Blob]).
type BlobRef struct {
	// Event is the event that holds the bytes.
	Event string
	// Size is in bytes, Checksum is "sha256:" and the digest in hexadecimal.
	Size     int64
	Checksum string
	// Bytes are those to be written; nil in what is read. An empty blob that is to
	// be written is not nil.
	Bytes []byte
}
