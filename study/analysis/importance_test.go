package analysis

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/foldlog/foldlog/study"
)

func importancesOf(tb testing.TB, snap *study.Snapshot, st *study.Study, opts ImportanceOptions) map[string]Importance {
	tb.Helper()
	report, err := Importances(snap, st, opts)
	if err != nil {
		tb.Fatal(err)
	}
	byName := map[string]Importance{}
	for _, p := range report.Params {
		byName[p.Param] = p
	}
	return byName
}

// TestImportanceOfKnownFunctions compares with the analytic decomposition of
// the variance: of all of it, for fANOVA the part of each parameter alone (first
// Sobol index), for permutations with its interactions (total index).
func TestImportanceOfKnownFunctions(t *testing.T) {
	for _, tc := range []struct {
		name         string
		f            func(x []float64) float64
		first, total []float64
		room         float64
	}{
		{"a sum", func(x []float64) float64 { return 4*x[0] + 2*x[1] + x[2] },
			[]float64{16.0 / 21, 4.0 / 21, 1.0 / 21, 0}, []float64{16.0 / 21, 4.0 / 21, 1.0 / 21, 0}, 0.03},
		// x*y of uniform numbers: 3/7 each alone, 1/7 together.
		{"a product", func(x []float64) float64 { return x[0] * x[1] },
			[]float64{3.0 / 7, 3.0 / 7, 0, 0}, []float64{4.0 / 7, 4.0 / 7, 0, 0}, 0.03},
		// Ishigami's function, a = 7, b = 0.1: trees cut its waves into stairs.
		{"Ishigami", func(x []float64) float64 {
			s := func(u float64) float64 { return math.Pi * (2*u - 1) }
			return math.Sin(s(x[0])) + 7*math.Pow(math.Sin(s(x[1])), 2) + 0.1*math.Pow(s(x[2]), 4)*math.Sin(s(x[0]))
		}, []float64{0.3139, 0.4424, 0, 0}, []float64{0.5576, 0.4424, 0.2437, 0}, 0.13},
	} {
		t.Run(tc.name, func(t *testing.T) {
			names := []string{"a", "b", "c", "d"}
			snap, st := studyOf(t, study.Config{}, uniform(1500, 1, names, tc.f)...)
			first := importancesOf(t, snap, st, ImportanceOptions{})
			total := importancesOf(t, snap, st, ImportanceOptions{Method: Permutation})
			for i, name := range names {
				near(t, "fanova "+name, first[name].Fraction, tc.first[i], tc.room)
				near(t, "permutation "+name, total[name].Fraction, tc.total[i], 2*tc.room)
			}
		})
	}
}

func TestImportanceIsTheSameAgainAndInAnyOrderOfTrees(t *testing.T) {
	snap, st := studyOf(t, study.Config{}, uniform(200, 2, []string{"a", "b"}, func(x []float64) float64 { return x[0] })...)
	for _, method := range []Method{FANOVA, Permutation} {
		one, err := Importances(snap, st, ImportanceOptions{Method: method, Seed: 5})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			two, _ := Importances(snap, st, ImportanceOptions{Method: method, Seed: 5})
			if diff := cmp.Diff(one, two); diff != "" {
				t.Fatal(diff)
			}
		}
		other, _ := Importances(snap, st, ImportanceOptions{Method: method, Seed: 6})
		if cmp.Equal(one, other) {
			t.Errorf("%v: the seed changes nothing", method)
		}
	}
}

// mixed is a space with a logarithmic number, a choice, and a number that one of
// the choices alone has.
func mixed(n int) (trials []trialSpec) {
	r := rand.New(rand.NewPCG(3, 3))
	for range n {
		lr := math.Pow(10, -4*r.Float64())
		kind := r.Uint64N(3)
		params := []study.Param{
			number("lr", study.FloatDist{Low: 1e-4, High: 1, Log: true}, lr),
			choice("kind", kind, "a", "b", "c"),
			{Name: "flag", Dist: study.BoolDist{}, Value: study.Bool(r.IntN(2) == 1)},
		}
		y := math.Log10(lr) / 4 // from -1 to 0: variance 1/12
		if kind == 2 {
			m := r.Float64()
			params = append(params, number("momentum", unit, m))
			y += 2 * m // variance 4/12, of a third of the trials
		}
		trials = append(trials, trialSpec{params: params, values: []float64{y}})
	}
	return trials
}

func TestImportanceOfLogarithmsChoicesAndConditions(t *testing.T) {
	snap, st := studyOf(t, study.Config{}, mixed(2000)...)
	// By the law of total variance: lr 1/12; kind 2/9 of mean 1; momentum a
	// third of 4/12.
	whole := 1.0/12 + 2.0/9 + 1.0/9
	for _, method := range []Method{FANOVA, Permutation} {
		got := importancesOf(t, snap, st, ImportanceOptions{Method: method})
		near(t, method.String()+" lr", got["lr"].Fraction, 1.0/12/whole, 0.06)
		near(t, method.String()+" momentum", got["momentum"].Fraction, 1.0/9/whole, 0.08)
		near(t, method.String()+" flag", got["flag"].Fraction, 0, 0.01)
		if method == FANOVA {
			near(t, "fanova kind", got["kind"].Fraction, 2.0/9/whole, 0.08)
		}
		if n := got["momentum"].Trials; n < 550 || n > 800 || got["lr"].Trials != 2000 {
			t.Errorf("%d trials have momentum, %d lr", n, got["lr"].Trials)
		}
	}
}

