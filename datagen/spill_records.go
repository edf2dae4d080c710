package datagen

import "math"

// event appends an event. What not every event has comes last.
func (w *spillWriter) event(e *Event) {
	w.text(e.ID)
	w.text(e.Item)
	w.text(e.Root)
	w.text(e.Parent)
	w.text(e.Checkpoint)
	w.text(string(e.Kind))
	w.text(e.Run)
	w.text(e.Epoch)
	w.text(string(e.End))
	w.int(e.Seq)
	w.int(int64(e.Attempt))
	w.int(int64(e.Schema))
	w.time(e.Time)
	w.raw(e.Tags)
	if w.bool(e.Step != nil); e.Step != nil {
		w.text(e.Step.Name)
		w.text(e.Step.Instance)
		w.int(e.Step.Index)
		if w.bool(e.Step.Iteration != nil); e.Step.Iteration != nil {
			w.int(*e.Step.Iteration)
		}
	}
	if w.bool(e.Field != nil); e.Field != nil {
		w.text(e.Field.Name)
		w.text(e.Field.Type)
		w.int(int64(e.Field.Codec))
		w.value(&e.Field.Value)
	}
	if w.bool(e.Failure != nil); e.Failure != nil {
		w.text(e.Failure.Type)
		w.raw(e.Failure.Dump)
		w.text(e.Failure.Traceback)
	}
	if w.bool(e.Frame != nil); e.Frame != nil {
		w.text(e.Frame.StepKind)
		w.text(e.Frame.EnclosingStep)
		w.text(e.Frame.SelectorStep)
		w.text(e.Frame.Status)
	}
}

func (w *spillWriter) value(v *Value) {
	w.text(string(v.Kind))
	w.text(v.Str)
	w.int(v.Int)
	w.int(int64(math.Float64bits(v.Float)))
	w.bool(v.Bool)
	w.raw(v.JSON)
	w.text(v.Blob.Event)
	w.text(v.Blob.Checksum)
	w.int(v.Blob.Size)
	w.raw(v.Blob.Bytes)
}

func (r *spillReader) event() Event {
	e := Event{
		ID: r.text(), Item: r.text(), Root: r.text(), Parent: r.text(), Checkpoint: r.text(), Kind: Kind(r.text()),
		Run: r.text(), Epoch: r.text(), End: End(r.text()),
		Seq: r.int(), Attempt: int32(r.int()), Schema: int32(r.int()), Time: r.time(), Tags: r.raw(),
	}
	if r.bool() {
		e.Step = &Step{Name: r.text(), Instance: r.text(), Index: r.int()}
		if r.bool() {
			n := r.int()
			e.Step.Iteration = &n
		}
	}
	if r.bool() {
		e.Field = &Field{Name: r.text(), Type: r.text(), Codec: int32(r.int())}
		e.Field.Value = r.value()
	}
	if r.bool() {
		e.Failure = &Failure{Type: r.text(), Dump: r.raw(), Traceback: r.text()}
	}
	if r.bool() {
		e.Frame = &Frame{StepKind: r.text(), EnclosingStep: r.text(), SelectorStep: r.text(), Status: r.text()}
	}
	return e
}

func (r *spillReader) value() Value {
	return Value{
		Kind: ValueKind(r.text()), Str: r.text(), Int: r.int(), Float: math.Float64frombits(uint64(r.int())), Bool: r.bool(), JSON: r.raw(),
		Blob: BlobRef{Event: r.text(), Checksum: r.text(), Size: r.int(), Bytes: r.raw()},
	}
}

func (w *spillWriter) summary(s *ItemSummary) {
	w.text(s.ID)
	w.text(s.Root)
	w.text(s.Parent)
	w.text(string(s.Status))
	w.text(s.Step)
	w.text(s.ErrorType)
	w.raw(s.Tags)
	w.int(int64(s.Attempt))
	w.int(s.LastSeq)
	w.int(int64(s.Events))
	w.int(int64(s.Failures))
	w.time(s.Created)
	w.time(s.Updated)
	w.bool(s.Child)
	w.bool(s.Suspect)
}

func (r *spillReader) summary() ItemSummary {
	return ItemSummary{
		ID: r.text(), Root: r.text(), Parent: r.text(), Status: Status(r.text()), Step: r.text(), ErrorType: r.text(), Tags: r.raw(),
		Attempt: int32(r.int()), LastSeq: r.int(), Events: int(r.int()), Failures: int(r.int()),
		Created: r.time(), Updated: r.time(), Child: r.bool(), Suspect: r.bool(),
	}
}
