package sampler

import (
	"math"

	"github.com/foldlog/foldlog/study"
)

// axis maps the values of one distribution to the unit interval and back, so
// that algorithms see one shape: numbers from 0 to 1, where equal lengths are
// equally likely a priori, or a few choices without an order.
type axis struct {
	dist study.Distribution
	// choices is the number of choices of a categorical axis, 0 for numbers.
	choices int
	// cells is the number of points if they are equally wide, 0 if there is no
	// such grid. A single point has cells 1.
	cells float64
	// lowLog and widthLog are those of a logarithmic axis.
	lowLog, widthLog float64
	log              bool
}

func newAxis(dist study.Distribution) axis {
	if d, ok := dist.(study.FloatDist); ok {
		dist = countable(d)
	}
	a := axis{dist: dist}
	switch d := dist.(type) {
	case study.BoolDist:
		a.choices = 2
	case *study.CatDist:
		a.choices = len(d.Choices)
	case study.FloatDist:
		switch {
		case d.Low == d.High:
			a.cells = 1
		case d.Step > 0:
			a.cells = floatCells(d)
		case d.Log:
			a.logarithmic(d.Low, d.High)
		}
	case study.IntDist:
		switch {
		case d.Low == d.High:
			a.cells = 1
		case d.Log:
			a.logarithmic(float64(d.Low)-0.5, float64(d.High)+0.5)
		default:
			a.cells = float64((uint64(d.High)-uint64(d.Low))/uint64(max(d.Step, 1))) + 1
		}
	}
	return a
}

func (a *axis) logarithmic(low, high float64) {
	a.log, a.lowLog, a.widthLog = true, logOf(low), logOf(high)-logOf(low)
}

func newAxes(space []study.SpaceParam) []axis {
	axes := make([]axis, len(space))
	for i, p := range space {
		axes[i] = newAxis(p.Dist)
	}
	return axes
}

// numeric tells whether the axis has more than one point, with an order.
func (a *axis) numeric() bool { return a.choices == 0 && a.cells != 1 }

// value is the value at u: a place from 0 to 1, or the number of a choice.
func (a *axis) value(u float64) study.Value {
	switch d := a.dist.(type) {
	case study.BoolDist:
		return study.Bool(u >= 1)
	case *study.CatDist:
		return study.Cat(uint64(u))
	case study.FloatDist:
		if d.Step > 0 {
			return study.F64(stepped(d, math.Floor(u*a.cells)))
		}
		return study.F64(floatAt(d, u))
	case study.IntDist:
		if d.Log {
			return study.I64(logIntAt(d, u))
		}
		step := uint64(max(d.Step, 1))
		last := (uint64(d.High) - uint64(d.Low)) / step
		k := last
		if x := math.Floor(u * a.cells); x < float64(last) {
			k = uint64(max(x, 0))
		}
		return study.I64(int64(uint64(d.Low) + step*min(k, last)))
	}
	return study.Value{}
}

// place is the inverse of value: the middle of its cell on a grid. It is not ok
// if the axis does not have that value.
func (a *axis) place(v study.Value) (u float64, ok bool) {
	switch d := a.dist.(type) {
	case study.BoolDist:
		if v.Bool() {
			u = 1
		}
		return u, v.Kind() == study.ValueBool
	case *study.CatDist:
		return float64(v.Cat()), v.Kind() == study.ValueCat && v.Cat() < uint64(a.choices)
	case study.FloatDist:
		x := v.F64()
		if v.Kind() != study.ValueF64 || !(x >= d.Low && x <= d.High) {
			return 0, false
		}
		return a.placeFloat(d, x), true
	case study.IntDist:
		i := v.I64()
		if v.Kind() != study.ValueI64 || i < d.Low || i > d.High {
			return 0, false
		}
		switch {
		case a.cells == 1:
			return 0.5, true
		case d.Log:
			return part(logOf(float64(i))-a.lowLog, a.widthLog), true
		}
		return (float64((uint64(i)-uint64(d.Low))/uint64(max(d.Step, 1))) + 0.5) / a.cells, true
	}
	return 0, false
}

func (a *axis) placeFloat(d study.FloatDist, x float64) float64 {
	switch {
	case a.cells == 1:
		return 0.5
	case d.Step > 0:
		k := math.Round(2 * ((x/2 - d.Low/2) / d.Step))
		return (clamp(k, 0, a.cells-1) + 0.5) / a.cells
	case d.Log:
		return part(logOf(x)-a.lowLog, a.widthLog)
	}
	return part(x/2-d.Low/2, d.High/2-d.Low/2)
}

// part is x in parts of the whole, from 0 to 1: the middle if the ends of the
// range are too close for floats to tell.
func part(x, whole float64) float64 {
	if !(whole > 0) {
		return 0.5
	}
	return clamp(x/whole, 0, 1)
}

// logOf is the natural logarithm. That of package math is wrong for the least
// floats on some processors.
func logOf(x float64) float64 {
	if x >= 0x1p-1022 {
		return math.Log(x)
	}
	fraction, exponent := math.Frexp(x)
	return math.Log(fraction) + float64(exponent)*math.Ln2
}

// reader reads the parameters of one trial after another.
type reader struct {
	axes []axis
	find []finder
}

func newReader(space []study.SpaceParam, axes []axis) *reader {
	r := &reader{axes, make([]finder, len(space))}
	for i, p := range space {
		r.find[i] = finder{p.Name, i}
	}
	return r
}

// read writes the places of a trial's parameters into row. It is not ok if one
// is missing, or was drawn from something else than the axis can have.
func (r *reader) read(t *study.Trial, row []float64) bool {
	for i := range r.axes {
		p, found := r.find[i].in(t)
		if !found || r.axes[i].choices > 0 && !sameDist(p.Dist, r.axes[i].dist) {
			return false
		}
		u, ok := r.axes[i].place(p.Value)
		if !ok {
			return false
		}
		row[i] = u
	}
	return true
}

func valuesAt(axes []axis, row []float64) []study.Value {
	values := make([]study.Value, len(axes))
	for i := range axes {
		values[i] = axes[i].value(row[i])
	}
	return values
}
