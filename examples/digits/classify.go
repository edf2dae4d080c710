package digits

import (
	"context"
	"fmt"
	"sync"
)

// Classifier is a trained network. It is safe for concurrent use.
type Classifier struct {
	mu  sync.Mutex // the network's layers hold what passes through
	net *network
}

// Fit trains a network with these parameters, zero fields being their defaults,
// and returns it.
func Fit(ctx context.Context, p Params) (*Classifier, error) {
	p = p.WithDefaults()
	if err := p.Validate(); err != nil {
		return nil, fmt.Errorf("check parameters: %w", err)
	}
	data, err := Load()
	if err != nil {
		return nil, err
	}
	t := newTrainer(p, data)
	for range p.Epochs {
		if _, err := t.epoch(ctx); err != nil {
			return nil, err
		}
	}
	return &Classifier{net: t.net}, nil
}

// Classify returns the digit that an image shows, and how likely the network takes
// it to be, from 0 to 1.
func (c *Classifier) Classify(image *[Pixels]float64) (label int, likely float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	probs := c.net.forward(image[:], nil)
	label = argmax(probs)
	return label, probs[label]
}
