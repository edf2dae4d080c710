package datagen

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/foldlog/foldlog/internal/serde"
)

// LineError says what is wrong with the JSON of an event.
type LineError struct {
	// Column is the byte at fault, counted from 1, Key the key it belongs to, "" if
	// to none.
	Column int
	Key    string
	// Err is the reason.
	Err error
}

// Error implements error.
func (e *LineError) Error() string {
	if e.Key != "" {
		return fmt.Sprintf("column %d: %s: %v", e.Column, e.Key, e.Err)
	}
	return fmt.Sprintf("column %d: %v", e.Column, e.Err)
}

// Unwrap returns the reason and ErrEvent.
func (e *LineError) Unwrap() []error { return []error{ErrEvent, e.Err} }

// ParseEvent reads an event as AppendEvent spells it, with the keys in any order
// and null for what is not there. Unknown keys and keys that come twice are refused.
// Only item_id, item_seq, checkpoint_id and event_type must be there: what can be
// derived, FillBatch fills in, and CheckBatch tells what else is missing. JSON values
// may be spelled in any way and become canonical. The error is a [LineError].
func ParseEvent(line []byte) (Event, error) {
	p := eventParser{s: serde.NewScanner(line)}
	for p.s.Object(); p.s.NextKey(); {
		p.key = string(p.s.Key())
		p.member()
	}
	if p.s.Err() == nil {
		p.key = ""
	}
	if err := p.s.End(); err != nil {
		return Event{}, p.placed(err)
	}
	if key, err := p.finish(); err != nil {
		return Event{}, &LineError{Column: max(p.at[key], 0) + 1, Key: key, Err: err}
	}
	return p.e, nil
}

// eventParser is an event that is being read.
type eventParser struct {
	s       serde.Scanner
	e       Event
	key     string
	at      map[string]int // where each key's value begins
	value   []byte
	step    Step
	field   Field
	failure Failure
	frame   Frame
}

func (p *eventParser) placed(err error) error {
	var at *serde.Error
	if errors.As(err, &at) {
		return &LineError{Column: at.Offset + 1, Key: p.key, Err: at.Err}
	}
	return &LineError{Column: 1, Key: p.key, Err: err}
}

func (p *eventParser) member() {
	if _, twice := p.at[p.key]; twice {
		p.s.Fail(serde.ErrDuplicateKey)
		return
	}
	if p.at == nil {
		p.at = make(map[string]int, 24)
	}
	if columnNumber(p.key) < 0 && p.key != "value" && p.key != "query_tags" {
		p.s.Fail(errors.New("unknown key"))
		return
	}
	if p.at[p.key] = null; p.s.Null() {
		return
	}
	p.at[p.key] = p.s.Offset()
	if !p.common() && !p.detail() {
		p.s.Fail(errors.New("unknown key"))
	}
}

// null is the place of a key whose value is null, as if it were not there.
const null = -1

// common reads what every event has.
func (p *eventParser) common() bool {
	e := &p.e
	switch p.key {
	case "event_id":
		e.ID = p.s.String()
	case "item_id":
		e.Item = p.s.String()
	case "root_item_id":
		e.Root = p.s.String()
	case "parent_item_id":
		e.Parent = p.s.String()
	case "item_seq":
		e.Seq = p.s.Int64()
	case "checkpoint_id":
		e.Checkpoint = p.s.String()
	case "event_type":
		e.Kind = Kind(p.s.String())
	case "attempt":
		e.Attempt = p.int32()
	case "run_id":
		e.Run = p.s.String()
	case "writer_epoch":
		e.Epoch = p.s.String()
	case "event_ts":
		e.Time = p.time()
	case "schema_version":
		e.Schema = p.int32()
	default:
		return false
	}
	return true
}

// detail reads what some kinds of events have.
func (p *eventParser) detail() bool {
	switch p.key {
	case "step_name":
		p.step.Name = p.s.String()
	case "step_index":
		p.step.Index = p.s.Int64()
	case "step_instance_id":
		p.step.Instance = p.s.String()
	case "iteration":
		n := p.s.Int64()
		p.step.Iteration = &n
	case "field_name":
		p.field.Name = p.s.String()
	case "field_type":
		p.field.Type = p.s.String()
	case "codec_version":
		p.field.Codec = p.int32()
	case "value_kind":
		p.field.Value.Kind = ValueKind(p.s.String())
	case "value":
		p.value = p.s.Raw()
	case "payload_size":
		p.field.Value.Blob.Size = p.s.Int64()
	case "payload_checksum":
		p.field.Value.Blob.Checksum = p.s.String()
	case "query_tags":
		p.e.Tags = p.json()
	case "terminal":
		p.e.End = End(p.s.String())
	case "error_type":
		p.failure.Type = p.s.String()
	case "error_dump":
		p.failure.Dump = p.json()
	case "traceback":
		p.failure.Traceback = p.s.String()
	case "step_kind":
		p.frame.StepKind = p.s.String()
	case "enclosing_step":
		p.frame.EnclosingStep = p.s.String()
	case "selector_step":
		p.frame.SelectorStep = p.s.String()
	case "status":
		p.frame.Status = p.s.String()
	default:
		return false
	}
	return true
}

