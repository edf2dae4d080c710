package metrics

import (
	"bytes"
	"errors"
	"fmt"
	"math"

	"github.com/foldlog/foldlog/internal/serde"
)

// fieldsOf are the fields of each kind besides ts_ms and kind.
var fieldsOf = [...][]string{
	KindOpen:       {"slug", "description", "metadata"},
	KindMetric:     {"step", "name", "value", "metadata"},
	KindAnnotation: {"step", "annotation", "metadata"},
	KindDone:       {"slug"},
}

func (d *Decoder) fields(e *Event) error {
	if err := d.field(e, "ts_ms"); err != nil {
		return err
	}
	for _, key := range fieldsOf[e.Kind] {
		if err := d.field(e, key); err != nil {
			return err
		}
	}
	d.extra(e)
	return nil
}

func (d *Decoder) field(e *Event, key string) error {
	i := d.find(key)
	if i < 0 {
		switch key {
		case "metadata":
			e.Lenient |= LenientMetadata
			return nil
		case "description":
			e.Lenient |= LenientDescription
			return nil
		}
		return at(0, fmt.Errorf("%w: %s of %s", ErrMissing, key, e.Kind))
	}
	m := &d.members[i]
	if m.lenient && key != "value" {
		return at(m.offset, fmt.Errorf("%s: %w: bare %s", key, serde.ErrNonFinite, m.raw))
	}
	var err error
	switch key {
	case "ts_ms":
		e.TSMS, err = e.integer(m)
	case "step":
		e.Step, err = e.integer(m)
	case "value":
		e.Value, err = e.number(m)
	case "slug":
		e.Slug, err = text(m)
	case "description":
		e.Description, err = text(m)
	case "annotation":
		e.Text, err = text(m)
	case "name":
		e.Name, err = d.name(m)
	case "metadata":
		e.Metadata, err = d.metadata(m)
	}
	if err != nil {
		return placed(m.offset, fieldError(key, err))
	}
	return nil
}

// fieldError says which field it is and keeps the place.
func fieldError(key string, err error) error {
	var fault *serde.Error
	if errors.As(err, &fault) {
		return &serde.Error{Offset: fault.Offset, Err: fmt.Errorf("%s: %w", key, fault.Err)}
	}
	return fmt.Errorf("%s: %w", key, err)
}

func text(m *member) (string, error) {
	s := serde.NewScanner(m.raw)
	t := s.String()
	return t, s.Err()
}

func (d *Decoder) name(m *member) (string, error) {
	if m.raw[0] == '"' {
		if name, ok := d.names.find(m.raw[1 : len(m.raw)-1]); ok {
			return name, nil
		}
	}
	s := serde.NewScanner(m.raw)
	name := s.Bytes()
	if s.Err() != nil {
		return "", s.Err()
	}
	return d.names.keep(m.raw[1:len(m.raw)-1], name), nil
}

func (d *Decoder) metadata(m *member) (Metadata, error) {
	if m.raw[0] != '{' {
		return "", fmt.Errorf("%w: an object expected", serde.ErrType)
	}
	return Metadata(d.metas.keep(m.raw, m.raw)), nil
}

// integer reads a 64-bit integer, also one that is spelled with a point or an
// exponent, as by writers that have floats only.
func (e *Event) integer(m *member) (int64, error) {
	s := serde.NewScanner(m.raw)
	v := s.Int64()
	err := s.End()
	if err == nil || !errors.Is(err, serde.ErrType) || m.raw[0] == '"' {
		return v, err
	}
	s.Reset(m.raw)
	f := s.Float64()
	if s.End() != nil || f != math.Trunc(f) || math.Abs(f) >= 1<<53 {
		return 0, err
	}
	e.Lenient |= LenientInteger
	return int64(f), nil
}

// number reads the value of a metric.
func (e *Event) number(m *member) (Number, error) {
	if m.lenient || m.raw[0] == 'n' {
		f, _, ok := nonFinite(string(m.raw))
		if !ok {
			f = math.NaN() // null
		}
		e.Lenient |= LenientNumber
		return Float(f), nil
	}
	s := serde.NewScanner(m.raw)
	if m.raw[0] == '"' {
		word := s.String()
		f, exact, ok := nonFinite(word)
		if !ok {
			return Number{}, fmt.Errorf("%w: a number expected, not a string", serde.ErrType)
		}
		if !exact {
			e.Lenient |= LenientNumber
		}
		return Float(f), nil
	}
	return jsonNumber(&s, m.raw)
}

// jsonNumber keeps integers that fit 64 bits as they are; larger ones, and a
// negative zero, become floats.
func jsonNumber(s *serde.Scanner, raw []byte) (Number, error) {
	if !bytes.ContainsAny(raw, ".eE") && string(raw) != "-0" {
		if v := s.Int64(); s.End() == nil {
			return Int(v), nil
		}
		s.Reset(raw)
		if v := s.Uint64(); s.End() == nil {
			return Uint(v), nil
		}
		s.Reset(raw)
	}
	f := s.Float64()
	return Float(f), s.End()
}

// extra collects the members that the kind does not have, and tells whether
// one is there twice.
func (d *Decoder) extra(e *Event) {
	var extra []byte
	for i := range d.members {
		m := &d.members[i]
		switch {
		case d.find(string(m.key)) != i:
			e.Lenient |= LenientKeys
			continue
		case isField(e.Kind, m.key):
			continue
		}
		if len(extra) > 0 {
			extra = append(extra, ',')
		}
		extra = append(append(append(extra, m.rawKey...), ':'), m.jsonRaw()...)
	}
	e.Extra = string(extra)
}

// jsonRaw is the value as JSON has it.
func (m *member) jsonRaw() []byte {
	if !m.lenient {
		return m.raw
	}
	f, _, _ := nonFinite(string(m.raw))
	return Float(f).Append(nil)
}

func isField(k Kind, key []byte) bool {
	if string(key) == "kind" || string(key) == "ts_ms" {
		return true
	}
	for _, field := range fieldsOf[k] {
		if string(key) == field {
			return true
		}
	}
	return false
}
