package metrics

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/foldlog/foldlog/internal/serde"
)

// Metadata is one JSON object as text: what an event's metadata field holds.
// The empty text stands for an object without members. Use [Meta] or
// [MetaOf] to make one, and keep it: passing the same one again is free.
type Metadata string

// Meta makes metadata of keys and their string values in turn, in that order;
// a last key without a value is left out. Text that is not UTF-8 is mended.
func Meta(pairs ...string) Metadata {
	if len(pairs) < 2 {
		return ""
	}
	b := []byte{'{'}
	for i := 0; i+1 < len(pairs); i += 2 {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(serde.AppendString(b, strings.ToValidUTF8(pairs[i], "\uFFFD")), ':')
		b = serde.AppendString(b, strings.ToValidUTF8(pairs[i+1], "\uFFFD"))
	}
	return Metadata(append(b, '}'))
}

// MetaOf spells a map or struct as metadata. It fails with [ErrMetadata] on
// what is not a JSON object; NaN and infinities must be strings.
func MetaOf(v any) (Metadata, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "", fmt.Errorf("spell metadata: %w", err)
	}
	return Metadata(buf.String()).compact()
}

// compact checks the metadata and takes white space between tokens away.
func (m Metadata) compact() (Metadata, error) {
	if m == "" {
		return "", nil
	}
	s := serde.NewScanner([]byte(m))
	if s.Peek() != '{' {
		return "", ErrMetadata
	}
	s.Skip()
	if err := s.End(); err != nil {
		return "", fmt.Errorf("%w: %w", ErrMetadata, err)
	}
	if !strings.ContainsAny(string(m), " \t\r\n") {
		return m, nil
	}
	var buf bytes.Buffer
	if err := json.Compact(&buf, []byte(m)); err != nil {
		return "", fmt.Errorf("%w: %w", ErrMetadata, err)
	}
	return Metadata(buf.String()), nil
}

// All yields every member in order, its value as it is written. It ends early
// where the text is not JSON.
func (m Metadata) All() iter.Seq2[string, string] {
	return func(yield func(key, raw string) bool) {
		if m == "" {
			return
		}
		s := serde.NewScanner([]byte(m))
		for s.Object(); s.NextKey(); {
			key := string(s.Key())
			raw := s.Raw()
			if s.Err() != nil || !yield(key, string(raw)) {
				return
			}
		}
	}
}

// Get returns the value of a key as it is written, the last one if the key is
// there twice.
func (m Metadata) Get(key string) (raw string, ok bool) {
	for k, v := range m.All() {
		if k == key {
			raw, ok = v, true
		}
	}
	return raw, ok
}

// Text returns a value for people: a string without its quotes, anything else
// as it is written; "" if it is not there.
func (m Metadata) Text(key string) string {
	raw, _ := m.Get(key)
	return textOf(raw)
}

func textOf(raw string) string {
	if !strings.HasPrefix(raw, `"`) {
		return raw
	}
	s := serde.NewScanner([]byte(raw))
	return s.String()
}

// Float64 returns a number, false if the key holds something else.
func (m Metadata) Float64(key string) (float64, bool) {
	raw, ok := m.Get(key)
	if !ok {
		return 0, false
	}
	s := serde.NewScanner([]byte(raw))
	f := s.Float64()
	return f, s.End() == nil
}

// Strings returns an array of strings, nil if the key holds something else.
func (m Metadata) Strings(key string) []string {
	raw, ok := m.Get(key)
	if !ok || !strings.HasPrefix(raw, "[") {
		return nil
	}
	var out []string
	s := serde.NewScanner([]byte(raw))
	for s.Array(); s.NextElem(); {
		out = append(out, s.String())
	}
	if s.End() != nil {
		return nil
	}
	return out
}

// Merge adds the members of over; where both have a key, over has its way and
// the place of the key stays.
func (m Metadata) Merge(over Metadata) Metadata {
	if m == "" || m == "{}" {
		return over
	}
	if over == "" || over == "{}" {
		return m
	}
	type member struct{ key, raw string }
	var members []member
	places := map[string]int{}
	set := func(key, raw string) {
		i, ok := places[key]
		if !ok {
			places[key] = len(members)
			members = append(members, member{key, raw})
			return
		}
		members[i].raw = raw
	}
	for _, part := range []Metadata{m, over} {
		for key, raw := range part.All() {
			set(key, raw)
		}
	}
	b := []byte{'{'}
	for i, have := range members {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(serde.AppendString(b, have.key), ':'), have.raw...)
	}
	return Metadata(append(b, '}'))
}

// Canonical is the same for two texts of the same object: keys in order, no
// white space. Text that has no such spelling stands for itself.
func (m Metadata) Canonical() Metadata {
	if m == "" || m == "{}" {
		return "{}"
	}
	b, err := serde.AppendPortable(nil, []byte(m))
	if err != nil {
		return m
	}
	return Metadata(b)
}

// Matches tells whether the metadata has every one of the given members, by
// their [Metadata.Text].
func (m Metadata) Matches(where map[string]string) bool {
	for key, want := range where {
		if raw, ok := m.Get(key); !ok || textOf(raw) != want {
			return false
		}
	}
	return true
}

// quote spells a text as a JSON string.
func quote(text string) string { return string(serde.AppendString(nil, text)) }

// seconds spells a duration in seconds as the documents do.
func seconds(s float64) string { return string(serde.AppendFloat(nil, s)) }

// itoa is short for a decimal integer.
func itoa(n int64) string { return strconv.FormatInt(n, 10) }
