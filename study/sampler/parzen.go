package sampler

import (
	"math"
	"math/rand/v2"
	"slices"
)

// tableCells is the largest grid whose cell masses are computed exactly. Cells
// of a finer one are narrow enough for the density in their middle.
const tableCells = 128

// parzen is a density over some axes: a mixture of one kernel per observation
// and a wide one over everything. On numbers a kernel is a normal distribution
// cut off at the ends, on choices it prefers the observed one.
type parzen struct {
	axes []axis
	n    int
	// weight is that of every kernel, the wide one last; they add up to 1.
	weight []float64
	dims   []kernelAxis
	// base is the logarithm of weight and of all that does not depend on where
	// the density is asked for.
	base []float64
}

// kernelAxis is one axis of all kernels.
type kernelAxis struct {
	mu    []float64
	sigma []float64
	inv   []float64 // 1/(2 sigma²)
	// hit and miss are the log probabilities of the observed and of every
	// other choice.
	hit, miss float64
	// table has the log masses of a small grid, by cell observed, cell asked;
	// its last row is that of the wide kernel.
	table []float64
}

// newParzen builds a density from the columns of the observations, the kernels
// weighted as given.
func newParzen(axes []axis, columns [][]float64, weight []float64) *parzen {
	n := len(columns[0])
	p := &parzen{axes: axes, n: n, weight: weight, dims: make([]kernelAxis, len(axes)), base: logs(weight)}
	for i := range axes {
		d := &p.dims[i]
		d.mu = columns[i]
		switch a := &axes[i]; {
		case a.choices > 0:
			prior := 1 / float64(n+1)
			norm := math.Log(1 + prior*float64(a.choices))
			d.hit, d.miss = math.Log(1+prior)-norm, math.Log(prior)-norm
		case a.numeric():
			d.sigma = kernelWidths(a, d.mu, len(axes))
			p.prepare(a, d)
		}
	}
	return p
}

// logs are the logarithms of weights, of which many are alike.
func logs(weight []float64) []float64 {
	out := make([]float64, len(weight))
	last, log := math.NaN(), 0.0
	for k, w := range weight {
		if w != last {
			last, log = w, math.Log(w)
		}
		out[k] = log
	}
	return out
}

// normalWeights scales the weights of n observations to n parts of n+1, and adds
// the wide kernel's.
func normalWeights(w []float64) []float64 {
	n := len(w)
	sum := 0.0
	for _, x := range w {
		sum += x
	}
	out := make([]float64, n+1)
	for k, x := range w {
		if out[k] = 1 / float64(n+1); sum > 0 {
			out[k] = x / sum * float64(n) / float64(n+1)
		}
	}
	out[n] = 1 / float64(n+1)
	return out
}

// ageWeights of n observations, the oldest first, and of the wide kernel. The
// last 25 count full, the others less the older they are.
func ageWeights(n int) []float64 {
	const full = 25
	w := make([]float64, n+1)
	sum := 0.0
	for k := range w {
		w[k] = 1
		if ramp := n - full; k < ramp {
			w[k] = 1 / float64(n)
			if ramp > 1 {
				w[k] += float64(k) / float64(ramp-1) * (1 - 1/float64(n))
			}
		}
		sum += w[k]
	}
	for k := range w {
		w[k] /= sum
	}
	return w
}

func (p *parzen) prepare(a *axis, d *kernelAxis) {
	if a.cells > 0 && a.cells <= tableCells {
		d.tabulate(int(a.cells))
		return
	}
	d.inv = make([]float64, p.n)
	last, norm := math.NaN(), 0.0
	for k, s := range d.sigma {
		d.inv[k] = 1 / (2 * s * s)
		if s != last {
			last, norm = s, math.Log(s*math.Sqrt(2*math.Pi))
		}
		p.base[k] -= norm + math.Log(massWithin(d.mu[k], s))
	}
	p.base[p.n] -= math.Log(math.Sqrt(2*math.Pi)) + math.Log(normalMass(0, 1, 0.5, 1))
}

// tabulate computes the masses of all cells. The kernels of a small grid have
// one width.
func (d *kernelAxis) tabulate(cells int) {
	d.table = make([]float64, (cells+1)*cells)
	width := 1 / float64(cells)
	for row := range cells + 1 {
		mu, sigma := (float64(row)+0.5)*width, 1.0
		if row == cells {
			mu = 0.5
		} else if len(d.sigma) > 0 {
			sigma = d.sigma[0]
		}
		all := normalMass(0, 1, mu, sigma)
		for c := range cells {
			mass := normalMass(float64(c)*width, float64(c+1)*width, mu, sigma) / all
			d.table[row*cells+c] = math.Log(max(mass, 1e-300))
		}
	}
}

// normalMass is the probability of [a, b] under a normal distribution.
func normalMass(a, b, mu, sigma float64) float64 {
	scale := 1 / (sigma * math.Sqrt2)
	return 0.5 * (math.Erf((b-mu)*scale) - math.Erf((a-mu)*scale))
}

// massWithin is normalMass from 0 to 1, which of most kernels is 1.
func massWithin(mu, sigma float64) float64 {
	if far := 9 * sigma; mu > far && 1-mu > far {
		return 1
	}
	return normalMass(0, 1, mu, sigma)
}

// draw draws n points, as columns.
func (p *parzen) draw(rng *rand.Rand, n int) [][]float64 {
	columns := make([][]float64, len(p.axes))
	for i := range columns {
		columns[i] = make([]float64, n)
	}
	sums := make([]float64, len(p.weight))
	sum := 0.0
	for k, w := range p.weight {
		sum += w
		sums[k] = sum
	}
	for c := range n {
		k, _ := slices.BinarySearch(sums, rng.Float64()*sum)
		k = min(k, p.n)
		for i := range p.axes {
			columns[i][c] = p.drawAxis(rng, i, k)
		}
	}
	return columns
}

