package digits

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLoad(t *testing.T) {
	data, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	if len(data.Train) != 1437 || len(data.Validation) != 360 {
		t.Errorf("split %d to %d, want 1437 to 360", len(data.Train), len(data.Validation))
	}
	var classes [Classes]int
	for _, s := range append(data.Train, data.Validation...) {
		classes[s.Label]++
		for i, v := range s.Image {
			if v < 0 || v > 1 {
				t.Fatalf("pixel %d is %v, want 0 to 1", i, v)
			}
		}
	}
	// As the authors of the data count them.
	if want := [Classes]int{178, 182, 177, 183, 181, 182, 181, 179, 174, 180}; classes != want {
		t.Errorf("classes %v, want %v", classes, want)
	}
	var held [Classes]int
	for _, s := range data.Validation {
		held[s.Label]++
	}
	for class, n := range held {
		if n < 20 {
			t.Errorf("only %d validation samples show a %d", n, class)
		}
	}
}

func TestLoadSplitsTheSameWayEachTime(t *testing.T) {
	first, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	second, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	if !cmp.Equal(first, second) {
		t.Error("two loads differ")
	}
}

func TestDamagedDataIsRefused(t *testing.T) {
	good := strings.Repeat("0,", Pixels) + "7\n"
	for _, tc := range []struct{ name, text, want string }{
		{"a pixel too bright", good + strings.Repeat("17,", Pixels) + "7\n", "row 2: pixel 0: 17 is not from 0 to 16"},
		{"no such class", strings.Repeat("0,", Pixels) + "10\n", "row 1: class: 10 is not from 0 to 9"},
		{"no number", strings.Repeat("x,", Pixels) + "7\n", "invalid syntax"},
		{"a short row", good + "1,2,3\n", "wrong number of fields"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var b bytes.Buffer
			zip := gzip.NewWriter(&b)
			zip.Write([]byte(tc.text))
			zip.Close()
			if _, err := read(&b); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
	if _, err := read(strings.NewReader("not compressed")); err == nil {
		t.Error("text passed for gzip")
	}
}

// TestGradient compares backward with finite differences of the loss, for
// every weight and bias of small networks.
func TestGradient(t *testing.T) {
	data, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	batch := data.Train[:5]
	for _, tc := range []struct {
		name string
		p    Params
	}{
		{"relu", Params{Hidden: 5, Activation: "relu"}},
		{"tanh", Params{Hidden: 5, Activation: "tanh"}},
		{"two layers", Params{Hidden: 4, Layers: 2, Activation: "tanh"}},
		{"weight decay", Params{Hidden: 5, L2: 0.1}},
		{"dropout", Params{Hidden: 8, Dropout: 0.4, Activation: "tanh"}},
		{"dropout of relu", Params{Hidden: 8, Layers: 2, Dropout: 0.4}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := tc.p.WithDefaults()
			n := newNetwork(p, rand.New(rand.NewPCG(1, 2)))
			total := func(learn bool) (sum float64) {
				rng := rand.New(rand.NewPCG(3, 4)) // the same units are dropped each time
				for i := range batch {
					probs := n.forward(batch[i].Image[:], rng)
					if learn {
						n.backward(batch[i].Label)
					}
					sum += loss(probs, batch[i].Label)
				}
				for _, l := range n.layers {
					for _, w := range l.w {
						sum += p.L2 / 2 * w * w
					}
				}
				return sum
			}
			total(true)
			n.addDecay(p.L2)
			const h = 1e-5
			for i, got := range n.grad {
				at := n.theta[i]
				n.theta[i] = at + h
				above := total(false)
				n.theta[i] = at - h
				below := total(false)
				n.theta[i] = at
				want := (above - below) / (2 * h)
				if math.Abs(got-want) > 1e-6*(1+math.Abs(want)) {
					t.Fatalf("gradient of weight %d is %v, want %v", i, got, want)
				}
			}
		})
	}
}

func TestSoftmaxOfHugeSumsIsFinite(t *testing.T) {
	probs := make([]float64, 3)
	softmax(probs, []float64{1e4, 1e4, -1e4})
	if diff := cmp.Diff([]float64{0.5, 0.5, 0}, probs); diff != "" {
		t.Errorf("probabilities (-want +got):\n%s", diff)
	}
}

// curve trains and returns the metrics of every epoch.
func curve(t *testing.T, p Params) []Metrics {
	t.Helper()
	var all []Metrics
	r, err := Train(t.Context(), p, func(epoch int, m Metrics) error {
		all = append(all, m)
		if epoch != len(all) {
			t.Errorf("epoch %d was reported as %d", len(all), epoch)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.Epochs != len(all) || r.Last != all[len(all)-1] {
		t.Errorf("result %+v is not that of the last of %d epochs", r, len(all))
	}
	return all
}

func TestTrainIsDeterministicBySeed(t *testing.T) {
	for _, optimizer := range Optimizers {
		t.Run(optimizer, func(t *testing.T) {
			p := Params{Hidden: 8, Epochs: 3, Dropout: 0.1, Optimizer: optimizer, Seed: 7}
			first, second := curve(t, p), curve(t, p)
			if diff := cmp.Diff(first, second); diff != "" {
				t.Errorf("the same seed (-first +second):\n%s", diff)
			}
			p.Seed = 8
			if cmp.Equal(first, curve(t, p)) {
				t.Error("another seed gave the same numbers")
			}
		})
	}
}

func TestGoodParametersLearnAndBadOnesDoNot(t *testing.T) {
	for _, tc := range []struct {
		name     string
		p        Params
		low, top float64 // of the last validation accuracy
	}{
		{"adam", Params{Hidden: 48, LR: 0.005}, 0.95, 1},
		{"sgd", Params{Hidden: 48, LR: 0.05, Optimizer: "sgd"}, 0.95, 1},
		{"tanh", Params{Hidden: 48, LR: 0.005, Activation: "tanh"}, 0.95, 1},
		{"two layers with dropout", Params{Hidden: 48, Layers: 2, LR: 0.005, Dropout: 0.2, L2: 1e-5}, 0.93, 1},
		{"too slow", Params{Hidden: 48, LR: 1e-5}, 0, 0.6},
		{"too fast", Params{Hidden: 48, LR: 10, Optimizer: "sgd"}, 0, 0.6},
		{"too much decay", Params{Hidden: 48, LR: 0.005, L2: 10}, 0, 0.6},
	} {
		t.Run(tc.name, func(t *testing.T) {
			all := curve(t, tc.p)
			if got := all[len(all)-1].ValAccuracy; got < tc.low || got > tc.top {
				t.Errorf("validation accuracy %v, want %v to %v", got, tc.low, tc.top)
			}
			if tc.low > 0 && !(all[len(all)-1].TrainLoss < all[0].TrainLoss/2) {
				t.Errorf("training loss went from %v to %v", all[0].TrainLoss, all[len(all)-1].TrainLoss)
			}
		})
	}
}

func TestBestIsTheHighestValidationAccuracy(t *testing.T) {
	var best float64
	r, err := Train(t.Context(), Params{Hidden: 8, Epochs: 6, LR: 0.05}, func(_ int, m Metrics) error {
		best = max(best, m.ValAccuracy)
		return nil
	})
	if err != nil || r.Best.ValAccuracy != best {
		t.Errorf("best %v (%v), want %v", r.Best.ValAccuracy, err, best)
	}
}

func TestTrainEndsEarly(t *testing.T) {
	p := Params{Hidden: 4, Epochs: 10}
	t.Run("when its context is done", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		r, err := Train(ctx, p, func(epoch int, _ Metrics) error {
			if epoch == 2 {
				cancel()
			}
			return nil
		})
		if !errors.Is(err, context.Canceled) || r.Epochs != 2 {
			t.Errorf("got %d epochs and %v, want 2 and %v", r.Epochs, err, context.Canceled)
		}
	})
	t.Run("when it is told to", func(t *testing.T) {
		stop := errors.New("pruned")
		r, err := Train(t.Context(), p, func(epoch int, _ Metrics) error {
			if epoch == 3 {
				return stop
			}
			return nil
		})
		if err != stop || r.Epochs != 3 {
			t.Errorf("got %d epochs and %v, want 3 and %v", r.Epochs, err, stop)
		}
	})
}

func TestWrongParametersAreNamed(t *testing.T) {
	for _, tc := range []struct {
		want string
		p    Params
	}{
		{"lr -1", Params{LR: -1}},
		{"lr NaN", Params{LR: math.NaN()}},
		{"lr +Inf", Params{LR: math.Inf(1)}},
		{"momentum 1", Params{Momentum: 1}},
		{"l2 -1", Params{L2: -1}},
		{"dropout 1", Params{Dropout: 1}},
		{"hidden -1", Params{Hidden: -1}},
		{"hidden 1025", Params{Hidden: 1025}},
		{"layers 5", Params{Layers: 5}},
		{"batch -1", Params{Batch: -1}},
		{"epochs 10001", Params{Epochs: 10001}},
		{`activation "gelu"`, Params{Activation: "gelu"}},
		{`optimizer "lion"`, Params{Optimizer: "lion"}},
	} {
		t.Run(tc.want, func(t *testing.T) {
			_, err := Train(t.Context(), tc.p, nil)
			if err == nil || !strings.Contains(err.Error(), "check parameters: "+tc.want+": must be") {
				t.Errorf("got %v, want it to name %s", err, tc.want)
			}
		})
	}
}

func TestABatchMayExceedTheData(t *testing.T) {
	if got := len(curve(t, Params{Hidden: 2, Epochs: 1, Batch: math.MaxInt})); got != 1 {
		t.Errorf("%d epochs, want 1", got)
	}
}

func BenchmarkEpoch(b *testing.B) {
	data, err := Load()
	if err != nil {
		b.Fatal(err)
	}
	t := newTrainer(Params{}.WithDefaults(), data)
	for b.Loop() {
		if _, err := t.epoch(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
