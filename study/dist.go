package study

import (
	"strconv"

	"github.com/foldlog/foldlog/internal/serde"
)

// Distribution is what a parameter is drawn from: [FloatDist], [IntDist],
// [*CatDist], [BoolDist], or [OtherDist] for a shape that this version does
// not know. Values are immutable and shared.
type Distribution interface {
	appendDist(dst []byte) []byte
}

// FloatDist is a range of floats:
// {"Float":{"low":..,"high":..,"log":..,"step":null}}.
type FloatDist struct {
	// Low and High are the bounds, both inclusive.
	Low, High float64
	// Log asks for a uniform draw in the logarithm.
	Log bool
	// Step is the grid's width, 0 (null) without a grid.
	Step float64
}

// IntDist is a range of integers:
// {"Int":{"low":..,"high":..,"log":..,"step":1}}.
type IntDist struct {
	// Low and High are the bounds, both inclusive.
	Low, High int64
	// Log asks for a uniform draw in the logarithm.
	Log bool
	// Step is the grid's width, 0 is written as null.
	Step int64
}

// BoolDist is false or true: "Bool".
type BoolDist struct{}

// CatDist is a choice:
// {"Cat":{"choices":{"version":1,"choices":[{"label":..,"value":..}]}}}.
type CatDist struct {
	// Version is the version of the list of choices.
	Version uint64
	// Choices are the choices; a [Cat] value is an index into them.
	Choices []Choice
}

// Choice is one category.
type Choice struct {
	// Label is how it is shown.
	Label string
	// Value is what it stands for.
	Value ChoiceValue
}

// ChoiceValue is what a category stands for: {"type":T,"value":V} with T one
// of string, int, float, bool, null and json (anything else, as portable JSON).
type ChoiceValue struct {
	// Type is the name of the type.
	Type string
	// JSON is the value.
	JSON string
}

// OtherDist is a distribution of unknown shape, verbatim.
type OtherDist string

// StringChoice is the choice of a string, which is its label too.
func StringChoice(s string) Choice {
	return Choice{s, ChoiceValue{"string", string(serde.AppendString(nil, s))}}
}

// IntChoice is the choice of an integer.
func IntChoice(i int64) Choice {
	s := strconv.FormatInt(i, 10)
	return Choice{s, ChoiceValue{"int", s}}
}

// FloatChoice is the choice of a float.
func FloatChoice(f float64) Choice {
	raw := serde.AppendFloat(nil, f)
	return Choice{serde.Text(raw), ChoiceValue{"float", string(raw)}}
}

// BoolChoice is the choice of a truth value.
func BoolChoice(b bool) Choice {
	s := strconv.FormatBool(b)
	return Choice{s, ChoiceValue{"bool", s}}
}

// NullChoice is the choice of nothing.
func NullChoice() Choice { return Choice{"null", ChoiceValue{"null", "null"}} }

// JSONChoice is the choice of any portable JSON value, which is its label too.
// The type is the narrowest that fits. The error is one of internal/serde.
func JSONChoice(raw []byte) (Choice, error) {
	b, err := serde.AppendPortable(nil, raw)
	if err != nil {
		return Choice{}, err
	}
	switch b[0] {
	case '"':
		s := serde.NewScanner(b)
		return StringChoice(s.String()), nil
	case 't', 'f':
		return BoolChoice(b[0] == 't'), nil
	case 'n':
		return NullChoice(), nil
	case '{', '[':
		return Choice{string(b), ChoiceValue{"json", string(b)}}, nil
	}
	s := serde.NewScanner(b)
	if i := s.Int64(); s.Err() == nil {
		return IntChoice(i), nil
	}
	s.Reset(b)
	if f := s.Float64(); s.Err() == nil {
		return FloatChoice(f), nil
	}
	return Choice{}, s.Err()
}

func (d FloatDist) appendDist(dst []byte) []byte {
	dst = append(dst, `{"Float":{"low":`...)
	dst = serde.AppendFloat(dst, d.Low)
	dst = append(dst, `,"high":`...)
	dst = serde.AppendFloat(dst, d.High)
	dst = append(dst, `,"log":`...)
	dst = strconv.AppendBool(dst, d.Log)
	dst = append(dst, `,"step":`...)
	if d.Step == 0 {
		dst = append(dst, "null"...)
	} else {
		dst = serde.AppendFloat(dst, d.Step)
	}
	return append(dst, "}}"...)
}

func (d IntDist) appendDist(dst []byte) []byte {
	dst = append(dst, `{"Int":{"low":`...)
	dst = strconv.AppendInt(dst, d.Low, 10)
	dst = append(dst, `,"high":`...)
	dst = strconv.AppendInt(dst, d.High, 10)
	dst = append(dst, `,"log":`...)
	dst = strconv.AppendBool(dst, d.Log)
	dst = append(dst, `,"step":`...)
	if d.Step == 0 {
		dst = append(dst, "null"...)
	} else {
		dst = strconv.AppendInt(dst, d.Step, 10)
	}
	return append(dst, "}}"...)
}

func (d BoolDist) appendDist(dst []byte) []byte { return append(dst, `"Bool"`...) }

