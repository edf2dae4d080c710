package main

import (
	"math"

	"github.com/foldlog/foldlog/study"
)

// ask returns the value of a parameter of the trial at hand.
type ask func(name string, dist study.Distribution) study.Value

// problem is a function to be minimized.
type problem struct {
	name       string
	optimum    float64 // with one objective
	objectives int
	space      []study.SpaceParam // nil if it depends on what is drawn
	eval       func(get ask) []float64
}

// reference is the corner that hypervolumes are measured from.
var reference = []float64{1.1, 10}

func problems() []problem {
	return []problem{
		numeric("branin", 0.397887, ranges("x", 2, 0, 1), func(x []float64) float64 { return branin(15*x[0]-5, 15*x[1]) }),
		numeric("hartmann6", -3.32237, ranges("x", 6, 0, 1), hartmann6),
		numeric("rosenbrock10", 0, ranges("x", 10, -5, 10), rosenbrock),
		numeric("rastrigin10", 0, ranges("x", 10, -5.12, 5.12), rastrigin),
		{name: "conditional", objectives: 1, eval: conditional},
		{name: "zdt1", objectives: 2, space: ranges("x", 30, 0, 1), eval: zdt1},
		{name: "network", objectives: 1, eval: network},
		{name: "kernel", objectives: 1, space: kernelSpace, eval: func(get ask) []float64 { return kernel(vector(get, kernelSpace)) }},
	}
}

func ranges(name string, n int, low, high float64) []study.SpaceParam {
	space := make([]study.SpaceParam, n)
	for i := range space {
		space[i] = study.SpaceParam{Name: name + string(rune('0'+i/10)) + string(rune('0'+i%10)), Dist: study.FloatDist{Low: low, High: high}}
	}
	return space
}

func numeric(name string, optimum float64, space []study.SpaceParam, f func([]float64) float64) problem {
	return problem{name: name, optimum: optimum, objectives: 1, space: space, eval: func(get ask) []float64 {
		return []float64{f(vector(get, space))}
	}}
}

func vector(get ask, space []study.SpaceParam) []float64 {
	x := make([]float64, len(space))
	for i, p := range space {
		x[i] = get(p.Name, p.Dist).F64()
	}
	return x
}

func branin(x, y float64) float64 {
	q := y - 5.1/(4*math.Pi*math.Pi)*x*x + 5/math.Pi*x - 6
	return q*q + 10*(1-1/(8*math.Pi))*math.Cos(x) + 10
}

func hartmann6(x []float64) float64 {
	alpha := [4]float64{1, 1.2, 3, 3.2}
	a := [4][6]float64{{10, 3, 17, 3.5, 1.7, 8}, {0.05, 10, 17, 0.1, 8, 14}, {3, 3.5, 1.7, 10, 17, 8}, {17, 8, 0.05, 10, 0.1, 14}}
	p := [4][6]float64{{1312, 1696, 5569, 124, 8283, 5886}, {2329, 4135, 8307, 3736, 1004, 9991},
		{2348, 1451, 3522, 2883, 3047, 6650}, {4047, 8828, 8732, 5743, 1091, 381}}
	sum := 0.0
	for i := range alpha {
		inner := 0.0
		for j := range x {
			d := x[j] - p[i][j]/10000
			inner += a[i][j] * d * d
		}
		sum -= alpha[i] * math.Exp(-inner)
	}
	return sum
}

func rosenbrock(x []float64) float64 {
	sum := 0.0
	for i := range len(x) - 1 {
		a, b := x[i+1]-x[i]*x[i], 1-x[i]
		sum += 100*a*a + b*b
	}
	return sum
}

// rastrigin has its optimum off the middle of the space.
func rastrigin(x []float64) float64 {
	sum := 10 * float64(len(x))
	for i, v := range x {
		z := v - 1.3
		if i%2 == 1 {
			z = v + 1.3
		}
		sum += z*z - 10*math.Cos(2*math.Pi*z)
	}
	return sum
}

// conditional has three branches with parameters of their own; the best point
// is in the hardest of them.
func conditional(get ask) []float64 {
	kinds := &study.CatDist{Version: 1, Choices: []study.Choice{study.StringChoice("a"), study.StringChoice("b"), study.StringChoice("c")}}
	switch get("kind", kinds).Cat() {
	case 0:
		d := get("x", study.FloatDist{Low: -5, High: 5}).F64() - 1
		return []float64{d*d + 0.3}
	case 1:
		y := math.Log10(get("y", study.FloatDist{Low: 1e-5, High: 1, Log: true}).F64()) + 3
		z := float64(get("z", study.IntDist{Low: 1, High: 10, Step: 1}).I64()) - 4
		return []float64{y*y + 0.1*z*z + 0.1}
	}
	u := get("u", study.FloatDist{Low: 0, High: 1}).F64()
	v := get("v", study.FloatDist{Low: 0, High: 1}).F64()
	return []float64{branin(15*u-5, 15*v) - 0.397887}
}

func zdt1(get ask) []float64 {
	x := vector(get, ranges("x", 30, 0, 1))
	g := 0.0
	for _, v := range x[1:] {
		g += v
	}
	g = 1 + 9*g/float64(len(x)-1)
	return []float64{x[0], g * (1 - math.Sqrt(x[0]/g))}
}
