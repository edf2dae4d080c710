package trial

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/examples/digits"
	"github.com/foldlog/foldlog/internal/proctest"
)

func TestMain(m *testing.M) {
	if os.Getenv("DIGITS_TRAIN") != "" {
		os.Exit(Main(os.Args[1:])) // this process is the command of a test
	}
	os.Exit(proctest.Run(m))
}

type output struct {
	status         int
	stdout, stderr string
}

func command(t *testing.T, ctx context.Context, args ...string) output {
	t.Helper()
	var stdout, stderr bytes.Buffer
	clock := func() time.Time { return time.UnixMilli(1_790_189_597_015) }
	status := run(ctx, args, &stdout, &stderr, clock)
	return output{status, stdout.String(), stderr.String()}
}

// event is one line of the stream as any reader would take it.
type event struct {
	TSMS       int64          `json:"ts_ms"`
	Step       int            `json:"step"`
	Kind       string         `json:"kind"`
	Slug       string         `json:"slug"`
	Name       string         `json:"name"`
	Value      any            `json:"value"`
	Annotation string         `json:"annotation"`
	Metadata   map[string]any `json:"metadata"`
}

func events(t *testing.T, stream string) []event {
	t.Helper()
	var list []event
	for line := range strings.Lines(stream) {
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("read %q: %v", line, err)
		}
		if e.TSMS == 0 || !strings.HasSuffix(line, "}\n") {
			t.Errorf("line %q is no whole event with a time", line)
		}
		list = append(list, e)
	}
	return list
}

func TestStreamOfAWholeRun(t *testing.T) {
	got := command(t, t.Context(), "--hidden", "4", "-epochs=2", "--slug", "mine", "--seed", "18446744073709551615")
	if got.status != 0 || got.stderr != "" {
		t.Fatalf("got status %d and %q", got.status, got.stderr)
	}
	open, _, _ := strings.Cut(got.stdout, "\n")
	want := `{"ts_ms":1790189597015,"kind":"open","slug":"mine","description":"digits: 2 epochs of adam","metadata":` +
		`{"entry":"examples/digits/train","variant":null,"knobs":{"activation":"relu","batch":32,"dropout":0,"hidden":4,` +
		`"l2":0,"layers":1,"lr":0.003,"momentum":0.9,"optimizer":"adam"},"run":{"steps":2,"seed":18446744073709551615},` +
		`"device":"cpu","devices":[]}}`
	if diff := cmp.Diff(want, open); diff != "" {
		t.Errorf("open event (-want +got):\n%s", diff)
	}
	if want := `{"ts_ms":1790189597015,"kind":"done","slug":"mine"}` + "\n"; !strings.HasSuffix(got.stdout, want) {
		t.Errorf("the stream does not end in %q", want)
	}
	list := events(t, got.stdout)
	var metrics []string
	for _, e := range list[1 : len(list)-1] {
		if e.Kind != "metric" || e.Value.(float64) < 0 || e.Metadata["split"] != strings.Split(e.Name, "/")[0] {
			t.Errorf("unexpected event %+v", e)
		}
		metrics = append(metrics, e.Name)
	}
	epoch := []string{"train/loss", "train/accuracy", "val/loss", "val/accuracy"}
	if diff := cmp.Diff(append(epoch, epoch...), metrics); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
	if first, last := list[1].Step, list[len(list)-2].Step; first != 1 || last != 2 {
		t.Errorf("steps from %d to %d, want 1 to 2", first, last)
	}
}

func TestADivergingRunIsReported(t *testing.T) {
	got := command(t, t.Context(), "--hidden", "4", "--epochs", "3", "--optimizer", "sgd", "--lr", "1e200")
	if got.status != 0 || !strings.Contains(got.stdout, `"name":"val/loss","value":"NaN"`) {
		t.Errorf("got status %d, want 0 and a NaN in\n%s", got.status, got.stdout)
	}
	events(t, got.stdout)
}

func TestNumberSpellsWhatJSONHasNoWordFor(t *testing.T) {
	for _, tc := range []struct {
		in   float64
		want string
	}{{0.5, "0.5"}, {math.NaN(), `"NaN"`}, {math.Inf(1), `"Infinity"`}, {math.Inf(-1), `"-Infinity"`}} {
		if got, err := json.Marshal(number(tc.in)); err != nil || string(got) != tc.want {
			t.Errorf("%v is spelled %s (%v), want %s", tc.in, got, err, tc.want)
		}
	}
}

func TestWrongCommandLines(t *testing.T) {
	for _, tc := range []struct {
		want string
		args []string
	}{
		{"flag provided but not defined: -nope", []string{"--nope"}},
		{`unexpected argument "extra"`, []string{"extra"}},
		{"lr 0: must be above 0 and finite", []string{"--lr", "0"}},
		{"hidden 0: must be from 1 to 1024", []string{"--hidden=0"}},
		{`optimizer "": must be adam or sgd`, []string{"--optimizer="}},
	} {
		t.Run(tc.want, func(t *testing.T) {
			got := command(t, t.Context(), tc.args...)
			if diff := cmp.Diff(output{2, "", "train: " + tc.want + "\n"}, got, cmp.AllowUnexported(output{})); diff != "" {
				t.Errorf("command (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHelpNamesEveryFlag(t *testing.T) {
	got := command(t, t.Context(), "--help")
	if got.status != 0 || got.stdout != "" {
		t.Errorf("got status %d and %q on standard output", got.status, got.stdout)
	}
	for _, flag := range []string{"-lr", "-momentum", "-l2", "-dropout", "-hidden", "-layers", "-batch", "-epochs", "-activation", "-optimizer", "-seed", "-slug"} {
		if !strings.Contains(got.stderr, "  "+flag+" ") {
			t.Errorf("the help does not name %s", flag)
		}
	}
}

func TestMomentumZeroIsNone(t *testing.T) {
	none := command(t, t.Context(), "--hidden", "4", "--epochs", "1", "--optimizer", "sgd", "--momentum", "0")
	some := command(t, t.Context(), "--hidden", "4", "--epochs", "1", "--optimizer", "sgd")
	if !strings.Contains(none.stdout, `"momentum":0,`) || none.stdout == some.stdout {
		t.Errorf("momentum 0 was not used:\n%s", none.stdout)
	}
}

func TestAFailedRunSaysWhyAndIsDone(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("out of time"))
	got := command(t, ctx)
	list := events(t, got.stdout)
	if got.status != 1 || len(list) != 3 {
		t.Fatalf("got status %d and %d events, want 1 and 3", got.status, len(list))
	}
	if list[1].Annotation != "failed: out of time" || list[2].Kind != "done" {
		t.Errorf("the stream ends in %+v", list[1:])
	}
}

// brokenWriter fails for good at its n-th write.
type brokenWriter struct{ calls, n int }

func (w *brokenWriter) Write(p []byte) (int, error) {
	if w.calls++; w.calls >= w.n {
		return 0, errors.New("no space")
	}
	return len(p), nil
}

func TestABrokenOutputIsNotWrittenAgain(t *testing.T) {
	params := digits.Params{Hidden: 2, Epochs: 1}.WithDefaults()
	for n, event := range []string{"", "open", "the first metric", "", "", "", "done"} {
		if event == "" {
			continue
		}
		t.Run(event, func(t *testing.T) {
			w := &brokenWriter{n: n}
			err := train(t.Context(), params, &stream{out: w, now: time.Now})
			if err == nil || err.Error() != "write event: no space" || w.calls != n {
				t.Errorf("got %v after %d writes, want the error of write %d", err, w.calls, n)
			}
		})
	}
}
