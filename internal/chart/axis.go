package chart

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/foldlog/foldlog/internal/cli"
)

// axisRange is the range of an axis.
type axisRange struct {
	lo, hi float64
	log    bool
	whole  bool // ticks are integers
	time   bool // and of seconds, at round minutes and hours
	some   bool
	fixed  bool // no value widens it
	down   bool // from the top
}

func (a *Axis) begin() axisRange {
	s := axisRange{log: a.Log, whole: a.Whole, time: a.Time}
	switch {
	case a.Fix != nil:
		s.lo, s.hi, s.some, s.fixed = a.Fix[0], a.Fix[1], true, true
	case a.Categories != nil:
		s.lo, s.hi, s.some, s.fixed = -0.5, float64(len(a.Categories))-0.5, true, true
	}
	return s
}

// cover widens the range to a value. It is false if the axis cannot show it.
func (s *axisRange) cover(v float64) bool {
	switch {
	case s.log && v <= 0:
		return false
	case s.fixed || !finite(v):
	case !s.some:
		s.lo, s.hi, s.some = v, v, true
	default:
		s.lo, s.hi = min(s.lo, v), max(s.hi, v)
	}
	return true
}

func (s *axisRange) shows(v float64) bool { return finite(v) && (!s.log || v > 0) }

// widen gives a range of one value some room.
func (s *axisRange) widen() {
	switch {
	case !s.some && s.log:
		s.lo, s.hi = 0.1, 1
	case !s.some:
		s.lo, s.hi = 0, 1
	case s.lo < s.hi:
	case s.log:
		s.lo, s.hi = max(s.lo/2, math.SmallestNonzeroFloat64), min(s.hi*2, math.MaxFloat64)
	case s.lo == 0, s.whole:
		s.lo, s.hi = s.lo-1, s.hi+1
	default:
		room := math.Abs(s.lo) / 10
		s.lo, s.hi = max(s.lo-room, -math.MaxFloat64), min(s.hi+room, math.MaxFloat64)
	}
}

// share is where a value lies between 0 and 1. Halves keep a range as wide as
// all numbers finite.
func (s *axisRange) share(v float64) float64 {
	if s.log {
		lo, hi := math.Log10(s.lo), math.Log10(s.hi)
		return (math.Log10(v) - lo) / (hi - lo)
	}
	u := (v/2 - s.lo/2) / (s.hi/2 - s.lo/2)
	if s.down {
		return 1 - u
	}
	return u
}

// ticks are about n round numbers in the range.
func (s *axisRange) ticks(n int) []float64 {
	if s.log {
		if t := s.logTicks(n); len(t) >= 2 {
			return t
		}
	}
	half := s.hi/2 - s.lo/2
	step := 2 * roundStep(half/float64(max(n, 1)))
	if s.whole {
		step = max(step, 1)
	}
	if s.time {
		step = roundTime(step)
	}
	if !finite(step) || step <= 0 {
		return []float64{s.lo, s.hi}
	}
	var ticks []float64
	for i := math.Ceil(s.lo / step); len(ticks) <= 2*n+2; i++ {
		v := i * step
		if !(v <= s.hi) || len(ticks) > 0 && v == ticks[len(ticks)-1] { // floats are coarser than the step
			break
		}
		ticks = append(ticks, v)
	}
	if len(ticks) < 2 {
		return []float64{s.lo, s.hi}
	}
	return ticks
}

// logTicks are powers of ten, also twice and five times them if there is room or if
// there is no other, or powers of a power of ten if they are too many.
func (s *axisRange) logTicks(n int) (ticks []float64) {
	first, last := math.Ceil(math.Log10(s.lo)), math.Floor(math.Log10(s.hi))
	n = max(n, 1)
	if last-first < float64(n) {
		fine := s.fineLogTicks(first-1, last)
		if step := len(fine) / (n + 1); step == 0 || last-first < 1 {
			for i := 0; i < len(fine); i += step + 1 {
				ticks = append(ticks, fine[i])
			}
			return ticks
		}
	}
	step := max(1, math.Ceil((last-first)/float64(n)))
	for e := first; e <= last; e += step {
		ticks = append(ticks, math.Pow(10, e))
	}
	return ticks
}

