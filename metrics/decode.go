package metrics

import (
	"bytes"
	"errors"
	"fmt"
	"math"

	"github.com/foldlog/foldlog/internal/serde"
)

// Decoder reads events from lines. It keeps the names and metadata that repeat,
// within bounds, and allocates nothing for a metric whose name and metadata it
// has seen. The zero value is ready; one Decoder serves one goroutine.
type Decoder struct {
	names, metas intern
	scan         serde.Scanner
	members      []member
	index        map[string]int // of members by key, where they are many
	plain        bool           // take a bare word under any key: not only events come
}

// member is one key of the object on a line. Both texts alias the line, or
// the memory of their own that an escaped key needs.
type member struct {
	key     []byte
	rawKey  []byte
	raw     []byte
	offset  int  // of raw in the line
	lenient bool // a bare word that is not JSON
}

// Decode reads one line, with or without its newline, into e. A line that is
// no event is an error, always a [LineError]: [ErrKind] around it means a JSON
// object of no known kind, [serde.ErrSyntax] and its kin no JSON at all. After
// an error e is the zero event. Numbers may be spelled as package serde writes
// them, and in the other ways that [Event.Lenient] tells.
func (d *Decoder) Decode(line []byte, e *Event) error {
	line = bytes.TrimSuffix(line, newline)
	if d.fastMetric(line, e) {
		return nil
	}
	*e = Event{}
	if err := d.decode(line, e); err != nil {
		*e = Event{}
		return err
	}
	return nil
}

var newline = []byte("\n")

func (d *Decoder) decode(line []byte, e *Event) error {
	if err := d.split(line); err != nil {
		return err
	}
	i := d.find("kind")
	if i < 0 {
		return at(0, fmt.Errorf("%w: no kind", ErrKind))
	}
	m := d.members[i]
	if m.raw[0] != '"' {
		return at(m.offset, fmt.Errorf("%w: it is not a string", ErrKind))
	}
	sub := serde.NewScanner(m.raw)
	name := sub.Bytes()
	if e.Kind = kindOf(name); e.Kind == 0 {
		return at(m.offset, fmt.Errorf("%w: %.80q", ErrKind, name))
	}
	return d.fields(e)
}

// at places an error at an offset of the line.
func at(offset int, err error) error { return &LineError{Column: offset + 1, Err: err} }

// placed is at for an error of package serde inside a value at an offset.
func placed(offset int, err error) error {
	var fault *serde.Error
	if errors.As(err, &fault) {
		return at(offset+fault.Offset, fault.Err)
	}
	return at(offset, err)
}

// split takes the object on the line apart; every value is checked.
func (d *Decoder) split(line []byte) error {
	d.members = d.members[:0]
	s := &d.scan
	s.Reset(line)
	if s.Peek() == 0 && len(bytes.TrimSpace(line)) == 0 {
		return at(0, ErrEmpty)
	}
	for s.Object(); s.NextKey(); {
		m := member{key: s.Key(), rawKey: s.RawKey()}
		if len(m.key) != len(m.rawKey)-2 {
			m.key = bytes.Clone(m.key)
		}
		s.Peek()
		m.offset = s.Offset()
		m.lenient = (d.plain || string(m.key) == "value") && acceptBare(s, line)
		if m.lenient {
			m.raw = line[m.offset:s.Offset()]
		} else if m.raw = s.Raw(); s.Err() != nil {
			break
		}
		d.members = append(d.members, m)
	}
	if err := s.End(); err != nil {
		return placed(0, err)
	}
	d.indexMembers()
	return nil
}

// fewMembers is up to how many a search from the end beats a map.
const fewMembers = 16

func (d *Decoder) indexMembers() {
	clear(d.index)
	if len(d.members) <= fewMembers {
		return
	}
	if d.index == nil {
		d.index = make(map[string]int, len(d.members))
	}
	for i := range d.members {
		d.index[string(d.members[i].key)] = i
	}
}

// acceptBare moves past a NaN or infinity without quotes.
func acceptBare(s *serde.Scanner, line []byte) bool {
	if s.Offset() >= len(line) || !bareStart(line[s.Offset():]) {
		return false
	}
	for _, word := range bareWords {
		if s.Accept(word) {
			return true
		}
	}
	return false
}

// bareStart keeps numbers, strings and null away from the list of words.
func bareStart(b []byte) bool {
	if len(b) > 1 && (b[0] == '-' || b[0] == '+') {
		b = b[1:]
	}
	return b[0] == 'N' || b[0] == 'I' || b[0] == 'i' || b[0] == 'n' && !bytes.HasPrefix(b, []byte("null"))
}

// find returns the index of the last member with a key, -1 if there is none.
func (d *Decoder) find(key string) int {
	if len(d.members) > fewMembers {
		if i, ok := d.index[key]; ok {
			return i
		}
		return -1
	}
	for i := len(d.members) - 1; i >= 0; i-- {
		if string(d.members[i].key) == key {
			return i
		}
	}
	return -1
}

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

// complete tells whether the line was a whole object, so that what is wrong
// with it is in a field.
func (d *Decoder) complete() bool { return d.scan.Err() == nil }