func (p *parzen) drawAxis(rng *rand.Rand, i, k int) float64 {
	a, d := &p.axes[i], &p.dims[i]
	switch {
	case a.choices > 0:
		u := rng.Float64()
		if k < p.n && u < math.Exp(d.hit)-math.Exp(d.miss) {
			return d.mu[k]
		}
		return float64(rng.IntN(a.choices))
	case !a.numeric():
		return 0.5
	}
	mu, sigma := 0.5, 1.0
	if k < p.n {
		mu, sigma = d.mu[k], d.sigma[k]
	}
	x := drawNormal(rng, mu, sigma)
	if a.cells > 0 {
		x = (min(math.Floor(x*a.cells), a.cells-1) + 0.5) / a.cells
	}
	return x
}

// drawNormal draws from a normal distribution cut off at 0 and 1.
func drawNormal(rng *rand.Rand, mu, sigma float64) float64 {
	scale := 1 / (sigma * math.Sqrt2)
	low, high := math.Erf(-mu*scale), math.Erf((1-mu)*scale)
	u := low + rng.Float64()*(high-low)
	return clamp(mu+math.Erfinv(clamp(u, -1+1e-16, 1-1e-16))/scale, 0, 1)
}

// logDensity is the logarithm of the density at points given as columns.
func (p *parzen) logDensity(columns [][]float64, n int) []float64 {
	out := make([]float64, n)
	acc := make([]float64, p.n+1)
	for c := range n {
		copy(acc, p.base)
		for i := range p.axes {
			p.add(acc, i, columns[i][c])
		}
		out[c] = logSum(acc)
	}
	return out
}

// add adds to every kernel what one axis contributes at u.
func (p *parzen) add(acc []float64, i int, u float64) {
	a, d := &p.axes[i], &p.dims[i]
	mu := d.mu[:p.n]
	switch {
	case a.choices > 0:
		for k, m := range mu {
			if m == u {
				acc[k] += d.hit
			} else {
				acc[k] += d.miss
			}
		}
		acc[p.n] -= math.Log(float64(a.choices))
	case !a.numeric():
	case d.table != nil:
		cells := int(a.cells)
		c := min(int(u*a.cells), cells-1)
		for k, m := range mu {
			acc[k] += d.table[min(int(m*a.cells), cells-1)*cells+c]
		}
		acc[p.n] += d.table[cells*cells+c]
	default:
		inv := d.inv[:len(mu)]
		acc := acc[:len(mu)+1]
		for k, m := range mu {
			acc[k] -= (u - m) * (u - m) * inv[k]
		}
		acc[len(mu)] -= (u - 0.5) * (u - 0.5) / 2
	}
}

// logSum is log(sum(exp(x))). Terms that cannot be seen beside the largest are
// left out.
func logSum(x []float64) float64 {
	top := x[0]
	for _, v := range x { // slices.Max looks for NaN besides
		if v > top {
			top = v
		}
	}
	sum := 0.0
	for _, v := range x {
		if d := v - top; d > -40 {
			sum += math.Exp(d)
		}
	}
	return top + math.Log(sum)
}

const (
	// narrowest is the narrowest kernel.
	narrowest = 1.0 / 200
	// spreadWidth is the width of kernels by the spread of what they stand for.
	spreadWidth = 0.5
)

// kernelWidths says how wide the kernels of one of dims axes are. By itself an
// axis has kernels that reach to the farther of their neighbours. Together with
// others all have one width, and so on a small grid, where many stand at one
// place: there it goes by their number, so that the density of the few good ones
// is wider than that of the many others, and their neighbours are tried.
func kernelWidths(a *axis, mu []float64, dims int) []float64 {
	n := len(mu)
	if a.cells > 0 && a.cells <= tableCells {
		width := clamp(0.2*math.Pow(float64(max(n, 1)), -0.2), 1/float64(min(100, n+2)), 1)
		return slices.Repeat([]float64{width}, n)
	}
	if dims > 1 {
		return slices.Repeat([]float64{commonWidth(mu, dims)}, n)
	}
	return neighbourWidths(mu)
}

// commonWidth is D. W. Scott's rule, on half of the spread of the observations;
// the whole range counts as one of them. So kernels get narrow along the axes
// where the observations agree.
func commonWidth(mu []float64, dims int) float64 {
	n := float64(len(mu))
	mean, square := 0.0, 1.0/12
	for _, x := range mu {
		mean += x / n
	}
	for _, x := range mu {
		square += (x - mean) * (x - mean)
	}
	spread := math.Sqrt(square / (n + 1))
	return clamp(spreadWidth*spread*math.Pow(max(n, 1), -1/float64(dims+4)), narrowest, 1)
}

// neighbourWidths are the distances to the farther neighbour, the middle of the
// range being one for all, but not less than what so many can support.
func neighbourWidths(mu []float64) []float64 {
	n := len(mu)
	type spot struct {
		at float64
		k  int
	}
	order := make([]spot, 0, n+1)
	for k, u := range mu {
		order = append(order, spot{u, k})
	}
	order = append(order, spot{0.5, n})
	slices.SortFunc(order, func(x, y spot) int {
		switch {
		case x.at < y.at:
			return -1
		case x.at > y.at:
			return 1
		}
		return x.k - y.k
	})
	widths := make([]float64, n+1)
	for r, o := range order {
		w := 0.0
		if r > 0 {
			w = o.at - order[r-1].at
		}
		if r < n {
			w = max(w, order[r+1].at-o.at)
		}
		widths[o.k] = clamp(w, max(narrowest, 1/float64(n+2)), 1)
	}
	return widths[:n]
}