func (d OtherDist) appendDist(dst []byte) []byte { return append(dst, d...) }

func (d *CatDist) appendDist(dst []byte) []byte {
	dst = append(dst, `{"Cat":{"choices":{"version":`...)
	dst = strconv.AppendUint(dst, d.Version, 10)
	dst = append(dst, `,"choices":[`...)
	for i, c := range d.Choices {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"label":`...)
		dst = serde.AppendString(dst, c.Label)
		dst = append(dst, `,"value":{"type":`...)
		dst = serde.AppendString(dst, c.Value.Type)
		dst = append(dst, `,"value":`...)
		dst = append(dst, c.Value.JSON...)
		dst = append(dst, "}}"...)
	}
	return append(dst, "]}}}"...)
}

// fits tells whether v is of the type that d draws.
func fits(d Distribution, v Value) bool {
	switch d := d.(type) {
	case FloatDist:
		return v.kind == ValueF64
	case IntDist:
		return v.kind == ValueI64
	case BoolDist:
		return v.kind == ValueBool
	case *CatDist:
		return v.kind == ValueCat && v.bits < uint64(len(d.Choices))
	}
	return d != nil
}

// readDist reads one distribution from its own text. Anything that is not one
// of the known shapes to the letter is kept verbatim.
func readDist(raw []byte) Distribution {
	s := serde.NewScanner(raw)
	if s.Peek() == '"' {
		if string(s.Bytes()) == "Bool" && s.End() == nil {
			return BoolDist{}
		}
		return OtherDist(raw)
	}
	var d Distribution
	n := 0
	for s.Object(); s.NextKey(); n++ {
		switch string(s.Key()) {
		case "Float":
			d = readFloatDist(&s)
		case "Int":
			d = readIntDist(&s)
		case "Cat":
			d = readCatDist(&s)
		default:
			s.Skip()
		}
	}
	if s.End() != nil || n != 1 || d == nil {
		return OtherDist(raw)
	}
	return d
}

// known counts the fields of a shape that may hold nothing else.
type known struct{ mask, extra uint }

func (k *known) saw(bit uint) {
	if k.mask&(1<<bit) != 0 {
		k.extra++
	}
	k.mask |= 1 << bit
}

// exactly tells whether the first n fields were seen once and no other.
func (k *known) exactly(n uint) bool { return k.mask == 1<<n-1 && k.extra == 0 }

func readFloatDist(s *serde.Scanner) Distribution {
	if r, ok := readRange(s, s.Float64); ok {
		return FloatDist{Low: r.low, High: r.high, Log: r.log, Step: r.step}
	}
	return nil
}

func readIntDist(s *serde.Scanner) Distribution {
	if r, ok := readRange(s, s.Int64); ok {
		return IntDist{Low: r.low, High: r.high, Log: r.log, Step: r.step}
	}
	return nil
}

// numbers is what a range of floats or of integers says; step is 0 for null.
type numbers[N float64 | int64] struct {
	low, high, step N
	log             bool
}

func readRange[N float64 | int64](s *serde.Scanner, number func() N) (r numbers[N], ok bool) {
	var k known
	for s.Object(); s.NextKey(); {
		switch string(s.Key()) {
		case "low":
			k.saw(0)
			r.low = number()
		case "high":
			k.saw(1)
			r.high = number()
		case "log":
			k.saw(2)
			r.log = s.Bool()
		case "step":
			k.saw(3)
			if !s.Null() {
				if r.step = number(); r.step == 0 {
					k.extra++
				}
			}
		default:
			k.extra++
			s.Skip()
		}
	}
	return r, k.exactly(4)
}

func readCatDist(s *serde.Scanner) Distribution {
	d := new(CatDist)
	var outer, inner known
	for s.Object(); s.NextKey(); {
		if string(s.Key()) != "choices" {
			return nil
		}
		outer.saw(0)
		for s.Object(); s.NextKey(); {
			switch string(s.Key()) {
			case "version":
				inner.saw(0)
				d.Version = s.Uint64()
			case "choices":
				inner.saw(1)
				for s.Array(); s.NextElem(); {
					d.Choices = append(d.Choices, readChoice(s, &inner))
				}
			default:
				inner.extra++
				s.Skip()
			}
		}
	}
	if !outer.exactly(1) || !inner.exactly(2) {
		return nil
	}
	return d
}

func readChoice(s *serde.Scanner, outer *known) (c Choice) {
	var k, v known
	for s.Object(); s.NextKey(); {
		switch string(s.Key()) {
		case "label":
			k.saw(0)
			c.Label = s.String()
		case "value":
			k.saw(1)
			for s.Object(); s.NextKey(); {
				switch string(s.Key()) {
				case "type":
					v.saw(0)
					c.Value.Type = s.String()
				case "value":
					v.saw(1)
					c.Value.JSON = string(s.Raw())
				default:
					v.extra++
					s.Skip()
				}
			}
		default:
			k.extra++
			s.Skip()
		}
	}
	if !k.exactly(2) || !v.exactly(2) {
		outer.extra++
	}
	return c
}
