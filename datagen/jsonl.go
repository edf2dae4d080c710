package datagen

import (
	"encoding/base64"
	"strconv"

	"github.com/foldlog/foldlog/internal/serde"
)

// AppendEvent appends an event as one JSON object: the columns that are not null,
// in the order of the document, with one key "value" for the columns of values,
// JSON values as they are, blobs in base64 where the bytes are there. Strings must
// be UTF-8.
func AppendEvent(dst []byte, e *Event) []byte {
	o := serde.Object{Dst: append(dst, '{')}
	o.Text("event_id", e.ID)
	o.Text("item_id", e.Item)
	o.Text("root_item_id", e.Root)
	o.Optional("parent_item_id", e.Parent)
	o.Int("item_seq", e.Seq)
	o.Text("checkpoint_id", e.Checkpoint)
	o.Text("event_type", string(e.Kind))
	if s := e.Step; s != nil {
		o.Text("step_name", s.Name)
		o.Int("step_index", s.Index)
		o.Optional("step_instance_id", s.Instance)
		if s.Iteration != nil {
			o.Int("iteration", *s.Iteration)
		}
	}
	o.Int("attempt", int64(e.Attempt))
	o.Text("run_id", e.Run)
	o.Text("writer_epoch", e.Epoch)
	if e.Field != nil {
		appendField(&o, e.Field)
	}
	o.Raw("query_tags", e.Tags)
	o.Optional("terminal", string(e.End))
	if f := e.Failure; f != nil {
		o.Text("error_type", f.Type)
		o.Raw("error_dump", f.Dump)
		o.Optional("traceback", f.Traceback)
	}
	o.Time("event_ts", e.Time)
	o.Int("schema_version", int64(e.Schema))
	if f := e.Frame; f != nil {
		o.Optional("step_kind", f.StepKind)
		o.Optional("enclosing_step", f.EnclosingStep)
		o.Optional("selector_step", f.SelectorStep)
		o.Optional("status", f.Status)
	}
	return append(o.Dst, '}')
}

func appendField(o *serde.Object, f *Field) {
	o.Text("field_name", f.Name)
	o.Text("field_type", f.Type)
	o.Int("codec_version", int64(f.Codec))
	o.Optional("value_kind", string(f.Value.Kind))
	v := &f.Value
	switch v.Kind {
	case Int, Float, Bool, Str, JSON:
		o.Key("value")
		o.Dst = AppendValue(o.Dst, v)
	case Blob:
		if v.Blob.Bytes != nil {
			o.Text("value", base64.StdEncoding.EncodeToString(v.Blob.Bytes))
		}
		o.Int("payload_size", v.Blob.Size)
		o.Optional("payload_checksum", v.Blob.Checksum)
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
		o := serde.Object{Dst: append(dst, '{')}
		o.Text("blob", v.Blob.Event)
		o.Int("size", v.Blob.Size)
		o.Text("checksum", v.Blob.Checksum)
		return append(o.Dst, '}')
	}
	return append(dst, "null"...)
}
