package digits

import (
	"math"
	"math/rand/v2"
)

// network is dense layers with one activation between them, and the softmax
// of the last. All weights and biases are views of one slice, and so are their
// gradients, so that an optimizer sees two plain vectors.
type network struct {
	theta, grad []float64
	layers      []layer
	tanh        bool    // else relu
	dropout     float64 // the part of hidden units left out in training
	probs       []float64
}

type layer struct {
	in, out      int
	w, b, dw, db []float64 // w has one row of in weights for each unit
	x            []float64 // its input in the last forward pass
	y            []float64 // its output, activated and dropped
	scale        []float64 // of each output by dropout: 0 or 1/(1-dropout)
	delta        []float64 // the gradient of the loss by its sums
}

func newNetwork(p Params, rng *rand.Rand) *network {
	sizes := []int{Pixels}
	for range p.Layers {
		sizes = append(sizes, p.Hidden)
	}
	sizes = append(sizes, Classes)
	total := 0
	for i := 1; i < len(sizes); i++ {
		total += sizes[i] * (sizes[i-1] + 1)
	}
	n := &network{
		theta: make([]float64, total), grad: make([]float64, total),
		tanh: p.Activation == "tanh", dropout: p.Dropout, probs: make([]float64, Classes),
	}
	at := 0
	for i := 1; i < len(sizes); i++ {
		at = n.addLayer(sizes[i-1], sizes[i], at, rng)
	}
	return n
}

// addLayer gives the next layer its views from at on and its first weights:
// He's for relu, Glorot's for tanh.
func (n *network) addLayer(in, out, at int, rng *rand.Rand) (next int) {
	mid, end := at+in*out, at+in*out+out
	l := layer{
		in: in, out: out,
		w: n.theta[at:mid], b: n.theta[mid:end], dw: n.grad[at:mid], db: n.grad[mid:end],
		y: make([]float64, out), scale: make([]float64, out), delta: make([]float64, out),
	}
	spread := math.Sqrt(2 / float64(in))
	if n.tanh {
		spread = math.Sqrt(2 / float64(in+out))
	}
	for i := range l.w {
		l.w[i] = rng.NormFloat64() * spread
	}
	n.layers = append(n.layers, l)
	return end
}

// forward returns the probability of each class, valid until the next call.
// With rng, hidden units are dropped; without, all are used.
func (n *network) forward(image []float64, rng *rand.Rand) []float64 {
	x := image
	for i := range n.layers {
		l := &n.layers[i]
		l.x = x
		l.sum()
		if i < len(n.layers)-1 {
			n.activate(l, rng)
		}
		x = l.y
	}
	softmax(n.probs, x)
	return n.probs
}

func (l *layer) sum() {
	for j := range l.y {
		row := l.w[j*l.in : (j+1)*l.in]
		s := l.b[j]
		for i, v := range l.x {
			s += row[i] * v
		}
		l.y[j] = s
	}
}

func (n *network) activate(l *layer, rng *rand.Rand) {
	for j, s := range l.y {
		if n.tanh {
			l.y[j] = math.Tanh(s)
		} else if s < 0 {
			l.y[j] = 0
		}
		l.scale[j] = 1
		if rng != nil && n.dropout > 0 {
			l.scale[j] = 0
			if rng.Float64() >= n.dropout {
				l.scale[j] = 1 / (1 - n.dropout)
			}
		}
	}
	if rng != nil && n.dropout > 0 {
		for j := range l.y {
			l.y[j] *= l.scale[j]
		}
	}
}

// backward adds the gradient of the loss for the last forward pass, and
// returns the loss: the cross entropy.
func (n *network) backward(label int) float64 {
	last := len(n.layers) - 1
	copy(n.layers[last].delta, n.probs)
	n.layers[last].delta[label]--
	for i := last; i >= 0; i-- {
		l := &n.layers[i]
		l.addGradient()
		if i > 0 {
			n.passBack(l, &n.layers[i-1])
		}
	}
	return loss(n.probs, label)
}

func (l *layer) addGradient() {
	for j, d := range l.delta {
		if d == 0 {
			continue
		}
		row := l.dw[j*l.in : (j+1)*l.in]
		for i, v := range l.x {
			row[i] += d * v
		}
		l.db[j] += d
	}
}

// passBack turns the gradient by the sums of l into that by the sums of the
// layer below it.
func (n *network) passBack(l, below *layer) {
	clear(below.delta)
	for j, d := range l.delta {
		row := l.w[j*l.in : (j+1)*l.in]
		for i, w := range row {
			below.delta[i] += d * w
		}
	}
	for i := range below.delta {
		below.delta[i] *= n.slope(below.y[i], below.scale[i])
	}
}

// slope is the derivative of a unit's output y by its sum, dropout included.
func (n *network) slope(y, scale float64) float64 {
	switch {
	case scale == 0:
		return 0
	case n.tanh:
		a := y / scale
		return scale * (1 - a*a)
	case y > 0:
		return scale
	}
	return 0
}

// addDecay adds the gradient of l2/2 times the sum of the squared weights.
// Biases are not decayed.
func (n *network) addDecay(l2 float64) {
	if l2 == 0 {
		return
	}
	for _, l := range n.layers {
		for i, w := range l.w {
			l.dw[i] += l2 * w
		}
	}
}

func softmax(probs, sums []float64) {
	top := math.Inf(-1)
	for _, s := range sums {
		top = math.Max(top, s)
	}
	total := 0.0
	for i, s := range sums {
		probs[i] = math.Exp(s - top)
		total += probs[i]
	}
	for i := range probs {
		probs[i] /= total
	}
}

func loss(probs []float64, label int) float64 { return -math.Log(probs[label]) }

// argmax is the likeliest class. It is 0 if the network has diverged to NaN.
func argmax(probs []float64) int {
	best := 0
	for i, p := range probs {
		if p > probs[best] {
			best = i
		}
	}
	return best
}
