package main

import (
	"context"
	"math"
	"sync"

	"gonum.org/v1/gonum/mat"

	"github.com/foldlog/foldlog/examples/digits"
	"github.com/foldlog/foldlog/study"
)

// The tuning tasks are small enough that one training takes some milliseconds.
// Their score is the loss itself, as nobody knows the least one.
const (
	networkTrain, networkValidation = 300, 200
	kernelTrain, kernelValidation   = 200, 150
	worstLoss                       = 10 // of a training that diverges
)

var loadDigits = sync.OnceValues(digits.Load)

// network trains the network of examples/digits for three epochs: a mixed space
// with one parameter that only one optimizer has.
func network(get ask) []float64 {
	text := func(name string, choices []string) string {
		d := &study.CatDist{Version: 1}
		for _, c := range choices {
			d.Choices = append(d.Choices, study.StringChoice(c))
		}
		return choices[get(name, d).Cat()]
	}
	p := digits.Params{
		LR:         get("lr", study.FloatDist{Low: 1e-4, High: 1, Log: true}).F64(),
		L2:         get("l2", study.FloatDist{Low: 1e-6, High: 0.1, Log: true}).F64(),
		Dropout:    get("dropout", study.FloatDist{Low: 0, High: 0.5}).F64(),
		Hidden:     int(get("hidden", study.IntDist{Low: 4, High: 64, Log: true, Step: 1}).I64()),
		Batch:      int(get("batch", study.IntDist{Low: 4, High: 64, Log: true, Step: 1}).I64()),
		Activation: text("activation", digits.Activations),
		Optimizer:  text("optimizer", digits.Optimizers),
		Epochs:     3,
		Seed:       1,
	}
	if p.Optimizer == "sgd" {
		p.Momentum = get("momentum", study.FloatDist{Low: 0.01, High: 0.99}).F64()
	}
	data, err := loadDigits()
	if err != nil {
		return []float64{worstLoss}
	}
	data.Train, data.Validation = data.Train[:networkTrain], data.Validation[:networkValidation]
	r, err := digits.TrainOn(context.Background(), data, p, nil)
	if err != nil || !(r.Last.ValLoss < worstLoss) {
		return []float64{worstLoss}
	}
	return []float64{r.Last.ValLoss}
}

// kernelSpace are the logarithms of what [kernel] takes.
var kernelSpace = []study.SpaceParam{
	{Name: "ridge", Dist: study.FloatDist{Low: -8, High: 2}},
	{Name: "power", Dist: study.FloatDist{Low: -1, High: 1}},
	{Name: "top", Dist: study.FloatDist{Low: -4, High: 2}},
	{Name: "upper", Dist: study.FloatDist{Low: -4, High: 2}},
	{Name: "lower", Dist: study.FloatDist{Low: -4, High: 2}},
	{Name: "bottom", Dist: study.FloatDist{Low: -4, High: 2}},
}

// kernel fits a ridge regression in the space of a Gaussian kernel, which sees
// four bands of the image at scales of their own, and returns the mean squared
// error of its votes for the digits.
func kernel(x []float64) []float64 {
	data, err := loadDigits()
	if err != nil {
		return []float64{worstLoss}
	}
	train := scaled(data.Train[:kernelTrain], x)
	gram := mat.NewSymDense(kernelTrain, nil)
	for i, a := range train {
		for j := range i + 1 {
			gram.SetSym(i, j, similarity(a, train[j]))
		}
		gram.SetSym(i, i, 1+math.Pow(10, x[0]))
	}
	votes := mat.NewDense(kernelTrain, digits.Classes, nil)
	for i := range train {
		votes.Set(i, data.Train[i].Label, 1)
	}
	var chol mat.Cholesky
	var weights, out mat.Dense
	if !chol.Factorize(gram) || chol.SolveTo(&weights, votes) != nil {
		return []float64{worstLoss}
	}
	seen := mat.NewDense(kernelValidation, kernelTrain, nil)
	for i, a := range scaled(data.Validation[:kernelValidation], x) {
		for j, b := range train {
			seen.Set(i, j, similarity(a, b))
		}
	}
	out.Mul(seen, &weights)
	sum := 0.0
	for i, s := range data.Validation[:kernelValidation] {
		for c := range digits.Classes {
			d := out.At(i, c)
			if c == s.Label {
				d--
			}
			sum += d * d
		}
	}
	return []float64{min(sum/kernelValidation, worstLoss)}
}

// scaled are the images after a power law, each band of two rows times its
// scale.
func scaled(samples []digits.Sample, x []float64) [][]float64 {
	const band = digits.Pixels / 4
	out := make([][]float64, len(samples))
	for i, s := range samples {
		out[i] = make([]float64, digits.Pixels)
		for p, v := range s.Image {
			out[i][p] = math.Pow(v, math.Pow(10, x[1])) * math.Pow(10, x[2+p/band]/2)
		}
	}
	return out
}

func similarity(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += (a[i] - b[i]) * (a[i] - b[i])
	}
	return math.Exp(-sum)
}
