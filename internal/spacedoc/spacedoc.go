// Package spacedoc reads search spaces out of YAML, of a file of their own or of a part
// of another one. Package study/space documents them.
package spacedoc

import (
	"errors"
	"fmt"
	"slices"

	"github.com/foldlog/foldlog/internal/yamldoc"
	"github.com/foldlog/foldlog/study"
)

var errNoParameters = errors.New("no parameters")

// FromDocument reads the space that a whole document is, which yamldoc has read or
// failed to.
func FromDocument(root yamldoc.Node, err error) (*study.Space, error) {
	var e *yamldoc.Error
	if errors.As(err, &e) && errors.Is(err, yamldoc.ErrEmpty) {
		e.Err = errNoParameters
	}
	if err != nil {
		return nil, err
	}
	return FromNode(root)
}

// FromNode reads a space that is part of another file.
func FromNode(n yamldoc.Node) (*study.Space, error) {
	list, err := n.Map("a space")
	if err != nil {
		return nil, err
	}
	s := new(study.Space)
	for _, e := range list {
		p, err := readParam(e, s.Params)
		if err != nil {
			return nil, err
		}
		s.Params = append(s.Params, p)
	}
	if len(s.Params) == 0 {
		return nil, n.Fail(errNoParameters, "")
	}
	return s, nil
}

// fieldsOf lists what each type of parameter may say.
var fieldsOf = map[string][]string{
	"float":       {"type", "low", "high", "log", "step", "when"},
	"int":         {"type", "low", "high", "log", "step", "when"},
	"categorical": {"type", "choices", "when"},
	"bool":        {"type", "when"},
}

// types are the keys of fieldsOf.
var types = []string{"float", "int", "categorical", "bool"}

func readParam(e yamldoc.Entry, before []study.SpaceParam) (study.SpaceParam, error) {
	out := study.SpaceParam{Name: e.Key}
	list, err := e.Value.Map(fmt.Sprintf("parameter %q", e.Key))
	if err != nil {
		return out, err
	}
	p := param{name: e.Key, node: e.Value, fields: map[string]yamldoc.Node{}}
	for _, f := range list {
		p.fields[f.Key] = f.Value
	}
	kind := p.text("type")
	if p.err != nil {
		return out, p.err
	}
	allowed, ok := fieldsOf[kind]
	if !ok {
		return out, p.fields["type"].Fail(fmt.Errorf("parameter %q: type %q is unknown", e.Key, kind), yamldoc.Nearest(kind, types))
	}
	for _, f := range list {
		if !slices.Contains(allowed, f.Key) {
			return out, f.At.Fail(fmt.Errorf("parameter %q: a %s has no %q", e.Key, kind, f.Key), yamldoc.Nearest(f.Key, allowed))
		}
	}
	out.Dist = p.build(kind)
	if when, ok := p.fields["when"]; ok && p.err == nil {
		out.When = p.conditions(when, before)
	}
	return out, p.err
}

// param collects the first error of one parameter.
type param struct {
	name   string
	node   yamldoc.Node
	fields map[string]yamldoc.Node
	err    error
}

func (p *param) failf(n yamldoc.Node, format string, args ...any) {
	if p.err == nil {
		p.err = n.Failf("parameter %q: %s", p.name, fmt.Sprintf(format, args...))
	}
}

// field finds a field, and misses it if it is required.
func (p *param) field(name string, required bool) (yamldoc.Node, bool) {
	n, ok := p.fields[name]
	if !ok && required {
		p.failf(p.node, "%q is missing", name)
	}
	return n, ok
}

func (p *param) text(name string) string {
	n, ok := p.field(name, true)
	if !ok {
		return ""
	}
	s, ok := n.Scalar().(string)
	if !ok {
		p.failf(n, "%q must be a text", name)
	}
	return s
}

func (p *param) bool(name string) bool {
	n, ok := p.field(name, false)
	if !ok {
		return false
	}
	b, ok := n.Scalar().(bool)
	if !ok {
		p.failf(n, "%q must be true or false", name)
	}
	return b
}

func (p *param) float(name string, required bool) float64 {
	n, ok := p.field(name, required)
	if !ok {
		return 0
	}
	f, err := n.Float()
	if err != nil {
		p.failf(n, "%q must be a finite number", name)
	}
	return f
}

func (p *param) int(name string, required bool, absent int64) int64 {
	n, ok := p.field(name, required)
	if !ok {
		return absent
	}
	i, err := n.Int()
	if err != nil {
		p.failf(n, "%q must be an integer of 64 bits", name)
	}
	return i
}

func (p *param) build(kind string) study.Distribution {
	switch kind {
	case "float":
		d := study.FloatDist{Low: p.float("low", true), High: p.float("high", true), Log: p.bool("log"), Step: p.float("step", false)}
		p.bounds(d.Low <= d.High, d.Log, d.Low > 0, d.Step >= 0, d.Step != 0)
		return d
	case "int":
		d := study.IntDist{Low: p.int("low", true, 0), High: p.int("high", true, 0), Log: p.bool("log"), Step: p.int("step", false, 1)}
		p.bounds(d.Low <= d.High, d.Log, d.Low > 0, d.Step >= 1, d.Step != 1)
		return d
	case "bool":
		return study.BoolDist{}
	}
	return p.choices()
}

func (p *param) bounds(ordered, log, positive, stepOK, stepped bool) {
	switch {
	case !ordered:
		p.failf(p.fields["low"], `"low" is above "high"`)
	case log && !positive:
		p.failf(p.fields["low"], `"low" must be above 0 with "log"`)
	case !stepOK:
		p.failf(p.fields["step"], `"step" must be above 0`)
	case log && stepped:
		p.failf(p.fields["step"], `"log" and "step" exclude each other`)
	}
}

func (p *param) choices() study.Distribution {
	n, ok := p.field("choices", true)
	if !ok {
		return nil
	}
	list, ok := n.Items()
	if !ok || len(list) == 0 {
		p.failf(n, `"choices" must be a list of at least one value`)
		return nil
	}
	d := &study.CatDist{Version: 1}
	seen := map[string]bool{}
	for _, n := range list {
		c, err := choice(n)
		if err != nil {
			p.failf(n, "choice: %v", err)
			return nil
		}
		if key := c.Value.Type + c.Value.JSON; seen[key] {
			p.failf(n, "choice %s stands twice", c.Value.JSON)
		} else {
			seen[key] = true
		}
		d.Choices = append(d.Choices, c)
	}
	return d
}

// choice reads one choice. The error does not have the place.
func choice(n yamldoc.Node) (study.Choice, error) {
	raw, err := n.JSON()
	var e *yamldoc.Error
	if errors.As(err, &e) {
		err = e.Err
	}
	if err != nil {
		return study.Choice{}, err
	}
	return study.JSONChoice(raw)
}
