package spacedoc

import (
	"fmt"
	"slices"

	"github.com/foldlog/foldlog/internal/yamldoc"
	"github.com/foldlog/foldlog/study"
)

// conditions reads "when": a mapping of parameters that stand before to what
// they must be.
func (p *param) conditions(n yamldoc.Node, before []study.SpaceParam) (list []study.Condition) {
	entries, err := n.Map(`"when"`)
	if err != nil {
		p.err = err
		return nil
	}
	if len(entries) == 0 {
		p.failf(n, `"when" names no parameter`)
	}
	for _, e := range entries {
		i := slices.IndexFunc(before, func(q study.SpaceParam) bool { return q.Name == e.Key })
		if i < 0 {
			p.undeclared(e, before)
			return nil
		}
		c := study.Condition{Param: e.Key}
		if e.Value.IsMap() && !isCat(before[i].Dist) {
			p.between(&c, e, before[i].Dist)
		} else {
			p.anyOf(&c, e, before[i].Dist)
		}
		list = append(list, c)
	}
	return list
}

// undeclared fails at a name that no parameter before has.
func (p *param) undeclared(e yamldoc.Entry, before []study.SpaceParam) {
	var names []string
	for _, q := range before {
		names = append(names, q.Name)
	}
	hint := "the parameters that others depend on stand before them"
	if len(names) > 0 {
		hint += "; " + yamldoc.Nearest(e.Key, names)
	}
	if p.err == nil {
		p.err = e.At.Fail(fmt.Errorf("parameter %q: %q, which it depends on, is not declared before it", p.name, e.Key), hint)
	}
}

func isCat(d study.Distribution) bool { _, ok := d.(*study.CatDist); return ok }

// between reads a range.
func (p *param) between(c *study.Condition, e yamldoc.Entry, dist study.Distribution) {
	fields, err := e.Value.Map(`"when"`)
	if err != nil {
		p.err = err
		return
	}
	if _, isBool := dist.(study.BoolDist); isBool || len(fields) == 0 {
		p.failf(e.Value, "want a value of %q, or a list of values", e.Key)
		return
	}
	for _, f := range fields {
		v := p.value(f.Value, e.Key, dist, true)
		switch f.Key {
		case "low":
			c.Low = &v
		case "high":
			c.High = &v
		default:
			p.failf(f.At, `a range has "low" and "high", no %q`, f.Key)
		}
	}
}

// anyOf reads a value or a list of values. A list that is itself a choice is
// that choice.
func (p *param) anyOf(c *study.Condition, e yamldoc.Entry, dist study.Distribution) {
	list, isList := e.Value.Items()
	if isList && isCat(dist) {
		if i := choiceOf(e.Value, dist.(*study.CatDist)); i >= 0 {
			isList = false
		}
	}
	if !isList {
		list = []yamldoc.Node{e.Value}
	}
	if len(list) == 0 {
		p.failf(e.Value, "no value of %q", e.Key)
	}
	for _, n := range list {
		c.Values = append(c.Values, p.value(n, e.Key, dist, false))
	}
}

// value reads a value of another parameter.
func (p *param) value(n yamldoc.Node, name string, dist study.Distribution, bound bool) study.Value {
	switch d := dist.(type) {
	case study.FloatDist:
		f, err := n.Float()
		if err == nil && (bound || f >= d.Low && f <= d.High) {
			return study.F64(f)
		}
	case study.IntDist:
		i, err := n.Int()
		if err == nil && (bound || i >= d.Low && i <= d.High) {
			return study.I64(i)
		}
	case study.BoolDist:
		if b, ok := n.Scalar().(bool); ok {
			return study.Bool(b)
		}
	case *study.CatDist:
		if i := choiceOf(n, d); i >= 0 {
			return study.Cat(uint64(i))
		}
	}
	p.failf(n, "this is no value of %q", name)
	return study.Value{}
}

// choiceOf finds a choice by its value, -1 without.
func choiceOf(n yamldoc.Node, d *study.CatDist) int {
	c, err := choice(n)
	if err != nil {
		return -1
	}
	return slices.IndexFunc(d.Choices, func(o study.Choice) bool { return o.Value == c.Value })
}
