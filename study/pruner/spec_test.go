package pruner

import (
	"errors"
	"testing"

	"github.com/foldlog/foldlog/study"
)

func TestEveryPrunerHasATextThatMakesItAgain(t *testing.T) {
	for want, p := range map[string]Pruner{
		"none":                                      None{},
		"median:startup=3,warmup=2":                 Median{Startup: 3, Warmup: 2},
		"percentile:percentile=12.5":                Percentile{Percentile: 12.5},
		"halving:min=2,reduction=3,rate=1":          Halving{Min: 2, Reduction: 3, Rate: 1},
		"hyperband:max=81":                          Hyperband{Max: 81},
		"threshold:lower=0,upper=1e+300":            Threshold{Lower: new(0.0), Upper: new(1e300)},
		"patient:min_delta=0.5":                     Patient{MinDelta: 0.5},
		"patient:patience=2,pruner=median,warmup=4": Patient{Patience: 2, Inner: Median{Warmup: 4}},
	} {
		if got, err := Text(p); got != want || err != nil {
			t.Errorf("%#v: %q, %v, want %q", p, got, err, want)
		}
	}
	for name, p := range map[string]Pruner{
		"no bounds": Threshold{}, "a rung beyond": Halving{Rate: 65}, "patient inside": Patient{Inner: Patient{}}, "none": nil,
	} {
		if text, err := Text(p); !errors.Is(err, study.ErrInvalid) {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
}

func TestAChosenPrunerIsThatOfTheStudy(t *testing.T) {
	st := study.NewMemory(study.MemoryOptions{})
	choose := func(name string, dirs ...study.Direction) error {
		return st.Update(t.Context(), func(tx *study.Tx) error {
			id, _, err := tx.OpenOrCreateStudy(study.Config{Name: name, Directions: dirs})
			return errors.Join(err, Choose(tx, id, Median{Startup: 2}))
		})
	}
	if err := choose("two", study.Minimize, study.Minimize); !errors.Is(err, study.ErrInvalid) {
		t.Errorf("with two objectives: %v", err)
	}
	if err := choose("one", study.Minimize); err != nil {
		t.Fatal(err)
	}
	have, _ := st.Snapshot().StudyByName("one")
	if p, err := Of(have); err != nil || p != (Median{Startup: 2}) {
		t.Errorf("%#v, %v", p, err)
	}
}
