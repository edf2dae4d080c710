package digits

import (
	"context"
	"fmt"
	"math/rand/v2"
)

// Metrics is how good the network is after an epoch. With parameters that
// diverge the losses are NaN or infinite: an observation and not an error.
type Metrics struct {
	TrainLoss     float64 // mean cross entropy over the epoch, in nats, with dropout
	TrainAccuracy float64 // the part of training samples recognised in the epoch
	ValLoss       float64 // mean cross entropy on the validation samples, in nats
	ValAccuracy   float64 // the part of validation samples recognised, 0 to 1
}

// Result is the outcome of a whole training.
type Result struct {
	Epochs int     // that were finished
	Last   Metrics // after the last epoch
	Best   Metrics // after the epoch with the highest validation accuracy
}

// Train trains a network with these parameters, zero fields being their
// defaults, and calls report after each epoch, which are counted from 1. It
// ends early, with what was reached until then, when report returns an error
// and when ctx is done, and returns that error. A nil report is not called.
func Train(ctx context.Context, p Params, report func(epoch int, m Metrics) error) (Result, error) {
	data, err := Load()
	if err != nil {
		return Result{}, err
	}
	return TrainOn(ctx, data, p, report)
}

// TrainOn is Train on other data than that of [Load], such as a part of it.
func TrainOn(ctx context.Context, data Data, p Params, report func(epoch int, m Metrics) error) (Result, error) {
	p = p.WithDefaults()
	if err := p.Validate(); err != nil {
		return Result{}, fmt.Errorf("check parameters: %w", err)
	}
	t := newTrainer(p, data)
	var r Result
	for epoch := 1; epoch <= p.Epochs; epoch++ {
		m, err := t.epoch(ctx)
		if err != nil {
			return r, err
		}
		r.Epochs, r.Last = epoch, m
		if epoch == 1 || m.ValAccuracy > r.Best.ValAccuracy {
			r.Best = m
		}
		if report != nil {
			if err := report(epoch, m); err != nil {
				return r, err
			}
		}
	}
	return r, nil
}

// trainer is a training between two epochs.
type trainer struct {
	params Params
	data   Data
	order  []int // of the training samples
	net    *network
	opt    optimizer
	rng    *rand.Rand
}

func newTrainer(p Params, data Data) *trainer {
	t := &trainer{params: p, data: data, rng: rand.New(rand.NewPCG(p.Seed, 1))}
	t.net = newNetwork(p, t.rng)
	t.opt = newOptimizer(p, len(t.net.theta))
	t.order = make([]int, len(data.Train))
	for i := range t.order {
		t.order[i] = i
	}
	return t
}

func (t *trainer) epoch(ctx context.Context) (Metrics, error) {
	t.rng.Shuffle(len(t.order), func(i, j int) { t.order[i], t.order[j] = t.order[j], t.order[i] })
	var lossSum float64
	hits := 0
	for from := 0; from < len(t.order); {
		if err := ctx.Err(); err != nil {
			return Metrics{}, err
		}
		to := from + min(t.params.Batch, len(t.order)-from)
		batchLoss, batchHits := t.step(t.order[from:to])
		lossSum += batchLoss
		hits += batchHits
		from = to
	}
	m := t.validate()
	m.TrainLoss = lossSum / float64(len(t.order))
	m.TrainAccuracy = float64(hits) / float64(len(t.order))
	return m, nil
}

// step learns one batch. It returns the sum of the losses before it, and how
// many samples were recognised.
func (t *trainer) step(batch []int) (lossSum float64, hits int) {
	clear(t.net.grad)
	for _, i := range batch {
		s := &t.data.Train[i]
		if argmax(t.net.forward(s.Image[:], t.rng)) == s.Label {
			hits++
		}
		lossSum += t.net.backward(s.Label)
	}
	for i := range t.net.grad {
		t.net.grad[i] /= float64(len(batch))
	}
	t.net.addDecay(t.params.L2)
	t.opt.step(t.net.theta, t.net.grad)
	return lossSum, hits
}

func (t *trainer) validate() Metrics {
	var m Metrics
	hits := 0
	for i := range t.data.Validation {
		s := &t.data.Validation[i]
		probs := t.net.forward(s.Image[:], nil)
		m.ValLoss += loss(probs, s.Label)
		if argmax(probs) == s.Label {
			hits++
		}
	}
	m.ValLoss /= float64(len(t.data.Validation))
	m.ValAccuracy = float64(hits) / float64(len(t.data.Validation))
	return m
}
