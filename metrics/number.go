package metrics

import (
	"math"
	"strconv"
	"strings"

	"github.com/foldlog/foldlog/internal/serde"
)

// Number is the value of a metric: an integer that stays one, or a float64
// that may be NaN or infinite. The zero value is the float 0.
type Number struct {
	bits uint64
	kind numberKind
}

type numberKind uint8

const (
	floatNumber numberKind = iota
	intNumber
	uintNumber // beyond the largest int64
)

// Float makes a Number of a float64; 4 is spelled 4.0.
func Float(f float64) Number { return Number{math.Float64bits(f), floatNumber} }

// Int makes a Number of an integer; 4 is spelled 4.
func Int(i int64) Number { return Number{uint64(i), intNumber} }

// Uint makes a Number of an unsigned integer.
func Uint(u uint64) Number {
	if u <= math.MaxInt64 {
		return Int(int64(u))
	}
	return Number{u, uintNumber}
}

// Float64 returns the value, rounded if it is an integer beyond 2^53.
func (n Number) Float64() float64 {
	switch n.kind {
	case intNumber:
		return float64(int64(n.bits))
	case uintNumber:
		return float64(n.bits)
	}
	return math.Float64frombits(n.bits)
}

// Int64 returns the value if it is an integer that fits.
func (n Number) Int64() (int64, bool) { return int64(n.bits), n.kind == intNumber }

// Whole returns the value if it is a whole number that fits, however it is spelled: 100
// and 100.0 are the same.
func (n Number) Whole() (int64, bool) {
	if n.kind != floatNumber {
		return n.Int64()
	}
	f := n.Float64()
	if f != math.Trunc(f) || f < -1<<63 || f >= 1<<63 {
		return 0, false
	}
	return int64(f), true
}

// IsInteger tells whether the value is spelled without point and exponent.
func (n Number) IsInteger() bool { return n.kind != floatNumber }

// IsFinite tells whether the value is neither NaN nor infinite.
func (n Number) IsFinite() bool {
	f := n.Float64()
	return f-f == 0
}

// Append appends the value as JSON: integers with all their digits, floats
// with the fewest digits that read back the same, non-finite ones as the
// strings "NaN", "Infinity" and "-Infinity".
func (n Number) Append(dst []byte) []byte {
	switch n.kind {
	case intNumber:
		return strconv.AppendInt(dst, int64(n.bits), 10)
	case uintNumber:
		return strconv.AppendUint(dst, n.bits, 10)
	}
	return serde.AppendFloat(dst, math.Float64frombits(n.bits))
}

// String is the spelling of [Number.Append] without quotes.
func (n Number) String() string {
	var buf [32]byte
	return strings.Trim(string(n.Append(buf[:0])), `"`)
}

// nonFinite reads any usual spelling of NaN and the infinities; exact tells
// whether it is one of the three that the format has.
func nonFinite(text string) (f float64, exact, ok bool) {
	switch text {
	case "NaN":
		return math.NaN(), true, true
	case "Infinity":
		return math.Inf(1), true, true
	case "-Infinity":
		return math.Inf(-1), true, true
	}
	sign := 1
	word := text
	if word != "" && (word[0] == '-' || word[0] == '+') {
		if word[0] == '-' {
			sign = -1
		}
		word = word[1:]
	}
	switch {
	case strings.EqualFold(word, "nan"):
		return math.NaN(), false, true
	case strings.EqualFold(word, "inf"), strings.EqualFold(word, "infinity"):
		return math.Inf(sign), false, true
	}
	return 0, false, false
}

// bareWords are the spellings that other writers are known to leave without
// quotes, longest first.
var bareWords = [...]string{"-Infinity", "+Infinity", "Infinity", "-infinity", "infinity", "-Inf", "+Inf", "Inf", "-inf", "+inf", "inf", "-NaN", "NaN", "-nan", "nan", "NAN"}
