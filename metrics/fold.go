package metrics

import "fmt"

// Status is what a run is, as far as its stream tells.
type Status uint8

// A run is running from its open until done, and again from the next open. A
// run that was killed stays running; the age of its last event is for people
// to judge.
const (
	StatusRunning Status = iota
	StatusDone
	StatusFailed // done, right after a failure
)

// String is the status in one word.
func (s Status) String() string { return [...]string{"running", "done", "failed"}[s] }

// MarshalText spells the status in one word.
func (s Status) MarshalText() ([]byte, error) {
	if s > StatusFailed {
		return nil, fmt.Errorf("spell status %d: %w", s, ErrKind)
	}
	return []byte(s.String()), nil
}

// UnmarshalText reads what MarshalText has spelled.
func (s *Status) UnmarshalText(text []byte) error {
	for known := StatusRunning; known <= StatusFailed; known++ {
		if known.String() == string(text) {
			*s = known
			return nil
		}
	}
	return fmt.Errorf("read status %.20q: %w", text, ErrKind)
}

// Outline is a run without its points: what its events say about its identity,
// its course and its marks. Apply every event in stream order; the zero value is
// the run before its first. Its fields can be stored and set again.
type Outline struct {
	// Slug, Description and Metadata are the identity: the newest open's.
	Slug        string
	Description string
	Metadata    Metadata
	// Status is running, done or failed.
	Status Status
	// Segments has one entry per open, and one before them if events came
	// before the first open.
	Segments []Segment
	// Marks are all annotations in stream order.
	Marks []Mark
	// FirstTSMS and LastTSMS are the times of the first event and of the one
	// applied last, Unix epoch in milliseconds.
	FirstTSMS, LastTSMS int64
	// LastStep is the step of the last event that has one, a metric or an annotation.
	// Stepped tells that an event with a step has come since the newest open.
	LastStep int64
	Stepped  bool
	// Events, and of them Metrics, count what was applied.
	Events, Metrics int64
	// FailedLast tells that the event applied last was a failure.
	FailedLast bool
}

// Fold is a run as its events make it: its outline and its curves. Apply every
// event in stream order; the zero value is the run before its first. It does
// nothing but compute, keeps every point, and is for one goroutine at a time.
type Fold struct {
	Outline

	curves []*Curve
	byName map[string]*Curve
	byRaw  map[seriesKey]seriesRef
}

// Segment is what one process wrote: from its open to the next.
type Segment struct {
	// Opened is false only for events before the first open.
	Opened bool
	// FirstTSMS and LastTSMS are the times of its first and last event.
	FirstTSMS, LastTSMS int64
	// FirstStep and LastStep are those of its first and last metric, if it
	// has Metrics.
	FirstStep, LastStep int64
	Metrics             int64
	// Resumed is the checkpoint it continued from, "" if it did not say.
	Resumed string
	// Interrupted is the signal that stopped it, "" if none did.
	Interrupted string
	// Done and Failed are how it ended; neither means that it has not.
	Done, Failed bool
	// Changes is how its open differs from the one before.
	Changes []Change
}

// Mark is an annotation with its place.
type Mark struct {
	Note
	Step, TSMS int64
	Segment    int // index into [Fold.Segments]
}

type seriesKey struct {
	name     string
	metadata Metadata
}

type seriesRef struct {
	curve *Curve
	index int32
}

// Apply takes the next event.
func (f *Fold) Apply(e *Event) {
	f.Outline.Apply(e)
	if e.Kind != KindMetric {
		return
	}
	key := seriesKey{e.Name, e.Metadata}
	ref, ok := f.byRaw[key]
	if !ok {
		ref = f.series(key)
	}
	ref.curve.add(e, int32(len(f.Segments)-1), ref.index)
}

