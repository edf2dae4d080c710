package study

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/foldlog/foldlog/internal/serde"
)

// Condition says for which values of another parameter a parameter is there:
// for any of Values, or, without them, from Low to High. In the journal it is
// {"param":..,"values":[..]} or {"param":..,"low":..,"high":..}, a bound that
// is open null.
type Condition struct {
	// Param is the other parameter, declared before.
	Param string
	// Values are the values that it may have.
	Values []Value
	// Low and High are the bounds, both inclusive; nil is open.
	Low, High *Value
}

// JSON are the values and the bounds as JSON, those of a parameter of this distribution:
// no values for a range, and nil for an open bound.
func (c *Condition) JSON(dist Distribution) (values []json.RawMessage, low, high json.RawMessage) {
	values = []json.RawMessage{}
	for _, v := range c.Values {
		values = append(values, v.AppendJSON(nil, dist))
	}
	if c.Low != nil {
		low = c.Low.AppendJSON(nil, dist)
	}
	if c.High != nil {
		high = c.High.AppendJSON(nil, dist)
	}
	return values, low, high
}

// Holds tells whether a value of the other parameter fulfils the condition.
func (c *Condition) Holds(v Value) bool {
	if c.Low == nil && c.High == nil {
		return slices.ContainsFunc(c.Values, func(w Value) bool {
			return v == w || v.Kind() == ValueF64 && w.Kind() == ValueF64 && v.F64() == w.F64()
		})
	}
	return (c.Low == nil || atMost(*c.Low, v)) && (c.High == nil || atMost(v, *c.High))
}

// atMost compares two numbers of one kind.
func atMost(a, b Value) bool {
	switch {
	case a.Kind() != b.Kind():
		return false
	case a.Kind() == ValueF64:
		return a.F64() <= b.F64()
	}
	return a.Kind() == ValueI64 && a.I64() <= b.I64()
}

// Active tells whether a trial has the parameter, given the values of the
// parameters before it. A condition on one that the trial lacks does not hold.
func (p *SpaceParam) Active(value func(name string) (Value, bool)) bool {
	for i := range p.When {
		v, ok := value(p.When[i].Param)
		if !ok || !p.When[i].Holds(v) {
			return false
		}
	}
	return true
}

// checkConditions refuses conditions that no value of a parameter before can
// be held against.
func checkConditions(before []SpaceParam, p SpaceParam) error {
	for _, c := range p.When {
		i := slices.IndexFunc(before, func(q SpaceParam) bool { return q.Name == c.Param })
		if i < 0 {
			return fmt.Errorf("%w: parameter %.80q depends on %.80q, which is not declared before it", ErrInvalid, p.Name, c.Param)
		}
		bounds := c.Low != nil || c.High != nil
		if bounds == (len(c.Values) > 0) {
			return fmt.Errorf("%w: parameter %.80q depends on %.80q without values or a range", ErrInvalid, p.Name, c.Param)
		}
		values := slices.Clone(c.Values)
		for _, bound := range []*Value{c.Low, c.High} {
			if bound != nil {
				values = append(values, *bound)
			}
		}
		for _, v := range values {
			if !fits(before[i].Dist, v) || bounds && v.Kind() != ValueF64 && v.Kind() != ValueI64 {
				return fmt.Errorf("%w: parameter %.80q depends on a value that %.80q does not have", ErrInvalid, p.Name, c.Param)
			}
		}
	}
	return nil
}

func (e *encoder) conditions(list []Condition) {
	e.b = append(e.b, '[')
	for i, c := range list {
		if i > 0 {
			e.b = append(e.b, ',')
		}
		e.lit(`{"param":`)
		e.str(c.Param)
		if c.Low == nil && c.High == nil {
			e.lit(`,"values":[`)
			for k, v := range c.Values {
				if k > 0 {
					e.b = append(e.b, ',')
				}
				e.value(v)
			}
			e.lit(`]}`)
			continue
		}
		e.name("low")
		e.bound(c.Low)
		e.name("high")
		e.bound(c.High)
		e.b = append(e.b, '}')
	}
	e.b = append(e.b, ']')
}

func (e *encoder) bound(v *Value) {
	if v == nil {
		e.lit("null")
		return
	}
	e.value(*v)
}

// readConditions reads what a parameter depends on; false means a shape that
// this version does not know.
func readConditions(raw []byte) (list []Condition, known bool) {
	var d Decoder
	d.raw, d.s = raw, serde.NewScanner(raw)
	known = true
	for d.s.Array(); d.s.NextElem(); {
		var c Condition
		named, values, bounds := false, false, 0
		for d.s.Object(); d.s.NextKey(); {
			switch string(d.s.Key()) {
			case "param":
				c.Param, named = d.s.String(), true
			case "values":
				values = true
				for d.s.Array(); d.s.NextElem(); {
					c.Values = append(c.Values, d.value())
				}
			case "low":
				c.Low = d.bound()
				bounds++
			case "high":
				c.High = d.bound()
				bounds++
			default:
				known = false
				d.s.Skip()
			}
		}
		known = known && named && (values && bounds == 0 || !values && bounds == 2)
		list = append(list, c)
	}
	return list, known && d.s.End() == nil
}

func (d *Decoder) bound() *Value {
	if d.s.Null() {
		return nil
	}
	v := d.value()
	return &v
}
