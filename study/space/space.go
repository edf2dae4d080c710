// Package space reads search spaces that people write, as YAML or JSON:
//
//	lr:        {type: float, low: 1e-5, high: 0.1, log: true}
//	dropout:   {type: float, low: 0, high: 0.5, step: 0.05}
//	layers:    {type: int, low: 1, high: 8}
//	optimizer: {type: categorical, choices: [adam, sgd]}
//	use_bn:    {type: bool}
//
// Parameters keep their order. Errors name the file, line and parameter.
package space

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/foldlog/foldlog/internal/serde"
	"github.com/foldlog/foldlog/study"
)

const (
	// MaxBytes bounds a space file, some hundred parameters: the time that the
	// parser takes for a hostile text grows with the square of its length.
	MaxBytes = 32 << 10
	// maxDepth bounds its nesting.
	maxDepth = 64
)

// Error says where a space file is wrong.
type Error struct {
	// File and Line are the place, the line counted from 1, 0 if unknown.
	File string
	Line int
	// Err says what is wrong.
	Err error
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %v", e.File, e.Err)
	}
	return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Load reads a space file.
func Load(path string) (*study.Space, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, MaxBytes+1))
	if err != nil {
		return nil, err
	}
	return Parse(path, b)
}

// Parse reads a space from a text; file is for messages. Every error is an
// [*Error].
func Parse(file string, text []byte) (*study.Space, error) {
	if len(text) > MaxBytes {
		return nil, &Error{File: file, Err: fmt.Errorf("longer than %d bytes", MaxBytes)}
	}
	if line := tooDeep(text); line > 0 {
		return nil, &Error{File: file, Line: line, Err: errors.New("nested too deep")}
	}
	doc, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, syntaxError(file, err)
	}
	r := &reader{file: file}
	switch {
	case len(doc.Docs) > 1:
		return nil, r.fail(doc.Docs[1].Body, errors.New("more than one document"))
	case len(doc.Docs) == 0 || doc.Docs[0].Body == nil:
		return nil, &Error{File: file, Err: errors.New("no parameters")}
	}
	return r.space(doc.Docs[0].Body)
}

// tooDeep returns the line where a text nests too deep, 0 if none does. It looks
// before the parser does, whose memory grows with the square of the depth, and
// counts every bracket, also one in a text.
func tooDeep(text []byte) int {
	depth, line := 0, 1
	marks, indent, blank := 0, 0, true // of this line: "- ", "? " and spaces before its text
	for _, c := range text {
		switch c {
		case '\n':
			line, marks, indent, blank = line+1, 0, 0, true
			continue
		case '[', '{':
			depth++
		case ']', '}':
			depth = max(depth-1, 0)
		}
		switch {
		case blank && (c == '-' || c == '?' || c == ':'):
			marks++
		case blank && (c == ' ' || c == '\t'):
			indent++
		default:
			blank = false
		}
		if depth > maxDepth || marks > maxDepth || indent > 8*maxDepth {
			return line
		}
	}
	return 0
}

// syntaxError keeps the parser's first line, which has the place in brackets.
func syntaxError(file string, err error) error {
	msg, _, _ := strings.Cut(err.Error(), "\n")
	line := 0
	if place, rest, ok := strings.Cut(strings.TrimPrefix(msg, "["), "] "); ok {
		if n, _, found := strings.Cut(place, ":"); found {
			if line, _ = strconv.Atoi(n); line > 0 {
				msg = rest
			}
		}
	}
	return &Error{File: file, Line: line, Err: errors.New(msg)}
}

type reader struct{ file string }

func (r *reader) fail(n ast.Node, err error) error {
	e := &Error{File: r.file, Err: err}
	if n != nil && n.GetToken() != nil && n.GetToken().Position != nil {
		e.Line = n.GetToken().Position.Line
	}
	return e
}

func (r *reader) failf(n ast.Node, format string, args ...any) error {
	return r.fail(n, fmt.Errorf(format, args...))
}

