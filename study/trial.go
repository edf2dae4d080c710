package study

import (
	"cmp"
	"iter"
	"math"
	"slices"
)

// Trial is one trial as a snapshot saw it. It is immutable and may be kept; do
// not change what its slices and pointers hold.
type Trial struct {
	// ID is journal-wide, Number the ordinal within the study.
	ID     TrialID
	Study  StudyID
	Number uint64
	// State is where it is in its life.
	State State
	// Managed trials are driven by lifecycle operations, others by raw ones.
	Managed bool
	// Abandoned tells that a reservation was given up.
	Abandoned bool
	// Reserver is the worker whose operation reserved a managed trial.
	Reserver uint64
	// Replacement tells that an outbox entry created it.
	Replacement bool
	// Template is what it was created from, nil if nothing.
	Template *Template
	// Params are the parameters in the order they were written first.
	Params []Param
	// Values are the final objective values, nil without.
	Values []float64
	// Error is the reason of a failure.
	Error string
	// CreatedMillis, StartedMillis (the last start) and EndedMillis are wall
	// clocks of the writers of these operations, in Unix milliseconds; 0 if
	// it has not happened. They are for people to read: nothing depends on them.
	CreatedMillis, StartedMillis, EndedMillis uint64
	// Owner and Epoch say who claimed a managed trial last; epoch 0 is never.
	Owner, Epoch uint64
	// HeartbeatMillis and HeartbeatSeq are the last sign of life: the
	// caller's timestamp and, of a managed trial, its sequence.
	HeartbeatMillis, HeartbeatSeq uint64
	// Attempt counts retries from 1; MaxAttempts is the cap, 0 without.
	Attempt, MaxAttempts uint64
	// Blob is the trial's own state, nil without.
	Blob *StateBlob
	// Outbox is what has to happen after the end, nil without.
	Outbox *OutboxEntry

	retryOf    TrialID
	hasRetryOf bool
	attrs      tree[string, Attr]
	reports    vec[uint64]
	nReports   int
	lastReport int
	stamp      uint64
}

// Attr is one user attribute.
type Attr struct {
	// Key is the user's key.
	Key string
	// Value is JSON.
	Value []byte
	// Seq is the operation that set it.
	Seq uint64
}

// StateBlob is a blob with the operation that wrote it.
type StateBlob struct {
	Blob
	// Seq is the operation's sequence number: a version of the state.
	Seq uint64
}

// Parent is the trial that this one repeats: the failed source of a
// replacement, or the parent of a raw trial's template.
func (t *Trial) Parent() (TrialID, bool) { return t.retryOf, t.hasRetryOf }

// Fence is the right to change the trial that its last owner holds.
func (t *Trial) Fence() Fence { return Fence{Trial: t.ID, Worker: t.Owner, Epoch: t.Epoch} }

// Param finds a parameter by its name.
func (t *Trial) Param(name string) (Param, bool) {
	for _, p := range t.Params {
		if p.Name == name {
			return p, true
		}
	}
	return Param{}, false
}

// Attr finds a user attribute.
func (t *Trial) Attr(key string) (Attr, bool) { return t.attrs.get(key) }

// Attrs yields the user attributes in the order of their keys.
func (t *Trial) Attrs() iter.Seq2[string, Attr] { return t.attrs.all() }

// NumAttrs is the number of user attributes.
func (t *Trial) NumAttrs() int { return t.attrs.len() }

// NumReports is the number of reports, repeated steps included.
func (t *Trial) NumReports() int { return t.nReports }

// Reports yields step and values of every report in the order written. The
// same step may come again: the last one is current. The slice is valid until
// the next pair.
func (t *Trial) Reports() iter.Seq2[uint64, []float64] {
	return func(yield func(uint64, []float64) bool) {
		var step, left uint64
		var values []float64
		header := true
		for _, w := range t.reports.from(0) {
			switch {
			case left > 0:
				values = append(values, math.Float64frombits(w))
				left--
			case header:
				step, header = w, false
				continue
			default:
				left, values = w, values[:0]
			}
			if left == 0 {
				if !yield(step, values) {
					return
				}
				header = true
			}
		}
	}
}

// LastReport returns the report that was written last.
func (t *Trial) LastReport() (step uint64, values []float64, ok bool) {
	if t.nReports == 0 {
		return 0, nil, false
	}
	n := int(t.reports.at(t.lastReport + 1))
	for i := range n {
		values = append(values, math.Float64frombits(t.reports.at(t.lastReport+2+i)))
	}
	return t.reports.at(t.lastReport), values, true
}

// Curve returns the current value of one objective at every step, sorted by
// step. Reports that do not have that objective are left out.
func (t *Trial) Curve(objective int) []Point {
	var ps []Point
	sorted := true
	for step, values := range t.Reports() {
		if objective >= len(values) {
			continue
		}
		if n := len(ps); n > 0 && ps[n-1].Step >= step {
			sorted = false
		}
		ps = append(ps, Point{step, values[objective]})
	}
	if sorted {
		return ps
	}
	slices.SortStableFunc(ps, func(a, b Point) int { return cmp.Compare(a.Step, b.Step) })
	out := ps[:0]
	for i, p := range ps {
		if i+1 == len(ps) || ps[i+1].Step != p.Step {
			out = append(out, p)
		}
	}
	return out
}

// Point is one point of a curve.
type Point struct {
	// Step is in the study's resource unit.
	Step uint64
	// Value may be non-finite.
	Value float64
}

// addReport appends a report as words: step, count, values.
func (t *Trial) addReport(stamp, step uint64, values []float64) {
	t.lastReport = t.reports.len()
	t.nReports++
	t.reports.push(stamp, step)
	t.reports.push(stamp, uint64(len(values)))
	for _, v := range values {
		t.reports.push(stamp, math.Float64bits(v))
	}
}

// setParams writes a batch, replacing parameters of the same name.
func (t *Trial) setParams(batch []Param) {
	if len(batch) == 0 {
		return
	}
	merged := make([]Param, len(t.Params), len(t.Params)+len(batch))
	copy(merged, t.Params)
	old := len(merged)
next:
	for _, p := range batch {
		for i := range merged[:old] {
			if merged[i].Name == p.Name {
				merged[i] = p
				continue next
			}
		}
		merged = append(merged, p)
	}
	t.Params = merged
}

func (b *Blob) clone() Blob {
	return Blob{Kind: b.Kind, Version: b.Version, Data: slices.Clone(b.Data), Raw: slices.Clone(b.Raw)}
}
