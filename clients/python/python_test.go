// Package python tests the Python client with the machine's Python: its own
// tests, and that it writes what the Go library writes for the same calls.
package python

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/internal/proctest"
	"github.com/foldlog/foldlog/internal/streamtest"
	"github.com/foldlog/foldlog/metrics"
)

func TestMain(m *testing.M) { os.Exit(proctest.Run(m)) }

// python is a command of the machine's Python in this folder. There must be
// one: a client that nobody has run is not tested.
func python(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	path, err := exec.LookPath("python3")
	if err != nil {
		t.Fatalf("these tests need python3: %v", err)
	}
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "PYTHONUTF8=1", "no_proxy=127.0.0.1", "FOLDLOG_TOKEN=secret")
	return cmd
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestUnittests(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "foldlog")
	if out, err := exec.Command("go", "build", "-o", binary, "../../cmd/foldlog").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := python(t, "-W", "error", "-m", "unittest")
	cmd.Env = append(cmd.Env, "FOLDLOG_BINARY="+binary)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !bytes.Contains(out, []byte("\nOK")) || bytes.Contains(out, []byte("Ran 0 tests")) {
		t.Errorf("nothing ran:\n%s", out)
	}
}

// call is one call of both libraries: in JSON for Python, as a function for Go.
type call struct {
	json string
	play func(rt *metrics.Runtime) error
}

const runtimeMeta = `{"stage":"easy"}`

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func metric(step int64, name string, value metrics.Number, meta string) call {
	raw := string(value.Append(nil))
	return call{fmt.Sprintf(`{"do":"metric","step":%d,"name":%s,"value":%s,"metadata":%s}`, step, quote(name), raw, meta),
		func(rt *metrics.Runtime) error { return rt.Run().Metric(step, name, value, metrics.Metadata(meta)) }}
}

func note(args string, step int64, n metrics.Note) call {
	return call{fmt.Sprintf(`{"do":%s,"step":%d}`, args, step), func(rt *metrics.Runtime) error { return rt.Annotate(step, n) }}
}

// calls has every kind of event and annotation, texts at the limits, and
// numbers of every size.
func calls() []call {
	emoji := strings.Repeat("a", 15_999) + "😀" + "tail"
	graphs := make([]string, 400)
	for i := range graphs {
		graphs[i] = fmt.Sprintf("graph %d %s", i, strings.Repeat("é", 60))
	}
	changed := []string{metrics.SourceChanged("a.py", "x", "y"), metrics.KnobChanged("lr", "", "1"), metrics.KnobChanged("wd", "1", "")}
	list := []call{
		metric(0, "train/loss", metrics.Float(2.7658), `{"split":"train","stage":"mine"}`),
		metric(-5, "é \"quoted\"\\\n\t\x01\x7f\u2028", metrics.Int(4), `{}`),
		metric(1<<62, "wide", metrics.Uint(1<<64-1), `{"a":[1,2.5,null,true,{"b":"c"}],"big":123456789012345678901234567890}`),
		note(`"lowering","head":"1 graph","graphs":`+jsonOf(graphs)+`,"tail":["peak"],"device":"cuda"`, 0,
			metrics.Lowering(metrics.LoweringBlock{Head: "1 graph", Graphs: graphs, Tail: []string{"peak"}}, "cuda")),
		note(`"memory_plan","text":"weights 4 MiB","parts":{"weights":4194304}`, 0, metrics.MemoryPlan("weights 4 MiB", `{"weights":4194304}`)),
		note(`"memory_retry","what":"retried"`, 2, metrics.MemoryRetry(2, "retried")),
		note(`"memory_peak","peak":"1 MiB","planned":"2 MiB"`, 2, metrics.MemoryPeak("1 MiB", "2 MiB")),
		note(`"stacking","text":"4 microbatches","degrees":{"degree":4}`, 2, metrics.Stacking("4 microbatches", `{"degree":4}`)),
		note(`"stage","from_":"easy","to":"hard"`, 4, metrics.Stage("easy", "hard")),
		note(`"checkpoint","location":"/c/8","seconds":0.041`, 8, metrics.Checkpoint("/c/8", 0.041)),
		note(`"resumed","location":"/c/8","changed":`+jsonOf(changed), 8, metrics.Resumed("/c/8", changed)),
		note(`"annotate","text":`+quote(emoji)+`,"metadata":{"k":1}`, 9, metrics.OtherNote(emoji, `{"k":1}`)),
		{`{"do":"set_metadata","runtime":{"stage":"hard"}}`, func(rt *metrics.Runtime) error { return rt.SetMetadata(`{"stage":"hard"}`) }},
	}
	return append(append(list, numbers()...),
		note(`"failed","message":"loss is NaN"`, 99, metrics.Failed("loss is NaN")),
		call{`{"do":"done"}`, func(rt *metrics.Runtime) error { return rt.Done().Err() }})
}

// numbers are floats of every size, the same ones each time.
func numbers() (list []call) {
	random := rand.New(rand.NewPCG(1, 2))
	values := []metrics.Number{metrics.Float(0), metrics.Float(4), metrics.Float(1e-5), metrics.Float(9.999e-6), metrics.Float(1e15),
		metrics.Float(1e16), metrics.Float(5e-324), metrics.Float(1.7976931348623157e308), metrics.Float(123456.75),
		metrics.Float(math.NaN()), metrics.Float(math.Inf(1)), metrics.Float(math.Inf(-1)), metrics.Float(math.Copysign(0, -1))}
	for range 2000 {
		mantissa := random.Float64()*2 - 1
		for range random.IntN(300) {
			mantissa *= []float64{10, 0.1}[random.IntN(2)]
		}
		values = append(values, metrics.Float(mantissa))
	}
	for i, v := range values {
		list = append(list, metric(int64(i), "n", v, `{}`))
	}
	return list
}

func jsonOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

const (
	openMeta    = `{"knobs":{"lr":0.001,"big":1e-7,"n":3},"variant":null,"device":"cpu","devices":[0,1]}`
	description = "words — \"of\" a run"
)

// script writes the calls for Python.
func script(t *testing.T, list []call) string {
	t.Helper()
	parts := []string{fmt.Sprintf(`{"slug":"my-run","description":%s,"metadata":%s,"runtime":%s}`, quote(description), openMeta, runtimeMeta)}
	for _, c := range list {
		parts = append(parts, c.json)
	}
	path := filepath.Join(t.TempDir(), "calls.json")
	must(t, os.WriteFile(path, []byte("["+strings.Join(parts, ",\n")+"]"), 0o666))
	return path
}

// written is the stream that Go writes for the calls.
func written(t *testing.T, list []call) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "go.jsonl")
	rt, err := metrics.Start(metrics.Options{Slug: "my-run", Description: description, Open: openMeta, Metadata: runtimeMeta,
		EmitterOptions: metrics.EmitterOptions{Targets: []metrics.Target{{Kind: metrics.TargetJSONL, Path: path}}}})
	must(t, err)
	for _, c := range list {
		must(t, c.play(rt))
	}
	rt.Close()
	data, err := os.ReadFile(path)
	must(t, err)
	return data
}

var timeStamp = regexp.MustCompile(`(?m)^\{"ts_ms":\d+`)

func withoutTimes(b []byte) []string {
	return strings.Split(timeStamp.ReplaceAllString(string(b), `{"ts_ms":0`), "\n")
}

func TestPythonWritesWhatGoWrites(t *testing.T) {
	list := calls()
	path := filepath.Join(t.TempDir(), "py.jsonl")
	if out, err := python(t, "-m", "tests.calls", script(t, list), "jsonl:"+path).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	data, err := os.ReadFile(path)
	must(t, err)
	if diff := cmp.Diff(withoutTimes(written(t, list)), withoutTimes(data)); diff != "" {
		t.Errorf("-go +python:\n%s", diff)
	}
	sum, err := metrics.Check(bytes.NewReader(data), metrics.CheckOptions{}, func(f metrics.Finding) { t.Error(f) })
	must(t, err)
	if sum.Events != int64(len(list)) || !sum.Ended {
		t.Errorf("%d events, ended %v; %d calls", sum.Events, sum.Ended, len(list))
	}
}

func TestPythonSendsTheBytesOfItsFile(t *testing.T) {
	list := calls()
	for _, tc := range []struct {
		name  string
		fault func(n int) streamtest.Fault
	}{
		{"an honest server", nil},
		{"a server that fails now and then", func(n int) streamtest.Fault {
			switch n {
			case 1:
				return streamtest.Fault{Status: 503}
			case 2, 5:
				return streamtest.Fault{Lost: true}
			case 4:
				return streamtest.Fault{Half: true}
			case 6:
				return streamtest.Fault{Status: 413}
			}
			return streamtest.Fault{}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			server := streamtest.New("secret", tc.fault)
			defer server.Close()
			path := filepath.Join(t.TempDir(), "py.jsonl")
			out, err := python(t, "-m", "tests.calls", script(t, list), "jsonl:"+path, server.URL).CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			data, err := os.ReadFile(path)
			must(t, err)
			id := metrics.StreamID(data[:bytes.IndexByte(data, '\n')])
			if got := server.Stream("my-run", id); !bytes.Equal(got, data) {
				t.Errorf("the server has %d bytes, the file %d", len(got), len(data))
			}
			if n := len(server.Streams()); n != 1 {
				t.Errorf("%d streams", n)
			}
		})
	}
}

func TestPythonSendsFromMemory(t *testing.T) {
	list := calls()
	server := streamtest.New("secret", func(n int) streamtest.Fault {
		return streamtest.Fault{Half: n == 2}
	})
	defer server.Close()
	if out, err := python(t, "-m", "tests.calls", script(t, list), server.URL).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, data := range server.Streams() {
		if diff := cmp.Diff(withoutTimes(written(t, list)), withoutTimes(data)); diff != "" {
			t.Errorf("%s: -go +python:\n%s", name, diff)
		}
	}
	if n := len(server.Streams()); n != 1 {
		t.Errorf("%d streams", n)
	}
}

func TestPythonSaysWhatAServerLacksAndPushCompletesIt(t *testing.T) {
	list := calls()
	server := streamtest.New("other", nil)
	defer server.Close()
	path := filepath.Join(t.TempDir(), "py.jsonl")
	out, err := python(t, "-m", "tests.calls", script(t, list), "jsonl:"+path, server.URL).CombinedOutput()
	if err == nil || !strings.Contains(string(out), fmt.Sprintf("%d left in the file: send: not authorised", len(list))) {
		t.Fatalf("%v\n%s", err, out)
	}
	client := &metrics.Client{Base: server.URL, Token: "other"}
	pushed, err := client.Push(t.Context(), path)
	must(t, err)
	data, err := os.ReadFile(path)
	must(t, err)
	if pushed.Events != int64(len(list)) || !bytes.Equal(server.Stream("my-run", pushed.Stream), data) {
		t.Errorf("pushed %+v", pushed)
	}
}

func TestPythonGivesUpOnAServerThatIsAway(t *testing.T) {
	const nobody = "http://127.0.0.1:1" // ever listens there
	out, err := python(t, "-m", "tests.calls", script(t, []call{{json: `{"do":"done"}`}}), nobody).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "2 dropped: send: server away") {
		t.Errorf("%v\n%s", err, out)
	}
}
