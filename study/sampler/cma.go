package sampler

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// injectionLimit keeps the step of a point that was not drawn from the present
// distribution from tearing it apart, after N. Hansen, "Injecting External
// Solutions Into CMA-ES" (2011).
func injectionLimit(d int) float64 {
	n := float64(d)
	return math.Sqrt(n) + 2*n/(n+2)
}

// evolution is the state of the covariance matrix adaptation evolution strategy
// in the unit cube, after N. Hansen, "The CMA Evolution Strategy: A Tutorial"
// (2016), with active updates.
type evolution struct {
	d, lambda, mu int
	weights       []float64
	muEff         float64
	cSigma, dSig  float64
	cc, c1, cmu   float64
	chi           float64

	generation int
	mean       []float64
	sigma      float64
	ps, pc     []float64
	cov        *mat.SymDense
	// axes and roots are the eigenvectors of cov and the square roots of its
	// eigenvalues.
	axes  mat.Dense
	roots []float64
	// bests are the best losses of the generations so far.
	bests []float64
}

func newEvolution(d, lambda int, mean []float64, sigma float64) *evolution {
	e := &evolution{d: d, lambda: lambda, mu: lambda / 2, mean: mean, sigma: sigma,
		ps: make([]float64, d), pc: make([]float64, d), cov: mat.NewSymDense(d, nil)}
	for i := range d {
		e.cov.SetSym(i, i, 1)
	}
	e.constants()
	e.decompose()
	return e
}

// populationSize is the usual number of points of a generation.
func populationSize(d int) int { return 4 + int(3*math.Log(float64(d))) }

// constants sets the weights and rates of the tutorial's table 1.
func (e *evolution) constants() {
	n := float64(e.d)
	e.weights = make([]float64, e.lambda)
	var pos, posSq, neg, negSq float64
	for i := range e.weights {
		w := math.Log((float64(e.lambda)+1)/2) - math.Log(float64(i+1))
		e.weights[i] = w
		if i < e.mu {
			pos, posSq = pos+w, posSq+w*w
		} else {
			neg, negSq = neg-w, negSq+w*w
		}
	}
	e.muEff = pos * pos / posSq
	e.c1 = 2 / ((n+1.3)*(n+1.3) + e.muEff)
	e.cmu = min(1-e.c1-1e-8, 2*(e.muEff-2+1/e.muEff)/((n+2)*(n+2)+e.muEff))
	alpha := 1 + e.c1/e.cmu
	if negSq > 0 {
		alpha = min(alpha, 1+2*(neg*neg/negSq)/(e.muEff+2), (1-e.c1-e.cmu)/(n*e.cmu))
	}
	for i, w := range e.weights {
		if i < e.mu {
			e.weights[i] = w / pos
		} else if neg > 0 {
			e.weights[i] = w / neg * alpha
		}
	}
	e.cSigma = (e.muEff + 2) / (n + e.muEff + 5)
	e.dSig = 1 + 2*max(0, math.Sqrt((e.muEff-1)/(n+1))-1) + e.cSigma
	e.cc = (4 + e.muEff/n) / (n + 4 + 2*e.muEff/n)
	e.chi = math.Sqrt(n) * (1 - 1/(4*n) + 1/(21*n*n))
}

// decompose brings axes and roots up to date. It tells whether that was
// possible: a matrix that has lost its meaning ends the evolution.
func (e *evolution) decompose() bool {
	var eig mat.EigenSym
	if !eig.Factorize(e.cov, true) {
		return false
	}
	e.roots = eig.Values(e.roots)
	for i, v := range e.roots {
		if !(v > 1e-20) || math.IsInf(v, 0) {
			return false
		}
		e.roots[i] = math.Sqrt(v)
	}
	eig.VectorsTo(&e.axes)
	return true
}

// stretch maps a vector of the unit normal distribution to one of cov's.
func (e *evolution) stretch(z []float64) []float64 {
	return e.rotate(z, func(x, root float64) float64 { return x * root }, false)
}

// whiten applies the inverse square root of cov.
func (e *evolution) whiten(y []float64) []float64 {
	return e.rotate(y, func(x, root float64) float64 { return x / root }, true)
}

