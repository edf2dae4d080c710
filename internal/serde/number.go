package serde

import (
	"fmt"
	"math"
	"strconv"
)

// token is one number as it was scanned: mantissa times ten to the exponent.
type token struct {
	mant  uint64
	exp   int
	neg   bool
	exact bool // mant holds every digit
	whole bool // neither point nor exponent is written
}

var pow10 = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12,
	1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// maxExponent is where the written exponent stops counting: far beyond any
// float64, far below overflow of an int.
const maxExponent = 1 << 24

// mantSafe is the largest mantissa that takes any further digit.
const mantSafe = (math.MaxUint64 - 9) / 10

// Float64 reads a number, or one of the strings "NaN", "Infinity" and
// "-Infinity". A number too large for a float64 is refused with [ErrRange].
func (s *Scanner) Float64() float64 {
	if s.space() == '"' {
		return s.nonFinite()
	}
	start := s.pos
	t := s.number()
	if s.err != nil {
		return 0
	}
	if t.exact && t.mant < 1<<53 && -22 <= t.exp && t.exp <= 22 {
		return t.float()
	}
	f, err := strconv.ParseFloat(string(s.b[start:s.pos]), 64)
	if err != nil {
		s.failAt(start, fmt.Errorf("%w: %.40s does not fit a float64", ErrRange, s.b[start:s.pos]))
		return 0
	}
	return f
}

// float is exact: both factors are, and one operation rounds once.
func (t token) float() float64 {
	f := float64(t.mant)
	if t.exp < 0 {
		f /= pow10[-t.exp]
	} else {
		f *= pow10[t.exp]
	}
	if t.neg {
		return math.Copysign(f, -1)
	}
	return f
}

func (s *Scanner) nonFinite() float64 {
	start := s.pos
	switch string(s.Bytes()) {
	case "NaN":
		return math.NaN()
	case "Infinity":
		return math.Inf(1)
	case "-Infinity":
		return math.Inf(-1)
	}
	s.failAt(start, fmt.Errorf("%w: a number expected, not a string", ErrType))
	return 0
}

// Uint64 reads an integer from 0 to 2^64-1. A sign, point or exponent is
// refused with [ErrType], a larger one with [ErrRange].
func (s *Scanner) Uint64() uint64 {
	s.space()
	b, i := s.b, s.pos
	var v uint64
	for i < len(b) && b[i]-'0' <= 9 && i-s.pos < 19 {
		v = v*10 + uint64(b[i]-'0')
		i++
	}
	n := i - s.pos
	if n > 0 && n < 19 && (b[s.pos] != '0' || n == 1) && (i == len(b) || endsInteger(b[i])) {
		s.pos = i
		return v
	}
	t := s.integer(math.MaxUint64)
	if t.neg {
		s.Fail(fmt.Errorf("%w: negative number where none may be", ErrType))
		return 0
	}
	return t.mant
}

func endsInteger(c byte) bool { return c != '.' && c != 'e' && c != 'E' && c-'0' > 9 }

// Int64 reads an integer from -2^63 to 2^63-1. A point or exponent is refused
// with [ErrType], a larger one with [ErrRange].
func (s *Scanner) Int64() int64 {
	s.space()
	limit := uint64(math.MaxInt64)
	if s.pos < len(s.b) && s.b[s.pos] == '-' {
		limit = 1 << 63
	}
	t := s.integer(limit)
	if t.neg {
		return -int64(t.mant)
	}
	return int64(t.mant)
}

func (s *Scanner) integer(limit uint64) token {
	start := s.pos
	t := s.number()
	switch {
	case s.err != nil:
		return token{}
	case !t.whole:
		s.failAt(start, fmt.Errorf("%w: an integer expected, not %.40s", ErrType, s.b[start:s.pos]))
		return token{}
	case !t.exact || t.mant > limit:
		s.failAt(start, fmt.Errorf("%w: %.40s does not fit 64 bits", ErrRange, s.b[start:s.pos]))
		return token{}
	}
	return t
}

// number scans one JSON number and moves past it.
func (s *Scanner) number() (t token) {
	start := s.pos
	b, i := s.b, s.pos
	t.exact, t.whole = true, true
	if i < len(b) && b[i] == '-' {
		t.neg = true
		i++
	}
	first := i
	i = t.digits(b, i)
	if i == first {
		if t.neg && !s.nonFiniteAt(start) {
			s.failAt(start, fmt.Errorf("%w: no digit after the sign", ErrSyntax))
		}
		s.failExpect("a value")
		return token{}
	}
	if b[first] == '0' && i > first+1 {
		s.failAt(start, fmt.Errorf("%w: leading zero", ErrSyntax))
		return token{}
	}
	if i < len(b) && b[i] == '.' {
		t.whole = false
		point := i + 1
		i = t.digits(b, point)
		t.exp = point - i
		if i == point {
			s.failAt(start, fmt.Errorf("%w: no digit after the point", ErrSyntax))
			return token{}
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		t.whole = false
		var ok bool
		if i, ok = t.exponent(b, i+1); !ok {
			s.failAt(start, fmt.Errorf("%w: no digit in the exponent", ErrSyntax))
			return token{}
		}
	}
	s.pos = i
	return t
}

// digits adds a run of digits to the mantissa.
func (t *token) digits(b []byte, i int) int {
	for i < len(b) && b[i]-'0' <= 9 {
		d := uint64(b[i] - '0')
		if t.mant <= mantSafe || t.mant == mantSafe+1 && d <= math.MaxUint64%10 {
			t.mant = t.mant*10 + d
		} else {
			t.exact = false
		}
		i++
	}
	return i
}

func (t *token) exponent(b []byte, i int) (end int, ok bool) {
	neg := false
	if i < len(b) && (b[i] == '-' || b[i] == '+') {
		neg = b[i] == '-'
		i++
	}
	first, exp := i, 0
	for i < len(b) && b[i]-'0' <= 9 {
		exp = min(exp*10+int(b[i]-'0'), maxExponent)
		i++
	}
	if neg {
		exp = -exp
	}
	t.exp += exp
	return i, i > first
}
