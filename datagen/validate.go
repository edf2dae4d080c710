package datagen

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// What one batch may hold.
const (
	// MaxTextBytes is the longest identity or name in an event, in bytes.
	MaxTextBytes = 4 << 10
	// MaxValueBytes is the longest string, JSON value, dump or traceback.
	MaxValueBytes = 64 << 20
	// MaxBlobBytes is the largest blob.
	MaxBlobBytes = 1 << 30
	// MaxSeq is the highest sequence.
	MaxSeq = 1 << 60
	// MaxBatchEvents is how many events a batch has at most.
	MaxBatchEvents = 100_000
	// MaxBatchBytes is how large the values of a batch are together at most.
	MaxBatchBytes = 1 << 30
)

// CheckBatch says whether events are one whole batch that may be written: of one
// item, checkpoint, attempt, run and writer epoch; perhaps an ItemCreated; then
// either nothing or the changes of one step and its StepCompleted; perhaps a
// StepFailed; perhaps an ItemEnded. The error is an [EventError].
func CheckBatch(events []Event) error {
	if len(events) == 0 {
		return &EventError{Err: errors.New("the batch is empty")}
	}
	if len(events) > MaxBatchEvents {
		return &EventError{Index: MaxBatchEvents, Err: fmt.Errorf("the batch has %d events, more than %d", len(events), MaxBatchEvents)}
	}
	c := batchCheck{first: &events[0], ids: make(map[string]bool, len(events))}
	for i := range events {
		if column, err := c.event(&events[i]); err != nil {
			return &EventError{Index: i, ID: events[i].ID, Column: column, Err: err}
		}
	}
	if c.changes != nil && c.stage < stepDone {
		last := len(events) - 1
		return &EventError{Index: last, ID: events[last].ID, Column: "event_type",
			Err: fmt.Errorf("fields change, but no %s ends the step", StepCompleted)}
	}
	return nil
}

// The order of events in a batch.
const (
	begin = iota
	created
	changing
	stepDone
	failed
	ended
)

// batchCheck is what CheckBatch knows of the events before.
type batchCheck struct {
	first   *Event
	last    int64
	stage   int
	changes *Step // of the fields that change
	bytes   int64
	ids     map[string]bool
}

func (c *batchCheck) event(e *Event) (column string, err error) {
	if column, err = checkEvent(e); err != nil {
		return column, err
	}
	if column, err = c.together(e); err != nil {
		return column, err
	}
	if column, err = c.order(e); err != nil {
		return column, err
	}
	if c.bytes += valueBytes(e); c.bytes > MaxBatchBytes {
		return "", fmt.Errorf("the values of the batch are more than %d bytes", int64(MaxBatchBytes))
	}
	return "", nil
}

// together checks what all events of a batch share, and what none may.
func (c *batchCheck) together(e *Event) (string, error) {
	if c.ids[e.ID] {
		return "event_id", errors.New("it is that of an event before")
	}
	c.ids[e.ID] = true
	f := c.first
	for _, p := range []struct{ column, is, want string }{
		{"item_id", e.Item, f.Item}, {"root_item_id", e.Root, f.Root}, {"parent_item_id", e.Parent, f.Parent},
		{"checkpoint_id", e.Checkpoint, f.Checkpoint}, {"run_id", e.Run, f.Run}, {"writer_epoch", e.Epoch, f.Epoch},
	} {
		if p.is != p.want {
			return p.column, fmt.Errorf("it is %q, and %q in the first event of the batch", p.is, p.want)
		}
	}
	switch {
	case e.Attempt != f.Attempt:
		return "attempt", fmt.Errorf("it is %d, and %d in the first event of the batch", e.Attempt, f.Attempt)
	case e != f && e.Seq <= c.last:
		return "item_seq", fmt.Errorf("%d does not come after %d", e.Seq, c.last)
	}
	c.last = e.Seq
	return "", nil
}

