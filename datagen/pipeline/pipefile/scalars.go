package pipefile

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/foldlog/foldlog/internal/yamldoc"
)

// mapping is a YAML mapping, each key once.
type mapping struct {
	node   *yamldoc.Node
	keys   []string // in their order
	values map[string]*yamldoc.Node
}

// mapping reads a mapping whose keys are known; none means any key.
func (r *reader) mapping(n *yamldoc.Node, what string, known ...string) (*mapping, error) {
	list, err := n.Map(what)
	if err != nil {
		return nil, err
	}
	m := &mapping{node: n, values: map[string]*yamldoc.Node{}}
	for _, e := range list {
		if len(known) > 0 && !slices.Contains(known, e.Key) {
			return nil, e.At.Fail(fmt.Errorf("%s has no key %q", what, e.Key), "there are "+strings.Join(known, ", "))
		}
		m.keys = append(m.keys, e.Key)
		m.values[e.Key] = &e.Value
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

func (r *reader) textOf(n *yamldoc.Node, what string) (string, error) {
	if _, isList := n.Items(); isList || n.IsMap() {
		return "", n.Failf("%s must be a text", what)
	}
	if n.Scalar() == nil {
		return "", n.Failf("%s has no value", what)
	}
	return n.Source(), nil
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
	return 0, n.Failf("%s must be a whole number, at least %d", key, low)
}

func whole(n *yamldoc.Node) (int64, bool) {
	i, err := n.Int()
	return i, err == nil
}

// duration is a time such as 500ms, 0 if absent.
func (r *reader) duration(m *mapping, key string) (time.Duration, error) {
	text, err := r.text(m, key)
	if err != nil || text == "" {
		return 0, err
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, m.values[key].Fail(fmt.Errorf("%s: %q is not a time", key, text), "write it as 500ms, 2s or 1m30s")
	}
	return d, nil
}

func (r *reader) truth(m *mapping, key string) (bool, error) {
	n := m.values[key]
	if n == nil {
		return false, nil
	}
	b, ok := n.Scalar().(bool)
	if !ok {
		return false, n.Failf("%s must be true or false", key)
	}
	return b, nil
}

// texts is a list of texts.
func (r *reader) texts(n *yamldoc.Node, what string) ([]string, error) {
	list, ok := n.Items()
	if !ok {
		return nil, n.Failf("%s must be a list", what)
	}
	all := make([]string, len(list))
	for i := range list {
		text, err := r.textOf(&list[i], what)
		if err != nil {
			return nil, err
		}
		all[i] = text
	}
	return all, nil
}

// cond reads a condition. Where it is wrong is told within a text that is not
// quoted and stands on one line.
func (r *reader) condText(n *yamldoc.Node, what string) (string, error) {
	if b, ok := n.Scalar().(bool); ok {
		return fmt.Sprint(b), nil
	}
	return r.textOf(n, what)
}

func (r *reader) condError(n *yamldoc.Node, text string, err error) error {
	advice := `conditions are such as: score >= 0.9 and (label == "cat" or not done)`
	fault := n.Fail(fmt.Errorf("condition %q: %w", text, err), advice)
	var e *Error
	var at *exprError
	if errors.As(fault, &e) && errors.As(err, &at) && n.Unquoted() && !strings.ContainsAny(text[:at.offset], "\n") {
		e.Column += at.offset
	}
	return fault
}
