package analysis

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/study"
)

// cloud is n random points of k numbers; on a coarse grid many are equal.
func cloud(r *rand.Rand, n, k, grid int) [][]float64 {
	points := make([][]float64, n)
	for i := range points {
		for range k {
			points[i] = append(points[i], float64(r.IntN(grid))/float64(grid))
		}
	}
	return points
}

// slowFront is the definition.
func slowFront(points [][]float64) (front []int) {
	for i, p := range points {
		beaten := slices.ContainsFunc(points, func(q []float64) bool { return noGreater(q, p) && !noGreater(p, q) })
		if !beaten {
			front = append(front, i)
		}
	}
	return front
}

func TestFrontsAreWhatTheDefinitionSays(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for dims := 1; dims <= 5; dims++ {
		for _, grid := range []int{3, 20, 1 << 30} {
			for range 40 {
				points := cloud(r, 1+r.IntN(60), dims, grid)
				got, err := Front(points)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(slowFront(points), got); diff != "" {
					t.Fatalf("%v (-definition +front):\n%s", points, diff)
				}
			}
		}
	}
	if got, err := Front([][]float64{{math.NaN(), 0}, {1, 1}, {math.Inf(-1), 2}, {2, math.Inf(1)}}); err != nil || !slices.Equal(got, []int{1, 2}) {
		t.Errorf("with NaN and infinities: %v, %v", got, err)
	}
	if got, err := Front(nil); got != nil || err != nil {
		t.Errorf("of nothing: %v, %v", got, err)
	}
	if _, err := Front([][]float64{{1, 2}, {1}}); !errors.Is(err, ErrShape) {
		t.Errorf("ragged: %v", err)
	}
}

func TestFrontOfAStudyIsItsBestTrials(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for dims := 2; dims <= 4; dims++ {
		var trials []trialSpec
		for range 300 {
			v := make([]float64, dims)
			for k := range v {
				v[k] = float64(r.IntN(40))
			}
			trials = append(trials, complete(v...))
		}
		dirs := slices.Repeat([]study.Direction{study.Minimize, study.Maximize}, 2)[:dims]
		snap, st := studyOf(t, study.Config{Directions: dirs}, trials...)
		ts, points, _ := Losses(snap, st)
		front, _ := Front(points)
		var got, want []uint64
		for _, i := range front {
			got = append(got, ts[i].Number)
		}
		best, _ := snap.Best(st.ID)
		for _, b := range best {
			want = append(want, b.Number)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d objectives (-best +front):\n%s", dims, diff)
		}
	}
}

// slowVolume counts the cells of a grid of the points' own coordinates.
func slowVolume(points [][]float64, reference []float64) float64 {
	if len(reference) == 0 {
		if len(points) > 0 {
			return 1
		}
		return 0
	}
	var cuts []float64
	for _, p := range points {
		if p[0] < reference[0] {
			cuts = append(cuts, p[0])
		}
	}
	slices.Sort(cuts)
	cuts = append(slices.Compact(cuts), reference[0])
	sum := 0.0
	for i := range len(cuts) - 1 {
		var rest [][]float64
		for _, p := range points {
			if p[0] <= cuts[i] {
				rest = append(rest, p[1:])
			}
		}
		sum += (cuts[i+1] - cuts[i]) * slowVolume(rest, reference[1:])
	}
	return sum
}

func TestHypervolumesAreWhatTheDefinitionSays(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 2))
	for dims := 1; dims <= 5; dims++ {
		for _, grid := range []int{4, 1 << 30} {
			for range 20 {
				points := cloud(r, r.IntN(14), dims, grid)
				reference := slices.Repeat([]float64{0.8}, dims)
				got, err := Hypervolume(points, reference)
				if err != nil || got.Error != 0 {
					t.Fatal(err, got)
				}
				if want := slowVolume(points, reference); math.Abs(got.Value-want) > 1e-9 {
					t.Fatalf("%v: %v, want %v", points, got.Value, want)
				}
			}
		}
	}
}

func TestHypervolumeIsEstimatedWhereItTakesTooLong(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	points := cloud(r, 60, 5, 1<<30)
	reference := []float64{1, 1, 1, 1, 1}
	exact, err := Hypervolume(points, reference)
	if err != nil || exact.Error != 0 {
		t.Fatal(exact, err)
	}
	guess, err := hypervolume(points, reference, 10)
	if err != nil || guess.Error == 0 || guess.Points != exact.Points {
		t.Fatal(guess, err)
	}
	near(t, "estimate", guess.Value, exact.Value, 5*guess.Error)
	again, _ := hypervolume(points, reference, 10)
	if again != guess {
		t.Errorf("%v, and then %v", guess, again)
	}
}

func TestHypervolumeOfOddPoints(t *testing.T) {
	reference := []float64{1, 1}
	for _, tc := range []struct {
		points [][]float64
		want   Volume
	}{
		{nil, Volume{}},
		{[][]float64{{1, 0}, {0, 2}, {math.NaN(), 0}, {math.Inf(-1), 0}}, Volume{}},
		{[][]float64{{0, 0.5}, {0.5, 0}, {0, 0.5}, {0.9, 0.9}}, Volume{Value: 0.75, Points: 2}},
	} {
		got, err := Hypervolume(tc.points, reference)
		if err != nil || got != tc.want {
			t.Errorf("%v: %+v, %v", tc.points, got, err)
		}
	}
	if _, err := Hypervolume([][]float64{{1}}, reference); !errors.Is(err, ErrShape) {
		t.Errorf("another shape: %v", err)
	}
	if got := Reference([][]float64{{0, 5}, {10, 5}}, [][]float64{{-10, 5}}); !slices.Equal(got, []float64{12, 6}) {
		t.Errorf("reference %v", got)
	}
}

func BenchmarkHypervolume(b *testing.B) {
	for _, size := range [][2]int{{2, 50_000}, {3, 10_000}, {4, 300}, {5, 100}, {10, 100}} {
		r := rand.New(rand.NewPCG(1, 1))
		points := make([][]float64, size[1])
		for i := range points { // on a sphere, so that all are on the front
			sum := 0.0
			for range size[0] {
				v := math.Abs(r.NormFloat64())
				points[i], sum = append(points[i], -v), sum+v*v
			}
			for k := range points[i] {
				points[i][k] /= math.Sqrt(sum)
			}
		}
		reference := make([]float64, size[0])
		b.Run(fmt.Sprintf("%dx%d", size[1], size[0]), func(b *testing.B) {
			for b.Loop() {
				v, err := Hypervolume(points, reference)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(v.Error/v.Value, "error")
			}
		})
	}
}