// order checks that the kind may come where it does.
func (c *batchCheck) order(e *Event) (string, error) {
	to, from := 0, c.stage
	switch e.Kind {
	case ItemCreated:
		to = created
	case FieldSet, FieldAppend:
		if c.stage == changing {
			from = begin
		}
		to = changing
	case StepCompleted:
		to = stepDone
	case StepFailed:
		to = failed
	case ItemEnded:
		to = ended
	}
	if to <= from || from == changing && to != stepDone {
		return "event_type", fmt.Errorf("%s cannot come here in a batch", e.Kind)
	}
	if to == changing || to == stepDone {
		if c.changes != nil && !c.changes.equal(e.Step) {
			return "step_instance_id", errors.New("the step is not that of the changes before")
		}
		if to == changing {
			c.changes = e.Step
		}
	}
	c.stage = to
	return "", nil
}

// checkEvent checks an event by itself.
func checkEvent(e *Event) (string, error) {
	for _, p := range []struct {
		column, text string
		required     bool
	}{
		{"event_id", e.ID, true}, {"item_id", e.Item, true}, {"root_item_id", e.Root, true}, {"parent_item_id", e.Parent, false},
		{"checkpoint_id", e.Checkpoint, true}, {"run_id", e.Run, true}, {"writer_epoch", e.Epoch, true},
	} {
		if err := checkText(p.text, p.required, MaxTextBytes); err != nil {
			return p.column, err
		}
	}
	switch {
	case strings.IndexByte(e.Item, 0) >= 0:
		return "item_id", errors.New("it has a NUL")
	case strings.IndexByte(e.Checkpoint, 0) >= 0:
		return "checkpoint_id", errors.New("it has a NUL")
	case e.Parent == "" && e.Root != e.Item:
		return "root_item_id", errors.New("an item without a parent is its own root")
	case e.Parent == e.Item, e.Parent != "" && e.Root == e.Item:
		return "parent_item_id", errors.New("an item with a parent is neither its parent nor its root")
	case e.Seq < 0:
		return "item_seq", fmt.Errorf("%d is negative", e.Seq)
	case e.Seq > MaxSeq:
		return "item_seq", fmt.Errorf("%d is more than %d", e.Seq, int64(MaxSeq))
	case e.Attempt < 0:
		return "attempt", fmt.Errorf("%d is negative", e.Attempt)
	case e.Schema != SchemaVersion:
		return "schema_version", fmt.Errorf("%d is not what is written, %d", e.Schema, SchemaVersion)
	case e.Frame != nil:
		return "schema_version", fmt.Errorf("version %d has no frames", SchemaVersion)
	}
	if err := checkTime(e.Time); err != nil {
		return "event_ts", err
	}
	return checkKind(e)
}

func checkTime(t time.Time) error {
	switch y := t.UTC().Year(); {
	case t.IsZero():
		return errors.New("it is missing")
	case y < 1 || y > 9999:
		return fmt.Errorf("year %d is out of range", y)
	case t.Nanosecond()%1000 != 0:
		return errors.New("it is not in whole microseconds")
	}
	return nil
}

// checkKind checks that an event has what its kind needs, and nothing else.
func checkKind(e *Event) (string, error) {
	kind := e.Kind
	switch kind {
	case ItemCreated, FieldSet, FieldAppend, StepCompleted, StepFailed, ItemEnded:
	default:
		return "event_type", fmt.Errorf("%q is not what is written", string(kind))
	}
	field := kind == FieldSet || kind == FieldAppend
	if column, err := checkStep(e.Step, field || kind == StepCompleted); err != nil {
		return column, err
	}
	switch {
	case (e.Field != nil) != field:
		return "field_name", wanted(field, kind)
	case (e.Failure != nil) != (kind == StepFailed):
		return "error_type", wanted(kind == StepFailed, kind)
	case (e.End != "") != (kind == ItemEnded):
		return "terminal", wanted(kind == ItemEnded, kind)
	case e.End != "" && e.End != EndCompleted && e.End != EndFiltered:
		return "terminal", fmt.Errorf("%q is neither %q nor %q", string(e.End), EndCompleted, EndFiltered)
	case e.Tags != nil && kind != ItemCreated:
		return "query_tags_json", wanted(false, kind)
	}
	if e.Tags != nil {
		if err := checkJSON(e.Tags, '{'); err != nil {
			return "query_tags_json", err
		}
	}
	if e.Failure != nil {
		return checkFailure(e.Failure)
	}
	if field {
		return checkField(e.Field)
	}
	return "", nil
}

