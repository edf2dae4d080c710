package chart

import (
	"bytes"
	"image/png"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPicturesHaveInkWhereTheCurveIs(t *testing.T) {
	c := &Chart{Title: "loss", Series: []Series{{Legend: "last 1", X: []float64{0, 1}, Y: []float64{0, 1}}}}
	if !c.Scale() {
		t.Fatal("nothing to draw")
	}
	var b bytes.Buffer
	if err := PNG(&b, []*Chart{c, c}, Layout{Width: 200, Height: 150}); err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(&b)
	if err != nil || img.Bounds().Dx() != 200 || img.Bounds().Dy() != 300 {
		t.Fatal(err, img.Bounds())
	}
	blue := 0
	for y := range 300 {
		for x := range 200 {
			if r, g, b, _ := img.At(x, y).RGBA(); r>>8 < 0x40 && g>>8 > 0x60 && g>>8 < 0xa0 && b>>8 > 0xa0 {
				blue++
			}
		}
	}
	if blue < 200 {
		t.Errorf("%d pixels of the line", blue)
	}
}

func TestTicksAreRoundAndInside(t *testing.T) {
	for _, tc := range []struct {
		r    axisRange
		n    int
		want []float64
	}{
		{axisRange{lo: 0, hi: 10}, 5, []float64{0, 2, 4, 6, 8, 10}},
		{axisRange{lo: 0, hi: 3, whole: true}, 9, []float64{0, 1, 2, 3}},
		{axisRange{lo: -1, hi: 1}, 2, []float64{-1, 0, 1}},
		{axisRange{lo: 0.5, hi: 1500, log: true}, 5, []float64{1, 10, 100, 1000}},
		{axisRange{lo: 2, hi: 3, log: true}, 5, []float64{2, 3}},
	} {
		if diff := cmp.Diff(tc.want, tc.r.ticks(tc.n)); diff != "" {
			t.Errorf("%+v:\n%s", tc.r, diff)
		}
	}
	for _, r := range []axisRange{{lo: -math.MaxFloat64, hi: math.MaxFloat64}, {lo: 5e-324, hi: 1e-323}, {lo: 1e300, hi: 1e300 * (1 + 1e-15)},
		{lo: 5e-324, hi: math.MaxFloat64, log: true}} {
		ticks := r.ticks(4)
		if len(ticks) < 2 || len(ticks) > 12 {
			t.Errorf("%+v has ticks %v", r, ticks)
		}
		for _, v := range append(ticks, r.lo, r.hi) {
			if s := r.share(v); !(s >= -1e-9 && s <= 1+1e-9) {
				t.Errorf("%+v: %v lies at %v", r, v, s)
			}
		}
	}
}
