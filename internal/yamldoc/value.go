package yamldoc

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/foldlog/foldlog/internal/serde"
)

// Entry is a key of a mapping and its value.
type Entry struct {
	Key string
	// At is the key in the file.
	At    Node
	Value Node
}

// Map returns the entries of a mapping, in order, each key a text that stands
// once. What is said about others begins with what.
func (n Node) Map(what string) ([]Entry, error) {
	if n.n.Kind != yaml.MappingNode {
		return nil, n.Failf("%s must be a mapping", what)
	}
	seen := make(map[string]bool)
	var list []Entry
	for i := 0; i+1 < len(n.n.Content); i += 2 {
		e := Entry{At: Node{n.file, n.n.Content[i]}, Value: Node{n.file, n.n.Content[i+1]}}
		key, ok := e.At.Scalar().(string)
		switch {
		case !ok || key == "":
			return nil, e.At.Failf("a key must be a text")
		case len(key) > maxKey:
			return nil, e.At.Failf("a key longer than %d bytes", maxKey)
		case seen[key]:
			return nil, e.At.Failf("%q stands twice", key)
		}
		e.Key, seen[key] = key, true
		list = append(list, e)
	}
	return list, nil
}

// IsMap tells whether the node is a mapping.
func (n Node) IsMap() bool { return n.n.Kind == yaml.MappingNode }

// Items returns the items of a list, false if it is none.
func (n Node) Items() (list []Node, ok bool) {
	if n.n.Kind != yaml.SequenceNode {
		return nil, false
	}
	for _, c := range n.n.Content {
		list = append(list, Node{n.file, c})
	}
	return list, true
}

// compound is what Scalar returns for a list or a mapping.
type compound struct{}

// Scalar returns a plain value as nil, bool, int64, uint64 (beyond int64), float64
// or string, and something else for a list or a mapping.
func (n Node) Scalar() any {
	if n.n.Kind != yaml.ScalarNode {
		return compound{}
	}
	switch n.n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool", "!!int", "!!float":
		var v any
		if n.n.Decode(&v) == nil {
			return narrow(v)
		}
	}
	return n.n.Value
}

func narrow(v any) any {
	switch v := v.(type) {
	case int:
		return int64(v)
	case uint64:
		if v <= math.MaxInt64 {
			return int64(v)
		}
	case uint:
		return narrow(uint64(v))
	}
	return v
}

// Source is a plain value as it is spelled, of a text what it says; "" for a list
// or a mapping.
func (n Node) Source() string { return n.n.Value }

// Unquoted tells whether a plain value stands as it is, without quotes and not as a
// block.
func (n Node) Unquoted() bool {
	return n.n.Kind == yaml.ScalarNode && n.n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0
}

// Text returns a text that is not empty.
func (n Node) Text() (string, error) {
	s, ok := n.Scalar().(string)
	if !ok || s == "" {
		return "", n.Failf("want a text")
	}
	return s, nil
}

// Float returns a finite number.
func (n Node) Float() (float64, error) {
	f := math.NaN()
	switch v := n.Scalar().(type) {
	case float64:
		f = v
	case int64:
		f = float64(v)
	case uint64:
		f = float64(v)
	case string: // a spelling of numbers that YAML does not have
		if x, err := strconv.ParseFloat(v, 64); err == nil {
			f = x
		}
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0, n.Failf("want a finite number")
	}
	return f, nil
}

// Int returns an integer of 64 bits.
func (n Node) Int() (int64, error) {
	if i, ok := n.Scalar().(int64); ok {
		return i, nil
	}
	return 0, n.Failf("want an integer of 64 bits")
}

// Uint returns a whole number of 64 bits, not negative.
func (n Node) Uint() (uint64, error) {
	switch v := n.Scalar().(type) {
	case int64:
		if v >= 0 {
			return uint64(v), nil
		}
	case uint64:
		return v, nil
	}
	return 0, n.Failf("want a whole number from 0 on")
}

// JSON spells a value as JSON.
func (n Node) JSON() ([]byte, error) {
	switch n.n.Kind {
	case yaml.SequenceNode:
		out := []byte("[")
		for i, c := range n.n.Content {
			b, err := Node{n.file, c}.JSON()
			if err != nil {
				return nil, err
			}
			if i > 0 {
				out = append(out, ',')
			}
			out = append(out, b...)
		}
		return append(out, ']'), nil
	case yaml.MappingNode:
		return n.mapJSON()
	}
	switch v := n.Scalar().(type) {
	case string:
		if err := serde.ValidString(v); err != nil {
			return nil, n.Fail(err, "")
		}
		return serde.AppendString(nil, v), nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, n.Failf("%s is not a plain JSON value", strings.TrimSpace(n.n.Value))
		}
		return serde.AppendFloat(nil, v), nil
	default:
		b, err := json.Marshal(v)
		if err != nil {
			return nil, n.Fail(fmt.Errorf("not a plain JSON value: %w", err), "")
		}
		return b, nil
	}
}

func (n Node) mapJSON() ([]byte, error) {
	list, err := n.Map("a value")
	if err != nil {
		var e *Error
		if errors.As(err, &e) {
			e.Err = fmt.Errorf("not a plain JSON value: %w", e.Err)
		}
		return nil, err
	}
	out := []byte("{")
	for i, e := range list {
		b, err := e.Value.JSON()
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = serde.AppendString(out, e.Key)
		out = append(append(out, ':'), b...)
	}
	return append(out, '}'), nil
}
