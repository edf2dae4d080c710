package sampler

import (
	"fmt"
	"testing"

	"github.com/foldlog/foldlog/study"
)

// BenchmarkSuggest measures one suggestion for ten parameters, the reading of
// the snapshot included.
func BenchmarkSuggest(b *testing.B) {
	space := append(floatParams(6, 0, 1), mixed[:4]...)
	for _, n := range []int{1000, 10_000} {
		l := newLab(b, 1, 1, space...)
		fill(b, l, n)
		st, err := l.st.Snapshot().Study(l.id)
		if err != nil {
			b.Fatal(err)
		}
		for _, s := range []string{"tpe", "tpe:univariate", "tpe:multivariate", "cmaes", "nsga2", "grid", "qmc"} {
			sampler, err := Parse(s)
			if err != nil {
				b.Fatal(err)
			}
			b.Run(fmt.Sprintf("%s/trials=%d", s, n), func(b *testing.B) {
				for i := range b.N {
					h := NewHistory(l.st.Snapshot(), st, uint64(n+i))
					if _, err := Suggest(sampler, h, l.space, nil); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// fill adds finished trials drawn at random, many in a transaction.
func fill(b *testing.B, l *lab, n int) {
	b.Helper()
	for first := 0; first < n; first += 500 {
		err := l.st.Update(b.Context(), func(tx *study.Tx) error {
			for i := range 500 {
				ref, err := tx.CreateTrial(l.id, nil)
				if err != nil {
					return err
				}
				params, err := Suggest(Random{}, &History{Seed: 1, Number: uint64(first + i)}, l.space, nil)
				if err != nil {
					return err
				}
				if err := finish(tx, ref.ID, params); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

func finish(tx *study.Tx, id study.TrialID, params []study.Param) error {
	if err := tx.Transition(id, study.Waiting, study.Running); err != nil {
		return err
	}
	if err := tx.ParamsBatch(id, params); err != nil {
		return err
	}
	if err := tx.SetValues(id, sphere(floats(&study.Trial{Params: params}))...); err != nil {
		return err
	}
	return tx.Transition(id, study.Running, study.Complete)
}
