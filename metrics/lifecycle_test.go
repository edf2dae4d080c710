package metrics_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/foldlog/foldlog/internal/proctest"
	"github.com/foldlog/foldlog/internal/streamtest"
	"github.com/foldlog/foldlog/metrics"
)

// writerEnv makes the test binary a training process that writes until it is
// stopped.
const writerEnv = "FOLDLOG_TEST_WRITER"

func TestMain(m *testing.M) {
	proctest.Role(writerEnv, trainForever)
	os.Exit(m.Run())
}

// trainForever says that it is under way once some of its metrics are in the file.
func trainForever(path string) error {
	size := func() int64 {
		info, err := os.Stat(path)
		if err != nil {
			return 0
		}
		return info.Size()
	}
	before := size()
	rt, err := metrics.Start(metrics.Options{Slug: "child", EmitterOptions: metrics.EmitterOptions{
		Targets: []metrics.Target{{Kind: metrics.TargetJSONL, Path: path}}, FlushEvery: time.Millisecond}})
	if err != nil {
		return err
	}
	ctx, stop := rt.OnSignal(context.Background())
	defer stop()
	for i := int64(1); ctx.Err() == nil; i++ {
		if err := rt.Run().Metric(i, "loss", metrics.Int(i), ""); err != nil {
			return err
		}
		if i == 1000 {
			for size() < before+2000 { // the open and more
				time.Sleep(time.Millisecond)
			}
			fmt.Println("under way")
		}
		if i%100 == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	if r := rt.Done(); r.Lost() > 0 {
		return errors.New(r.String())
	}
	return nil
}

// train starts the child and returns when it is under way.
func train(t *testing.T, path string) *exec.Cmd {
	t.Helper()
	cmd := proctest.Self(context.Background(), writerEnv+"="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill() })
	if !bufio.NewScanner(out).Scan() {
		t.Fatal("the child did not get under way")
	}
	return cmd
}

func foldFile(t *testing.T, path string) (*metrics.Fold, []string) {
	t.Helper()
	f, err := os.Open(path)
	must(t, err)
	defer f.Close()
	var fold metrics.Fold
	var bad []string
	must(t, metrics.ReadStream(f, func(it *metrics.Item) {
		if it.Kind != metrics.ItemEvent {
			bad = append(bad, it.Err.Error())
			return
		}
		fold.Apply(&it.Event)
	}))
	return &fold, bad
}

// C7, the half with SIGKILL: running, and nothing but the torn end is bad.
func TestKilledProcessLeavesARunningRunThatResumes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.jsonl")
	for round := range 5 {
		cmd := train(t, path)
		time.Sleep(time.Duration(round) * 3 * time.Millisecond)
		must(t, cmd.Process.Kill())
		if err := cmd.Wait(); err == nil {
			t.Fatal("the child was not killed")
		}
		fold, bad := foldFile(t, path)
		if fold.Status != metrics.StatusRunning || len(fold.Segments) != round+1 || len(bad) > round+1 {
			t.Fatalf("round %d: %s, %d segments, bad: %v", round, fold.Status, len(fold.Segments), bad)
		}
		r := fold.Curve("loss").Read(metrics.Query{})
		for i := range r.Len() {
			if r.Steps[i] != 1 && r.Steps[i] != r.Steps[i-1]+1 {
				t.Fatalf("round %d: step %d after %d", round, r.Steps[i], r.Steps[i-1])
			}
		}
		f, err := os.Open(path)
		must(t, err)
		sum, err := metrics.Check(f, metrics.CheckOptions{}, func(metrics.Finding) {})
		must(t, err)
		must(t, f.Close())
		if sum.Faults > 1 {
			t.Errorf("round %d: %+v", round, sum)
		}
	}
}

func TestSignalInTheProcessCancelsAndIsNotedOnce(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // there is no signal to send to oneself
	}
	path := filepath.Join(t.TempDir(), "run.jsonl")
	cmd := train(t, path)
	must(t, cmd.Process.Signal(os.Interrupt))
	must(t, cmd.Wait())
	fold, bad := foldFile(t, path)
	marks := fold.MarksOf(metrics.NoteInterrupted)
	if len(bad) > 0 || len(marks) != 1 || fold.Interrupted() != "SIGINT" || fold.Status != metrics.StatusRunning {
		t.Fatalf("%v, bad %v, status %s", marks, bad, fold.Status)
	}
	want := fmt.Sprintf("interrupted by SIGINT at step %d", marks[0].Step)
	if marks[0].Text != want {
		t.Errorf("%q, want %q", marks[0].Text, want)
	}
}

func TestInterruptedRunMayNoteItsCheckpointAndHasNoDone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.jsonl")
	rt := start(t, options(jsonl(path)))
	must(t, rt.Interrupt(7, "SIGTERM"))
	must(t, rt.Annotate(7, metrics.Checkpoint("/c/7", 0.5)))
	rt.Done()
	fold, _ := foldFile(t, path)
	if fold.Status != metrics.StatusRunning || fold.Interrupted() != "SIGTERM" || fold.Events != 3 {
		t.Errorf("%+v", fold)
	}
}

