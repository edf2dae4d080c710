package study

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"github.com/foldlog/foldlog/internal/serde"
)

// AppendOp appends the JSON object of one operation as the format spells it:
// compact, the kind first, then the fields in the order of the document, then
// unknown fields. JSON values inside are written as they are. After an error
// (text that is not UTF-8, a value that is not JSON, a field that cannot be
// spelled) dst is returned as it was.
func AppendOp(dst []byte, op Op) ([]byte, error) {
	e := encoder{b: dst}
	e.b = append(e.b, `{"kind":"`...)
	e.b = append(e.b, op.Kind()...)
	e.b = append(e.b, '"')
	op.encode(&e)
	e.b = append(e.b, '}')
	if e.err != nil {
		return dst, fmt.Errorf("encode %s: %w", op.Kind(), e.err)
	}
	return e.b, nil
}

// AppendSpace appends the JSON of a search space as create-study has it, null
// for nil. The errors are those of [AppendOp].
func AppendSpace(dst []byte, s *Space) ([]byte, error) {
	e := encoder{b: dst}
	e.space(s)
	if e.err != nil {
		return dst, fmt.Errorf("encode space: %w", e.err)
	}
	return e.b, nil
}

// ParseSpace reads the JSON of a search space, nil for null. Unlike a decoder it
// refuses an unknown shape, with [ErrInvalid].
func ParseSpace(raw []byte) (*Space, error) {
	s := serde.NewScanner(raw)
	null := s.Null()
	if !null {
		s.Skip()
	}
	if err := s.End(); err != nil {
		return nil, fmt.Errorf("parse space: %w", err)
	}
	if null {
		return nil, nil
	}
	space := readSpace(raw)
	unknown := func(p SpaceParam) bool { _, other := p.Dist.(OtherDist); return other }
	if space.Raw != "" || slices.ContainsFunc(space.Params, unknown) {
		return nil, fmt.Errorf("parse space: %w: unknown shape %.80s", ErrInvalid, raw)
	}
	return space, nil
}

// encoder appends JSON and remembers the first fault.
type encoder struct {
	b   []byte
	err error
}

func (e *encoder) fail(err error) {
	if e.err == nil {
		e.err = err
	}
}

// name begins a field after another one.
func (e *encoder) name(name string) {
	e.b = append(e.b, ',', '"')
	e.b = append(e.b, name...)
	e.b = append(e.b, '"', ':')
}

// lit appends fixed text.
func (e *encoder) lit(s string) { e.b = append(e.b, s...) }

func (e *encoder) uint(n uint64) { e.b = strconv.AppendUint(e.b, n, 10) }

func (e *encoder) uintField(name string, n uint64) {
	e.name(name)
	e.uint(n)
}

func (e *encoder) str(s string) {
	if err := serde.ValidString(s); err != nil {
		e.fail(err)
	}
	e.b = serde.AppendString(e.b, s)
}

func (e *encoder) strField(name, s string) {
	e.name(name)
	e.str(s)
}

// raw appends JSON as it is, if it is JSON and stays on one line.
func (e *encoder) raw(raw []byte) {
	s := serde.NewScanner(raw)
	s.Skip()
	if err := s.End(); err != nil {
		e.fail(err)
	}
	if bytes.IndexByte(raw, '\n') >= 0 {
		e.fail(fmt.Errorf("%w: JSON value with a line break", ErrInvalid))
	}
	e.b = append(e.b, raw...)
}

func (e *encoder) state(name string, s State) {
	if s >= numStates {
		e.fail(fmt.Errorf("%w: %v", ErrInvalid, s))
	}
	e.name(name)
	e.b = append(e.b, '"')
	e.b = append(e.b, s.String()...)
	e.b = append(e.b, '"')
}

func (e *encoder) floats(vs []float64) {
	e.b = append(e.b, '[')
	for i, v := range vs {
		if i > 0 {
			e.b = append(e.b, ',')
		}
		e.b = serde.AppendFloat(e.b, v)
	}
	e.b = append(e.b, ']')
}

func (e *encoder) extra(fields []Field) {
	for _, f := range fields {
		e.b = append(e.b, ',')
		e.str(f.Key)
		e.b = append(e.b, ':')
		e.raw([]byte(f.Raw))
	}
}

func (e *encoder) value(v Value) {
	if v.kind >= ValueOther {
		e.raw([]byte(v.raw))
		return
	}
	e.b = v.append(e.b)
}

func (e *encoder) dist(d Distribution) {
	switch d := d.(type) {
	case nil:
		e.fail(fmt.Errorf("%w: no distribution", ErrInvalid))
		return
	case OtherDist:
		e.raw([]byte(d))
		return
	case *CatDist:
		for _, c := range d.Choices {
			e.checkChoice(c)
		}
	}
	e.b = d.appendDist(e.b)
}

func (e *encoder) checkChoice(c Choice) {
	check := encoder{}
	check.str(c.Label)
	check.str(c.Value.Type)
	check.raw([]byte(c.Value.JSON))
	if check.err != nil {
		e.fail(fmt.Errorf("choice: %w", check.err))
	}
}

func (e *encoder) params(ps []Param) {
	e.b = append(e.b, '[')
	for i, p := range ps {
		if i > 0 {
			e.b = append(e.b, ',')
		}
		e.lit(`{"name":`)
		e.str(p.Name)
		e.name("dist")
		e.dist(p.Dist)
		e.name("value")
		e.value(p.Value)
		e.extra(p.Extra)
		e.b = append(e.b, '}')
	}
	e.b = append(e.b, ']')
}

func (e *encoder) template(t *Template) {
	if t == nil {
		return
	}
	e.name("template")
	e.lit(`{"fixed":{`)
	for i, f := range t.Fixed {
		if i > 0 {
			e.b = append(e.b, ',')
		}
		e.str(f.Name)
		e.b = append(e.b, ':')
		e.value(f.Value)
	}
	e.lit(`},"parent":`)
	if t.Parent == nil {
		e.lit("null")
	} else {
		e.uint(uint64(*t.Parent))
	}
	e.extra(t.Extra)
	e.b = append(e.b, '}')
}

func (e *encoder) scope(s Scope) {
	if s.Kind >= ScopeOther {
		e.raw([]byte(s.Raw))
		return
	}
	e.lit(`{"`)
	e.lit(scopeNames[s.Kind])
	e.lit(`":`)
	e.uint(s.ID)
	e.b = append(e.b, '}')
}

func (e *encoder) blob(b *Blob) {
	if b.Raw != nil {
		e.raw(b.Raw)
		return
	}
	e.lit(`{"kind":`)
	e.str(b.Kind)
	e.uintField("version", b.Version)
	e.name("data")
	e.raw(b.Data)
	e.b = append(e.b, '}')
}

func (e *encoder) blobField(name string, b *Blob) {
	if b != nil {
		e.name(name)
		e.blob(b)
	}
}

func (e *encoder) attempt(a *Attempt) {
	if a.Raw != "" {
		e.raw([]byte(a.Raw))
		return
	}
	e.lit(`{"number":`)
	e.uint(a.Number)
	e.uintField("max", a.Max)
	e.b = append(e.b, '}')
}
