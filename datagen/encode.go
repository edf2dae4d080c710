package datagen

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Record makes the rows of events, in the columns of Schema. It does not check
// the events (see CheckBatch), but what no row can hold is an error.
func Record(events []Event) (arrow.RecordBatch, error) {
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	b.Reserve(len(events))
	w := rowWriter{b: b}
	for i := range events {
		e := &events[i]
		if e.Frame != nil || e.Kind == StepStarted {
			return nil, &EventError{Index: i, ID: e.ID, Column: "schema_version",
				Err: fmt.Errorf("version %d has no frames", SchemaVersion)}
		}
		w.row(e)
	}
	return b.NewRecordBatch(), nil
}

// rowWriter appends rows column by column.
type rowWriter struct{ b *array.RecordBuilder }

func (w *rowWriter) row(e *Event) {
	w.str(colEventID, e.ID)
	w.str(colItem, e.Item)
	w.str(colRoot, e.Root)
	w.optional(colParent, e.Parent)
	w.i64(colSeq, e.Seq)
	w.str(colCheckpoint, e.Checkpoint)
	w.str(colKind, string(e.Kind))
	w.step(e.Step)
	w.i32(colAttempt, e.Attempt)
	w.str(colRun, e.Run)
	w.str(colEpoch, e.Epoch)
	w.field(e.Field)
	w.large(colTags, string(e.Tags), e.Tags != nil)
	w.optional(colEnd, string(e.End))
	w.failure(e.Failure)
	w.b.Field(colTime).(*array.TimestampBuilder).Append(arrow.Timestamp(e.Time.UnixMicro()))
	w.i32(colVersion, e.Schema)
}

func (w *rowWriter) step(s *Step) {
	if s == nil {
		w.null(colStepName, colStepIndex, colInstance, colIteration)
		return
	}
	w.str(colStepName, s.Name)
	w.i64(colStepIndex, s.Index)
	w.optional(colInstance, s.Instance)
	if s.Iteration == nil {
		w.null(colIteration)
		return
	}
	w.i64(colIteration, *s.Iteration)
}

func (w *rowWriter) field(f *Field) {
	if f == nil {
		w.null(colFieldName, colFieldType, colCodec, colValueKind)
		w.value(&Value{})
		return
	}
	w.str(colFieldName, f.Name)
	w.str(colFieldType, f.Type)
	w.i32(colCodec, f.Codec)
	w.str(colValueKind, string(f.Value.Kind))
	w.value(&f.Value)
}

func (w *rowWriter) value(v *Value) {
	if v.Kind == Int {
		w.i64(colI64, v.Int)
	} else {
		w.null(colI64)
	}
	if v.Kind == Float {
		w.b.Field(colF64).(*array.Float64Builder).Append(v.Float)
	} else {
		w.null(colF64)
	}
	if v.Kind == Bool {
		w.b.Field(colBool).(*array.BooleanBuilder).Append(v.Bool)
	} else {
		w.null(colBool)
	}
	w.large(colStr, v.Str, v.Kind == Str)
	w.large(colJSON, string(v.JSON), v.Kind == JSON)
	if v.Kind != Blob {
		w.null(colBlob, colPayloadSize, colChecksum)
		return
	}
	if v.Blob.Bytes == nil {
		w.null(colBlob)
	} else {
		w.b.Field(colBlob).(*array.BinaryBuilder).Append(v.Blob.Bytes)
	}
	w.i64(colPayloadSize, v.Blob.Size)
	w.optional(colChecksum, v.Blob.Checksum)
}

func (w *rowWriter) failure(f *Failure) {
	if f == nil {
		w.null(colErrorType, colDump, colTraceback)
		return
	}
	w.str(colErrorType, f.Type)
	w.large(colDump, string(f.Dump), f.Dump != nil)
	w.large(colTraceback, f.Traceback, f.Traceback != "")
}

func (w *rowWriter) str(col int, s string) { w.b.Field(col).(*array.StringBuilder).Append(s) }
func (w *rowWriter) i64(col int, v int64)  { w.b.Field(col).(*array.Int64Builder).Append(v) }
func (w *rowWriter) i32(col int, v int32)  { w.b.Field(col).(*array.Int32Builder).Append(v) }

func (w *rowWriter) optional(col int, s string) {
	if s == "" {
		w.null(col)
		return
	}
	w.str(col, s)
}

func (w *rowWriter) large(col int, s string, there bool) {
	if !there {
		w.null(col)
		return
	}
	w.b.Field(col).(*array.LargeStringBuilder).Append(s)
}

func (w *rowWriter) null(cols ...int) {
	for _, c := range cols {
		w.b.Field(c).AppendNull()
	}
}
