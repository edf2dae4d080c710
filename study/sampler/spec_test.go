package sampler

import (
	"errors"
	"math"
	"testing"

	"github.com/foldlog/foldlog/study"
)

type custom struct{ Random }

func TestEverySamplerHasATextThatMakesItAgain(t *testing.T) {
	for want, s := range map[string]Sampler{
		"random":                        Random{},
		"grid:points=3":                 Grid{Points: 3},
		"qmc:plain":                     QMC{Plain: true},
		"tpe":                           TPE{},
		"tpe:startup=5,univariate":      &TPE{Startup: 5, Univariate: true},
		"cmaes:population=8,sigma=0.25": CMAES{Population: 8, Sigma: 0.25},
		"nsga2:mutation=0.1":            NSGA2{Mutation: 0.1},
	} {
		if got, err := Text(s); got != want || err != nil {
			t.Errorf("%#v: %q, %v, want %q", s, got, err, want)
		}
	}
}

func TestASamplerThatNobodyElseCouldMakeIsNotChosen(t *testing.T) {
	st := study.NewMemory(study.MemoryOptions{})
	choose := func(s Sampler) error {
		return st.Update(t.Context(), func(tx *study.Tx) error {
			id, _, err := tx.OpenOrCreateStudy(study.Config{Name: "s", Directions: []study.Direction{study.Minimize, study.Minimize}})
			return errors.Join(err, Choose(tx, id, s))
		})
	}
	for name, s := range map[string]Sampler{
		"none": nil, "of another package": custom{}, "both": TPE{Univariate: true, Multivariate: true},
		"out of range": CMAES{Sigma: 2}, "no number": NSGA2{Mutation: math.NaN()}, "for one objective": CMAES{},
	} {
		if err := choose(s); !errors.Is(err, study.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := choose(NSGA2{Population: 12}); err != nil {
		t.Fatal(err)
	}
	have, _ := st.Snapshot().StudyByName("s")
	if s, err := Of(have); err != nil || s != (NSGA2{Population: 12}) {
		t.Errorf("%#v, %v", s, err)
	}
}