// Apply takes the next event; of a metric only that it was there.
func (o *Outline) Apply(e *Event) {
	o.Events++
	if o.Events == 1 {
		o.FirstTSMS = e.TSMS
	}
	o.LastTSMS = e.TSMS
	if e.Kind == KindOpen {
		o.open(e)
	} else if len(o.Segments) == 0 {
		o.Segments = append(o.Segments, Segment{FirstTSMS: e.TSMS})
	}
	seg := &o.Segments[len(o.Segments)-1]
	seg.LastTSMS = e.TSMS
	switch e.Kind {
	case KindOpen:
		o.Stepped = false
	case KindMetric, KindAnnotation:
		o.LastStep, o.Stepped = e.Step, true
	}
	failedLast := o.FailedLast
	o.FailedLast = false
	switch e.Kind {
	case KindMetric:
		o.metric(seg, e)
	case KindAnnotation:
		o.annotation(seg, e)
	case KindDone:
		seg.Done, seg.Failed = true, failedLast
		if o.Status = StatusDone; failedLast {
			o.Status = StatusFailed
		}
		if o.Slug == "" {
			o.Slug = e.Slug
		}
	}
}

func (o *Outline) open(e *Event) {
	seg := Segment{Opened: true, FirstTSMS: e.TSMS}
	if o.opened() {
		seg.Changes = DiffMetadata(o.Metadata, e.Metadata)
	}
	o.Slug, o.Description, o.Metadata = e.Slug, e.Description, e.Metadata
	o.Status = StatusRunning
	o.Segments = append(o.Segments, seg)
}

func (o *Outline) opened() bool {
	return len(o.Segments) > 1 || len(o.Segments) == 1 && o.Segments[0].Opened
}

func (o *Outline) metric(seg *Segment, e *Event) {
	o.Metrics++
	if seg.Metrics == 0 {
		seg.FirstStep = e.Step
	}
	seg.LastStep = e.Step
	seg.Metrics++
}

// series finds or makes the series of a metric whose metadata has not been
// seen in this spelling.
func (f *Fold) series(key seriesKey) seriesRef {
	if f.byRaw == nil {
		f.byRaw, f.byName = map[seriesKey]seriesRef{}, map[string]*Curve{}
	}
	c := f.byName[key.name]
	if c == nil {
		c = &Curve{Name: key.name, byMeta: map[Metadata]int32{}}
		f.byName[key.name] = c
		f.curves = append(f.curves, c)
	}
	ref := seriesRef{c, c.seriesOf(key.metadata)}
	f.byRaw[key] = ref
	return ref
}

func (o *Outline) annotation(seg *Segment, e *Event) {
	m := Mark{ReadNote(e), e.Step, e.TSMS, len(o.Segments) - 1}
	o.Marks = append(o.Marks, m)
	switch m.Class {
	case NoteResumed:
		seg.Resumed = m.Checkpoint
	case NoteInterrupted:
		seg.Interrupted = m.Signal
	case NoteFailed:
		o.FailedLast = true
	}
}

// Interrupted is the signal that stopped the newest segment, "" if none did.
func (o *Outline) Interrupted() string {
	if len(o.Segments) == 0 {
		return ""
	}
	return o.Segments[len(o.Segments)-1].Interrupted
}

// MarksOf lists the annotations of a class in stream order: the stages, the
// checkpoints, the failures.
func (o *Outline) MarksOf(class NoteClass) []Mark {
	var marks []Mark
	for _, m := range o.Marks {
		if m.Class == class {
			marks = append(marks, m)
		}
	}
	return marks
}

// Stage is the stage that the newest stage change moved to, "" before any.
func (o *Outline) Stage() string {
	for i := len(o.Marks) - 1; i >= 0; i-- {
		if o.Marks[i].Class == NoteStage {
			return o.Marks[i].To
		}
	}
	return ""
}

// Curves lists the curves in the order in which their names first came. The
// slice is the fold's own.
func (f *Fold) Curves() []*Curve { return f.curves }

// Curve returns the curve of a name, nil if there is none.
func (f *Fold) Curve(name string) *Curve { return f.byName[name] }
