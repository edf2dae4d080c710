// Package format holds the messages of a Lance dataset outside its data files:
// schema fields, fragments, indexes, manifests and transactions, as docs/format/lance.md
// describes them. What it does not know it keeps and writes back unchanged.
package format

import (
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/foldlog/foldlog/lance/internal/wire"
)

// primaryKeyMetadata marks a column as the unenforced primary key.
const primaryKeyMetadata = "lance-schema:unenforced-primary-key"

// Field is a top-level column of a schema.
type Field struct {
	ID       int32
	Name     string
	Logical  string
	Nullable bool
	// PrimaryKey marks the unenforced primary key.
	PrimaryKey bool
	Metadata   [][2]string
	parent     int32
	// raw is the message that the field was read from.
	raw []byte
}

// ParseField reads a lance.file.Field message.
func ParseField(b []byte) (Field, error) {
	fields, err := wire.Parse(b)
	if err != nil {
		return Field{}, fmt.Errorf("schema field: %w", err)
	}
	f := Field{raw: b}
	for x := range fields.All() {
		switch x.Num {
		case 2:
			f.Name = string(x.B)
		case 3:
			f.ID = x.Int32()
		case 4:
			f.parent = x.Int32()
		case 5:
			f.Logical = string(x.B)
		case 6:
			f.Nullable = x.V == 1
		case 10:
			kv, err := wire.Parse(x.B)
			if err != nil {
				return Field{}, fmt.Errorf("schema field metadata: %w", err)
			}
			k, _ := kv.Get(1)
			v, _ := kv.Get(2)
			f.Metadata = append(f.Metadata, [2]string{string(k.B), string(v.B)})
			f.PrimaryKey = f.PrimaryKey || string(k.B) == primaryKeyMetadata && string(v.B) == "true"
		case 12:
			f.PrimaryKey = f.PrimaryKey || x.V == 1
		}
	}
	if f.Name == "" { // an empty message would take much more memory than it has bytes
		return Field{}, fmt.Errorf("schema field: %w: no name", wire.ErrMalformed)
	}
	return f, nil
}

// Nested reports whether the field is a child of another, which this
// implementation does not read.
func (f Field) Nested() bool { return f.parent >= 0 && f.raw != nil }

// Append writes the field as the message that it was read from, or as a new one.
func (f Field) Append(m wire.Builder, num int) wire.Builder {
	if f.raw != nil {
		return m.Bytes(num, f.raw)
	}
	x := wire.Builder(nil).String(2, f.Name).Int32(3, f.ID).Int32(4, -1).String(5, f.Logical).Bool(6, f.Nullable)
	encoding := uint64(1)
	if IsVariable(f.Logical) {
		encoding = 2
	}
	x = x.Uint(7, encoding)
	for _, kv := range f.Metadata {
		x = x.Bytes(10, wire.Builder(nil).String(1, kv[0]).Bytes(2, []byte(kv[1])))
	}
	return m.Bytes(num, x.Bool(12, f.PrimaryKey))
}

// IsVariable reports whether values of a logical type have a length of their own.
func IsVariable(logical string) bool {
	switch logical {
	case "string", "large_string", "binary", "large_binary":
		return true
	}
	return false
}

var plainTypes = map[string]arrow.DataType{
	"bool": arrow.FixedWidthTypes.Boolean,
	"int8": arrow.PrimitiveTypes.Int8, "int16": arrow.PrimitiveTypes.Int16,
	"int32": arrow.PrimitiveTypes.Int32, "int64": arrow.PrimitiveTypes.Int64,
	"uint8": arrow.PrimitiveTypes.Uint8, "uint16": arrow.PrimitiveTypes.Uint16,
	"uint32": arrow.PrimitiveTypes.Uint32, "uint64": arrow.PrimitiveTypes.Uint64,
	"halffloat": arrow.FixedWidthTypes.Float16,
	"float":     arrow.PrimitiveTypes.Float32, "double": arrow.PrimitiveTypes.Float64,
	"string": arrow.BinaryTypes.String, "large_string": arrow.BinaryTypes.LargeString,
	"binary": arrow.BinaryTypes.Binary, "large_binary": arrow.BinaryTypes.LargeBinary,
	"date32:day": arrow.FixedWidthTypes.Date32, "date64:ms": arrow.FixedWidthTypes.Date64,
}

