package trainlog

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/metrics"
)

// recorded is the stream that a recorder makes of some output, at the time 1.
func recorded(t *testing.T, r *Recorder, output, signal string) string {
	t.Helper()
	var stream bytes.Buffer
	target, err := metrics.ParseTarget("stdout")
	if err != nil {
		t.Fatal(err)
	}
	target.Stdout = &stream
	r.Emitter, err = metrics.NewEmitter(metrics.EmitterOptions{Targets: []metrics.Target{target}, Clock: func() time.Time { return time.UnixMilli(1) }})
	if err != nil {
		t.Fatal(err)
	}
	lines := metrics.NewMixed(0, r.Item)
	if _, err := lines.Write([]byte(output)); err != nil {
		t.Fatal(err)
	}
	lines.Close()
	if report := r.End(signal); report.Err() != nil {
		t.Fatal(report.Err())
	}
	return strings.ReplaceAll(stream.String(), `{"ts_ms":1,`, "{")
}

const (
	openR = `{"kind":"open","slug":"r","description":"","metadata":{}}` + "\n"
	doneR = `{"kind":"done","slug":"r"}` + "\n"
)

func TestOutputBecomesAStream(t *testing.T) {
	event := `{"ts_ms":1,"kind":"open","slug":"r","description":"","metadata":{}}` + "\n"
	for _, tc := range []struct {
		name         string
		recorder     Recorder
		output, want string
		signal       string
	}{
		{"lines without a step count", Recorder{Slug: "r"}, "a=1\nwords\na=2\n",
			openR + `{"step":0,"kind":"metric","name":"a","value":1,"metadata":{}}` + "\n" + `{"step":1,"kind":"metric","name":"a","value":2,"metadata":{}}` + "\n" + doneR, ""},
		{"steps, tags and what is left out", Recorder{Slug: "r", Reading: Reading{Step: "it", Tags: []string{"split"}, Skip: func(name string) bool { return name == "b" }}},
			`{"it":4.0,"split":"train","a":1,"b":2,"c":"text"}` + "\n",
			openR + `{"step":4,"kind":"metric","name":"a","value":1,"metadata":{"split":"train"}}` + "\n" + doneR, ""},
		{"an input with its own open is not ended for it", Recorder{}, event, openR, ""},
		{"a signal is no end", Recorder{Slug: "r"}, "a=1\n",
			openR + `{"step":0,"kind":"metric","name":"a","value":1,"metadata":{}}` + "\n" +
				`{"step":0,"kind":"annotation","annotation":"interrupted by SIGINT at step 0","metadata":{"signal":"SIGINT"}}` + "\n", "SIGINT"},
		{"nothing", Recorder{Slug: "r"}, "words\n", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.recorder.Refused = func(err error) { t.Error(err) }
			if diff := cmp.Diff(tc.want, recorded(t, &tc.recorder, tc.output, tc.signal)); diff != "" {
				t.Errorf("stream (-want +got):\n%s", diff)
			}
			if tc.recorder.Opened() != (tc.want != "") {
				t.Errorf("opened is %v", tc.recorder.Opened())
			}
		})
	}
}

func TestLinesThatCannotBeTakenAreCounted(t *testing.T) {
	var told []error
	r := Recorder{Slug: "r", Reading: Reading{Step: "step"}, Refused: func(err error) { told = append(told, err) }}
	recorded(t, &r, "step=0.5 a=1\n{\"ts_ms\":2,\"kind\":\"metric\"}\na=1\n", "")
	lines, first := r.Unread()
	if lines != 2 || len(told) != 1 || !errors.Is(first, told[0]) || first.Error() != "line 1: step 0.5 is no step" {
		t.Errorf("%d lines, the first: %v; told %v", lines, first, told)
	}
}

func TestARunThatNobodyNamesIsNotRecorded(t *testing.T) {
	r := Recorder{} // which tells nobody
	stream := recorded(t, &r, "a=1\n"+`{"ts_ms":2,"kind":"done","slug":"r"}`+"\n", "")
	if lines, first := r.Unread(); lines != 2 || !errors.Is(first, ErrNoOpen) || stream != "" || r.Opened() {
		t.Errorf("%d lines, the first: %v; stream %q", lines, first, stream)
	}
}

func TestWhatTheMachineSaysHasThePlaceOfTheLatestStep(t *testing.T) {
	r := Recorder{Refused: func(err error) { t.Error(err) }}
	r.Metric("system/load", metrics.Float(1), "") // of which run is not known yet
	r.Slug, r.step = "r", 7
	var stream bytes.Buffer
	r.Emitter, _ = metrics.NewEmitter(metrics.EmitterOptions{Targets: []metrics.Target{{Kind: metrics.TargetStdout, Stdout: &stream}}})
	r.Metric("system/load", metrics.Float(2), "")
	r.End("")
	if text := stream.String(); strings.Count(text, "system/load") != 1 || !strings.Contains(text, `"step":7,"kind":"metric","name":"system/load","value":2.0`) {
		t.Errorf("%s", text)
	}
}
