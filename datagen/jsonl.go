package datagen

import (
	"encoding/base64"
	"strconv"

	"github.com/foldlog/foldlog/internal/serde"
)

// timeFormat is how event_ts is spelled in JSON.
const timeFormat = "2006-01-02T15:04:05.000000Z"

// AppendEvent appends an event as one JSON object: the columns that are not null,
// in the order of the document, with one key "value" for the columns of values,
// JSON values as they are, blobs in base64 where the bytes are there. Strings must
// be UTF-8.
func AppendEvent(dst []byte, e *Event) []byte {
	o := objectWriter{dst: append(dst, '{')}
	o.text("event_id", e.ID)
	o.text("item_id", e.Item)
	o.text("root_item_id", e.Root)
	o.optional("parent_item_id", e.Parent)
	o.int("item_seq", e.Seq)
	o.text("checkpoint_id", e.Checkpoint)
	o.text("event_type", string(e.Kind))
	if s := e.Step; s != nil {
		o.text("step_name", s.Name)
		o.int("step_index", s.Index)
		o.optional("step_instance_id", s.Instance)
		if s.Iteration != nil {
			o.int("iteration", *s.Iteration)
		}
	}
	o.int("attempt", int64(e.Attempt))
	o.text("run_id", e.Run)
	o.text("writer_epoch", e.Epoch)
	if e.Field != nil {
		o.field(e.Field)
	}
	o.raw("query_tags", e.Tags)
	o.optional("terminal", string(e.End))
	if f := e.Failure; f != nil {
		o.text("error_type", f.Type)
		o.raw("error_dump", f.Dump)
		o.optional("traceback", f.Traceback)
	}
	o.text("event_ts", e.Time.UTC().Format(timeFormat))
	o.int("schema_version", int64(e.Schema))
	if f := e.Frame; f != nil {
		o.optional("step_kind", f.StepKind)
		o.optional("enclosing_step", f.EnclosingStep)
		o.optional("selector_step", f.SelectorStep)
		o.optional("status", f.Status)
	}
	return append(o.dst, '}')
}

// objectWriter appends the members of an object.
type objectWriter struct {
	dst []byte
	n   int
}

func (o *objectWriter) key(k string) {
	if o.n++; o.n > 1 {
		o.dst = append(o.dst, ',')
	}
	o.dst = append(serde.AppendString(o.dst, k), ':')
}

func (o *objectWriter) text(k, v string) {
	o.key(k)
	o.dst = serde.AppendString(o.dst, v)
}

func (o *objectWriter) optional(k, v string) {
	if v != "" {
		o.text(k, v)
	}
}

func (o *objectWriter) int(k string, v int64) {
	o.key(k)
	o.dst = strconv.AppendInt(o.dst, v, 10)
}

func (o *objectWriter) raw(k string, v []byte) {
	if v != nil {
		o.key(k)
		o.dst = append(o.dst, v...)
	}
}

func (o *objectWriter) field(f *Field) {
	o.text("field_name", f.Name)
	o.text("field_type", f.Type)
	o.int("codec_version", int64(f.Codec))
	o.optional("value_kind", string(f.Value.Kind))
	v := &f.Value
	switch v.Kind {
	case Int, Float, Bool, Str, JSON:
		o.key("value")
		o.dst = AppendValue(o.dst, v)
	case Blob:
		if v.Blob.Bytes != nil {
			o.text("value", base64.StdEncoding.EncodeToString(v.Blob.Bytes))
		}
		o.int("payload_size", v.Blob.Size)
		o.optional("payload_checksum", v.Blob.Checksum)
	}
}

// AppendValue appends a value as JSON: an integer with all its digits, a float so
// that it reads back the same (NaN and the infinities as strings), JSON as it is, a
// blob as an object with its event, size and checksum.
func AppendValue(dst []byte, v *Value) []byte {
	switch v.Kind {
	case Int:
		return strconv.AppendInt(dst, v.Int, 10)
	case Float:
		return serde.AppendFloat(dst, v.Float)
	case Bool:
		return strconv.AppendBool(dst, v.Bool)
	case Str:
		return serde.AppendString(dst, v.Str)
	case JSON:
		return append(dst, v.JSON...)
	case Blob:
		o := objectWriter{dst: append(dst, '{')}
		o.text("blob", v.Blob.Event)
		o.int("size", v.Blob.Size)
		o.text("checksum", v.Blob.Checksum)
		return append(o.dst, '}')
	}
	return append(dst, "null"...)
}
