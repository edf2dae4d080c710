package serde

import (
	"math"
	"strconv"
)

// Where plain notation ends: with the decimal point after digit kk, numbers
// with minPlain < kk <= maxPlain are written without an exponent.
const (
	minPlain = -5
	maxPlain = 16
)

// AppendFloat appends f with the fewest digits that read back the same, plain
// between 1e-5 and 1e16 (whole numbers with ".0") and scientific outside; a
// negative zero keeps its sign. NaN and the infinities become the strings
// "NaN", "Infinity" and "-Infinity".
func AppendFloat(dst []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, `"NaN"`...)
	case math.IsInf(f, 1):
		return append(dst, `"Infinity"`...)
	case math.IsInf(f, -1):
		return append(dst, `"-Infinity"`...)
	case f == 0 && math.Signbit(f):
		return append(dst, "-0.0"...)
	case f == 0:
		return append(dst, "0.0"...)
	}
	if f < 0 {
		dst, f = append(dst, '-'), -f
	}
	var buf [32]byte
	digits, kk := shortest(buf[:0], f)
	return appendDigits(dst, digits, kk)
}

// shortest returns the digits of f > 0 without a point, and the number of them
// before the point.
func shortest(buf []byte, f float64) (digits []byte, kk int) {
	b := strconv.AppendFloat(buf, f, 'e', -1, 64)
	e := len(b) - 1
	for b[e] != 'e' {
		e--
	}
	exp := 0
	for _, c := range b[e+2:] {
		exp = exp*10 + int(c-'0')
	}
	if b[e+1] == '-' {
		exp = -exp
	}
	digits = b[:e]
	if len(digits) > 1 {
		digits[1] = digits[0]
		digits = digits[1:]
	}
	return digits, exp + 1
}

func appendDigits(dst, digits []byte, kk int) []byte {
	n := len(digits)
	switch {
	case 0 < kk && kk <= maxPlain && n <= kk:
		dst = append(dst, digits...)
		dst = appendZeros(dst, kk-n)
		return append(dst, ".0"...)
	case 0 < kk && kk <= maxPlain:
		dst = append(dst, digits[:kk]...)
		dst = append(dst, '.')
		return append(dst, digits[kk:]...)
	case minPlain < kk && kk <= 0:
		dst = append(dst, "0."...)
		dst = appendZeros(dst, -kk)
		return append(dst, digits...)
	}
	dst = append(dst, digits[0])
	if n > 1 {
		dst = append(dst, '.')
		dst = append(dst, digits[1:]...)
	}
	dst = append(dst, 'e')
	return strconv.AppendInt(dst, int64(kk-1), 10)
}

func appendZeros(dst []byte, n int) []byte {
	for range n {
		dst = append(dst, '0')
	}
	return dst
}
