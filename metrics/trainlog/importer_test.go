package trainlog

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/metrics/tensorboard"
)

// eventFile has one point.
func eventFile(t *testing.T) []byte {
	t.Helper()
	b, err := os.ReadFile("../tensorboard/testdata/runs/val/events.out.tfevents.1")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestFilesBecomeAStream(t *testing.T) {
	im := Importer{Slug: "r", Reading: Reading{Step: "step"}, Told: func(err error) { t.Error(err) }}
	lines := `{"step":3,"loss":0.5,"time":1700000002}` + "\n" + `{"loss":0.25,"timestamp":5}` + "\n"
	for _, f := range []File{
		{Name: "events", Dir: "val", Reader: bytes.NewReader(eventFile(t))},
		{Name: "lines", Dir: "train", Reader: strings.NewReader(lines), Modified: time.UnixMilli(1)},
	} {
		if err := im.Read(f); err != nil {
			t.Fatal(err)
		}
	}
	got, err := im.Stream()
	want := `{"ts_ms":1700000001000,"kind":"open","slug":"r","description":"","metadata":{}}
{"ts_ms":1700000001000,"step":1,"kind":"metric","name":"loss","value":1.0,"metadata":{"run":"val"}}
{"ts_ms":1700000002000,"step":3,"kind":"metric","name":"loss","value":0.5,"metadata":{"run":"train"}}
{"ts_ms":1700000002000,"step":4,"kind":"metric","name":"loss","value":0.25,"metadata":{"run":"train"}}
{"ts_ms":1700000002000,"step":4,"kind":"metric","name":"timestamp","value":5,"metadata":{"run":"train"}}
{"ts_ms":1700000002000,"kind":"done","slug":"r"}
`
	if diff := cmp.Diff(want, string(got)); diff != "" || err != nil || im.Points != 4 {
		t.Errorf("%d points, %v (-want +got):\n%s", im.Points, err, diff)
	}
}

func TestWhatIsPassedOverIsToldAndCounted(t *testing.T) {
	var told []error
	im := Importer{Slug: "r", Reading: Reading{Step: "step"}, Told: func(err error) { told = append(told, err) }}
	damaged := eventFile(t)
	damaged[len(damaged)-6] ^= 1
	lines := "a=1\nwords\n" + `{"step":1.5,"a":1}` + "\n" + `{"ts_ms":1,"kind":"done","slug":"x"}` + "\n"
	for name, content := range map[string]string{"damaged": string(damaged), "lines": lines, "torn": string(eventFile(t)[:50])} {
		if err := im.Read(File{Name: name, Reader: strings.NewReader(content)}); err != nil {
			t.Fatal(err)
		}
	}
	if im.Lost != 4 || len(told) != 5 || im.Points != 1 {
		t.Errorf("%d lost, %d points, told %v", im.Lost, im.Points, told)
	}
	if all := errors.Join(told...); !errors.Is(all, tensorboard.ErrChecksum) || !errors.Is(all, tensorboard.ErrTorn) ||
		!strings.Contains(all.Error(), "read lines: line 3: step 1.5 is no step") {
		t.Error(all)
	}
}

func TestOtherFilesAreRefused(t *testing.T) {
	im := Importer{} // which tells nobody
	if err := im.Read(File{Reader: strings.NewReader("only words\n")}); !errors.Is(err, ErrFormat) || im.Lost != 1 {
		t.Errorf("%d lost, %v", im.Lost, err)
	}
}