// rotate scales along the axes; with back it goes into them first.
func (e *evolution) rotate(v []float64, scale func(x, root float64) float64, back bool) []float64 {
	in := v
	if back {
		in = make([]float64, e.d)
		mat.NewVecDense(e.d, in).MulVec(e.axes.T(), mat.NewVecDense(e.d, v))
	}
	mid, out := make([]float64, e.d), make([]float64, e.d)
	for i := range mid {
		mid[i] = scale(in[i], e.roots[i])
	}
	mat.NewVecDense(e.d, out).MulVec(&e.axes, mat.NewVecDense(e.d, mid))
	return out
}

// point is an observed point.
type point struct {
	x    []float64
	loss float64
}

// tell takes one generation. It tells whether the evolution can go on.
func (e *evolution) tell(points []point) bool {
	slices.SortStableFunc(points, func(a, b point) int { return cmp.Compare(a.loss, b.loss) })
	e.bests = append(e.bests, points[0].loss)
	steps, lengths := e.steps(points)
	mean := make([]float64, e.d)
	for k := range e.mu {
		for i, y := range steps[k] {
			mean[i] += e.weights[k] * y
		}
	}
	for i := range e.mean {
		e.mean[i] = clamp(e.mean[i]+e.sigma*mean[i], 0, 1)
	}
	e.generation++
	stalled := e.paths(mean)
	e.adapt(steps, lengths, stalled)
	return e.decompose() && !e.converged()
}

// steps are the points as seen from the mean, in units of sigma, and their
// lengths in the metric of cov.
func (e *evolution) steps(points []point) (steps [][]float64, lengths []float64) {
	limit := injectionLimit(e.d)
	for _, p := range points {
		y := make([]float64, e.d)
		for i := range y {
			y[i] = (p.x[i] - e.mean[i]) / e.sigma
		}
		length := norm(e.whiten(y))
		if length > limit {
			for i := range y {
				y[i] *= limit / length
			}
			length = limit
		}
		steps, lengths = append(steps, y), append(lengths, length)
	}
	return steps, lengths
}

// paths moves the evolution paths and the step size along the step of the mean,
// and tells whether the path of the covariance stalls.
func (e *evolution) paths(mean []float64) (stalled bool) {
	white := e.whiten(mean)
	a := math.Sqrt(e.cSigma * (2 - e.cSigma) * e.muEff)
	for i := range e.ps {
		e.ps[i] = (1-e.cSigma)*e.ps[i] + a*white[i]
	}
	length := norm(e.ps)
	e.sigma = min(e.sigma*math.Exp(e.cSigma/e.dSig*(length/e.chi-1)), 1)
	fade := math.Sqrt(1 - math.Pow(1-e.cSigma, 2*float64(e.generation)))
	stalled = length/fade >= (1.4+2/(float64(e.d)+1))*e.chi
	b := math.Sqrt(e.cc * (2 - e.cc) * e.muEff)
	if stalled {
		b = 0
	}
	for i := range e.pc {
		e.pc[i] = (1-e.cc)*e.pc[i] + b*mean[i]
	}
	return stalled
}

func (e *evolution) adapt(steps [][]float64, lengths []float64, stalled bool) {
	keep, sum := 1-e.c1, 0.0
	if stalled {
		keep += e.c1 * e.cc * (2 - e.cc)
	}
	for _, w := range e.weights {
		sum += w
	}
	e.cov.ScaleSym(keep-e.cmu*sum, e.cov)
	e.cov.SymRankOne(e.cov, e.c1, mat.NewVecDense(e.d, e.pc))
	for k, y := range steps {
		w := e.weights[k]
		if w < 0 {
			w *= float64(e.d) / (lengths[k]*lengths[k] + 1e-8)
		}
		e.cov.SymRankOne(e.cov, e.cmu*w, mat.NewVecDense(e.d, y))
	}
}

// converged tells whether nothing more can be expected: the steps are too small
// to see, or the losses have been the same for long.
func (e *evolution) converged() bool {
	low, high := slices.Min(e.roots), slices.Max(e.roots)
	if e.sigma*high < 1e-10 || high > 1e7*low {
		return true
	}
	n := 10 + int(math.Ceil(30*float64(e.d)/float64(e.lambda)))
	if len(e.bests) < n {
		return false
	}
	last := e.bests[len(e.bests)-n:]
	return slices.Max(last)-slices.Min(last) < 1e-12
}

func norm(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x * x
	}
	return math.Sqrt(sum)
}
