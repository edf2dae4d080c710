package metrics

import (
	"math"
	"testing"
)

func TestWholeNumbersAreToldHoweverTheyAreSpelled(t *testing.T) {
	for _, tc := range []struct {
		name string
		n    Number
		want int64
		ok   bool
	}{
		{"an integer", Int(-7), -7, true},
		{"an integer that float64 does not hold", Int(1<<53 + 1), 1<<53 + 1, true},
		{"an integer that is too large", Uint(1 << 63), 0, false},
		{"a float", Float(100), 100, true},
		{"a negative float", Float(-100), -100, true},
		{"a float with a fraction", Float(0.5), 0, false},
		{"the least float that fits", Float(-1 << 63), math.MinInt64, true},
		{"a float that is too large", Float(1 << 63), 0, false},
		{"no number", Float(math.NaN()), 0, false},
		{"an infinity", Float(math.Inf(-1)), 0, false},
	} {
		if got, ok := tc.n.Whole(); ok != tc.ok || ok && got != tc.want {
			t.Errorf("%s: got %d, %v", tc.name, got, ok)
		}
	}
}
