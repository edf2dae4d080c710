package study

import (
	"fmt"

	"github.com/foldlog/foldlog/internal/serde"
)

// inner is a decoder for a value whose shape is ours: any fault in it only means
// "not our shape".
func (d *Decoder) inner(raw []byte) *Decoder {
	in := &Decoder{raw: raw}
	in.s.Reset(raw)
	return in
}

// mutation reads what a fenced operation changes: in passing if its shape is ours,
// otherwise once more from its beginning.
func (d *Decoder) mutation() Mutation {
	before := d.s
	if m := d.knownMutation(); m != nil {
		return m
	}
	d.s = before
	raw := d.s.Raw()
	if d.s.Err() != nil {
		return nil
	}
	return &MutateOther{Raw: raw}
}

var (
	mutateReportFields = objectFields("step", "values")
	mutateParamsFields = objectFields("params")
	mutateAttrFields   = objectFields("key", "value")
	mutateStateFields  = objectFields("blob")
	mutateErrorFields  = objectFields("message")
)

// knownMutation is nil if what comes next is none of our shapes.
func (d *Decoder) knownMutation() (m Mutation) {
	if d.s.Peek() == '"' {
		if string(d.s.Bytes()) != "Pause" || d.s.Err() != nil {
			return nil
		}
		return &MutatePause{}
	}
	n := 0
	for d.s.Object(); d.s.NextKey(); n++ {
		m = d.taggedMutation()
	}
	if d.s.Err() != nil || n != 1 {
		return nil
	}
	return m
}

func (d *Decoder) taggedMutation() Mutation {
	switch string(d.s.Key()) {
	case "Report":
		return d.reportMutation()
	case "ParamsBatch":
		m := &d.ops.mutateParams
		m.Params = m.Params[:0]
		d.object(mutateParamsFields, func(int) { m.Params = d.params(m.Params) })
		return m
	case "SetUserAttr":
		return d.attrMutation()
	case "PutState":
		m := new(MutateState)
		d.object(mutateStateFields, func(int) { m.Blob = d.blob() })
		return m
	case "SetError":
		m := new(MutateError)
		d.object(mutateErrorFields, func(int) { m.Message = d.s.String() })
		return m
	}
	d.s.Skip()
	return nil
}

func (d *Decoder) reportMutation() Mutation {
	m := &d.ops.mutateReport
	m.Step, m.Values = 0, m.Values[:0]
	d.object(mutateReportFields, func(field int) {
		if field == 0 {
			m.Step = d.s.Uint64()
		} else {
			m.Values = d.floats(m.Values)
		}
	})
	return m
}

func (d *Decoder) attrMutation() Mutation {
	m := &d.ops.mutateAttr
	*m = MutateUserAttr{}
	d.object(mutateAttrFields, func(field int) {
		if field == 0 {
			m.Key = d.intern(d.s.Bytes())
		} else {
			m.Value = d.s.Raw()
		}
	})
	return m
}

// object reads an object with exactly these fields.
func (d *Decoder) object(set *fieldSet, read func(field int)) {
	d.s.Object()
	t := track(set, false)
	for t.next(d) {
		read(t.field)
	}
	if len(t.extra) > 0 {
		d.s.Fail(fmt.Errorf("%w: %.80s is unknown", ErrField, t.extra[0].Key))
	}
}

// outcome reads how a trial ended: in passing if its shape is ours, otherwise once
// more from its beginning.
func (d *Decoder) outcome() Outcome {
	before := d.s
	if o, ok := d.knownOutcome(); ok {
		return o
	}
	d.s = before
	raw := d.s.Raw()
	if d.s.Err() != nil {
		return Outcome{}
	}
	return d.strangeOutcome(raw)
}

func (d *Decoder) knownOutcome() (o Outcome, ours bool) {
	n := 0
	for d.s.Object(); d.s.NextKey(); n++ {
		if o.State, ours = outcomeState(d.s.Key()); ours {
			ours = d.outcomeBody(&o)
		}
		if !ours {
			return o, false
		}
	}
	return o, n == 1 && d.s.Err() == nil
}

// strangeOutcome keeps the text of an outcome and tells what it can.
func (d *Decoder) strangeOutcome(raw []byte) Outcome {
	in := d.inner(raw)
	o := Outcome{State: Failed} // of what cannot be told
	tags, strange := 0, false
	if in.s.Peek() == '"' {
		state, ok := outcomeState(in.s.Bytes())
		return Outcome{State: state, Raw: raw, Error: unknownOutcome(raw, ok)}
	}
	for in.s.Object(); in.s.NextKey(); tags++ {
		state, ok := outcomeState(in.s.Key())
		o.State = state
		strange = strange || !ok || !in.outcomeBody(&o)
	}
	if in.s.End() == nil && tags == 1 && !strange {
		return o
	}
	if in.s.Err() != nil {
		o.Values, o.Blob = nil, nil
	}
	known := tags == 1 && o.State != Failed || o.Error != ""
	o.Raw, o.Error = raw, o.Error+unknownOutcome(raw, known)
	return o
}

func unknownOutcome(raw []byte, known bool) string {
	if known {
		return ""
	}
	return fmt.Sprintf("outcome of unknown shape: %.200s", raw)
}

func outcomeState(b []byte) (State, bool) {
	switch string(b) {
	case "Complete":
		return Complete, true
	case "Pruned":
		return Pruned, true
	case "Failed":
		return Failed, true
	}
	return Failed, false
}

// outcomeBody reads the payload of one outcome; false means that it is not
// exactly ours.
func (d *Decoder) outcomeBody(o *Outcome) bool {
	if d.s.Peek() != '{' {
		d.s.Skip()
		return false
	}
	want, ours := uint(0), true
	var k known
	for d.s.Object(); d.s.NextKey(); {
		switch key := string(d.s.Key()); {
		case key == "values" && o.State == Complete && d.s.Peek() == '[':
			k.saw(0)
			o.Values = d.floats(d.ops.outcome[:0])
			d.ops.outcome = o.Values
		case key == "error" && o.State == Failed && d.s.Peek() == '"':
			k.saw(0)
			o.Error = d.s.String()
		case key == "state" && d.s.Peek() == '{':
			k.saw(1)
			b := d.blob()
			o.Blob = &b
		default:
			ours = false
			d.s.Skip()
		}
	}
	if o.State != Pruned {
		want = 1
	}
	return ours && k.extra == 0 && k.mask&1 == want
}

// intent reads what must happen after a trial ended, nil for null.
func (d *Decoder) intent() *Intent {
	if d.s.Null() {
		return nil
	}
	raw := d.s.Raw()
	s := serde.NewScanner(raw)
	in := &d.ops.intent
	*in = Intent{}
	var k known
	for s.Object(); s.NextKey(); {
		if string(s.Key()) != "retry" {
			return &Intent{Raw: raw}
		}
		k.saw(0)
		if !s.Null() {
			a := readAttempt(s.Raw())
			in.Retry = &a
		}
	}
	if s.End() != nil || !k.exactly(1) {
		return &Intent{Raw: raw}
	}
	return in
}

func readAttempt(raw []byte) (a Attempt) {
	s := serde.NewScanner(raw)
	var k known
	for s.Object(); s.NextKey(); {
		switch string(s.Key()) {
		case "number":
			k.saw(0)
			a.Number = s.Uint64()
		case "max":
			k.saw(1)
			a.Max = s.Uint64()
		default:
			k.extra++
			s.Skip()
		}
	}
	if s.End() != nil || !k.exactly(2) {
		return Attempt{Raw: string(raw)}
	}
	return a
}
