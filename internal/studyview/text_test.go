package studyview

import (
	"math"
	"testing"
)

func TestNumbersInTablesAreShort(t *testing.T) {
	for want, v := range map[string]float64{
		"0.0209566": 0.02095662344545564, "1.50687e-05": 0.000015068691721413418, "2": 2, "1234567": 1234567, "1e+15": 1e15,
		"1.23457e+06": 1234567.5, "0.3": 0.1 + 0.2, "-0": math.Copysign(0, -1), "NaN": math.NaN(), "-Infinity": math.Inf(-1),
		"4.94066e-324": 5e-324, "1.79769e+308": math.MaxFloat64,
	} {
		if got := Significant(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
}
