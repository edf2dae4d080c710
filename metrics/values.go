package metrics

import (
	"bytes"
	"strings"

	"github.com/foldlog/foldlog/internal/serde"
)

// Value is a name with what a line of a training log says about it.
type Value struct {
	Name string
	// Number is the value if IsNumber: a JSON number, a bare or quoted NaN or
	// infinity, or a text after "=" that reads as one.
	Number   Number
	IsNumber bool
	// Text is the value otherwise: a string without its quotes, any other
	// JSON as it is written.
	Text string
}

// maxFlatten is how deep objects inside objects are taken apart.
const maxFlatten = 8

// flatten appends the value of a member; that of an object, its members under
// "name/".
func flatten(dst []Value, name string, raw []byte) []Value {
	return flattenTo(dst, name, raw, maxFlatten)
}

func flattenTo(dst []Value, name string, raw []byte, depth int) []Value {
	if raw[0] != '{' || depth == 0 {
		return append(dst, readValue(name, raw))
	}
	s := serde.NewScanner(raw)
	for s.Object(); s.NextKey(); {
		key := string(s.Key())
		inner := s.Raw()
		if s.Err() != nil {
			break
		}
		dst = flattenTo(dst, name+"/"+key, inner, depth-1)
	}
	return dst
}

func readValue(name string, raw []byte) Value {
	v := Value{Name: name}
	s := serde.NewScanner(raw)
	switch c := raw[0]; {
	case c == '"':
		v.Text = s.String()
		f, _, ok := nonFinite(v.Text)
		v.Number, v.IsNumber = Float(f), ok
	case c == '-' || '0' <= c && c <= '9':
		n, err := jsonNumber(&s, raw)
		v.Number, v.IsNumber = n, err == nil
		v.Text = string(raw)
	default:
		v.Text = string(raw)
	}
	if v.IsNumber {
		v.Text = ""
	}
	return v
}

// appendPairs finds name=value pairs, as in "step=4 loss=0.31, lr=1e-3". Of a
// line that a progress bar has drawn over, the last drawing counts.
func appendPairs(dst []Value, text []byte) []Value {
	if i := bytes.LastIndexByte(text, '\r'); i >= 0 {
		text = text[i+1:]
	}
	if bytes.IndexByte(text, '=') < 0 {
		return dst
	}
	for _, word := range bytes.FieldsFunc(text, separates) {
		name, value, ok := bytes.Cut(word, []byte("="))
		if !ok || len(name) == 0 || len(value) == 0 || len(name) > MaxName {
			continue
		}
		if n, ok := pairNumber(value); ok {
			dst = append(dst, Value{Name: strings.ToValidUTF8(string(name), "\uFFFD"), Number: n, IsNumber: true})
		}
	}
	return dst
}

func separates(r rune) bool { return strings.ContainsRune(" \t,;|[](){}", r) }

func pairNumber(value []byte) (Number, bool) {
	value = bytes.TrimSuffix(bytes.TrimPrefix(value, []byte("+")), []byte("%"))
	if f, _, ok := nonFinite(string(value)); ok {
		return Float(f), true
	}
	s := serde.NewScanner(value)
	n, err := jsonNumber(&s, value)
	return n, err == nil
}
