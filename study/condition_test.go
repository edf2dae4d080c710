package study

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestConditionsHold(t *testing.T) {
	value := func(v Value) *Value { return &v }
	for name, c := range map[string]struct {
		c    Condition
		v    Value
		want bool
	}{
		"one of the values":  {Condition{Values: []Value{Cat(1), Cat(3)}}, Cat(3), true},
		"none of the values": {Condition{Values: []Value{Cat(1), Cat(3)}}, Cat(2), false},
		"zero is zero":       {Condition{Values: []Value{F64(0)}}, F64(-1 * 0.0), true},
		"another kind":       {Condition{Values: []Value{I64(1)}}, F64(1), false},
		"at the low end":     {Condition{Low: value(I64(2)), High: value(I64(5))}, I64(2), true},
		"at the high end":    {Condition{Low: value(I64(2)), High: value(I64(5))}, I64(5), true},
		"below":              {Condition{Low: value(I64(2)), High: value(I64(5))}, I64(1), false},
		"open above":         {Condition{Low: value(F64(2))}, F64(1e300), true},
		"open below":         {Condition{High: value(F64(2))}, F64(2.5), false},
		"a range of floats":  {Condition{High: value(F64(2))}, I64(1), false},
	} {
		if got := c.c.Holds(c.v); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestConditionsAreChecked(t *testing.T) {
	high := F64(1)
	for name, when := range map[string][]Condition{
		"of nothing":                {{Param: "y", Values: []Value{Bool(true)}}},
		"of itself":                 {{Param: "x", Values: []Value{Bool(true)}}},
		"without values":            {{Param: "b"}},
		"with values and a range":   {{Param: "b", Values: []Value{Bool(true)}, High: &high}},
		"of another kind":           {{Param: "b", Values: []Value{I64(1)}}},
		"a range of a truth value":  {{Param: "b", High: &high}},
		"the second one is no good": {{Param: "b", Values: []Value{Bool(true)}}, {Param: "b"}},
	} {
		st := NewMemory(MemoryOptions{})
		_, _, err := OpenOrCreate(t.Context(), st, Config{Name: "s", Directions: []Direction{Minimize}, Space: &Space{Params: []SpaceParam{
			{Name: "b", Dist: BoolDist{}}, {Name: "x", Dist: BoolDist{}, When: when},
		}}})
		if !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestConditionsTravelAsJSON(t *testing.T) {
	const text = `[{"name":"b","dist":"Bool"},{"name":"x","dist":"Bool","when":[{"param":"b","values":[{"Bool":true}]},{"param":"n","low":{"I64":2},"high":null}]}]`
	space, err := ParseSpace([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	got, err := AppendSpace(nil, space)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(text, string(got)); diff != "" {
		t.Errorf("space (-want +got):\n%s", diff)
	}
	for _, when := range []string{`{}`, `[{}]`, `[{"param":"b"}]`, `[{"param":"b","values":[],"low":null,"high":null}]`, `[{"param":"b","low":null}]`, `[{"param":"b","values":[{"Bool":true}],"not":true}]`, `3`} {
		if got, err := ParseSpace([]byte(`[{"name":"x","dist":"Bool","when":` + when + `}]`)); err == nil {
			t.Errorf("%s reads as %+v", when, got)
		}
	}
}
