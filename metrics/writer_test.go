package metrics_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/internal/streamtest"
	"github.com/foldlog/foldlog/metrics"
)

// clock ticks a millisecond per event.
func clock() func() time.Time {
	var mu sync.Mutex
	ms := int64(1000)
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		ms++
		return time.UnixMilli(ms)
	}
}

func options(targets ...metrics.Target) metrics.Options {
	return metrics.Options{Slug: "my-run", Description: "mlp: 8 steps", Open: `{"entry":"a.lisp"}`,
		EmitterOptions: metrics.EmitterOptions{Targets: targets, Clock: clock(), FlushEvery: 5 * time.Millisecond}}
}

func start(t *testing.T, opts metrics.Options) *metrics.Runtime {
	t.Helper()
	rt, err := metrics.Start(opts)
	if err != nil {
		t.Fatal(err)
	}
	return rt
}

func jsonl(path string) metrics.Target {
	return metrics.Target{Kind: metrics.TargetJSONL, Path: path}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func checkReport(t *testing.T, r metrics.Report, want ...metrics.TargetReport) {
	t.Helper()
	for i := range r.Targets {
		r.Targets[i].Bytes = 0
	}
	diff := cmp.Diff(want, r.Targets, cmp.Comparer(func(a, b error) bool {
		return errors.Is(a, b) || errors.Is(b, a)
	}))
	if diff != "" {
		t.Errorf("report: -want +got:\n%s", diff)
	}
}

func TestRunWritesTheSameStreamToEveryTarget(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.jsonl")
	server := streamtest.New("secret", nil)
	defer server.Close()
	var out bytes.Buffer
	rt := start(t, options(jsonl(path),
		metrics.Target{Kind: metrics.TargetStdout, Stdout: &out},
		metrics.Target{Kind: metrics.TargetHTTP, URL: server.URL, Token: "secret"}))
	must(t, rt.SetMetadata(metrics.Meta("stage", "easy")))
	run := rt.Run()
	must(t, run.Metric(4, "eval/loss", metrics.Float(3.2047), metrics.Meta("split", "eval", "stage", "mine")))
	must(t, rt.Annotate(4, metrics.Stage("easy", "hard")))
	must(t, rt.SetMetadata(metrics.Meta("stage", "hard")))
	must(t, run.Metric(4, "tokens", metrics.Int(12), ""))
	r := rt.Done()
	page := server.URL + "/runs/my-run"
	checkReport(t, r,
		metrics.TargetReport{Target: "jsonl:" + path, Sent: 5},
		metrics.TargetReport{Target: "stdout", Sent: 5},
		metrics.TargetReport{Target: server.URL, Sent: 5, Page: page})

	want := `{"ts_ms":1001,"kind":"open","slug":"my-run","description":"mlp: 8 steps","metadata":{"entry":"a.lisp"}}
{"ts_ms":1002,"step":4,"kind":"metric","name":"eval/loss","value":3.2047,"metadata":{"split":"eval","stage":"easy"}}
{"ts_ms":1003,"step":4,"kind":"annotation","annotation":"stage easy -> hard","metadata":{"from":"easy","to":"hard"}}
{"ts_ms":1004,"step":4,"kind":"metric","name":"tokens","value":12,"metadata":{"stage":"hard"}}
{"ts_ms":1005,"kind":"done","slug":"my-run"}
`
	got, err := os.ReadFile(path)
	must(t, err)
	id := metrics.StreamID([]byte(strings.SplitAfter(want, "\n")[0]))
	for name, text := range map[string]string{"file": string(got), "stdout": out.String(), "server": string(server.Stream("my-run", id))} {
		if diff := cmp.Diff(want, text); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
	if err := run.Metric(9, "late", metrics.Int(1), ""); !errors.Is(err, metrics.ErrClosed) {
		t.Errorf("metric after done: %v", err)
	}
}

func TestNonFiniteIsKeptOrLeftOutPerTarget(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.jsonl")
	server := streamtest.New("", nil)
	defer server.Close()
	rt := start(t, options(jsonl(path), metrics.Target{Kind: metrics.TargetHTTP, URL: server.URL, DropNonFinite: true}))
	for i, text := range []string{"NaN", "Infinity", "-Infinity", "1"} {
		v := map[string]metrics.Number{"NaN": metrics.Float(nan()), "Infinity": metrics.Float(inf(1)), "-Infinity": metrics.Float(inf(-1)), "1": metrics.Int(1)}[text]
		must(t, rt.Run().Metric(int64(i), "loss", v, ""))
	}
	r := rt.Done()
	checkReport(t, r,
		metrics.TargetReport{Target: "jsonl:" + path, Sent: 6},
		metrics.TargetReport{Target: server.URL, Sent: 3, NonFinite: 3, Page: server.URL + "/runs/my-run"})
	file, err := os.ReadFile(path)
	must(t, err)
	if !bytes.Contains(file, []byte(`"value":"NaN"`)) || !bytes.Contains(file, []byte(`"value":"-Infinity"`)) {
		t.Errorf("file lacks them:\n%s", file)
	}
	for _, stream := range server.Streams() {
		if n := bytes.Count(stream, []byte("\n")); n != 3 {
			t.Errorf("server has %d lines:\n%s", n, stream)
		}
	}
}

func TestResumeClosesTheTornLineOffAndAppendsAnOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.jsonl")
	rt := start(t, options(jsonl(path)))
	must(t, rt.Run().Metric(1, "loss", metrics.Int(1), ""))
	rt.Close()
	whole, err := os.ReadFile(path)
	must(t, err)
	must(t, os.WriteFile(path, append(whole, `{"ts_ms":9,"st`...), 0o644))

	rt = start(t, options(jsonl(path)))
	must(t, rt.Annotate(1, metrics.Resumed("/ckpt/1", []string{metrics.KnobChanged("lr", "1", "2")})))
	rt.Done()
	var kinds []string
	f, err := os.Open(path)
	must(t, err)
	defer f.Close()
	must(t, metrics.ReadStream(f, func(it *metrics.Item) {
		if it.Kind == metrics.ItemBad {
			kinds = append(kinds, "bad")
		} else {
			kinds = append(kinds, it.Event.Kind.String())
		}
	}))
	if diff := cmp.Diff([]string{"open", "metric", "bad", "open", "annotation", "done"}, kinds); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	_, err = f.Seek(0, io.SeekStart)
	must(t, err)
	sum, err := metrics.Check(f, metrics.CheckOptions{}, func(metrics.Finding) {})
	must(t, err)
	if sum.Faults != 0 || sum.Warnings != 1 {
		t.Errorf("checked: %+v", sum)
	}
}

func TestServerFaultsNeitherLoseNorDouble(t *testing.T) {
	cases := map[string]func(n int) streamtest.Fault{
		"answers 503 for a while": func(n int) streamtest.Fault {
			if n < 4 {
				return streamtest.Fault{Status: 503}
			}
			return streamtest.Fault{}
		},
		"breaks every other connection": func(n int) streamtest.Fault { return streamtest.Fault{Lost: n%2 == 1} },
		"breaks answers off":            func(n int) streamtest.Fault { return streamtest.Fault{Half: n%2 == 0} },
		"is slow":                       func(n int) streamtest.Fault { return streamtest.Fault{Delay: 20 * time.Millisecond} },
		"says to come back": func(n int) streamtest.Fault {
			if n == 2 {
				return streamtest.Fault{Status: 429}
			}
			return streamtest.Fault{}
		},
	}
	for name, fault := range cases {
		for _, withFile := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				server := streamtest.New("", fault)
				defer server.Close()
				targets := []metrics.Target{{Kind: metrics.TargetHTTP, URL: server.URL}}
				path := filepath.Join(t.TempDir(), "run.jsonl")
				if withFile {
					targets = append(targets, jsonl(path))
				}
				opts := options(targets...)
				opts.CloseTimeout = longEnough
				rt := start(t, opts)
				for i := range 2000 {
					must(t, rt.Run().Metric(int64(i), "loss", metrics.Int(int64(i)), ""))
					if i%500 == 0 {
						time.Sleep(10 * time.Millisecond)
					}
				}
				r := rt.Done()
				if r.Lost() != 0 || r.Err() != nil {
					t.Fatalf("report: %s", r)
				}
				streams := server.Streams()
				for _, got := range streams {
					if len(streams) != 1 || bytes.Count(got, []byte("\n")) != 2002 {
						t.Errorf("%d streams, %d lines", len(streams), bytes.Count(got, []byte("\n")))
					}
				}
			})
		}
	}
}

