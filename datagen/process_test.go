package datagen

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/internal/proctest"
	"github.com/foldlog/foldlog/internal/s3test"
	"github.com/foldlog/foldlog/objstore"
)

// childEnv tells a process of this test binary to be a worker: the root of the log.
// mortalEnv says that it will be killed: others take it for dead soon.
const (
	childEnv  = "FOLDLOG_DATAGEN_WORKER"
	mortalEnv = "FOLDLOG_DATAGEN_MORTAL"
)

func TestMain(m *testing.M) {
	proctest.Role(childEnv, worker)
	proctest.Alone()
	code := m.Run()
	s3test.Stop()
	os.Exit(code)
}

// worker runs the pipeline of the tests on the keys of its arguments, and says on its
// standard output which step begins and which was acknowledged.
func worker(root string) error {
	store, err := OpenRoot(root)
	if err != nil {
		return err
	}
	opts := steady
	if os.Getenv(mortalEnv) != "" {
		opts = quick
	}
	return tell{newWorld()}.run(context.Background(), store, opts, strings.Split(os.Getenv("KEYS"), ","), 4)
}

type tell struct{ *world }

// run is the world's, with every acknowledged step told as soon as it is.
func (w tell) run(ctx context.Context, store objstore.Store, opts Options, keys []string, workers int) error {
	w.said = func(verb, key string) { fmt.Println(verb, key) }
	return w.world.run(ctx, store, opts, keys, workers)
}

// processes are worker processes on one log, and what they said.
type processes struct {
	t    *testing.T
	root string
	keys []string
	env  []string

	mu    sync.Mutex
	acked map[string]bool
	runs  map[string]int
	again []string
}

func newProcesses(t *testing.T, root string, keys []string, env ...string) *processes {
	return &processes{t: t, root: root, keys: keys, env: env, acked: map[string]bool{}, runs: map[string]int{}}
}

// start starts a worker; its end is told to the channel.
func (p *processes) start(more ...string) (*exec.Cmd, <-chan error) {
	p.t.Helper()
	env := append(more, childEnv+"="+p.root, "KEYS="+strings.Join(p.keys, ","))
	cmd := proctest.Self(p.t.Context(), append(env, p.env...)...)
	done, err := proctest.Start(cmd, p.heard)
	check(p.t, err)
	return cmd, done
}

func (p *processes) heard(line string) {
	verb, key, _ := strings.Cut(line, " ")
	p.mu.Lock()
	defer p.mu.Unlock()
	switch verb {
	case "run":
		p.runs[key]++
		if p.acked[key] {
			p.again = append(p.again, key)
		}
	case "done":
		p.acked[key] = true
	}
}

func (p *processes) check(want map[string]string) {
	p.t.Helper()
	for key, value := range envOf(p.env) {
		p.t.Setenv(key, value)
	}
	store, err := OpenRoot(p.root)
	check(p.t, err)
	if d := cmp.Diff(want, outcome(p.t, store)); d != "" {
		p.t.Error(d)
	}
	if len(p.again) > 0 {
		p.t.Errorf("ran although it was acknowledged: %v", p.again)
	}
}

func envOf(env []string) map[string]string {
	m := map[string]string{}
	for _, e := range env {
		k, v, _ := strings.Cut(e, "=")
		m[k] = v
	}
	return m
}

func someKeys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprint("source-", i)
	}
	return keys
}

// outcomeOf is what an uninterrupted run makes of the keys.
func outcomeOf(t *testing.T, keys []string) map[string]string {
	t.Helper()
	s := objstore.NewMemory()
	check(t, newWorld().run(t.Context(), s, quick, keys, 4))
	return outcome(t, s)
}

// TestKilledProcessesLoseNothing kills workers at random moments until one gets through.
func TestKilledProcessesLoseNothing(t *testing.T) {
	rounds := 8
	if testing.Short() {
		rounds = 3
	}
	keys := someKeys(12)
	p := newProcesses(t, t.TempDir(), keys)
	for range rounds {
		cmd, done := p.start(mortalEnv + "=1") // nobody lives beside it
		select {
		case err := <-done:
			check(t, err)
		case <-time.After(time.Duration(50+rand.IntN(400)) * time.Millisecond):
			_ = cmd.Process.Kill()
			<-done
		}
	}
	_, done := p.start()
	check(t, <-done)
	p.check(outcomeOf(t, keys))
}

