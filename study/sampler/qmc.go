package sampler

import (
	"sync"

	"github.com/foldlog/foldlog/study"
)

// QMC fills the space evenly: the trial of number n gets point n of a Sobol
// sequence that the study's seed scrambles. It does not look at results. Any
// 2^k trials in a row from a multiple of 2^k on are spread evenly over each
// parameter, far more evenly than by [Random]. Parameters that not every trial has
// are drawn as Random does: no sequence is even on some of its points.
type QMC struct {
	// Plain leaves out the scrambling: the first trial is then in the lowest
	// corner, and the seed does not matter.
	Plain bool
}

var _ Sampler = QMC{}

// polynomials are computed once for as many dimensions as were asked for.
var polynomials struct {
	sync.Mutex
	list []uint32
}

func polynomialsFor(dims int) []uint32 {
	polynomials.Lock()
	defer polynomials.Unlock()
	if len(polynomials.list) < dims {
		polynomials.list = primitivePolynomials(max(dims, 32))
	}
	return polynomials.list
}

// Sample implements [Sampler].
func (s QMC) Sample(h *History, space []study.SpaceParam) ([]study.Value, error) {
	if h.apart {
		return Random{}.Sample(h, space)
	}
	axes, polys := newAxes(space), polynomialsFor(len(space))
	values := make([]study.Value, len(space))
	for i := range axes {
		v := sobolDirections(i, polys)
		x := sobol(&v, uint32(h.Number))
		if !s.Plain {
			x = scramble(x, uint32(mix(h.Seed^mix(uint64(i)))))
		}
		u := (float64(x) + 0.5) / (1 << 32)
		if c := axes[i].choices; c > 0 {
			u = float64(int(u * float64(c)))
		}
		values[i] = axes[i].value(u)
	}
	return values, nil
}
