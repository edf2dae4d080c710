package analysis

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/study"
)

func TestBestSoFarGoesTheRightWay(t *testing.T) {
	trials := []trialSpec{
		complete(math.NaN()), complete(3), {state: study.Failed}, complete(5), complete(math.Inf(-1)), complete(2), {state: study.Running},
	}
	for _, tc := range []struct {
		dir      study.Direction
		best     []float64
		improved []bool
	}{
		{study.Minimize, []float64{3, 3, math.Inf(-1), math.Inf(-1)}, []bool{true, false, true, false}},
		{study.Maximize, []float64{3, 5, 5, 5}, []bool{true, true, false, false}},
	} {
		snap, st := studyOf(t, study.Config{Directions: []study.Direction{tc.dir}}, trials...)
		var best []float64
		var improved []bool
		for _, p := range BestSoFar(snap, st, 0) {
			best, improved = append(best, p.Best), append(improved, p.Improved)
		}
		if !slices.Equal(best, tc.best) || !slices.Equal(improved, tc.improved) {
			t.Errorf("%v: %v %v", tc.dir, best, improved)
		}
		if BestSoFar(snap, st, 1) != nil {
			t.Error("an objective that is not there has a history")
		}
	}
}

func TestSlicesKnowScalesCategoriesAndWhatIsMissing(t *testing.T) {
	snap, st := studyOf(t, study.Config{}, mixed(60)...)
	got := Slice(snap, st, 0)
	var names []string
	for _, s := range got {
		names = append(names, s.Param)
	}
	if diff := cmp.Diff([]string{"lr", "kind", "flag", "momentum"}, names); diff != "" {
		t.Fatal(diff)
	}
	if !got[0].Log || got[1].Log || got[3].Log {
		t.Error("which are logarithmic")
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, got[1].Categories); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"false", "true"}, got[2].Categories); diff != "" {
		t.Error(diff)
	}
	if n := len(got[3].Points); n == 0 || n+got[3].Missing != 60 || len(got[0].Points) != 60 {
		t.Errorf("%d with and %d without", n, got[3].Missing)
	}
	for _, s := range got {
		for _, p := range s.Points {
			if v, ok := p.Trial.Param(s.Param); !ok || s.Categories != nil && s.Categories[int(p.X)] != v.Text() || p.Value != p.Trial.Values[0] {
				t.Fatalf("%s of trial %d: %v", s.Param, p.Trial.Number, p)
			}
		}
	}
}

func TestCurvesHaveTheCurrentValueOfEveryStep(t *testing.T) {
	snap, st := studyOf(t, study.Config{},
		trialSpec{state: study.Pruned, reports: []study.Point{{Step: 2, Value: 8}, {Step: 1, Value: 9}, {Step: 2, Value: 7}}},
		complete(1),
		trialSpec{state: study.Running, reports: []study.Point{{Step: 1, Value: 4}}})
	got := slices.Collect(Curves(snap, st, 0))
	if len(got) != 2 || got[0].Trial.Number != 0 || got[1].Trial.Number != 2 {
		t.Fatalf("%+v", got)
	}
	if diff := cmp.Diff([]study.Point{{Step: 1, Value: 9}, {Step: 2, Value: 7}}, got[0].Points); diff != "" {
		t.Error(diff)
	}
}

func TestLanesAreTakenFromTheLowestThatIsFree(t *testing.T) {
	var l lanes
	var got []int
	for _, s := range [][2]uint64{{0, 10}, {0, 4}, {2, 3}, {3, 9}, {4, 5}, {9, 9}, {9, 12}, {20, 21}} {
		got = append(got, l.take(s[0], s[1]))
	}
	if diff := cmp.Diff([]int{0, 1, 2, 2, 1, 1, 1, 0}, got); diff != "" {
		t.Error(diff)
	}
}

func TestTimelineHasWhatWasStarted(t *testing.T) {
	snap, st := studyOf(t, study.Config{}, complete(1), trialSpec{state: study.Running}, trialSpec{}, trialSpec{state: study.Failed})
	got := Timeline(snap, st)
	if len(got) != 3 {
		t.Fatalf("%+v", got)
	}
	for _, s := range got {
		if s.To < s.From || s.From == 0 || s.Trial.Number == 2 {
			t.Errorf("%+v", s)
		}
	}
}

func TestDifferenceOfSets(t *testing.T) {
	low, high := []float64{1, 2, 3, 4, 5, 6, 7, 8}, []float64{11, 12, 13, 14, 15, 16, 17, math.Inf(1), math.NaN()}
	// The chances are what SciPy's mannwhitneyu says with method="asymptotic".
	for _, tc := range []struct {
		a, b     []float64
		lower, p float64
	}{
		{low, high, 1, 0.000939}, {high, low, 0, 0.000939}, {low, low, 0.5, 1},
		{[]float64{1, 1, 1}, []float64{1, 1}, 0.5, 1},
		{[]float64{1, 2, 3, 4, 5}, []float64{3, 4, 5, 6, 7}, 0.82, 0.113846},
		{[]float64{1, 1, 1, 2}, []float64{1, 2, 2, 2}, 0.75, 0.247062},
	} {
		lower, p := Difference(tc.a, tc.b)
		near(t, "lower", lower, tc.lower, 1e-12)
		near(t, "p", p, tc.p, 1e-6)
	}
	if lower, p := Difference(nil, low); lower == lower || p == p {
		t.Error(lower, p)
	}
}