func TestServerThatNeverAnswersIsCompletedByPush(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.jsonl")
	away := true
	server := streamtest.New("", func(n int) streamtest.Fault {
		if away {
			return streamtest.Fault{Status: 500}
		}
		return streamtest.Fault{}
	})
	defer server.Close()
	opts := options(jsonl(path), metrics.Target{Kind: metrics.TargetHTTP, URL: server.URL})
	opts.CloseTimeout = 100 * time.Millisecond
	rt := start(t, opts)
	for i := range 100 {
		must(t, rt.Run().Metric(int64(i), "loss", metrics.Int(int64(i)), ""))
	}
	awaitPosts(t, server, 2)
	awaitLines(t, path, 101)
	r := rt.Done()
	server2 := r.Targets[1]
	if server2.Left != 102 || server2.Dropped != 0 || !errors.Is(server2.Err, metrics.ErrAway) || r.Targets[0].Sent != 102 {
		t.Fatalf("report: %+v", r)
	}
	away = false
	client := &metrics.Client{Base: server.URL}
	for i, want := range []int64{102, 0, 0} {
		p, err := client.Push(t.Context(), path)
		must(t, err)
		if p.Events != want || p.Slug != "my-run" {
			t.Errorf("push %d: %+v", i, p)
		}
	}
	want, err := os.ReadFile(path)
	must(t, err)
	if diff := cmp.Diff(string(want), string(server.Stream("my-run", firstID(want)))); diff != "" {
		t.Errorf("-file +server:\n%s", diff)
	}
}