func wanted(required bool, kind Kind) error {
	if required {
		return fmt.Errorf("%s needs it", kind)
	}
	return fmt.Errorf("%s has none", kind)
}

func checkStep(s *Step, required bool) (string, error) {
	if s == nil {
		if required {
			return "step_name", errors.New("it is missing")
		}
		return "", nil
	}
	if err := checkText(s.Name, true, MaxTextBytes); err != nil {
		return "step_name", err
	}
	if s.Index < 0 {
		return "step_index", fmt.Errorf("%d is negative", s.Index)
	}
	if err := checkText(s.Instance, true, MaxTextBytes); err != nil {
		return "step_instance_id", err
	}
	if s.Iteration != nil && *s.Iteration < 0 {
		return "iteration", fmt.Errorf("%d is negative", *s.Iteration)
	}
	return "", nil
}

func checkFailure(f *Failure) (string, error) {
	if err := checkText(f.Type, true, MaxTextBytes); err != nil {
		return "error_type", err
	}
	if f.Dump != nil {
		if err := checkJSON(f.Dump, 0); err != nil {
			return "error_dump", err
		}
	}
	if err := checkText(f.Traceback, false, MaxValueBytes); err != nil {
		return "traceback", err
	}
	return "", nil
}

func checkField(f *Field) (string, error) {
	if err := checkText(f.Name, true, MaxTextBytes); err != nil {
		return "field_name", err
	}
	if err := checkText(f.Type, true, MaxTextBytes); err != nil {
		return "field_type", err
	}
	if f.Codec < 0 {
		return "codec_version", fmt.Errorf("%d is negative", f.Codec)
	}
	v := &f.Value
	switch v.Kind {
	case Int, Float, Bool:
		return "", nil
	case Str:
		return "value_str", checkText(v.Str, false, MaxValueBytes)
	case JSON:
		return "value_json", checkJSON(v.JSON, 0)
	case Blob:
		return checkBlob(&v.Blob)
	}
	return "value_kind", fmt.Errorf("%q is no kind of value", string(v.Kind))
}

func checkBlob(b *BlobRef) (string, error) {
	switch {
	case b.Bytes == nil:
		return "value_blob", errors.New("the bytes are missing")
	case len(b.Bytes) > MaxBlobBytes:
		return "value_blob", fmt.Errorf("%d bytes are more than %d", len(b.Bytes), MaxBlobBytes)
	case b.Size != int64(len(b.Bytes)):
		return "payload_size", fmt.Errorf("it is %d, and there are %d bytes", b.Size, len(b.Bytes))
	}
	if sum := Checksum(b.Bytes); b.Checksum != sum {
		return "payload_checksum", fmt.Errorf("it is %.80q, and that of the bytes is %q", b.Checksum, sum)
	}
	return "", nil
}

func checkText(s string, required bool, most int) error {
	switch {
	case s == "" && required:
		return errors.New("it is missing")
	case len(s) > most:
		return fmt.Errorf("%d bytes are more than %d", len(s), most)
	case !utf8.ValidString(s):
		return errors.New("it is not UTF-8")
	}
	return nil
}

// checkJSON checks canonical JSON; first is the byte it must begin with, 0 any.
func checkJSON(raw json.RawMessage, first byte) error {
	if len(raw) > MaxValueBytes {
		return fmt.Errorf("%d bytes are more than %d", len(raw), MaxValueBytes)
	}
	canonical, err := CanonicalJSON(raw)
	switch {
	case err != nil:
		return err
	case string(canonical) != string(raw):
		return errors.New("it is not canonical JSON")
	case first != 0 && raw[0] != first:
		return errors.New("it is not a JSON object")
	}
	return nil
}

// valueBytes is how much an event weighs in its batch.
func valueBytes(e *Event) int64 {
	n := len(e.Tags)
	if e.Field != nil {
		v := &e.Field.Value
		n += len(v.Str) + len(v.JSON) + len(v.Blob.Bytes)
	}
	if e.Failure != nil {
		n += len(e.Failure.Dump) + len(e.Failure.Traceback)
	}
	return int64(n)
}
