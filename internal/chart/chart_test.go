package chart

import (
	"bytes"
	"image/png"
	"math"
	"strings"
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

// TestNotesStayInThePicture has a note that is longer than its chart is wide, beside
// one without: both plots end at one height.
func TestNotesStayInThePicture(t *testing.T) {
	note := "2,001 trials of 30,049 drawn; --most N draws more, and so on and so forth"
	long := &Chart{Notes: []string{note}, Series: []Series{{X: []float64{0, 1}, Y: []float64{0, 1}}}}
	short := &Chart{Series: long.Series}
	lines := long.noteLines(320)
	if got := strings.Join(lines, " "); got != note || len(lines) < 2 {
		t.Errorf("lines %q", lines)
	}
	for _, line := range lines {
		if wide := long.leftRoom(320) + textWidth(line, noteSize); wide > 320 {
			t.Errorf("%q ends at %v of 320 pixels", line, wide)
		}
	}
	if a, b := below([]*Chart{long, short}, 320), below([]*Chart{long}, 320); a != b || a <= below([]*Chart{short}, 320) {
		t.Errorf("room beneath the row %v, beneath the longer one %v", a, b)
	}
}

func TestSpansOfTimeHaveNoEmptyParts(t *testing.T) {
	for seconds, want := range map[float64]string{0: "0s", 60: "1m", 90: "1m30s", 3600: "1h", 5400: "1h30m", 172_800: "2d", 180_000: "2d2h"} {
		if got := timeText(seconds); got != want {
			t.Errorf("%v s are %q, want %q", seconds, got, want)
		}
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
		{axisRange{lo: 2, hi: 3, log: true}, 5, []float64{2, 2.2, 2.4000000000000004, 2.6, 2.8000000000000003, 3}},
		{axisRange{lo: 8, hi: 120, log: true}, 5, []float64{10, 20, 50, 100}},
		{axisRange{lo: 43.8, hi: 50.2, log: true, whole: true}, 4, []float64{44, 46, 48, 50}},
		{axisRange{lo: 0.5, hi: 3, log: true, whole: true}, 8, []float64{1, 2}},
		{axisRange{hi: 1_500_000, time: true}, 4, []float64{0, 432_000, 864_000, 1_296_000}},
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

// TestEveryStyleIsDrawnEverywhere draws charts with names that play with the
// terminal, values that are not finite, and no room, in all ways.
func TestEveryStyleIsDrawnEverywhere(t *testing.T) {
	nan := math.NaN()
	charts := []*Chart{
		{Title: "dots\x1b", X: Axis{Log: true, Fine: true, Label: "lr"}, Series: []Series{{Style: Dots, Legend: "all", X: []float64{-1, 0.1, 10, nan}, Y: []float64{1, 2, nan, 4}}}},
		{Title: "bars", X: Axis{Fix: &[2]float64{0, 1}}, Y: Axis{Categories: []string{"a\x1b", "a very long name of a parameter that nobody reads"}},
			Series: []Series{{Style: Spans, X: []float64{0, 0}, End: []float64{1, 0.05}, Y: []float64{0, 1}, Texts: []string{"100%", "5%"}}}},
		{Title: "spans", X: Axis{Time: true}, Y: Axis{Categories: []string{"1"}}, Series: []Series{{Style: Spans, Glyph: '█', X: []float64{0, 90}, End: []float64{60, 90}, Y: []float64{0, 0}}}},
		{Title: "threads", Columns: []Column{{Label: "lr", Ticks: []Tick{{0, "low"}, {1, "high"}}}, {Label: "loss"}},
			Series: []Series{{X: []float64{0, 1}, Y: []float64{0, 1}, Shade: 1}, {X: []float64{0}, Y: []float64{1}, Shade: 0.1}}},
		{Title: "choices", X: Axis{Categories: []string{"adam", "sgd"}}, Series: []Series{{Style: Dots, X: []float64{0, 1}, Y: []float64{1, 2}, Glyph: '●'}}},
	}
	for _, c := range charts {
		if !c.Scale() {
			t.Fatalf("%s: nothing to draw", c.Title)
		}
		for _, size := range [][2]int{{80, 10}, {1, 1}} {
			text := c.Terminal(size[0], size[1], false)
			if bytes.ContainsRune([]byte(text), 0x1b) {
				t.Errorf("%q reaches the terminal", text)
			}
		}
	}
	for _, l := range []Layout{{Width: 600, Height: 200, Columns: 2}, {Width: 1, Height: 1}} {
		var svg, pixels bytes.Buffer
		if err := SVG(&svg, charts, l); err != nil {
			t.Fatal(err)
		}
		if err := PNG(&pixels, charts, l); err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(svg.Bytes(), []byte("NaN")) || bytes.Contains(svg.Bytes(), []byte("Inf")) || bytes.ContainsRune(svg.Bytes(), 0x1b) {
			t.Error("numbers that are none, or control characters, in SVG")
		}
	}
}

func TestBarsAreAsLongAsTheirValues(t *testing.T) {
	c := &Chart{Title: "bars", X: Axis{Fix: &[2]float64{0, 1}}, Y: Axis{Categories: []string{"x", "y"}},
		Series: []Series{{Style: Spans, X: []float64{0, 0}, End: []float64{1, 0.55}, Y: []float64{0, 1}}}}
	c.Scale()
	want := "   bars\nx ┤██████████\ny ┤█████▌\n  └──────────\n   0   0.4  0.8\n"
	got := c.Terminal(13, 5, false)
	if diff := cmp.Diff(want[:len("   bars\nx ┤██████████\ny ┤█████▌\n")], got[:len("   bars\nx ┤██████████\ny ┤█████▌\n")]); diff != "" {
		t.Error(diff)
	}
}
