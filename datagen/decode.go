package datagen

import (
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// Decode yields the events of rows of either schema version; which it is, the
// columns tell. Columns that are missing leave their part of an event zero, so a
// projection decodes too. The events share no memory with the batch, except that
// the bytes of blobs alias it.
//
// A row that makes no sense is yielded as far as it goes, for the fold to find at
// fault. An error ends the sequence: ErrSchema for a column of another type,
// ErrNewer for a row of a newer schema.
func Decode(batch arrow.RecordBatch) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		r, err := newRowReader(batch)
		if err != nil {
			yield(Event{}, err)
			return
		}
		for i := range int(batch.NumRows()) {
			var e Event
			if err := r.row(i, &e); err != nil {
				yield(Event{}, err)
				return
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// texts is an array of strings, large or not.
type texts interface {
	arrow.Array
	Value(i int) string
}

// bytesArray is an array of bytes, large or not.
type bytesArray interface {
	arrow.Array
	Value(i int) []byte
}

// textColumn reads strings. A value that repeats that of the row before is shared.
type textColumn struct {
	arr  texts
	last string
}

func (c *textColumn) at(i int) string {
	s, _ := c.get(i)
	return s
}

func (c *textColumn) get(i int) (string, bool) {
	if c.arr == nil || c.arr.IsNull(i) {
		return "", false
	}
	if s := c.arr.Value(i); s != c.last {
		c.last = strings.Clone(s)
	}
	return c.last, true
}

// rowReader reads the rows of a batch.
type rowReader struct {
	text   [allColumns]textColumn
	seq    *array.Int64
	index  *array.Int64
	iter   *array.Int64
	i64    *array.Int64
	size   *array.Int64
	att    *array.Int32
	codec  *array.Int32
	ver    *array.Int32
	f64    *array.Float64
	bool   *array.Boolean
	time   *array.Timestamp
	blob   bytesArray
	frames bool
}

func newRowReader(batch arrow.RecordBatch) (*rowReader, error) {
	r := new(rowReader)
	for k, f := range batch.Schema().Fields() {
		i := columnNumber(f.Name)
		if i < 0 {
			continue
		}
		if !r.column(i, batch.Column(k)) {
			return nil, fmt.Errorf("%w: column %s is %s, not %s", ErrSchema, f.Name, f.Type, fields[i].Type)
		}
		r.frames = r.frames || i > columns
	}
	return r, nil
}

// column takes a column in and reports whether it has the right type.
func (r *rowReader) column(i int, a arrow.Array) (ok bool) {
	if !readable(a.DataType(), fields[i].Type) {
		return false
	}
	switch i {
	case colSeq:
		r.seq, ok = a.(*array.Int64)
	case colStepIndex:
		r.index, ok = a.(*array.Int64)
	case colIteration:
		r.iter, ok = a.(*array.Int64)
	case colI64:
		r.i64, ok = a.(*array.Int64)
	case colPayloadSize:
		r.size, ok = a.(*array.Int64)
	case colAttempt:
		r.att, ok = a.(*array.Int32)
	case colCodec:
		r.codec, ok = a.(*array.Int32)
	case colVersion:
		r.ver, ok = a.(*array.Int32)
	case colF64:
		r.f64, ok = a.(*array.Float64)
	case colBool:
		r.bool, ok = a.(*array.Boolean)
	case colTime:
		r.time, ok = a.(*array.Timestamp)
	case colBlob:
		r.blob, ok = a.(bytesArray)
	default:
		r.text[i].arr, ok = a.(texts)
	}
	return ok
}

func (r *rowReader) row(i int, e *Event) error {
	e.ID, e.Item = r.text[colEventID].at(i), r.text[colItem].at(i)
	if r.ver != nil {
		if e.Schema = value32(r.ver, i); e.Schema > StepsSchemaVersion {
			return fmt.Errorf("%w: event %s of item %q has schema version %d, this program reads up to %d",
				ErrNewer, e.ID, e.Item, e.Schema, StepsSchemaVersion)
		}
	}
	e.Root, e.Parent = r.text[colRoot].at(i), r.text[colParent].at(i)
	if e.Seq = value64(r.seq, i); r.seq != nil && r.seq.IsNull(i) {
		e.Seq = -1
	}
	e.Checkpoint = r.text[colCheckpoint].at(i)
	e.Kind = Kind(r.text[colKind].at(i))
	e.Attempt = value32(r.att, i)
	e.Run, e.Epoch = r.text[colRun].at(i), r.text[colEpoch].at(i)
	if r.time != nil && r.time.IsValid(i) {
		e.Time = time.UnixMicro(int64(r.time.Value(i))).UTC()
	}
	e.Step = r.step(i)
	switch e.Kind {
	case FieldSet, FieldAppend:
		e.Field = r.field(i, e.ID)
	case ItemCreated:
		e.Tags = r.json(colTags, i)
	case StepFailed:
		e.Failure = r.failure(i)
	case ItemEnded:
		e.End = End(r.text[colEnd].at(i))
	}
	if r.frames {
		r.frame(i, e)
	}
	return nil
}

// frame reads what version 2 has instead of an instance and an end.
func (r *rowReader) frame(i int, e *Event) {
	f := Frame{StepKind: r.text[colStepKind].at(i), EnclosingStep: r.text[colEnclosing].at(i),
		SelectorStep: r.text[colSelector].at(i), Status: r.text[colStatus].at(i)}
	if f != (Frame{}) {
		e.Frame = &f
	}
	if e.Kind != ItemEnded {
		return
	}
	if e.End == "" && f.Status != statusFailed {
		e.End = End(f.Status)
	}
	if momentOf(e).failed {
		e.Failure = r.failure(i)
	}
}

func (r *rowReader) failure(i int) *Failure {
	return &Failure{Type: r.text[colErrorType].at(i), Dump: r.json(colDump, i), Traceback: r.text[colTraceback].at(i)}
}

func (r *rowReader) step(i int) *Step {
	name, ok := r.text[colStepName].get(i)
	if !ok {
		return nil
	}
	s := &Step{Name: name, Index: value64(r.index, i), Instance: r.text[colInstance].at(i)}
	if r.iter != nil && r.iter.IsValid(i) {
		n := r.iter.Value(i)
		s.Iteration = &n
	}
	return s
}

func (r *rowReader) field(i int, id string) *Field {
	name, ok := r.text[colFieldName].get(i)
	if !ok {
		return nil
	}
	f := &Field{Name: name, Type: r.text[colFieldType].at(i), Codec: value32(r.codec, i)}
	f.Value = r.value(i, id)
	return f
}

// value reads the value of row i. One whose column is null is no value.
func (r *rowReader) value(i int, id string) (v Value) {
	ok := false
	switch v.Kind = ValueKind(r.text[colValueKind].at(i)); v.Kind {
	case Int:
		if ok = r.i64 != nil && r.i64.IsValid(i); ok {
			v.Int = r.i64.Value(i)
		}
	case Float:
		if ok = r.f64 != nil && r.f64.IsValid(i); ok {
			v.Float = r.f64.Value(i)
		}
	case Bool:
		if ok = r.bool != nil && r.bool.IsValid(i); ok {
			v.Bool = r.bool.Value(i)
		}
	case Str:
		v.Str, ok = r.text[colStr].get(i)
	case JSON:
		v.JSON = r.json(colJSON, i)
		ok = v.JSON != nil
	case Blob:
		v.Blob, ok = r.blobRef(i, id)
	}
	if !ok {
		return Value{}
	}
	return v
}

func (r *rowReader) blobRef(i int, id string) (BlobRef, bool) {
	b := BlobRef{Event: id, Checksum: r.text[colChecksum].at(i)}
	if r.size == nil || r.size.IsNull(i) {
		return b, false
	}
	b.Size = r.size.Value(i)
	if r.blob != nil && r.blob.IsValid(i) {
		if b.Bytes = r.blob.Value(i); b.Bytes == nil {
			b.Bytes = []byte{}
		}
	}
	return b, b.Size >= 0
}

func (r *rowReader) json(col, i int) json.RawMessage {
	s, ok := r.text[col].get(i)
	if !ok {
		return nil
	}
	return json.RawMessage(s)
}

func value64(a *array.Int64, i int) int64 {
	if a == nil || a.IsNull(i) {
		return 0
	}
	return a.Value(i)
}

func value32(a *array.Int32, i int) int32 {
	if a == nil || a.IsNull(i) {
		return 0
	}
	return a.Value(i)
}