// entries returns the keys and values of a mapping, in order, each key once.
func (r *reader) entries(n ast.Node, what string) ([]*ast.MappingValueNode, error) {
	var list []*ast.MappingValueNode
	switch m := n.(type) {
	case *ast.MappingNode:
		list = m.Values
	case *ast.MappingValueNode:
		list = []*ast.MappingValueNode{m}
	default:
		return nil, r.failf(n, "%s must be a mapping", what)
	}
	seen := map[string]bool{}
	for _, e := range list {
		key, err := r.key(e)
		if err != nil {
			return nil, err
		}
		if seen[key] {
			return nil, r.failf(e, "%q stands twice", key)
		}
		seen[key] = true
	}
	return list, nil
}

func (r *reader) key(e *ast.MappingValueNode) (string, error) {
	if s, ok := e.Key.(ast.ScalarNode); ok {
		if key, ok := s.GetValue().(string); ok && key != "" {
			return key, nil
		}
	}
	return "", r.failf(e, "a key must be a text")
}

func (r *reader) space(body ast.Node) (*study.Space, error) {
	list, err := r.entries(body, "a space")
	if err != nil {
		return nil, err
	}
	s := new(study.Space)
	for _, e := range list {
		name, err := r.key(e)
		if err != nil {
			return nil, err
		}
		dist, err := r.dist(name, e.Value)
		if err != nil {
			return nil, err
		}
		s.Params = append(s.Params, study.SpaceParam{Name: name, Dist: dist})
	}
	if len(s.Params) == 0 {
		return nil, r.failf(body, "no parameters")
	}
	return s, nil
}

// fieldsOf lists what each type of parameter may say.
var fieldsOf = map[string][]string{
	"float":       {"low", "high", "log", "step"},
	"int":         {"low", "high", "log", "step"},
	"categorical": {"choices"},
	"bool":        {},
}

func (r *reader) dist(name string, n ast.Node) (study.Distribution, error) {
	list, err := r.entries(n, fmt.Sprintf("parameter %q", name))
	if err != nil {
		return nil, err
	}
	p := param{r: r, name: name, node: n, fields: map[string]ast.Node{}}
	for _, e := range list {
		key, err := r.key(e)
		if err != nil {
			return nil, err
		}
		p.fields[key] = e.Value
	}
	kind := p.text("type")
	allowed, ok := fieldsOf[kind]
	switch {
	case p.err != nil:
		return nil, p.err
	case !ok:
		return nil, r.failf(p.fields["type"], "parameter %q: type %q is not one of float, int, categorical, bool", name, kind)
	}
	for _, e := range list {
		if key, _ := r.key(e); key != "type" && !contains(allowed, key) {
			return nil, r.failf(e, "parameter %q: a %s has no %q", name, kind, key)
		}
	}
	dist := p.build(kind)
	return dist, p.err
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// param collects the first error of one parameter.
type param struct {
	r      *reader
	name   string
	node   ast.Node
	fields map[string]ast.Node
	err    error
}

func (p *param) failf(n ast.Node, format string, args ...any) {
	if p.err == nil {
		p.err = p.r.failf(n, "parameter %q: %s", p.name, fmt.Sprintf(format, args...))
	}
}

// scalar returns a field's plain value, nil if it is absent and may be.
func (p *param) scalar(field string, required bool) any {
	n, ok := p.fields[field]
	if !ok {
		if required {
			p.failf(p.node, "%q is missing", field)
		}
		return nil
	}
	s, ok := n.(ast.ScalarNode)
	if !ok {
		p.failf(n, "%q must be a plain value", field)
		return nil
	}
	return s.GetValue()
}

func (p *param) text(field string) string {
	s, ok := p.scalar(field, true).(string)
	if !ok {
		p.failf(p.node, "%q must be a text", field)
	}
	return s
}

func (p *param) bool(field string) bool {
	switch v := p.scalar(field, false).(type) {
	case nil:
		return false
	case bool:
		return v
	}
	p.failf(p.fields[field], "%q must be true or false", field)
	return false
}

func (p *param) float(field string, required bool) float64 {
	var f float64
	switch v := p.scalar(field, required).(type) {
	case nil:
		return 0
	case float64:
		f = v
	case uint64:
		f = float64(v)
	case int64:
		f = float64(v)
	case string: // YAML wants a point before an exponent; people do not
		var err error
		if f, err = strconv.ParseFloat(v, 64); err != nil {
			f = math.NaN()
		}
	default:
		f = math.NaN()
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		p.failf(p.fields[field], "%q must be a finite number", field)
	}
	return f
}

func (p *param) int(field string, required bool, absent int64) int64 {
	switch v := p.scalar(field, required).(type) {
	case nil:
		return absent
	case uint64:
		if v <= math.MaxInt64 {
			return int64(v)
		}
	case int64:
		return v
	}
	p.failf(p.fields[field], "%q must be an integer of 64 bits", field)
	return 0
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
		p.failf(p.node, `"low" is above "high"`)
	case log && !positive:
		p.failf(p.node, `"low" must be above 0 with "log"`)
	case !stepOK:
		p.failf(p.node, `"step" must be above 0`)
	case log && stepped:
		p.failf(p.node, `"log" and "step" exclude each other`)
	}
}

