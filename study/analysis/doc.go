// Package analysis says what the trials of a study teach: which parameters
// matter ([Importances]), how far the search has come ([BestSoFar],
// [Hypervolume], [Front]), and what the trials looked like ([Slice], [Curves],
// [Timeline]).
//
// Everything is a pure function of a snapshot: no I/O, no clock, and randomness
// from a given seed only, so that the same trials give the same answer.
//
// Three rules hold throughout. Results are those of completed trials; pruned and
// failed ones have none. A value that is NaN or infinite is left out where a
// function has to compute with it, and is counted as left out. A parameter that
// a trial lacks, because a condition did not hold, is missing and not zero.
package analysis

import (
	"errors"
	"math"

	"github.com/foldlog/foldlog/study"
)

// What can be wrong. Every error of this package wraps one of these.
var (
	// ErrTooFew means that there are too few results to say anything.
	ErrTooFew = errors.New("too few results")
	// ErrOptions means that an option can never be right.
	ErrOptions = errors.New("bad option")
	// ErrShape means points that do not have as many numbers as they must.
	ErrShape = errors.New("points of different length")
)

func finite(v float64) bool { return v-v == 0 }

// result is a trial's finite final value of an objective.
func result(t *study.Trial, objective int) (float64, bool) {
	if t.State != study.Complete || objective >= len(t.Values) || !finite(t.Values[objective]) {
		return 0, false
	}
	return t.Values[objective], true
}

// loss turns a value into one that is better when it is less.
func loss(dir study.Direction, v float64) float64 {
	if dir == study.Maximize {
		return -v
	}
	return v
}

// halfRange is half the distance of two numbers, which cannot overflow.
func halfRange(lo, hi float64) float64 { return hi/2 - lo/2 }

// midpoint is a number between two others, above the lower one unless they are
// next to each other.
func midpoint(a, b float64) float64 {
	m := a/2 + b/2
	if !(m > a) || m > b || math.IsInf(m, 0) {
		return b
	}
	return m
}
