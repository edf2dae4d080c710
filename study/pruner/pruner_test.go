package pruner

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/study"
)

// script is a trial: its end and its reports at the steps 1, 2, 3 and so on.
type script struct {
	end    study.State
	values []float64
}

func running(values ...float64) script  { return script{study.Running, values} }
func complete(values ...float64) script { return script{study.Complete, values} }

var nan = math.NaN()

// play puts trials into a study in memory; the last one is asked about.
func play(t *testing.T, dir study.Direction, trials ...script) (*History, *study.Trial) {
	t.Helper()
	st := study.NewMemory(study.MemoryOptions{})
	defer st.Close()
	seed := uint64(1)
	id, _, err := study.OpenOrCreate(context.Background(), st, study.Config{Name: "s", Directions: []study.Direction{dir}, Seed: &seed})
	if err != nil {
		t.Fatal(err)
	}
	var last study.TrialID
	err = st.Update(context.Background(), func(tx *study.Tx) error {
		for _, s := range trials {
			ref, err := tx.CreateTrial(id, nil)
			if err != nil {
				return err
			}
			last = ref.ID
			if err := perform(tx, ref.ID, s); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	snap := st.Snapshot()
	found, err := snap.Study(id)
	if err != nil {
		t.Fatal(err)
	}
	trial, err := snap.Trial(last)
	if err != nil {
		t.Fatal(err)
	}
	return NewHistory(snap, found), trial
}

func perform(tx *study.Tx, id study.TrialID, s script) error {
	if err := tx.Transition(id, study.Waiting, study.Running); err != nil {
		return err
	}
	for i, v := range s.values {
		if err := tx.Report(id, uint64(i+1), v); err != nil {
			return err
		}
	}
	if s.end == study.Running {
		return nil
	}
	if s.end == study.Complete {
		if err := tx.SetValues(id, s.values[len(s.values)-1]); err != nil {
			return err
		}
	}
	return tx.Transition(id, study.Running, s.end)
}

func TestVerdicts(t *testing.T) {
	five := []script{complete(1, 1), complete(2, 2), complete(3, 3), complete(4, 4), complete(5, 5)}
	with := func(s script) []script { return append(append([]script{}, five...), s) }
	four := []script{running(1), running(2), running(3), {study.Pruned, []float64{4}}}
	low, high := 0.0, 10.0
	for name, c := range map[string]struct {
		p      Pruner
		trials []script
		want   bool
	}{
		"none":                              {None{}, with(running(9, 9)), false},
		"median: without reports":           {Median{}, with(running()), false},
		"median: worse":                     {Median{}, with(running(3.5)), true},
		"median: equal":                     {Median{}, with(running(3)), false},
		"median: was better":                {Median{}, with(running(2, 9)), false},
		"median: too few complete":          {Median{Startup: 6}, with(running(9)), false},
		"median: warming up":                {Median{Warmup: 3}, with(running(9, 9)), false},
		"median: warm":                      {Median{Warmup: 2}, with(running(9, 9)), true},
		"median: nothing but NaN":           {Median{}, with(running(nan, nan)), true},
		"median: NaN after a number":        {Median{}, with(running(1, nan)), false},
		"median: others are NaN":            {Median{Startup: 1}, []script{complete(nan), running(9)}, false},
		"median: others that run":           {Median{Startup: 1}, []script{running(1), running(9)}, false},
		"percentile: in the best quarter":   {Percentile{Percentile: 25}, with(running(2)), false},
		"percentile: not in it":             {Percentile{Percentile: 25}, with(running(2.1)), true},
		"percentile: infinity":              {Percentile{}, with(running(math.Inf(1))), true},
		"halving: below the first rung":     {Halving{Min: 4}, append(four, running(9, 9, 9)), false},
		"halving: alone":                    {Halving{}, []script{running(9)}, false},
		"halving: alone with NaN":           {Halving{}, []script{running(nan)}, true},
		"halving: second of five":           {Halving{}, append(four[:4:4], running(1.5)), true},
		"halving: first of five":            {Halving{}, append(four[:4:4], running(0.5)), false},
		"halving: alone at a higher rung":   {Halving{}, append(four[:4:4], running(9, 9, 9, 9)), false},
		"halving: rungs left out":           {Halving{Rate: 1}, append(four[:4:4], running(9)), false},
		"halving: better than NaN":          {Halving{}, []script{running(nan), running(9)}, false},
		"hyperband: nobody complete":        {Hyperband{}, append(four[:4:4], running(9)), false},
		"patient: short":                    {Patient{Patience: 2}, []script{running(1, 2, 3)}, false},
		"patient: no better for long":       {Patient{Patience: 2}, []script{running(1, 2, 3, 4)}, true},
		"patient: better again":             {Patient{Patience: 2}, []script{running(1, 2, 3, 0.5)}, false},
		"patient: nearly as good":           {Patient{Patience: 2, MinDelta: 1}, []script{running(1, 2, 3, 4)}, false},
		"patient: NaN ever since":           {Patient{Patience: 2}, []script{running(1, nan, nan, nan)}, true},
		"patient: the other does not agree": {Patient{Patience: 2, Inner: None{}}, []script{running(1, 2, 3, 4)}, false},
		"patient: the other agrees":         {Patient{Patience: 2, Inner: Threshold{Upper: &low}}, []script{running(1, 2, 3, 4)}, true},
		"threshold: within":                 {Threshold{Lower: &low, Upper: &high}, []script{running(11, 10)}, false},
		"threshold: above":                  {Threshold{Upper: &high}, []script{running(1, 11)}, true},
		"threshold: below":                  {Threshold{Lower: &low}, []script{running(-1)}, true},
		"threshold: NaN":                    {Threshold{Lower: &low}, []script{running(nan)}, true},
		"threshold: warming up":             {Threshold{Lower: &low, Warmup: 2}, []script{running(-1)}, false},
		"threshold: without reports":        {Threshold{Lower: &low}, []script{running()}, false},
	} {
		t.Run(name, func(t *testing.T) {
			h, trial := play(t, study.Minimize, c.trials...)
			if got := c.p.Prune(h, trial); got != c.want {
				t.Errorf("prune %v, want %v", got, c.want)
			}
			h, trial = play(t, study.Maximize, turned(c.trials)...)
			if got := turnedPruner(c.p).Prune(h, trial); got != c.want {
				t.Errorf("maximizing the opposite: prune %v, want %v", got, c.want)
			}
		})
	}
}

// turned are trials with the opposite values.
func turned(trials []script) (out []script) {
	for _, s := range trials {
		o := script{end: s.end}
		for _, v := range s.values {
			o.values = append(o.values, -v)
		}
		out = append(out, o)
	}
	return out
}

func turnedPruner(p Pruner) Pruner {
	opposite := func(b *float64) *float64 {
		if b == nil {
			return nil
		}
		v := -*b
		return &v
	}
	switch p := p.(type) {
	case Threshold:
		return Threshold{opposite(p.Upper), opposite(p.Lower), p.Warmup}
	case Patient:
		if p.Inner != nil {
			p.Inner = turnedPruner(p.Inner)
		}
		return p
	}
	return p
}

// Every bracket must get trials, and in each the better of two goes on.
func TestHyperbandHasSeveralBrackets(t *testing.T) {
	p := Hyperband{Max: 27}
	h := &History{Seed: 3}
	shares := p.shares(h)
	if diff := cmp.Diff([]uint64{27, 12, 6, 4}, shares); diff != "" {
		t.Errorf("shares:\n%s", diff)
	}
	for _, end := range []uint64{1, 1 << 53, math.MaxUint64} {
		for n := range uint64(50) {
			p := Hyperband{Max: end, Reduction: 2}
			if shares := p.shares(h); bracket(h.Seed, n, shares) < 0 {
				t.Errorf("up to step %d: trial %d has no bracket", end, n)
			}
		}
	}
	counts := make([]int, len(shares))
	for n := range uint64(490) {
		counts[bracket(h.Seed, n, shares)]++
	}
	for i, n := range counts {
		if want := int(shares[i]) * 10; n < want/2 || n > want*2 {
			t.Errorf("bracket %d has %d trials, want about %d", i, n, want)
		}
	}
	var trials []script
	for i := range 60 {
		values := make([]float64, 27)
		for k := range values {
			values[k] = float64(i)
		}
		trials = append(trials, running(values...))
	}
	h, worst := play(t, study.Minimize, trials...)
	if !p.Prune(h, worst) {
		t.Error("the worst of 60 goes on")
	}
	if p.Prune(h, h.Trials[0]) {
		t.Error("the best of 60 is pruned")
	}
}

func TestRungs(t *testing.T) {
	for _, c := range []struct {
		p    Halving
		step uint64
		want uint64
	}{
		{Halving{}, 0, 0}, {Halving{}, 1, 1}, {Halving{}, 3, 1}, {Halving{}, 4, 4}, {Halving{}, 63, 16},
		{Halving{Min: 10, Reduction: 2}, 9, 0}, {Halving{Min: 10, Reduction: 2}, 45, 40}, {Halving{Rate: 2}, 15, 0}, {Halving{Rate: 2}, 16, 16},
		{Halving{Rate: 64}, math.MaxUint64, 0}, {Halving{Min: math.MaxUint64}, math.MaxUint64, math.MaxUint64}, {Halving{Reduction: 2}, math.MaxUint64, 1 << 63},
	} {
		if got, _ := c.p.rung(c.step); got != c.want {
			t.Errorf("%+v at step %d: rung %d, want %d", c.p, c.step, got, c.want)
		}
	}
}

func TestTexts(t *testing.T) {
	two := 2.0
	for text, want := range map[string]Pruner{
		"none":                                       None{},
		"median":                                     Median{},
		"median:startup=10,warmup=5":                 Median{Startup: 10, Warmup: 5},
		"percentile:percentile=25":                   Percentile{Percentile: 25},
		"halving:min=2,reduction=3,rate=1":           Halving{Min: 2, Reduction: 3, Rate: 1},
		"hyperband:max=81":                           Hyperband{Max: 81},
		"threshold:upper=2":                          Threshold{Upper: &two},
		"patient:patience=3,min_delta=0.1":           Patient{Patience: 3, MinDelta: 0.1},
		"patient:pruner=percentile,percentile=10":    Patient{Inner: Percentile{Percentile: 10}},
		"patient:patience=2,pruner=median,startup=7": Patient{Patience: 2, Inner: Median{Startup: 7}},
	} {
		got, err := Parse(text)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: error %v\n%s", text, err, diff)
		}
	}
	for _, text := range []string{"", "mean", "median:x=1", "percentile:percentile=0", "percentile:percentile=nan", "threshold", "halving:reduction=1",
		"hyperband:min=9,max=8", "patient:pruner=patient", "patient:startup=3", "none:a=1"} {
		if p, err := Parse(text); !errors.Is(err, study.ErrInvalid) {
			t.Errorf("%q: %v, error %v", text, p, err)
		}
	}
	if err := Check(Median{}, study.Config{Directions: make([]study.Direction, 2)}); !errors.Is(err, study.ErrInvalid) {
		t.Errorf("two objectives: error %v", err)
	}
}

// Options that a program sets out of range are the defaults.
func TestOptionsOutOfRange(t *testing.T) {
	h, trial := play(t, study.Minimize, complete(1, 1), complete(2, 2), running(3, 3, 3))
	for name, pair := range map[string][2]Pruner{
		"median":     {Median{Startup: -1}, Median{}},
		"percentile": {Percentile{Percentile: math.NaN()}, Percentile{}},
		"halving":    {Halving{Reduction: 1}, Halving{}},
		"hyperband":  {Hyperband{Reduction: -1}, Hyperband{}},
		"patient":    {Patient{Patience: -9}, Patient{}},
	} {
		if got, want := pair[0].Prune(h, trial), pair[1].Prune(h, trial); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