// fineLogTicks are 1, 2 and 5 times the powers of ten in the range.
func (s *axisRange) fineLogTicks(first, last float64) (ticks []float64) {
	for e := first; e <= last; e++ {
		for _, f := range []float64{1, 2, 5} {
			if v := f * math.Pow(10, e); v >= s.lo && v <= s.hi && (!s.whole || v == math.Trunc(v)) {
				ticks = append(ticks, v)
			}
		}
	}
	return ticks
}

// roundStep is the next of 1, 2 and 5 times a power of ten.
func roundStep(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, f := range []float64{1, 2, 5, 10} {
		if v <= f*power {
			return f * power
		}
	}
	return 10 * power
}

// roundTime is the next step of seconds that makes round minutes, hours or days.
func roundTime(step float64) float64 {
	if step > 10 {
		for _, s := range []float64{15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400} {
			if step <= s {
				return s
			}
		}
		return 86_400 * roundStep(step/86_400)
	}
	return step
}

// room widens a range for dots, which would lie on its ends.
func (s *axisRange) room() {
	switch {
	case s.fixed:
	case s.log:
		by := math.Pow(s.hi/s.lo, 0.04)
		if lo, hi := s.lo/by, s.hi*by; lo > 0 && finite(hi) {
			s.lo, s.hi = lo, hi
		}
	default:
		by := (s.hi/2 - s.lo/2) * 0.08
		if lo, hi := s.lo-by, s.hi+by; finite(lo) && finite(hi) {
			s.lo, s.hi = lo, hi
		}
	}
}

// tick is a place on an axis with its text.
type tick struct {
	at   float64
	text string
}

// labelled are about n ticks with their texts. Categories are all there, or every
// second, third and so on.
func (a *Axis) labelled(s *axisRange, n int) (ticks []tick) {
	if a.Categories != nil {
		step := (len(a.Categories) + n - 1) / max(n, 1)
		for i := 0; i < len(a.Categories); i += max(step, 1) {
			ticks = append(ticks, tick{float64(i), cli.Safe(a.Categories[i])})
		}
		return ticks
	}
	if a.Fine {
		n *= 2
	}
	for _, v := range s.ticks(n) {
		ticks = append(ticks, tick{v, a.text(v)})
	}
	return ticks
}

// text is a number at the axis.
func (a *Axis) text(v float64) string {
	switch {
	case a.Time:
		return timeText(v)
	case a.Whole && math.Abs(v) < 1<<53 && v == math.Trunc(v):
		return strconv.FormatInt(int64(v), 10)
	}
	return Text(v)
}

// timeText is a span of seconds, without a part that is zero behind another.
func timeText(v float64) string {
	text := cli.Duration(time.Duration(v * float64(time.Second)))
	for _, zero := range []string{"0s", "0m", "0h"} {
		if rest, ok := strings.CutSuffix(text, zero); ok && strings.HasSuffix(rest, map[string]string{"0s": "m", "0m": "h", "0h": "d"}[zero]) {
			text = rest
		}
	}
	return text
}

// Text is a number as axes have it.
func Text(v float64) string {
	if v == 0 {
		return "0"
	}
	return strconv.FormatFloat(v, 'g', 5, 64)
}

// Ticks are about n round numbers from lo to hi.
func Ticks(lo, hi float64, log bool, n int) []float64 {
	s := axisRange{lo: lo, hi: hi, log: log}
	return s.ticks(n)
}

// Share is where a value lies from lo to hi, between 0 and 1; the middle if
// these are the same.
func Share(v, lo, hi float64, log bool) float64 {
	s := axisRange{lo: lo, hi: hi, log: log}
	if u := s.share(v); finite(u) {
		return u
	}
	return 0.5
}
