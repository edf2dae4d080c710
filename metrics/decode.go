package metrics

import (
	"bytes"
	"errors"
	"fmt"

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

// complete tells whether the line was a whole object, so that what is wrong
// with it is in a field.
func (d *Decoder) complete() bool { return d.scan.Err() == nil }
