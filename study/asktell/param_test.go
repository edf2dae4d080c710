package asktell

import (
	"math"
	"testing"

	"github.com/foldlog/foldlog/study"
)

// FuzzParseParam checks that whatever is taken lies in its distribution.
func FuzzParseParam(f *testing.F) {
	for _, text := range []string{"0.5", "-inf", "NaN", "1e400", "0x1p-2", "3", "-0", "true", "adam", `"1"`, "1", `{"a":1}`, ""} {
		f.Add(text)
	}
	cat := &study.CatDist{Version: 1, Choices: []study.Choice{
		study.StringChoice("adam"), study.IntChoice(1), study.StringChoice("1"), study.BoolChoice(true), study.NullChoice()}}
	dists := []study.Distribution{
		study.FloatDist{Low: -1, High: 1}, study.FloatDist{Low: 0, High: 1, Step: 0.25},
		study.IntDist{Low: math.MinInt64, High: math.MaxInt64, Step: 1 << 40}, study.IntDist{Low: 1, High: 9, Step: 2},
		study.BoolDist{}, cat, study.OtherDist(`"New"`),
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, d := range dists {
			st := &study.Study{Config: study.Config{Space: &study.Space{Params: []study.SpaceParam{{Name: "p", Dist: d}}}}}
			if v, err := ParseParam(st, "p", text); err == nil {
				checkParam(t, d, v)
			}
		}
		if v, err := ParseParam(new(study.Study), "p", text); err == nil && v.Kind() == study.ValueF64 && !isFinite(v.F64()) {
			t.Errorf("%q without a space is %v", text, v)
		}
	})
}

func isFinite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

func checkParam(t *testing.T, d study.Distribution, v study.Value) {
	t.Helper()
	ok := false
	switch d := d.(type) {
	case study.FloatDist:
		ok = v.Kind() == study.ValueF64 && v.F64() >= d.Low && v.F64() <= d.High
	case study.IntDist:
		ok = v.Kind() == study.ValueI64 && v.I64() >= d.Low && v.I64() <= d.High
	case study.BoolDist:
		ok = v.Kind() == study.ValueBool
	case *study.CatDist:
		ok = v.Kind() == study.ValueCat && v.Cat() < uint64(len(d.Choices))
	}
	if !ok {
		t.Errorf("%v is not of %v", v, d)
	}
}
