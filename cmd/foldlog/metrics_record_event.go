package main

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/metrics"
)

// valueReading says how the values of a training log become metrics.
type valueReading struct {
	step string   // the member that is the step
	tags []string // the members that are metadata
	skip []string // patterns of members that are left out
}

func (v *valueReading) addFlags(c *cobra.Command) {
	c.Flags().StringVar(&v.step, "step", "step", "the `NAME` whose value is the step")
	c.Flags().StringArrayVar(&v.tags, "tag", nil, "a `NAME` whose value is metadata of the line's metrics")
	c.Flags().StringArrayVar(&v.skip, "skip", nil, "a `NAME` to leave out, in which * stands for any text")
}

// lineValues is what a line of a training log says.
type lineValues struct {
	step     int64
	hasStep  bool
	metadata metrics.Metadata
	metrics  []metrics.Value
}

// read sorts the values of a line. Texts that are no tags are left out.
func (v *valueReading) read(values []metrics.Value) (lineValues, error) {
	var out lineValues
	skip := nameFilter(v.skip)
	for _, value := range values {
		switch {
		case value.Name == v.step && value.IsNumber:
			step, ok := wholeStep(value.Number)
			if !ok {
				return out, fmt.Errorf("%s %s is no step", v.step, value.Number)
			}
			out.step, out.hasStep = step, true
		case slices.Contains(v.tags, value.Name):
			out.metadata = out.metadata.Merge(metrics.Meta(value.Name, tagText(value)))
		case value.IsNumber && (len(v.skip) == 0 || !skip(value.Name)):
			out.metrics = append(out.metrics, value)
		}
	}
	return out, nil
}

func tagText(v metrics.Value) string {
	if v.IsNumber {
		return v.Number.String()
	}
	return v.Text
}

// wholeStep is a number as a step: an integer, also one spelled as a float.
func wholeStep(n metrics.Number) (int64, bool) {
	if step, ok := n.Int64(); ok {
		return step, true
	}
	f := n.Float64()
	return int64(f), f == math.Trunc(f) && math.Abs(f) < 1<<53
}

// scalarJSON tells a JSON number, true, false or null from other text.
func scalarJSON(text string) (raw string, ok bool) {
	switch text {
	case "true", "false", "null":
		return text, true
	}
	var dec metrics.Decoder
	var e metrics.Event
	line := `{"ts_ms":0,"step":0,"kind":"metric","name":"x","value":` + text + `,"metadata":{}}`
	if text == "" || text[0] == '"' || dec.Decode([]byte(line), &e) != nil || !e.Value.IsFinite() || e.Lenient != 0 || e.Extra != "" {
		return "", false
	}
	return text, true
}

// errNoOpen is the error of an event that comes before its run is known.
var errNoOpen = errors.New("no open has come, and no --slug names the run")

// event passes an event of the input on.
func (r *recorder) event(e *metrics.Event) error {
	e.Lenient = 0
	switch e.Kind {
	case metrics.KindOpen:
		return r.open(e)
	case metrics.KindDone:
		if err := r.begin(); err != nil {
			return err
		}
		done := *e
		done.Slug = r.slug
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
	return r.emitter.Emit(&within)
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
func (r *recorder) open(e *metrics.Event) error {
	if r.done != nil {
		if err := r.finish(); err != nil {
			return err
		}
	}
	if r.slug == "" {
		r.slug = e.Slug
	}
	description := e.Description
	if r.describe != "" {
		description = r.describe
	}
	open, err := metrics.NewOpen(r.slug, description, e.Metadata.Merge(r.meta))
	if err != nil {
		return err
	}
	open.TSMS, open.Extra = e.TSMS, e.Extra
	r.opened, r.ownOpen, r.interrupted = true, false, false
	return r.emitter.Emit(&open)
}

// begin writes an open of our own before the first event, if the input has
// none.
func (r *recorder) begin() error {
	if r.opened {
		return nil
	}
	if r.slug == "" {
		return errNoOpen
	}
	open, err := metrics.NewOpen(r.slug, r.describe, r.meta)
	if err != nil {
		return err
	}
	r.opened, r.ownOpen = true, true
	return r.emitter.Emit(&open)
}

// finish writes the done that was held back, so that it is the last line, or
// one of our own.
func (r *recorder) finish() error {
	e := metrics.NewDone(r.slug)
	if r.done != nil {
		e, r.done = *r.done, nil
	}
	return r.emitter.Emit(&e)
}

// values makes a metric of every number on a line of a training log.
func (r *recorder) values(it *metrics.Item) error {
	line, err := r.reading.read(it.Values)
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
		if err := r.emitter.Emit(&e); err != nil {
			return err
		}
	}
	return nil
}

// advance is the step that a line says, or one more than the last.
func (r *recorder) advance(line lineValues) {
	switch {
	case line.hasStep:
		r.step = line.step
	case r.counted:
		r.step++
	}
	r.counted = true
}

// end writes how the run ended, and waits for the targets. A signal is no end
// that done stands for; the interruption is written last, behind what the
// training run still had to say, unless it has said so itself.
func (r *recorder) end(signal string) metrics.Report {
	switch {
	case !r.opened:
	case signal != "" && r.done == nil:
		if !r.interrupted {
			if e, err := metrics.Interrupted(signal, r.step).Event(r.step); err == nil {
				_ = r.emitter.Emit(&e) // what becomes of it is in the report
			}
		}
	case r.done != nil || r.ownOpen:
		_ = r.finish()
	}
	return r.emitter.Close()
}