// longEnough is for how long tests wait for what takes a moment unless the machine is busy.
const longEnough = 5 * time.Minute

// awaitPosts waits until a server was asked so often; all but the last were answered.
func awaitPosts(t *testing.T, server *streamtest.Receiver, n int) {
	t.Helper()
	for deadline := time.Now().Add(longEnough); server.Posts() < n; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("only %d posts", server.Posts())
		}
	}
}

// awaitLines waits until a file has so many lines: what is written next is there at once,
// whatever time the disk takes to make it durable.
func awaitLines(t *testing.T, path string, n int) {
	t.Helper()
	for deadline := time.Now().Add(longEnough); ; time.Sleep(time.Millisecond) {
		b, _ := os.ReadFile(path)
		if bytes.Count(b, []byte("\n")) >= n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the file has %q", b)
		}
	}
}

func firstID(b []byte) string {
	first, _, _ := bytes.Cut(b, []byte("\n"))
	return metrics.StreamID(first)
}

func TestRefusedTokenStopsSendingAndIsReported(t *testing.T) {
	server := streamtest.New("right", nil)
	defer server.Close()
	rt := start(t, options(metrics.Target{Kind: metrics.TargetHTTP, URL: server.URL, Token: "wrong"}))
	must(t, rt.Run().Metric(1, "loss", metrics.Int(1), ""))
	r := rt.Done()
	if r.Targets[0].Dropped != 3 || !errors.Is(r.Err(), metrics.ErrUnauthorized) || r.Targets[0].Retries != 0 {
		t.Errorf("report: %+v", r)
	}
	if server.Posts() != 1 {
		t.Errorf("%d posts with a wrong token", server.Posts())
	}
}

func TestQueueForAServerIsBounded(t *testing.T) {
	server := streamtest.New("", func(int) streamtest.Fault { return streamtest.Fault{Status: 503} })
	defer server.Close()
	opts := options(metrics.Target{Kind: metrics.TargetHTTP, URL: server.URL})
	opts.QueueBytes, opts.CloseTimeout = 128<<10, 10*time.Millisecond
	rt := start(t, opts)
	for i := range 20_000 {
		must(t, rt.Run().Metric(int64(i), "loss", metrics.Int(1), ""))
	}
	awaitPosts(t, server, 2)
	r := rt.Done()
	if r.Targets[0].Dropped != 20_002 || r.Targets[0].Sent != 0 || !errors.Is(r.Err(), metrics.ErrAway) {
		t.Errorf("report: %+v", r)
	}
}
