package digits

import "math"

// optimizer moves the weights against their gradient.
type optimizer interface {
	step(theta, grad []float64)
}

func newOptimizer(p Params, size int) optimizer {
	if p.Optimizer == "sgd" {
		return &sgd{lr: p.LR, momentum: max(p.Momentum, 0), velocity: make([]float64, size)}
	}
	return &adam{lr: p.LR, mean: make([]float64, size), square: make([]float64, size)}
}

// sgd is gradient descent with momentum.
type sgd struct {
	lr, momentum float64
	velocity     []float64
}

func (o *sgd) step(theta, grad []float64) {
	for i, g := range grad {
		o.velocity[i] = o.momentum*o.velocity[i] - o.lr*g
		theta[i] += o.velocity[i]
	}
}

// adam is Kingma and Ba's, with the constants of their paper.
type adam struct {
	lr           float64
	mean, square []float64
	steps        float64
}

func (o *adam) step(theta, grad []float64) {
	const beta1, beta2, epsilon = 0.9, 0.999, 1e-8
	o.steps++
	rate := o.lr * math.Sqrt(1-math.Pow(beta2, o.steps)) / (1 - math.Pow(beta1, o.steps))
	for i, g := range grad {
		o.mean[i] = beta1*o.mean[i] + (1-beta1)*g
		o.square[i] = beta2*o.square[i] + (1-beta2)*g*g
		theta[i] -= rate * o.mean[i] / (math.Sqrt(o.square[i]) + epsilon)
	}
}
