package study

import (
	"fmt"

	"github.com/foldlog/foldlog/internal/serde"
)

// inner is a decoder for a value whose shape is ours: it shares the interned
// strings, and any fault in it only means "not our shape".
func (d *Decoder) inner(raw []byte) *Decoder {
	in := &Decoder{raw: raw, names: d.names, dists: d.dists}
	in.s.Reset(raw)
	return in
}

// mutation reads what a fenced operation changes.
func (d *Decoder) mutation() Mutation {
	raw := d.s.Raw()
	if d.s.Err() != nil {
		return nil
	}
	if m := d.reportMutation(raw); m != nil {
		return m
	}
	in := d.inner(raw)
	if in.s.Peek() == '"' && in.s.String() == "Pause" && in.s.End() == nil {
		return &MutatePause{}
	}
	in.s.Reset(raw)
	var m Mutation
	n := 0
	for in.s.Object(); in.s.NextKey(); n++ {
		m = in.taggedMutation()
	}
	if in.s.End() != nil || n != 1 || m == nil {
		return &MutateOther{Raw: raw}
	}
	return m
}

var (
	mutateReportFields = objectFields("step", "values")
	mutateParamsFields = objectFields("params")
	mutateAttrFields   = objectFields("key", "value")
	mutateStateFields  = objectFields("blob")
	mutateErrorFields  = objectFields("message")
)

// reportMutation is the hot case: it allocates nothing. Nil if raw is
// something else.
func (d *Decoder) reportMutation(raw []byte) *MutateReport {
	const prefix = `{"Report":`
	if len(raw) < len(prefix) || string(raw[:len(prefix)]) != prefix {
		return nil
	}
	m := &d.ops.mutateReport
	m.Step, m.Values = 0, m.Values[:0]
	s := serde.NewScanner(raw)
	var k known
	n := 0
	for s.Object(); s.NextKey(); n++ {
		for s.Object(); s.NextKey(); {
			switch string(s.Key()) {
			case "step":
				k.saw(0)
				m.Step = s.Uint64()
			case "values":
				k.saw(1)
				for s.Array(); s.NextElem(); {
					m.Values = append(m.Values, s.Float64())
				}
			default:
				return nil
			}
		}
	}
	if s.End() != nil || n != 1 || !k.exactly(2) {
		return nil
	}
	return m
}

func (d *Decoder) taggedMutation() Mutation {
	switch string(d.s.Key()) {
	case "Report":
		m := new(MutateReport)
		d.object(mutateReportFields, func(field int) {
			if field == 0 {
				m.Step = d.s.Uint64()
			} else {
				m.Values = d.floats(nil)
			}
		})
		return m
	case "ParamsBatch":
		m := new(MutateParams)
		d.object(mutateParamsFields, func(int) { m.Params = d.params(nil) })
		return m
	case "SetUserAttr":
		m := new(MutateUserAttr)
		d.object(mutateAttrFields, func(field int) {
			if field == 0 {
				m.Key = d.s.String()
			} else {
				m.Value = d.s.Raw()
			}
		})
		return m
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

// outcome reads how a trial ended. Of a strange shape it keeps the text and
// tells what it can.
func (d *Decoder) outcome() Outcome {
	raw := d.s.Raw()
	if d.s.Err() != nil {
		return Outcome{}
	}
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
			o.Values = d.floats(nil)
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
	in := new(Intent)
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