func TestImportanceLeavesOutWhatHasNoValue(t *testing.T) {
	trials := uniform(100, 4, []string{"a", "b"}, func(x []float64) float64 { return -x[1] })
	plain, st := studyOf(t, study.Config{}, trials...)
	want, err := Importances(plain, st, ImportanceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p := []study.Param{number("a", unit, 0.5), number("b", unit, 0.5)}
	trials = append(trials, []trialSpec{
		{params: p, values: []float64{math.NaN()}}, {params: p, values: []float64{math.Inf(1)}},
		{params: p, state: study.Failed}, {params: p, state: study.Pruned, reports: []study.Point{{Step: 1, Value: 9}}},
		{params: p, state: study.Running}, {state: study.Waiting},
	}...)
	snap, st := studyOf(t, study.Config{Directions: []study.Direction{study.Maximize}}, trials...)
	got, err := Importances(snap, st, ImportanceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want.Left = 2
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-without +with):\n%s", diff)
	}
	if got.Params[0].Param != "b" || got.Params[0].Share < 0.95 {
		t.Errorf("%+v", got.Params)
	}
}

func TestRanksAreNotDrownedByOneTrial(t *testing.T) {
	trials := uniform(300, 5, []string{"a", "b"}, func(x []float64) float64 { return x[0] })
	trials[17].values[0] = 1e300
	snap, st := studyOf(t, study.Config{}, trials...)
	if got := importancesOf(t, snap, st, ImportanceOptions{Ranks: true}); got["a"].Share < 0.9 {
		t.Errorf("by ranks: %+v", got)
	}
	if got := importancesOf(t, snap, st, ImportanceOptions{}); got["a"].Share > 0.9 {
		t.Errorf("one trial of 1e300 did not count: %+v", got)
	}
}

func TestImportanceAtTheEdges(t *testing.T) {
	same := uniform(20, 6, []string{"a"}, func([]float64) float64 { return 3 })
	wide := uniform(50, 6, []string{"a"}, func(x []float64) float64 { return (2*x[0] - 1) * math.MaxFloat64 })
	one := []trialSpec{complete(1), complete(2)}
	var many []trialSpec
	for i := range uint64(400) {
		d := &study.CatDist{Version: 1}
		for k := range int64(200) {
			d.Choices = append(d.Choices, study.IntChoice(k))
		}
		p := []study.Param{{Name: "k", Dist: d, Value: study.Cat(i % 200)}, number("odd", unit, math.NaN())}
		many = append(many, trialSpec{params: p, values: []float64{float64(i % 2)}})
	}
	for _, tc := range []struct {
		name   string
		trials []trialSpec
		want   []float64 // shares
	}{
		{"all the same", same, []float64{0}},
		{"as wide as all numbers", wide, []float64{1}},
		{"no parameters", one, nil},
		{"many choices, and no number", many, []float64{1, 0}},
	} {
		snap, st := studyOf(t, study.Config{}, tc.trials...)
		for _, method := range []Method{FANOVA, Permutation} {
			report, err := Importances(snap, st, ImportanceOptions{Method: method})
			if err != nil {
				t.Fatal(err)
			}
			var got []float64
			for _, p := range report.Params {
				got = append(got, p.Share)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
				t.Errorf("%s, %v (-want +got):\n%s", tc.name, method, diff)
			}
		}
	}
	snap, st := studyOf(t, study.Config{}, complete(1), complete(math.NaN()))
	for _, tc := range []struct {
		opts ImportanceOptions
		want error
	}{
		{ImportanceOptions{}, ErrTooFew}, {ImportanceOptions{Objective: 1}, ErrOptions},
		{ImportanceOptions{Objective: -1}, ErrOptions}, {ImportanceOptions{Trees: -1}, ErrOptions}, {ImportanceOptions{Method: 7}, ErrOptions},
	} {
		if _, err := Importances(snap, st, tc.opts); !errors.Is(err, tc.want) {
			t.Errorf("%+v: %v", tc.opts, err)
		}
	}
}

func BenchmarkImportances(b *testing.B) {
	names := make([]string, 20)
	for i := range names {
		names[i] = fmt.Sprintf("p%d", i)
	}
	r := rand.New(rand.NewPCG(1, 1))
	snap, st := studyOf(b, study.Config{}, uniform(10_000, 1, names, func(x []float64) float64 {
		y := r.NormFloat64() / 10
		for i, v := range x {
			y += v * v / float64(i+1)
		}
		return y
	})...)
	for _, method := range []Method{FANOVA, Permutation} {
		b.Run(method.String(), func(b *testing.B) {
			for b.Loop() {
				if _, err := Importances(snap, st, ImportanceOptions{Method: method}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestImportanceOfASampleIsLikeThatOfAll(t *testing.T) {
	names := []string{"a", "b", "c"}
	snap, st := studyOf(t, study.Config{}, uniform(3000, 3, names, func(x []float64) float64 { return 4*x[0] + 2*x[1] })...)
	report, err := Importances(snap, st, ImportanceOptions{Most: 700})
	if err != nil {
		t.Fatal(err)
	}
	if report.Trials != 700 || report.Of != 3000 || report.Left != 0 {
		t.Errorf("from %d of %d, %d left out", report.Trials, report.Of, report.Left)
	}
	sample, all := importancesOf(t, snap, st, ImportanceOptions{Most: 700}), importancesOf(t, snap, st, ImportanceOptions{})
	for _, name := range names {
		near(t, name, sample[name].Fraction, all[name].Fraction, 0.05)
	}
}
