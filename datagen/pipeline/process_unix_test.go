//go:build unix

package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/datagen/pipeline"
	"github.com/foldlog/foldlog/internal/proctest"
	"github.com/foldlog/foldlog/internal/s3test"
	"github.com/foldlog/foldlog/objstore"
)

// What a process of this test binary is told by, if it is to be a worker.
const (
	rootEnv = "FOLDLOG_PIPELINE_ROOT"
	keysEnv = "FOLDLOG_PIPELINE_KEYS"
	dieEnv  = "FOLDLOG_PIPELINE_DIE" // "done" or "started", after the first of which it kills itself
)

// The terms of leases: short where processes die one after another, and long where
// several live at once, for on a busy machine a short one is lost by the living.
const (
	shortLease = 300 * time.Millisecond
	longLease  = 20 * time.Second
)

func TestMain(m *testing.M) {
	proctest.Role(rootEnv, childWorker)
	proctest.Alone()
	code := m.Run()
	s3test.Stop()
	os.Exit(code)
}

func childWorker(root string) error {
	store, err := datagen.OpenRoot(root)
	if err != nil {
		return err
	}
	lease := longLease
	if os.Getenv(dieEnv) != "" {
		lease = shortLease
	}
	return onStore(context.Background(), store, lease, strings.Fields(os.Getenv(keysEnv)), new(counter), func(e pipeline.Event) {
		switch e.Kind {
		case pipeline.Started, pipeline.Done:
			fmt.Println(e.Kind, e.Item, e.Step.Instance)
			if string(e.Kind) == os.Getenv(dieEnv) {
				syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}
		}
	})
}

// onStore runs the pipeline on the real log.
func onStore(ctx context.Context, store objstore.Store, lease time.Duration, keys []string, c *counter, tell func(pipeline.Event)) (err error) {
	l, err := datagen.OpenOrCreate(ctx, store, "p", "e", datagen.Options{LeaseTerm: lease, RetryFor: -1})
	if err != nil {
		return err
	}
	w, err := l.NewWriter(ctx, datagen.WriterOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close(ctx)) }()
	report, err := pipeline.Run(ctx, pipeline.OnLog(l, w), everything(c, false), sources(keys...), pipeline.Options{Workers: 3, OnEvent: tell})
	if err == nil && report.Failed+report.Refused > 0 {
		err = fmt.Errorf("report %+v", report)
	}
	return err
}

// logOutcome is what the log in a store holds, as memLog.outcome.
func logOutcome(t *testing.T, store objstore.Store) map[string]any {
	t.Helper()
	l, err := datagen.Open(t.Context(), store, "p", "e", datagen.Options{})
	if err != nil {
		t.Fatal(err)
	}
	v, err := l.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := newMemLog()
	for e, err := range v.All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		all.items[e.Item] = append(all.items[e.Item], e)
	}
	if twice := all.twice(); len(twice) > 0 {
		t.Errorf("completed twice: %v", twice)
	}
	return all.outcome()
}

// wanted is what an uninterrupted run makes of the keys.
func wanted(t *testing.T, keys []string) map[string]any {
	t.Helper()
	store := objstore.NewMemory()
	if err := onStore(t.Context(), store, longLease, keys, new(counter), nil); err != nil {
		t.Fatal(err)
	}
	return logOutcome(t, store)
}

// watcher hears what worker processes do, and what ran though it was durable.
type watcher struct {
	mu    sync.Mutex
	done  map[string]bool
	again []string
	ran   int
}

func (w *watcher) heard(line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	kind, name, _ := strings.Cut(line, " ")
	switch pipeline.EventKind(kind) {
	case pipeline.Started:
		if w.ran++; w.done[name] {
			w.again = append(w.again, name)
		}
	case pipeline.Done:
		w.done[name] = true
	}
}

// process runs a worker to its end.
func (w *watcher) process(ctx context.Context, root, keys, die string) error {
	ended, err := proctest.Start(proctest.Self(ctx, rootEnv+"="+root, keysEnv+"="+keys, dieEnv+"="+die), w.heard)
	if err != nil {
		return err
	}
	return <-ended
}