func (p *param) choices() study.Distribution {
	list, ok := p.fields["choices"].(*ast.SequenceNode)
	if !ok || len(list.Values) == 0 {
		p.failf(p.node, `"choices" must be a list of at least one value`)
		return nil
	}
	d := &study.CatDist{Version: 1}
	seen := map[string]bool{}
	for _, n := range list.Values {
		raw, err := toJSON(n, 0)
		if err != nil {
			p.failf(n, "choice: %v", err)
			return nil
		}
		c, err := study.JSONChoice(raw)
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

// toJSON spells a YAML value as JSON. Anchors and aliases are refused: they
// could make a small file a huge value.
func toJSON(n ast.Node, depth int) ([]byte, error) {
	if depth > 32 {
		return nil, errors.New("nested too deep")
	}
	switch v := n.(type) {
	case *ast.NullNode:
		return []byte("null"), nil
	case *ast.SequenceNode:
		out := []byte("[")
		for i, e := range v.Values {
			b, err := toJSON(e, depth+1)
			if err != nil {
				return nil, err
			}
			if i > 0 {
				out = append(out, ',')
			}
			out = append(out, b...)
		}
		return append(out, ']'), nil
	case *ast.MappingNode:
		return mapToJSON(v.Values, depth)
	case *ast.MappingValueNode:
		return mapToJSON([]*ast.MappingValueNode{v}, depth)
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode, *ast.InfinityNode, *ast.NanNode:
		return nil, fmt.Errorf("%s is not a plain JSON value", n.String())
	case ast.ScalarNode:
		return scalarToJSON(v.GetValue())
	}
	return nil, fmt.Errorf("%s is not a plain JSON value", n.String())
}

func scalarToJSON(v any) ([]byte, error) {
	switch v := v.(type) {
	case string:
		if err := serde.ValidString(v); err != nil {
			return nil, err
		}
		return serde.AppendString(nil, v), nil
	case float64:
		return serde.AppendFloat(nil, v), nil
	}
	return json.Marshal(v)
}

func mapToJSON(list []*ast.MappingValueNode, depth int) ([]byte, error) {
	out := []byte("{")
	for i, e := range list {
		key, ok := e.Key.(ast.ScalarNode)
		if !ok {
			return nil, errors.New("a key must be a text")
		}
		b, err := toJSON(e.Value, depth+1)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = serde.AppendString(out, fmt.Sprint(key.GetValue()))
		out = append(append(out, ':'), b...)
	}
	return append(out, '}'), nil
}
