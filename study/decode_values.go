package study

import (
	"fmt"

	"github.com/foldlog/foldlog/internal/serde"
)

// intern returns b as a string that is shared with earlier ones.
func (d *Decoder) intern(b []byte) string {
	if s, ok := d.names[string(b)]; ok {
		return s
	}
	if d.names == nil || len(d.names) >= maxInterned {
		d.names = make(map[string]string)
	}
	s := string(b)
	d.names[s] = s
	return s
}

// dist reads a distribution; equal texts share one value.
func (d *Decoder) dist() Distribution {
	raw := d.s.Raw()
	if dist, ok := d.dists[string(raw)]; ok {
		return dist
	}
	if d.s.Err() != nil {
		return nil
	}
	if d.dists == nil || len(d.dists) >= maxInterned {
		d.dists = make(map[string]Distribution)
	}
	dist := readDist(raw)
	d.dists[string(raw)] = dist
	return dist
}

// value reads a parameter's value.
func (d *Decoder) value() (v Value) {
	s := &d.s
	first := s.Peek()
	start := s.Offset()
	if first != '{' {
		return Value{kind: ValueOther, raw: string(s.Raw())}
	}
	n := 0
	for s.Object(); s.NextKey(); n++ {
		switch string(s.Key()) {
		case "F64":
			v = F64(s.Float64())
		case "I64":
			v = I64(s.Int64())
		case "Cat":
			v = Cat(s.Uint64())
		case "Bool":
			v = Bool(s.Bool())
		default:
			s.Skip()
			n++ // one key that is not ours is as good as two
		}
	}
	if n != 1 && s.Err() == nil {
		return Value{kind: ValueOther, raw: string(d.raw[start:s.Offset()])}
	}
	return v
}

var paramFields = objectFields("name", "dist", "value")

// params reads an array of parameters into dst.
func (d *Decoder) params(dst []Param) []Param {
	for d.s.Array(); d.s.NextElem(); {
		var p Param
		d.s.Object()
		t := track(paramFields, false)
		for t.next(d) {
			switch t.field {
			case 0:
				p.Name = d.intern(d.s.Bytes())
			case 1:
				p.Dist = d.dist()
			case 2:
				p.Value = d.value()
			}
		}
		p.Extra = t.extra
		dst = append(dst, p)
	}
	return dst
}

func (d *Decoder) floats(dst []float64) []float64 {
	for d.s.Array(); d.s.NextElem(); {
		dst = append(dst, d.s.Float64())
	}
	return dst
}

func (d *Decoder) state() State {
	switch b := d.s.Bytes(); string(b) {
	case "Waiting":
		return Waiting
	case "Running":
		return Running
	case "Paused":
		return Paused
	case "Complete":
		return Complete
	case "Pruned":
		return Pruned
	case "Failed":
		return Failed
	default:
		d.s.Fail(fmt.Errorf("%w: unknown state %.40q", ErrField, b))
		return 0
	}
}

var templateFields = objectFields("fixed", "parent")

func (d *Decoder) template() *Template {
	if d.s.Null() {
		return nil
	}
	tpl := new(Template)
	d.s.Object()
	t := track(templateFields, false)
	for t.next(d) {
		switch t.field {
		case 0:
			tpl.Fixed = d.fixed()
		case 1:
			tpl.Parent = d.optTrial()
		}
	}
	tpl.Extra = t.extra
	return tpl
}

func (d *Decoder) fixed() (fixed []FixedParam) {
	var names keySet
	for d.s.Object(); d.s.NextKey(); {
		name := d.intern(d.s.Key())
		if !names.add(name) {
			d.s.Fail(fmt.Errorf("%w: fixed parameter %.80q is there twice", ErrField, name))
		}
		fixed = append(fixed, FixedParam{name, d.value()})
	}
	return fixed
}

func (d *Decoder) optTrial() *TrialID {
	if d.s.Null() {
		return nil
	}
	id := TrialID(d.s.Uint64())
	return &id
}

// scope reads what a blob belongs to.
func (d *Decoder) scope() (sc Scope) {
	raw := d.s.Raw()
	s := serde.NewScanner(raw)
	n := 0
	for s.Object(); s.NextKey(); n++ {
		sc.Kind = ScopeOther
		for k, name := range scopeNames {
			if string(s.Key()) == name {
				sc.Kind = ScopeKind(k)
			}
		}
		sc.ID = s.Uint64()
	}
	if s.End() != nil || n != 1 || sc.Kind == ScopeOther {
		return Scope{Kind: ScopeOther, Raw: string(raw)}
	}
	return sc
}

// blob reads a state blob; it aliases the input.
func (d *Decoder) blob() (b Blob) { return readBlob(d.s.Raw()) }

func (d *Decoder) optBlob() *Blob {
	if d.s.Null() {
		return nil
	}
	b := d.blob()
	return &b
}

func readBlob(raw []byte) (b Blob) {
	s := serde.NewScanner(raw)
	var k known
	for s.Object(); s.NextKey(); {
		switch string(s.Key()) {
		case "kind":
			k.saw(0)
			b.Kind = s.String()
		case "version":
			k.saw(1)
			b.Version = s.Uint64()
		case "data":
			k.saw(2)
			b.Data = s.Raw()
		default:
			k.extra++
			s.Skip()
		}
	}
	if s.End() != nil || !k.exactly(3) {
		return Blob{Raw: raw}
	}
	return b
}

var configFields = objectFields("name", "directions", "seed", "space", "resource_unit", "metric_names")

func (d *Decoder) config() (c Config) {
	s := &d.s
	s.Object()
	t := track(configFields, false)
	for t.next(d) {
		switch t.field {
		case 0:
			c.Name = s.String()
		case 1:
			c.Directions = d.directions()
		case 2:
			if !s.Null() {
				seed := s.Uint64()
				c.Seed = &seed
			}
		case 3:
			if !s.Null() {
				c.Space = readSpace(s.Raw())
			}
		case 4:
			if !s.Null() {
				c.ResourceUnit = s.String()
			}
		case 5:
			c.MetricNames = d.strings()
		}
	}
	c.Extra = t.extra
	return c
}

func (d *Decoder) directions() (ds []Direction) {
	for d.s.Array(); d.s.NextElem(); {
		switch b := d.s.Bytes(); string(b) {
		case "Minimize":
			ds = append(ds, Minimize)
		case "Maximize":
			ds = append(ds, Maximize)
		default:
			d.s.Fail(fmt.Errorf("%w: unknown direction %.40q", ErrField, b))
		}
	}
	return ds
}

// strings reads an array of strings, nil for null.
func (d *Decoder) strings() []string {
	if d.s.Null() {
		return nil
	}
	list := []string{}
	for d.s.Array(); d.s.NextElem(); {
		list = append(list, d.s.String())
	}
	return list
}

func readSpace(raw []byte) *Space {
	sp := new(Space)
	s := serde.NewScanner(raw)
	for s.Array(); s.NextElem(); {
		var p SpaceParam
		var k known
		understood := true
		for s.Object(); s.NextKey(); {
			switch string(s.Key()) {
			case "name":
				k.saw(0)
				p.Name = s.String()
			case "dist":
				k.saw(1)
				p.Dist = readDist(s.Raw())
			case "when":
				p.When, understood = readConditions(s.Raw())
			default:
				k.extra++
				s.Skip()
			}
		}
		if !k.exactly(2) || !understood {
			return &Space{Raw: string(raw)}
		}
		sp.Params = append(sp.Params, p)
	}
	if s.End() != nil {
		return &Space{Raw: string(raw)}
	}
	return sp
}