// TestKilledAfterEveryDurableStep starts processes, each of which is killed by
// SIGKILL once it has made a step durable, or while one runs, until all is done.
func TestKilledAfterEveryDurableStep(t *testing.T) {
	keys := "a"
	if os.Getenv("FOLDLOG_SOAK") != "" {
		keys = "a b c d"
	}
	root := t.TempDir()
	w := &watcher{done: map[string]bool{}}
	deaths := 0
	for ; ; deaths++ {
		die := []string{"done", "done", "started"}[deaths%3]
		if testing.Short() && deaths == 4 {
			die = ""
		}
		err := w.process(t.Context(), root, keys, die)
		if err == nil {
			break
		}
		if !strings.HasPrefix(err.Error(), "signal: killed") || deaths > 1000 {
			t.Fatal(err)
		}
	}
	store, err := datagen.OpenRoot(root)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wanted(t, strings.Fields(keys)), logOutcome(t, store)); diff != "" {
		t.Errorf("outcome (-uninterrupted +killed):\n%s", diff)
	}
	if len(w.again) > 0 || deaths < 4 {
		t.Errorf("%d deaths; ran though they were durable: %v", deaths, w.again)
	}
}

// TestACrashAtManyChangesOfTheStore lets the store fail for good at its n-th change.
func TestACrashAtManyChangesOfTheStore(t *testing.T) {
	keys := []string{"a", "b"}
	want := wanted(t, keys)
	points := 12
	if testing.Short() {
		points = 3
	}
	counting := objstore.NewFault(objstore.NewMemory(), func(objstore.Call) objstore.Fate { return objstore.Fate{} })
	if err := onStore(t.Context(), counting, longLease, keys, new(counter), nil); err != nil {
		t.Fatal(err)
	}
	total := counting.Changes()
	for n := 1; n < total; n += max(1, total/points) {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			t.Parallel()
			memory := objstore.NewMemory()
			crashing := objstore.NewFault(memory, func(c objstore.Call) objstore.Fate {
				return objstore.Fate{Crash: c.Mutates() && c.N == n, Done: n%2 == 0}
			})
			w := &watcher{done: map[string]bool{}}
			tell := func(e pipeline.Event) { w.heard(fmt.Sprint(e.Kind, " ", e.Item, " ", e.Step.Instance)) }
			if err := onStore(t.Context(), crashing, shortLease, keys, new(counter), tell); err == nil && crashing.Changes() >= n {
				t.Log("the crash came when all was done") // as its leases were released
			}
			if err := onStore(t.Context(), memory, shortLease, keys, new(counter), tell); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, logOutcome(t, memory)); diff != "" {
				t.Errorf("outcome (-uninterrupted +crashed):\n%s", diff)
			}
			if len(w.again) > 0 {
				t.Errorf("ran though they were durable: %v", w.again)
			}
		})
	}
}

// TestProcessesShareAnExperiment runs several processes at once on a directory and on
// a real S3 server; one of them is killed.
func TestProcessesShareAnExperiment(t *testing.T) {
	var keys []string
	n := 8
	if testing.Short() {
		n = 3
	}
	for i := range n {
		keys = append(keys, fmt.Sprint("k", i))
	}
	want := wanted(t, keys)
	share := func(t *testing.T, root string) {
		w := &watcher{done: map[string]bool{}}
		errs := make([]error, 3)
		var all sync.WaitGroup
		for i := range errs {
			die := ""
			if i == 0 {
				die = "started"
			}
			all.Go(func() { errs[i] = w.process(t.Context(), root, strings.Join(keys, " "), die) })
		}
		all.Wait()
		if errs[1] != nil || errs[2] != nil {
			t.Fatal(errs)
		}
		store, err := datagen.OpenRoot(root)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, logOutcome(t, store)); diff != "" {
			t.Errorf("outcome (-uninterrupted +shared):\n%s", diff)
		}
		if len(w.again) > 0 {
			t.Errorf("ran though they were durable: %v", w.again)
		}
	}
	t.Run("directory", func(t *testing.T) { share(t, t.TempDir()) })
	t.Run("S3", func(t *testing.T) {
		if !s3test.Running(t) {
			t.Skip("versitygw is not installed")
		}
		endpoint, bucket := s3test.Bucket(t)
		for key, value := range map[string]string{
			"AWS_ENDPOINT_URL_S3": endpoint, "AWS_REGION": s3test.Region,
			"AWS_ACCESS_KEY_ID": s3test.AccessKey, "AWS_SECRET_ACCESS_KEY": s3test.SecretKey,
		} {
			t.Setenv(key, value)
		}
		share(t, "s3://"+bucket+"/under/here")
	})
}