var units = map[string]arrow.TimeUnit{"s": arrow.Second, "ms": arrow.Millisecond, "us": arrow.Microsecond, "ns": arrow.Nanosecond}

// UnsupportedError names something that is valid Lance and not read or written here.
type UnsupportedError struct{ What string }

// Error implements error.
func (e *UnsupportedError) Error() string { return "unsupported: " + e.What }

// ArrowType returns the Arrow type of a logical type.
func ArrowType(logical string) (arrow.DataType, error) {
	if t, ok := plainTypes[logical]; ok {
		return t, nil
	}
	if parts := strings.SplitN(logical, ":", 3); len(parts) == 3 && parts[0] == "timestamp" {
		if unit, ok := units[parts[1]]; ok {
			zone := parts[2]
			if zone == "-" {
				zone = ""
			}
			return &arrow.TimestampType{Unit: unit, TimeZone: zone}, nil
		}
	}
	return nil, &UnsupportedError{fmt.Sprintf("column type %q", logical)}
}

// LogicalType returns the logical type of an Arrow type.
func LogicalType(t arrow.DataType) (string, error) {
	if ts, ok := t.(*arrow.TimestampType); ok {
		zone := ts.TimeZone
		if zone == "" {
			zone = "-"
		}
		return fmt.Sprintf("timestamp:%s:%s", ts.Unit, zone), nil
	}
	for name, plain := range plainTypes {
		if arrow.TypeEqual(plain, t) {
			return name, nil
		}
	}
	return "", &UnsupportedError{fmt.Sprintf("column type %s", t)}
}

// FieldsOf numbers the columns of an Arrow schema.
func FieldsOf(schema *arrow.Schema) ([]Field, error) {
	var fields []Field
	for i, f := range schema.Fields() {
		logical, err := LogicalType(f.Type)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", f.Name, err)
		}
		if slices.ContainsFunc(fields, func(g Field) bool { return g.Name == f.Name }) {
			return nil, fmt.Errorf("column %s: named twice", f.Name)
		}
		if f.Name == "" || strings.Contains(f.Name, ".") {
			return nil, fmt.Errorf("column name %q: empty or with a dot", f.Name)
		}
		field := Field{ID: int32(i), Name: f.Name, Logical: logical, Nullable: f.Nullable}
		for j, key := range f.Metadata.Keys() {
			field.Metadata = append(field.Metadata, [2]string{key, f.Metadata.Values()[j]})
			field.PrimaryKey = field.PrimaryKey || key == primaryKeyMetadata && f.Metadata.Values()[j] == "true"
		}
		if field.PrimaryKey && field.Nullable {
			return nil, fmt.Errorf("column %s: a primary key cannot be nullable", f.Name)
		}
		fields = append(fields, field)
	}
	return fields, nil
}

// ArrowField returns the Arrow field of a column.
func (f Field) ArrowField() (arrow.Field, error) {
	if f.Nested() {
		return arrow.Field{}, &UnsupportedError{fmt.Sprintf("nested column %q", f.Name)}
	}
	t, err := ArrowType(f.Logical)
	if err != nil {
		return arrow.Field{}, fmt.Errorf("column %s: %w", f.Name, err)
	}
	var keys, values []string
	for _, kv := range f.Metadata {
		keys, values = append(keys, kv[0]), append(values, kv[1])
	}
	return arrow.Field{Name: f.Name, Type: t, Nullable: f.Nullable, Metadata: arrow.NewMetadata(keys, values)}, nil
}

// SchemaOf returns the Arrow schema of some columns.
func SchemaOf(fields []Field) (*arrow.Schema, error) {
	out := make([]arrow.Field, 0, len(fields))
	for _, f := range fields {
		af, err := f.ArrowField()
		if err != nil {
			return nil, err
		}
		out = append(out, af)
	}
	return arrow.NewSchema(out, nil), nil
}

// AsNullable returns the field of a copy of the column that may hold nulls.
func (f Field) AsNullable(nullable bool) Field {
	return Field{
		ID: f.ID, Name: f.Name, Logical: f.Logical, Nullable: f.Nullable || nullable,
		PrimaryKey: f.PrimaryKey && !nullable, Metadata: f.Metadata,
	}
}
