package digits

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Defaults of Params, and the bounds that keep a trial small.
const (
	DefaultLR         = 0.003
	DefaultMomentum   = 0.9
	DefaultHidden     = 256
	DefaultLayers     = 1
	DefaultBatch      = 32
	DefaultEpochs     = 20
	DefaultActivation = "relu"
	DefaultOptimizer  = "adam"

	maxHidden = 1024
	maxLayers = 4
	maxEpochs = 10_000
)

// Activations and Optimizers are the names that Params takes.
var (
	Activations = []string{"relu", "tanh"}
	Optimizers  = []string{"adam", "sgd"}
)

// Params is what a trial can tune. A zero field is its default, which is 0
// where none is named.
type Params struct {
	LR         float64 // learning rate, DefaultLR
	Momentum   float64 // of sgd, below 1, DefaultMomentum; negative for none
	L2         float64 // weight decay
	Dropout    float64 // the part of hidden units left out in training, below 1
	Hidden     int     // units of a hidden layer, DefaultHidden
	Layers     int     // hidden layers, DefaultLayers
	Batch      int     // samples of one step, DefaultBatch
	Epochs     int     // passes over the training data, DefaultEpochs
	Activation string  // of hidden units, one of Activations, DefaultActivation
	Optimizer  string  // one of Optimizers, DefaultOptimizer
	Seed       uint64  // of the first weights, the order of samples, and dropout
}

// WithDefaults fills the zero fields in.
func (p Params) WithDefaults() Params {
	setDefault(&p.LR, DefaultLR)
	setDefault(&p.Momentum, DefaultMomentum)
	setDefault(&p.Hidden, DefaultHidden)
	setDefault(&p.Layers, DefaultLayers)
	setDefault(&p.Batch, DefaultBatch)
	setDefault(&p.Epochs, DefaultEpochs)
	setDefault(&p.Activation, DefaultActivation)
	setDefault(&p.Optimizer, DefaultOptimizer)
	return p
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Validate names the first field that cannot be trained with. It expects the
// defaults to be filled in.
func (p Params) Validate() error {
	switch {
	case !(p.LR > 0) || math.IsInf(p.LR, 0):
		return fmt.Errorf("lr %v: must be above 0 and finite", p.LR)
	case !(p.Momentum < 1):
		return fmt.Errorf("momentum %v: must be below 1", p.Momentum)
	case !(p.L2 >= 0) || math.IsInf(p.L2, 0):
		return fmt.Errorf("l2 %v: must be at least 0 and finite", p.L2)
	case !(p.Dropout >= 0 && p.Dropout < 1):
		return fmt.Errorf("dropout %v: must be at least 0 and below 1", p.Dropout)
	case !slices.Contains(Activations, p.Activation):
		return fmt.Errorf("activation %q: must be %s", p.Activation, strings.Join(Activations, " or "))
	case !slices.Contains(Optimizers, p.Optimizer):
		return fmt.Errorf("optimizer %q: must be %s", p.Optimizer, strings.Join(Optimizers, " or "))
	}
	for _, f := range []struct {
		name        string
		value, most int
	}{
		{"hidden", p.Hidden, maxHidden}, {"layers", p.Layers, maxLayers},
		{"batch", p.Batch, math.MaxInt}, {"epochs", p.Epochs, maxEpochs},
	} {
		if f.value < 1 || f.value > f.most {
			return fmt.Errorf("%s %d: must be from 1 to %d", f.name, f.value, f.most)
		}
	}
	return nil
}
