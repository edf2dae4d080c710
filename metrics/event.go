package metrics

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/foldlog/foldlog/internal/serde"
)

// Kind is the kind of an event.
type Kind uint8

// The four kinds of the document.
const (
	KindOpen       Kind = iota + 1 // the first line of the stream, and of every resume
	KindMetric                     // one number
	KindAnnotation                 // a text of the runtime; see [Note]
	KindDone                       // the last line of a run that finished
)

var kindNames = [...]string{KindOpen: "open", KindMetric: "metric", KindAnnotation: "annotation", KindDone: "done"}

// String is the kind as it is written.
func (k Kind) String() string {
	if int(k) < len(kindNames) && k > 0 {
		return kindNames[k]
	}
	return "Kind(" + strconv.Itoa(int(k)) + ")"
}

func kindOf(name []byte) Kind {
	switch string(name) {
	case "open":
		return KindOpen
	case "metric":
		return KindMetric
	case "annotation":
		return KindAnnotation
	case "done":
		return KindDone
	}
	return 0
}

// Lenience tells what a reader let pass in a line that it took.
type Lenience uint8

// What readers let pass. Check warns of the first three and calls the last
// two faults.
const (
	// LenientNumber is a bare, null or oddly spelled non-finite value.
	LenientNumber Lenience = 1 << iota
	// LenientInteger is a step or time spelled with a point or exponent.
	LenientInteger
	// LenientKeys is a member that comes twice; the last one counts.
	LenientKeys
	// LenientMetadata is a missing metadata field.
	LenientMetadata
	// LenientDescription is a missing description.
	LenientDescription
)

// Event is one line of a stream. Which fields count depends on the kind; the
// others are zero. Its texts are its own: they stay valid.
type Event struct {
	Kind Kind
	// TSMS is the Unix epoch in milliseconds (ts_ms).
	TSMS int64
	// Step is the training step of a metric or annotation. It may be
	// negative, repeat, or go back.
	Step int64
	// Slug is the run of an open or done.
	Slug string
	// Description is the one line that an open says about the run.
	Description string
	// Name and Value are those of a metric.
	Name  string
	Value Number
	// Text is that of an annotation (the field annotation).
	Text string
	// Metadata is that of an open, metric or annotation.
	Metadata Metadata
	// Extra holds the members that the document does not know, as they are
	// written: `"a":1,"b":{}`. They are written after the others.
	Extra string
	// Lenient is what the reader let pass; a writer ignores it.
	Lenient Lenience
}

// Append appends the event as one line with its newline, the fields in the
// order of the document: ts_ms, step, kind, and the rest. It allocates nothing
// where dst has room. The caller answers for the limits; see [NewOpen],
// [NewMetric] and [Note.Event].
func (e *Event) Append(dst []byte) []byte {
	dst = append(dst, `{"ts_ms":`...)
	dst = strconv.AppendInt(dst, e.TSMS, 10)
	if e.Kind == KindMetric || e.Kind == KindAnnotation {
		dst = append(dst, `,"step":`...)
		dst = strconv.AppendInt(dst, e.Step, 10)
	}
	switch e.Kind {
	case KindMetric:
		dst = serde.AppendString(append(dst, `,"kind":"metric","name":`...), e.Name)
		dst = e.Value.Append(append(dst, `,"value":`...))
		dst = e.appendMetadata(dst)
	case KindAnnotation:
		dst = serde.AppendString(append(dst, `,"kind":"annotation","annotation":`...), e.Text)
		dst = e.appendMetadata(dst)
	case KindOpen:
		dst = serde.AppendString(append(dst, `,"kind":"open","slug":`...), e.Slug)
		dst = serde.AppendString(append(dst, `,"description":`...), e.Description)
		dst = e.appendMetadata(dst)
	case KindDone:
		dst = serde.AppendString(append(dst, `,"kind":"done","slug":`...), e.Slug)
	}
	if e.Extra != "" {
		dst = append(append(dst, ','), e.Extra...)
	}
	return append(dst, "}\n"...)
}

func (e *Event) appendMetadata(dst []byte) []byte {
	if e.Metadata == "" {
		return append(dst, `,"metadata":{}`...)
	}
	return append(append(dst, `,"metadata":`...), e.Metadata...)
}

// NewMetric makes a metric without a time. A name that is empty, longer than
// [MaxName] bytes or not UTF-8 is refused with [ErrName], metadata that is not
// an object with [ErrMetadata].
func NewMetric(step int64, name string, value Number, metadata Metadata) (Event, error) {
	if err := checkName(name); err != nil {
		return Event{}, err
	}
	metadata, err := metadata.compact()
	if err != nil {
		return Event{}, fmt.Errorf("make metric %.80q: %w", name, err)
	}
	if len(metadata) > MaxOpenMetadata {
		return Event{}, &LimitError{"metadata of metric " + quote(name), len(metadata), MaxOpenMetadata, "bytes", ErrTooLarge}
	}
	return Event{Kind: KindMetric, Step: step, Name: name, Value: value, Metadata: metadata}, nil
}

// NewDone makes the last event of a run, without a time.
func NewDone(slug string) Event { return Event{Kind: KindDone, Slug: slug} }

func checkName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: it is empty", ErrName)
	case len(name) > MaxName:
		return &LimitError{"metric name", len(name), MaxName, "bytes", ErrName}
	}
	if err := serde.ValidString(name); err != nil {
		return fmt.Errorf("%w: %w", ErrName, err)
	}
	return nil
}

// mend makes text fit for JSON: what is not UTF-8 becomes U+FFFD.
func mend(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }
