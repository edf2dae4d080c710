// Package serde spells and reads the JSON of the three logs.
//
// Writing: [AppendString], [AppendFloat] and [AppendPortable] append exactly
// the bytes that the format documents give; they never re-spell what they need
// not. Reading: [Scanner] is a cursor over one JSON text that allocates
// nothing on plain input, accepts any key order and white space, and refuses
// everything that is not JSON, together with bad UTF-8, lone surrogates and
// nesting deeper than [MaxDepth].
package serde
