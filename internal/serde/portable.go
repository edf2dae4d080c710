package serde

import (
	"bytes"
	"fmt"
	"slices"
)

// AppendPortable appends one JSON value in its canonical spelling, the one in
// which attribute values and state blobs are written: no white space, keys
// sorted by their bytes, strings as [AppendString], integers with all their
// digits as they are, numbers with a point or exponent as [AppendFloat].
//
// Refused, with an [Error] around the sentinel: what is not JSON, bad UTF-8,
// lone surrogates, bare NaN and infinities ([ErrNonFinite]), numbers that do
// not fit a float64 ([ErrRange]), duplicate keys and nesting deeper than
// [MaxDepth]. After an error dst is returned as it was.
func AppendPortable(dst, raw []byte) ([]byte, error) {
	p := portable{s: NewScanner(raw), dst: dst}
	p.value()
	if err := p.s.End(); err != nil {
		return dst, err
	}
	return p.dst, nil
}

type portable struct {
	s   Scanner
	dst []byte
}

// member is one key of an object and where `"key":value` stands in dst.
type member struct {
	key        []byte
	start, end int
}

func (p *portable) value() {
	switch p.s.Peek() {
	case '{':
		p.object()
	case '[':
		p.array()
	case '"':
		p.dst = appendStringBytes(p.dst, p.s.Bytes())
	case 't', 'f', 'n':
		p.dst = append(p.dst, p.s.Raw()...)
	default:
		p.number()
	}
}

func (p *portable) number() {
	raw := p.s.Raw()
	if bytes.IndexByte(raw, '.') < 0 && bytes.IndexByte(raw, 'e') < 0 && bytes.IndexByte(raw, 'E') < 0 {
		p.dst = append(p.dst, raw...)
		return
	}
	sub := NewScanner(raw)
	f := sub.Float64()
	if sub.Err() != nil {
		p.s.failAt(p.s.Offset()-len(raw), fmt.Errorf("%w: %.40s does not fit a float64", ErrRange, raw))
		return
	}
	p.dst = AppendFloat(p.dst, f)
}

func (p *portable) array() {
	p.dst = append(p.dst, '[')
	n := 0
	for p.s.Array(); p.s.NextElem(); n++ {
		if n > 0 {
			p.dst = append(p.dst, ',')
		}
		p.value()
	}
	p.dst = append(p.dst, ']')
}

// object writes the members in the order they come and puts them in order
// afterwards, so that nothing is scanned twice.
func (p *portable) object() {
	p.dst = append(p.dst, '{')
	first := len(p.dst)
	var members []member
	sorted := true
	for p.s.Object(); p.s.NextKey(); {
		key := p.s.Key()
		if len(key) != len(p.s.RawKey())-2 {
			key = bytes.Clone(key)
		}
		if n := len(members); n > 0 && bytes.Compare(members[n-1].key, key) >= 0 {
			sorted = false
		}
		start := len(p.dst)
		p.dst = append(appendStringBytes(p.dst, key), ':')
		p.value()
		members = append(members, member{key, start, len(p.dst)})
		p.dst = append(p.dst, ',')
	}
	if p.s.Err() != nil {
		return
	}
	if !sorted && !p.sort(members, first) {
		return
	}
	if len(members) > 0 {
		p.dst = p.dst[:len(p.dst)-1]
	}
	p.dst = append(p.dst, '}')
}

// sort permutes the members, each with its comma, in place.
func (p *portable) sort(members []member, first int) bool {
	slices.SortFunc(members, func(a, b member) int { return bytes.Compare(a.key, b.key) })
	was := bytes.Clone(p.dst[first:])
	p.dst = p.dst[:first]
	for i, m := range members {
		if i > 0 && bytes.Equal(members[i-1].key, m.key) {
			p.s.Fail(fmt.Errorf("%w: %.80q", ErrDuplicateKey, m.key))
			return false
		}
		p.dst = append(p.dst, was[m.start-first:m.end-first]...)
		p.dst = append(p.dst, ',')
	}
	return true
}
