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

// Fold is a run as its events make it. Apply every event in stream order; the
// zero value is the run before its first. It does nothing but compute, keeps
// every point, and is for one goroutine at a time.
type Fold struct {
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
	// Events, and of them Metrics, count what was applied.
	Events, Metrics int64

	curves     []*Curve
	byName     map[string]*Curve
	byRaw      map[seriesKey]seriesRef
	failedLast bool // the event before this one was a failure
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
	f.Events++
	if f.Events == 1 {
		f.FirstTSMS = e.TSMS
	}
	f.LastTSMS = e.TSMS
	if e.Kind == KindOpen {
		f.open(e)
	} else if len(f.Segments) == 0 {
		f.Segments = append(f.Segments, Segment{FirstTSMS: e.TSMS})
	}
	seg := &f.Segments[len(f.Segments)-1]
	seg.LastTSMS = e.TSMS
	failedLast := f.failedLast
	f.failedLast = false
	switch e.Kind {
	case KindMetric:
		f.metric(seg, e)
	case KindAnnotation:
		f.annotation(seg, e)
	case KindDone:
		seg.Done, seg.Failed = true, failedLast
		if f.Status = StatusDone; failedLast {
			f.Status = StatusFailed
		}
		if f.Slug == "" {
			f.Slug = e.Slug
		}
	}
}

func (f *Fold) open(e *Event) {
	seg := Segment{Opened: true, FirstTSMS: e.TSMS}
	if f.opened() {
		seg.Changes = DiffMetadata(f.Metadata, e.Metadata)
	}
	f.Slug, f.Description, f.Metadata = e.Slug, e.Description, e.Metadata
	f.Status = StatusRunning
	f.Segments = append(f.Segments, seg)
}

func (f *Fold) opened() bool {
	return len(f.Segments) > 1 || len(f.Segments) == 1 && f.Segments[0].Opened
}

func (f *Fold) metric(seg *Segment, e *Event) {
	f.Metrics++
	if seg.Metrics == 0 {
		seg.FirstStep = e.Step
	}
	seg.LastStep = e.Step
	seg.Metrics++
	key := seriesKey{e.Name, e.Metadata}
	ref, ok := f.byRaw[key]
	if !ok {
		ref = f.series(key)
	}
	ref.curve.add(e, int32(len(f.Segments)-1), ref.index)
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

func (f *Fold) annotation(seg *Segment, e *Event) {
	m := Mark{ReadNote(e), e.Step, e.TSMS, len(f.Segments) - 1}
	f.Marks = append(f.Marks, m)
	switch m.Class {
	case NoteResumed:
		seg.Resumed = m.Checkpoint
	case NoteInterrupted:
		seg.Interrupted = m.Signal
	case NoteFailed:
		f.failedLast = true
	}
}

// Interrupted is the signal that stopped the newest segment, "" if none did.
func (f *Fold) Interrupted() string {
	if len(f.Segments) == 0 {
		return ""
	}
	return f.Segments[len(f.Segments)-1].Interrupted
}

// MarksOf lists the annotations of a class in stream order: the stages, the
// checkpoints, the failures.
func (f *Fold) MarksOf(class NoteClass) []Mark {
	var marks []Mark
	for _, m := range f.Marks {
		if m.Class == class {
			marks = append(marks, m)
		}
	}
	return marks
}

// Stage is the stage that the newest stage change moved to, "" before any.
func (f *Fold) Stage() string {
	for i := len(f.Marks) - 1; i >= 0; i-- {
		if f.Marks[i].Class == NoteStage {
			return f.Marks[i].To
		}
	}
	return ""
}

// Curves lists the curves in the order in which their names first came. The
// slice is the fold's own.
func (f *Fold) Curves() []*Curve { return f.curves }

// Curve returns the curve of a name, nil if there is none.
func (f *Fold) Curve(name string) *Curve { return f.byName[name] }