func (p *eventParser) int32() int32 {
	v := p.s.Int64()
	if v < math.MinInt32 || v > math.MaxInt32 {
		p.s.Fail(fmt.Errorf("%w: %d does not fit 32 bits", serde.ErrRange, v))
		return 0
	}
	return int32(v)
}

func (p *eventParser) time() time.Time {
	s := p.s.String()
	if p.s.Err() != nil {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err == nil {
		t = t.UTC()
		err = checkTime(t)
	}
	if err != nil {
		p.s.Fail(err)
		return time.Time{}
	}
	return t
}

func (p *eventParser) json() json.RawMessage {
	raw := p.s.Raw()
	if p.s.Err() != nil {
		return nil
	}
	out, err := CanonicalJSON(raw)
	if err != nil {
		p.s.Fail(reason(err))
	}
	return out
}

// reason is an error of package serde without its place in a part of the line.
func reason(err error) error {
	var at *serde.Error
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

func (p *eventParser) has(keys ...string) bool {
	for _, k := range keys {
		if at, ok := p.at[k]; ok && at != null {
			return true
		}
	}
	return false
}

// finish puts the parts together and returns the key at fault, if any.
func (p *eventParser) finish() (string, error) {
	for _, k := range []string{"item_id", "item_seq", "checkpoint_id", "event_type"} {
		if !p.has(k) {
			return k, errors.New("it is missing")
		}
	}
	e := &p.e
	if p.has("step_name") {
		e.Step = &p.step
	} else if p.has("step_index", "step_instance_id", "iteration") {
		return "step_name", errors.New("it is missing")
	}
	if p.has("field_name", "field_type", "codec_version", "value_kind", "value", "payload_size", "payload_checksum") {
		e.Field = &p.field
		if err := p.fieldValue(); err != nil {
			return "value", err
		}
	}
	if p.has("error_type", "error_dump", "traceback") {
		e.Failure = &p.failure
	}
	if p.has("step_kind", "enclosing_step", "selector_step", "status") {
		e.Frame = &p.frame
	}
	return "", nil
}

// fieldValue reads the value as what its kind says.
func (p *eventParser) fieldValue() error {
	v := &p.field.Value
	if v.Kind == Blob {
		return p.blob(&v.Blob)
	}
	if p.has("payload_size", "payload_checksum") {
		return errors.New("only a blob has a payload")
	}
	if !p.has("value") && v.Kind == JSON {
		v.JSON = json.RawMessage("null")
		return nil
	}
	if !p.has("value") {
		return errors.New("it is missing")
	}
	s := serde.NewScanner(p.value)
	switch v.Kind {
	case Int:
		v.Int = s.Int64()
	case Float:
		v.Float = s.Float64()
	case Bool:
		v.Bool = s.Bool()
	case Str:
		v.Str = s.String()
	case JSON:
		raw, err := CanonicalJSON(p.value)
		v.JSON = raw
		return reasonOrNil(err)
	default:
		return fmt.Errorf("%q is no kind of value", string(v.Kind))
	}
	return reasonOrNil(s.End())
}

func reasonOrNil(err error) error {
	if err == nil {
		return nil
	}
	return reason(err)
}

// blob reads the bytes of a blob, and what is said of them if they are not there.
func (p *eventParser) blob(b *BlobRef) error {
	b.Event = p.e.ID
	if !p.has("value") {
		return nil
	}
	s := serde.NewScanner(p.value)
	text := s.String()
	if err := s.End(); err != nil {
		return reason(err)
	}
	bytes, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil {
		return fmt.Errorf("not base64: %w", err)
	}
	is := NewBlob(bytes)
	switch {
	case p.has("payload_size") && b.Size != is.Size:
		return fmt.Errorf("payload_size is %d, and there are %d bytes", b.Size, is.Size)
	case p.has("payload_checksum") && b.Checksum != is.Checksum:
		return fmt.Errorf("payload_checksum is %.80q, and that of the bytes is %q", b.Checksum, is.Checksum)
	}
	is.Event = p.e.ID
	*b = is
	return nil
}

// FillBatch fills in what can be derived in the events of one batch: event_id,
// root_item_id of items without a parent, schema_version, and now where event_ts is
// missing. Two calls with the same events and time give the same rows.
func FillBatch(events []Event, now time.Time) {
	for i := range events {
		e := &events[i]
		if e.ID == "" {
			e.ID = EventID(e.Item, e.Checkpoint, i)
		}
		if e.Root == "" && e.Parent == "" {
			e.Root = e.Item
		}
		if e.Schema == 0 {
			e.Schema = SchemaVersion
		}
		if e.Time.IsZero() {
			e.Time = now.UTC().Truncate(time.Microsecond)
		}
		if e.Field != nil && e.Field.Value.Kind == Blob {
			e.Field.Value.Blob.Event = e.ID
		}
	}
}
