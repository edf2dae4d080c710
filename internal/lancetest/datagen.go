package lancetest

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Events is a schema of the shape that checkpoint logs have: many columns, most of
// them short strings, numbers that are null more often than not, and sparse blobs.
var Events = events()

func events() *arrow.Schema {
	var fields []arrow.Field
	add := func(t arrow.DataType, nullable bool, names ...string) {
		for _, n := range names {
			f := arrow.Field{Name: n, Type: t, Nullable: nullable}
			if n == "event_id" {
				f.Metadata = pk
			}
			fields = append(fields, f)
		}
	}
	str, i64, i32, large := arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Int32, arrow.BinaryTypes.LargeString
	add(str, false, "event_id", "item_id", "root_item_id")
	add(str, true, "parent_item_id")
	add(i64, false, "item_seq")
	add(str, false, "checkpoint_id", "event_type")
	add(str, true, "step_name")
	add(i64, true, "step_index")
	add(str, true, "step_instance_id")
	add(i64, true, "iteration")
	add(i32, false, "attempt")
	add(str, false, "run_id", "writer_epoch")
	add(str, true, "field_name", "field_type")
	add(i32, true, "codec_version")
	add(str, true, "value_kind")
	add(i64, true, "value_i64")
	add(arrow.PrimitiveTypes.Float64, true, "value_f64")
	add(arrow.FixedWidthTypes.Boolean, true, "value_bool")
	add(large, true, "value_str", "value_json")
	add(arrow.BinaryTypes.LargeBinary, true, "value_blob")
	add(i64, true, "payload_size")
	add(str, true, "payload_checksum")
	add(large, true, "query_tags_json")
	add(str, true, "terminal", "error_type")
	add(large, true, "error_dump", "traceback")
	add(&arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, false, "event_ts")
	add(i32, false, "schema_version")
	return arrow.NewSchema(fields, nil)
}

// EventID is the key of an event.
func EventID(i int) string {
	r := rand.New(rand.NewPCG(uint64(i), 33))
	return fmt.Sprintf("%08x-%04x-5%03x-a%03x-%012x", r.Uint32(), i&0xffff, r.IntN(4096), r.IntN(4096), i)
}

// EventBatch makes events [lo, hi); one in so many has a blob of a size, none if blob
// is zero.
func EventBatch(lo, hi, every, blob int) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, Events)
	for i := lo; i < hi; i++ {
		r := rand.New(rand.NewPCG(uint64(i), 34))
		for k, f := range Events.Fields() {
			event(b.Field(k), f, i, r, blob > 0 && i%every == 0, blob)
		}
	}
	return b.NewRecordBatch()
}

// rarely are the columns that most events leave null.
var rarely = map[string]int{
	"parent_item_id": 3, "value_i64": 6, "value_f64": 6, "value_bool": 6, "value_str": 6, "value_json": 6,
	"payload_checksum": 50, "payload_size": 50, "query_tags_json": 100, "terminal": 12, "error_type": 97, "error_dump": 97, "traceback": 97,
}

func event(b array.Builder, f arrow.Field, i int, r *rand.Rand, blob bool, size int) {
	if f.Name == "value_blob" {
		if !blob {
			b.AppendNull()
			return
		}
		v := make([]byte, size)
		for k := range min(size, 512) {
			v[k] = byte(r.Uint32())
		}
		for k := 512; k < size; k += copy(v[k:], v[:512]) { // cheap, and still of this event alone
		}
		b.(*array.BinaryBuilder).Append(v)
		return
	}
	if n := rarely[f.Name]; n > 0 && i%n != 0 {
		b.AppendNull()
		return
	}
	switch x := b.(type) {
	case *array.StringBuilder:
		x.Append(eventText(f.Name, i))
	case *array.LargeStringBuilder:
		x.Append(strings.Repeat(fmt.Sprintf(`{"line":%d,"text":"lorem ipsum dolor"} `, i), 1+r.IntN(8)))
	case *array.Int64Builder:
		x.Append(int64(i % 12))
	case *array.Int32Builder:
		x.Append(1)
	case *array.Float64Builder:
		x.Append(r.NormFloat64())
	case *array.BooleanBuilder:
		x.Append(r.IntN(2) == 0)
	case *array.TimestampBuilder:
		x.Append(arrow.Timestamp(1_700_000_000_000_000 + int64(i)*137))
	}
}

func eventText(name string, i int) string {
	switch name {
	case "event_id":
		return EventID(i)
	case "item_id", "root_item_id", "parent_item_id":
		return fmt.Sprintf("pipeline/experiment/item-%07d", i/12)
	case "checkpoint_id":
		return fmt.Sprintf("checkpoint-%08d", i/4)
	case "event_type":
		return []string{"ITEM_CREATED", "FIELD_SET", "FIELD_SET", "FIELD_APPEND", "STEP_COMPLETED"}[i%5]
	case "step_instance_id":
		return fmt.Sprintf("step-instance-%06d", i/4)
	}
	return fmt.Sprintf("%s-%d", name, i%9)
}