// TestProcessesShareTheItems starts several workers at once on a log that does not
// exist, kills some of them, and starts others.
func TestProcessesShareTheItems(t *testing.T) {
	roots := map[string]func(t *testing.T) (string, []string){
		"directory": func(t *testing.T) (string, []string) { return filepath.Join(t.TempDir(), "root"), nil },
		"s3":        bucketRoot,
	}
	for name, make := range roots {
		t.Run(name, func(t *testing.T) {
			root, env := make(t)
			if root == "" {
				return
			}
			keys := someKeys(8)
			p := newProcesses(t, root, keys, env...)
			var ends, killed []<-chan error
			for i := range 2 {
				cmd, done := p.start(mortalEnv + "=1")
				killed = append(killed, done)
				time.AfterFunc(time.Duration(300+300*i)*time.Millisecond, func() { _ = cmd.Process.Kill() })
			}
			for range 2 {
				_, done := p.start()
				ends = append(ends, done)
			}
			for _, done := range ends {
				check(t, <-done)
			}
			for _, done := range killed { // which may have got through before that
				<-done
			}
			p.check(outcomeOf(t, keys))
		})
	}
}

func bucketRoot(t *testing.T) (string, []string) {
	if !s3test.Running(t) {
		return "", nil
	}
	endpoint, bucket := s3test.Bucket(t)
	return "s3://" + bucket + "/some/where", []string{
		"AWS_ENDPOINT_URL_S3=" + endpoint, "AWS_REGION=" + s3test.Region,
		"AWS_ACCESS_KEY_ID=" + s3test.AccessKey, "AWS_SECRET_ACCESS_KEY=" + s3test.SecretKey,
	}
}

// TestManyCreateOneExperiment lets 16 open the same experiment at once and write an
// item each.
func TestManyCreateOneExperiment(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			store, err := OpenRoot(dir)
			if err != nil {
				t.Error(err)
				return
			}
			l, err := OpenOrCreate(t.Context(), store, "digits", "first", Options{})
			if err != nil {
				t.Error(err)
				return
			}
			w, err := l.NewWriter(t.Context(), WriterOptions{})
			if err != nil {
				t.Error(err)
				return
			}
			s, err := w.Open(t.Context(), fmt.Sprint(i), CreateOptions{})
			if err == nil {
				err = s.Create(t.Context())
			}
			if err = errors.Join(err, w.Close(t.Context())); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	store, err := OpenRoot(dir)
	check(t, err)
	if n := len(outcome(t, store)); n != 16 {
		t.Errorf("%d items", n)
	}
}

// TestManyCheckpointsAtOnce makes 500 items checkpoint at the same moment.
func TestManyCheckpointsAtOnce(t *testing.T) {
	store, err := OpenRoot(t.TempDir())
	check(t, err)
	l, err := OpenOrCreate(t.Context(), store, "digits", "first", Options{})
	check(t, err)
	w := newWriter(t, l)
	var wg sync.WaitGroup
	for i := range 500 {
		wg.Go(func() {
			s, err := w.openAt(t.Context(), fmt.Sprint(i), CreateOptions{}, 0)
			if err == nil {
				err = s.Checkpoint(t.Context(), step(0), nil)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := len(outcome(t, store)); n != 500 {
		t.Errorf("%d items", n)
	}
}

// TestSixteenProcessesCreateOneLog has each run an item of its own in a log that none of
// them finds at first.
func TestSixteenProcessesCreateOneLog(t *testing.T) {
	root := t.TempDir()
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), childEnv+"="+root, fmt.Sprintf("KEYS=item-%d", i))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("process %d: %v: %s", i, err, out)
			}
		})
	}
	wg.Wait()
	store, err := OpenRoot(root)
	check(t, err)
	l, err := Open(t.Context(), store, "digits", "first", quick)
	check(t, err)
	v, err := l.View(t.Context())
	check(t, err)
	for i := range 16 {
		it, err := v.Item(t.Context(), fmt.Sprintf("item-%d", i), AsOf{})
		check(t, err)
		if !it.Status.Finished() || len(it.Faults) > 0 {
			t.Errorf("%+v", it)
		}
	}
}
