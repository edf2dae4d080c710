package trainlog

import (
	"bytes"

	"github.com/foldlog/foldlog/metrics"
)

// Recorder turns the lines that a training program prints into the events of one
// stream, in order: an open first, done last. It is for one goroutine.
type Recorder struct {
	Emitter     *metrics.Emitter // takes the events; End closes it
	Slug        string           // names the run; "" for that of the input's open
	Description string           // of every open, "" for that of the input
	Meta        metrics.Metadata // what is added to every open
	Reading     Reading          // of lines that are no events
	Refused     func(error)      // is told the first line that could not be taken; nil for nobody

	opened      bool
	ownOpen     bool           // the input has no open, so that its end is the run's
	done        *metrics.Event // of the input, which is held back
	interrupted bool           // the input has said so since the last open
	step        int64          // of the latest metric
	counted     bool           // a step has come or been counted
	unread      int64          // events that could not be taken
	firstUnread error
}

// Opened tells whether anything was recorded.
func (r *Recorder) Opened() bool { return r.opened }

// Done tells whether the input has said that the run is done.
func (r *Recorder) Done() bool { return r.done != nil }

// Unread is how many lines could not be taken, and why the first could not.
func (r *Recorder) Unread() (lines int64, first error) { return r.unread, r.firstUnread }

// Item takes one line, as [metrics.Mixed] hands it over.
func (r *Recorder) Item(it *metrics.Item) {
	switch it.Kind {
	case metrics.ItemEvent:
		r.refuse(it, r.event(&it.Event))
	case metrics.ItemValues:
		r.refuse(it, r.values(it))
	case metrics.ItemBad:
		r.refuse(it, it.Err)
	case metrics.ItemText:
		if it.Cut && bytes.HasPrefix(it.Line, []byte("{")) {
			r.refuse(it, metrics.ErrLineTooLong)
		}
	}
}

func (r *Recorder) refuse(it *metrics.Item, err error) {
	if err == nil {
		return
	}
	if r.unread++; r.unread == 1 {
		r.firstUnread = onLine(it, err)
		if r.Refused != nil {
			r.Refused(r.firstUnread)
		}
	}
}

// Metric records a number that the program did not print, at the step of its latest
// metric. Before the run is known it has no place and is left out.
func (r *Recorder) Metric(name string, value metrics.Number, metadata metrics.Metadata) {
	if !r.opened && r.Slug == "" || r.begin() != nil {
		return
	}
	if e, err := metrics.NewMetric(r.step, name, value, metadata); err == nil {
		_ = r.Emitter.Emit(&e) // what becomes of it is in the report
	}
}

// event passes an event of the input on.
func (r *Recorder) event(e *metrics.Event) error {
	e.Lenient = 0
	switch e.Kind {
	case metrics.KindOpen:
		return r.open(e)
	case metrics.KindDone:
		if err := r.begin(); err != nil {
			return err
		}
		done := *e
		done.Slug = r.Slug
		r.done, r.ownOpen = &done, false
		return nil
	}
	within, err := withinLimits(e)
	if err != nil {
		return err
	}
	if err := r.begin(); err != nil {
		return err
	}
	if within.Kind == metrics.KindMetric {
		r.step, r.counted = within.Step, true
	} else if metrics.ReadNote(&within).Class == metrics.NoteInterrupted {
		r.interrupted = true
	}
	return r.Emitter.Emit(&within)
}

// withinLimits makes a metric or annotation anew, as every writer of the format
// must: texts are cut, and what cannot be is refused.
func withinLimits(e *metrics.Event) (within metrics.Event, err error) {
	if e.Kind == metrics.KindMetric {
		within, err = metrics.NewMetric(e.Step, e.Name, e.Value, e.Metadata)
	} else {
		within, err = metrics.OtherNote(e.Text, e.Metadata).Event(e.Step)
	}
	within.TSMS, within.Extra = e.TSMS, e.Extra
	return within, err
}

// open writes an open of the input, under the slug and with what the command
// line adds.
func (r *Recorder) open(e *metrics.Event) error {
	if r.done != nil {
		if err := r.finish(); err != nil {
			return err
		}
	}
	if r.Slug == "" {
		r.Slug = e.Slug
	}
	description := e.Description
	if r.Description != "" {
		description = r.Description
	}
	open, err := metrics.NewOpen(r.Slug, description, e.Metadata.Merge(r.Meta))
	if err != nil {
		return err
	}
	open.TSMS, open.Extra = e.TSMS, e.Extra
	r.opened, r.ownOpen, r.interrupted = true, false, false
	return r.Emitter.Emit(&open)
}

// begin writes an open of our own before the first event, if the input has
// none.
func (r *Recorder) begin() error {
	if r.opened {
		return nil
	}
	if r.Slug == "" {
		return ErrNoOpen
	}
	open, err := metrics.NewOpen(r.Slug, r.Description, r.Meta)
	if err != nil {
		return err
	}
	r.opened, r.ownOpen = true, true
	return r.Emitter.Emit(&open)
}

// finish writes the done that was held back, so that it is the last line, or
// one of our own.
func (r *Recorder) finish() error {
	e := metrics.NewDone(r.Slug)
	if r.done != nil {
		e, r.done = *r.done, nil
	}
	return r.Emitter.Emit(&e)
}

// values makes a metric of every number on a line of a training log.
func (r *Recorder) values(it *metrics.Item) error {
	line, err := r.Reading.line(it.Values)
	if err != nil || len(line.metrics) == 0 {
		return err
	}
	if err := r.begin(); err != nil {
		return err
	}
	r.advance(line)
	for _, v := range line.metrics {
		e, err := metrics.NewMetric(r.step, v.Name, v.Number, line.metadata)
		if err != nil {
			return err
		}
		if err := r.Emitter.Emit(&e); err != nil {
			return err
		}
	}
	return nil
}

// advance is the step that a line says, or one more than the last.
func (r *Recorder) advance(line lineValues) {
	switch {
	case line.hasStep:
		r.step = line.step
	case r.counted:
		r.step++
	}
	r.counted = true
}

// End writes how the run ended, and waits for the targets. Signal is the name of the
// signal that ended it, "" if none did. A signal is no end that done stands for; the
// interruption is written last, behind what the program still had to say, unless it
// has said so itself.
func (r *Recorder) End(signal string) metrics.Report {
	switch {
	case !r.opened:
	case signal != "" && r.done == nil:
		if !r.interrupted {
			if e, err := metrics.Interrupted(signal, r.step).Event(r.step); err == nil {
				_ = r.Emitter.Emit(&e) // what becomes of it is in the report
			}
		}
	case r.done != nil || r.ownOpen:
		_ = r.finish()
	}
	return r.Emitter.Close()
}
