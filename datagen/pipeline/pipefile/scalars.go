package pipefile

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// mapping is a YAML mapping, each key once.
type mapping struct {
	node   ast.Node
	keys   []string // in their order
	values map[string]ast.Node
	at     map[string]ast.Node // the keys
}

// mapping reads a mapping whose keys are known; none means any key.
func (r *reader) mapping(n ast.Node, what string, known ...string) (*mapping, error) {
	var list []*ast.MappingValueNode
	switch m := n.(type) {
	case *ast.MappingNode:
		list = m.Values
	case *ast.MappingValueNode:
		list = []*ast.MappingValueNode{m}
	default:
		return nil, r.failf(n, "%s must be a mapping", what)
	}
	m := &mapping{node: n, values: map[string]ast.Node{}, at: map[string]ast.Node{}}
	for _, e := range list {
		scalar, ok := e.Key.(ast.ScalarNode)
		key, isText := "", false
		if ok {
			key, isText = scalar.GetValue().(string)
		}
		switch {
		case !isText:
			return nil, r.failf(e.Key, "a key must be a text")
		case m.values[key] != nil:
			return nil, r.failf(e.Key, "%q stands twice", key)
		case len(known) > 0 && !slices.Contains(known, key):
			return nil, r.fail(e.Key, fmt.Errorf("%s has no key %q", what, key), "there are "+strings.Join(known, ", "))
		}
		m.keys = append(m.keys, key)
		m.values[key], m.at[key] = e.Value, e.Key
	}
	return m, nil
}

// text is a text, or a number or truth value as it is spelled; "" if absent.
func (r *reader) text(m *mapping, key string) (string, error) {
	n := m.values[key]
	if n == nil {
		return "", nil
	}
	return r.textOf(n, key)
}

func (r *reader) textOf(n ast.Node, what string) (string, error) {
	if l, ok := n.(*ast.LiteralNode); ok {
		return l.Value.Value, nil
	}
	s, ok := n.(ast.ScalarNode)
	if !ok {
		return "", r.failf(n, "%s must be a text", what)
	}
	switch v := s.GetValue().(type) {
	case string:
		return v, nil
	case nil:
		return "", r.failf(n, "%s has no value", what)
	}
	return n.GetToken().Value, nil
}

// number is a whole number from low up, and unset if absent.
func (r *reader) number(m *mapping, key string, low, unset int) (int, error) {
	n := m.values[key]
	if n == nil {
		return unset, nil
	}
	if i, ok := whole(n); ok && i >= int64(low) && i <= math.MaxInt32 {
		return int(i), nil
	}
	return 0, r.failf(n, "%s must be a whole number, at least %d", key, low)
}

func whole(n ast.Node) (int64, bool) {
	i, ok := n.(*ast.IntegerNode)
	if !ok {
		return 0, false
	}
	switch v := i.Value.(type) {
	case int64:
		return v, true
	case uint64:
		return int64(v), v <= math.MaxInt64
	}
	return 0, false
}

// duration is a time such as 500ms, 0 if absent.
func (r *reader) duration(m *mapping, key string) (time.Duration, error) {
	text, err := r.text(m, key)
	if err != nil || text == "" {
		return 0, err
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, r.fail(m.values[key], fmt.Errorf("%s: %q is not a time", key, text), "write it as 500ms, 2s or 1m30s")
	}
	return d, nil
}

func (r *reader) truth(m *mapping, key string) (bool, error) {
	n := m.values[key]
	if n == nil {
		return false, nil
	}
	b, ok := n.(*ast.BoolNode)
	if !ok {
		return false, r.failf(n, "%s must be true or false", key)
	}
	return b.Value, nil
}

// texts is a list of texts.
func (r *reader) texts(n ast.Node, what string) ([]string, error) {
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		return nil, r.failf(n, "%s must be a list", what)
	}
	all := make([]string, len(list.Values))
	for i, v := range list.Values {
		text, err := r.textOf(v, what)
		if err != nil {
			return nil, err
		}
		all[i] = text
	}
	return all, nil
}

// cond reads a condition. Where it is wrong is told within a text that is not
// quoted and stands on one line.
func (r *reader) condText(n ast.Node, what string) (string, error) {
	if b, ok := n.(*ast.BoolNode); ok {
		return fmt.Sprint(b.Value), nil
	}
	return r.textOf(n, what)
}

func (r *reader) condError(n ast.Node, text string, err error) error {
	advice := `conditions are such as: score >= 0.9 and (label == "cat" or not done)`
	e, _ := r.fail(n, fmt.Errorf("condition %q: %w", text, err), advice).(*Error)
	var at *exprError
	if errors.As(err, &at) {
		if _, plain := n.(*ast.StringNode); plain && !strings.ContainsAny(text[:at.offset], "\n") {
			e.Column += at.offset
		}
	}
	return e
}