func TestFailedRunWritesTheFailureRightBeforeDone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.jsonl")
	rt := start(t, options(jsonl(path)))
	r := rt.Fail(3, errors.New("loss is NaN"))
	if r.Lost() != 0 || r.Targets[0].Sent != 3 {
		t.Errorf("report: %s", r)
	}
	fold, _ := foldFile(t, path)
	if fold.Status != metrics.StatusFailed || fold.MarksOf(metrics.NoteFailed)[0].Error != "loss is NaN" {
		t.Errorf("%+v", fold)
	}
	if r := rt.Done(); len(r.Targets) != 0 {
		t.Errorf("a second end: %s", r)
	}
}

func TestStopWithoutASignalLeavesTheStreamAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.jsonl")
	rt := start(t, options(jsonl(path)))
	ctx, stop := rt.OnSignal(t.Context())
	stop()
	if !errors.Is(context.Cause(ctx), context.Canceled) {
		t.Errorf("cause %v", context.Cause(ctx))
	}
	rt.Done()
	fold, _ := foldFile(t, path)
	if fold.Status != metrics.StatusDone || fold.Events != 2 {
		t.Errorf("%+v", fold)
	}
}

func TestManyGoroutinesReportWithoutLossOrTear(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.jsonl")
	rt := start(t, options(jsonl(path)))
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			meta := metrics.Meta("rank", fmt.Sprint(g))
			for i := range int64(2000) {
				if err := rt.Run().Metric(i, "loss", metrics.Int(i), meta); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	rt.Done()
	fold, bad := foldFile(t, path)
	c := fold.Curve("loss")
	if len(bad) != 0 || c.Len() != 16_000 || len(c.Series) != 8 {
		t.Fatalf("%d points, %d series, bad %v", c.Len(), len(c.Series), bad)
	}
	for _, s := range c.Series {
		if s.Stats.Count != 2000 || s.Stats.LastStep != 1999 {
			t.Errorf("%s: %+v", s.Metadata, s.Stats)
		}
	}
}

func TestNothingRunsOnAfterTheEnd(t *testing.T) {
	before := goroutines()
	for _, fault := range []streamtest.Fault{{}, {Status: 503}, {Delay: time.Hour}, {Status: 401}} {
		server := streamtest.New("", func(int) streamtest.Fault { return fault })
		opts := options(jsonl(filepath.Join(t.TempDir(), "run.jsonl")), metrics.Target{Kind: metrics.TargetHTTP, URL: server.URL},
			metrics.Target{Kind: metrics.TargetHTTP, URL: server.URL, DropNonFinite: true})
		opts.CloseTimeout = 20 * time.Millisecond
		rt := start(t, opts)
		_, stop := rt.OnSignal(t.Context())
		must(t, rt.Run().Metric(1, "loss", metrics.Int(1), ""))
		stop()
		rt.Done()
		server.Close()
	}
	_, err := metrics.Start(options(jsonl(filepath.Join(t.TempDir(), "run.jsonl")), jsonl(filepath.Join(t.TempDir(), "no", "dir"))))
	if err == nil {
		t.Error("opened a file in a directory that is not there")
	}
	http.DefaultClient.CloseIdleConnections()
	var more []string
	for deadline := time.Now().Add(longEnough); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		more = goroutines()
		for _, g := range before { // some of which may have ended meanwhile
			if i := slices.Index(more, g); i >= 0 {
				more = slices.Delete(more, i, i+1)
			}
		}
		if len(more) == 0 {
			return
		}
	}
	t.Errorf("goroutines that run on:\n%s", strings.Join(more, "\n"))
}

// TestServerTargetOfAProgramWithATransportOfItsOwn sends through what a program, such as
// one that traces its requests, has put in the place of net/http's transport.
func TestServerTargetOfAProgramWithATransportOfItsOwn(t *testing.T) {
	server := streamtest.New("", nil)
	defer server.Close()
	usual := http.DefaultTransport
	defer func() { http.DefaultTransport = usual }()
	var requests atomic.Int64
	http.DefaultTransport = roundTrip(func(r *http.Request) (*http.Response, error) {
		requests.Add(1)
		return usual.RoundTrip(r)
	})
	rt := start(t, options(metrics.Target{Kind: metrics.TargetHTTP, URL: server.URL}))
	must(t, rt.Run().Metric(1, "loss", metrics.Int(1), ""))
	if report := rt.Done(); report.Lost() > 0 || requests.Load() == 0 {
		t.Errorf("%d requests, %v", requests.Load(), report)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// goroutines names where this module's goroutines and its connections' were
// made.
func goroutines() (found []string) {
	buf := make([]byte, 1<<20)
	buf = buf[:runtime.Stack(buf, true)]
	for _, line := range strings.Split(string(buf), "\n") {
		if strings.HasPrefix(line, "created by ") && (strings.Contains(line, "foldlog") || strings.Contains(line, "net/http")) {
			found = append(found, line)
		}
	}
	return found
}
