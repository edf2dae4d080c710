package datagen

import (
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
)

// The columns, in the order of the document.
const (
	colEventID = iota
	colItem
	colRoot
	colParent
	colSeq
	colCheckpoint
	colKind
	colStepName
	colStepIndex
	colInstance
	colIteration
	colAttempt
	colRun
	colEpoch
	colFieldName
	colFieldType
	colCodec
	colValueKind
	colI64
	colF64
	colBool
	colStr
	colJSON
	colBlob
	colPayloadSize
	colChecksum
	colTags
	colEnd
	colErrorType
	colDump
	colTraceback
	colTime
	colVersion
	columns
	// What only schema version 2 has.
	colStepKind
	colEnclosing
	colSelector
	colStatus
	allColumns
)

var (
	text      = arrow.BinaryTypes.String
	largeText = arrow.BinaryTypes.LargeString
	i64       = arrow.PrimitiveTypes.Int64
	i32       = arrow.PrimitiveTypes.Int32
	keyMark   = arrow.NewMetadata([]string{"lance-schema:unenforced-primary-key"}, []string{"true"})
)

func required(name string, t arrow.DataType) arrow.Field { return arrow.Field{Name: name, Type: t} }
func optional(name string, t arrow.DataType) arrow.Field {
	return arrow.Field{Name: name, Type: t, Nullable: true}
}

// fields describes every column of both versions, by its number.
var fields = [allColumns]arrow.Field{
	colEventID:     {Name: "event_id", Type: text, Metadata: keyMark},
	colItem:        required("item_id", text),
	colRoot:        required("root_item_id", text),
	colParent:      optional("parent_item_id", text),
	colSeq:         required("item_seq", i64),
	colCheckpoint:  required("checkpoint_id", text),
	colKind:        required("event_type", text),
	colStepName:    optional("step_name", text),
	colStepIndex:   optional("step_index", i64),
	colInstance:    optional("step_instance_id", text),
	colIteration:   optional("iteration", i64),
	colAttempt:     required("attempt", i32),
	colRun:         required("run_id", text),
	colEpoch:       required("writer_epoch", text),
	colFieldName:   optional("field_name", text),
	colFieldType:   optional("field_type", text),
	colCodec:       optional("codec_version", i32),
	colValueKind:   optional("value_kind", text),
	colI64:         optional("value_i64", i64),
	colF64:         optional("value_f64", arrow.PrimitiveTypes.Float64),
	colBool:        optional("value_bool", arrow.FixedWidthTypes.Boolean),
	colStr:         optional("value_str", largeText),
	colJSON:        optional("value_json", largeText),
	colBlob:        optional("value_blob", arrow.BinaryTypes.LargeBinary),
	colPayloadSize: optional("payload_size", i64),
	colChecksum:    optional("payload_checksum", text),
	colTags:        optional("query_tags_json", largeText),
	colEnd:         optional("terminal", text),
	colErrorType:   optional("error_type", text),
	colDump:        optional("error_dump", largeText),
	colTraceback:   optional("traceback", largeText),
	colTime:        required("event_ts", arrow.FixedWidthTypes.Timestamp_us),
	colVersion:     required("schema_version", i32),
	columns:        {},
	colStepKind:    optional("step_kind", text),
	colEnclosing:   optional("enclosing_step", text),
	colSelector:    optional("selector_step", text),
	colStatus:      optional("status", text),
}

var schema = arrow.NewSchema(fields[:columns], nil)

// Schema returns the columns that are written, those of the document in its
// order. The primary key is event_id.
func Schema() *arrow.Schema { return schema }

// BlobColumn is the column of blobs, the only one that reading without blobs
// leaves out.
const BlobColumn = "value_blob"

// LightColumns names the columns of a table for reading all but the bytes of
// blobs, in the table's order, whatever version its schema has.
func LightColumns(table *arrow.Schema) []string {
	return pick(table, func(i int) bool { return i != colBlob })
}

// pick names the columns of a table that are of the log and that are wanted.
func pick(table *arrow.Schema, want func(i int) bool) []string {
	var names []string
	for _, f := range table.Fields() {
		if i := columnNumber(f.Name); i >= 0 && want(i) {
			names = append(names, f.Name)
		}
	}
	return names
}

var numbers = func() map[string]int {
	m := make(map[string]int, allColumns)
	for i, f := range fields {
		if f.Name != "" {
			m[f.Name] = i
		}
	}
	return m
}()

// columnNumber is the number of a column, -1 if the log has none of that name.
func columnNumber(name string) int {
	if i, ok := numbers[name]; ok {
		return i
	}
	return -1
}

// CheckSchema refuses a table that is not a log that this program can read:
// ErrSchema if columns are missing or of other types. Which version the columns
// are, it returns. Columns that neither version has are not looked at: a newer
// version tells itself apart by schema_version, which Decode refuses.
func CheckSchema(table *arrow.Schema) (version int32, err error) {
	missing := func(from []int) string {
		for _, i := range from {
			if len(table.FieldIndices(fields[i].Name)) != 1 {
				return fields[i].Name
			}
		}
		return ""
	}
	for _, f := range table.Fields() {
		if i := columnNumber(f.Name); i >= 0 && !readable(f.Type, fields[i].Type) {
			return 0, fmt.Errorf("%w: column %s is %s, not %s", ErrSchema, f.Name, f.Type, fields[i].Type)
		}
	}
	if name := missing(both); name != "" {
		return 0, fmt.Errorf("%w: no column %s", ErrSchema, name)
	}
	if name := missing(onlyV1); name == "" {
		return SchemaVersion, nil
	}
	if name := missing(onlyV2); name != "" {
		return 0, fmt.Errorf("%w: no column %s", ErrSchema, name)
	}
	return StepsSchemaVersion, nil
}

// The columns that tell the versions apart, and the others.
var (
	onlyV1 = []int{colInstance, colIteration, colEnd}
	onlyV2 = []int{colStepKind, colEnclosing, colSelector, colStatus}
	both   = func() []int {
		var in []int
		for i := range int(columns) {
			if !slices.Contains(onlyV1, i) {
				in = append(in, i)
			}
		}
		return in
	}()
)

// readable reports whether a column may have another type than the one written:
// strings and bytes may be large or not.
func readable(is, written arrow.DataType) bool {
	switch written.ID() {
	case arrow.STRING, arrow.LARGE_STRING:
		return is.ID() == arrow.STRING || is.ID() == arrow.LARGE_STRING
	case arrow.LARGE_BINARY:
		return is.ID() == arrow.BINARY || is.ID() == arrow.LARGE_BINARY
	case arrow.TIMESTAMP:
		t, ok := is.(*arrow.TimestampType)
		return ok && t.Unit == arrow.Microsecond
	}
	return arrow.TypeEqual(is, written)
}
