package metrics

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// sickFile is a file whose writes fail as a test wants.
type sickFile struct {
	*os.File
	mu    sync.Mutex
	n     int
	write func(n, size int) (short int, err error) // n counts writes from 1
	sync  error
	// failed is called after a write that failed, with what it has written in the file.
	failed func()
}

func (f *sickFile) Write(b []byte) (int, error) {
	f.mu.Lock()
	f.n++
	short, err := f.write(f.n, len(b))
	f.mu.Unlock()
	if err == nil {
		short = len(b)
	}
	n, werr := f.File.Write(b[:min(short, len(b))])
	if err = errors.Join(err, werr); err != nil && f.failed != nil {
		f.failed()
	}
	return n, err
}

func (f *sickFile) Sync() error { return errors.Join(f.sync, f.File.Sync()) }

func sickOptions(path string, sick *sickFile) Options {
	return Options{Slug: "r", EmitterOptions: EmitterOptions{
		Targets: []Target{{Kind: TargetJSONL, Path: path}}, FlushEvery: time.Millisecond, CloseTimeout: time.Minute,
		openFile: func(path string) (appendFile, error) {
			f, err := openAppend(path)
			if err == nil {
				sick.File = f.(*os.File)
			}
			return sick, err
		},
	}}
}

// runMetrics writes a run to its end, which does not come before something else has.
func runMetrics(t *testing.T, opts Options, n int, before ...<-chan struct{}) TargetReport {
	t.Helper()
	rt, err := Start(opts)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := rt.Run().Metric(int64(i), "loss", Int(int64(i)), ""); err != nil {
			t.Fatal(err)
		}
	}
	for _, happened := range before {
		<-happened
	}
	return rt.Done().Targets[0]
}

func TestDiskThatWasFullForAWhileLosesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.jsonl")
	sick := &sickFile{write: func(n, size int) (int, error) {
		if n%2 == 0 {
			return size / 3, syscall.ENOSPC
		}
		return 0, nil
	}}
	r := runMetrics(t, sickOptions(path, sick), 5000)
	if r.Dropped != 0 || r.Sent != 5002 || r.Err != nil || r.Retries == 0 {
		t.Errorf("report: %+v", r)
	}
	requireSound(t, path, 5002)
}

// requireSound checks a file strictly.
func requireSound(t *testing.T, path string, events int64) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sum, err := Check(f, CheckOptions{}, func(f Finding) { t.Errorf("finding: %v", f.Error()) })
	if err != nil || sum.Events != events {
		t.Errorf("checked: %+v, %v", sum, err)
	}
}

func TestDiskThatStaysFullIsCountedAndTrainingGoesOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.jsonl")
	sick := &sickFile{write: func(n, size int) (int, error) {
		if n > 1 {
			return 10, syscall.ENOSPC
		}
		return 0, nil
	}}
	full := make(chan struct{})
	sick.failed = sync.OnceFunc(func() { close(full) })
	opts := sickOptions(path, sick)
	opts.CloseTimeout, opts.Patience, opts.QueueBytes = 20*time.Millisecond, 5*time.Millisecond, 64<<10
	r := runMetrics(t, opts, 20_000, full)
	if r.Sent != 1 || r.Dropped != 20_001 || !errors.Is(r.Err, ErrDiskFull) || !errors.Is(r.Err, syscall.ENOSPC) {
		t.Errorf("report: %+v", r)
	}
}

func TestLinesOfAnotherProcessAreNotGluedAfterAShortWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.jsonl")
	other := []byte(`{"ts_ms":1,"step":1,"kind":"metric","name":"other","value":1,"metadata":{}}` + "\n")
	sick := &sickFile{
		write: func(n, size int) (int, error) {
			if n == 2 {
				return 20, syscall.ENOSPC
			}
			return 0, nil
		},
		failed: func() { // the other one writes at once
			f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
			if err == nil {
				_, err = f.Write(other)
				err = errors.Join(err, f.Close())
			}
			if err != nil {
				t.Error(err)
			}
		},
	}
	r := runMetrics(t, sickOptions(path, sick), 3)
	if r.Dropped != 0 {
		t.Errorf("report: %+v", r)
	}
	events, bad := 0, 0
	readPath(t, path, func(it *Item) {
		if it.Kind == ItemEvent {
			events++
		} else {
			bad++
		}
	})
	if events != 6 {
		t.Errorf("%d events and %d bad lines, want all 6", events, bad)
	}
}

func readPath(t *testing.T, path string, handle func(*Item)) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := ReadStream(bytes.NewReader(b), handle); err != nil {
		t.Fatal(err)
	}
}

func TestFailedSyncIsReportedThoughEverythingIsWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.jsonl")
	sick := &sickFile{sync: syscall.EIO, write: func(int, int) (int, error) { return 0, nil }}
	r := runMetrics(t, sickOptions(path, sick), 1)
	if r.Sent != 3 || r.Dropped != 0 || !errors.Is(r.Err, syscall.EIO) {
		t.Errorf("report: %+v", r)
	}
}

func TestWriteErrorThatWillNotPassEndsTheTarget(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.jsonl")
	sick := &sickFile{write: func(n, size int) (int, error) {
		if n > 1 {
			return 0, syscall.EROFS
		}
		return 0, nil
	}}
	r := runMetrics(t, sickOptions(path, sick), 100)
	if r.Sent != 1 || r.Dropped != 101 || !errors.Is(r.Err, ErrReadOnly) || sick.n != 2 {
		t.Errorf("report after %d writes: %+v", sick.n, r)
	}
}

func TestFileThatWasRemovedIsReported(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.jsonl")
	opts := Options{Slug: "r", EmitterOptions: EmitterOptions{Targets: []Target{{Kind: TargetJSONL, Path: path}}}}
	rt, err := Start(opts)
	if err != nil {
		t.Fatal(err)
	}
	// Windows does not remove open files: then nothing is to be reported.
	removed := os.Remove(path) == nil
	if r := rt.Done(); errors.Is(r.Err(), ErrGone) != removed {
		t.Errorf("report: %+v", r)
	}
}

func TestTargetThatCannotBeOpenedIsATypedErrorAtOnce(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		path string
		want error
	}{
		"a directory that is not there": {filepath.Join(dir, "no", "run.jsonl"), fs.ErrNotExist},
		"a directory":                   {dir, nil},
	} {
		_, err := Start(Options{Slug: "r", EmitterOptions: EmitterOptions{Targets: []Target{{Kind: TargetJSONL, Path: c.path}}}})
		var target *TargetError
		if !errors.As(err, &target) || target.Op != "open" || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDeviceThatIsAlwaysFullIsCounted(t *testing.T) {
	const full = "/dev/full"
	if _, err := os.Stat(full); err != nil {
		return // not every system has one
	}
	found := make(chan struct{})
	sick := &sickFile{write: func(int, int) (int, error) { return 0, nil }, failed: sync.OnceFunc(func() { close(found) })}
	opts := sickOptions(full, sick)
	opts.CloseTimeout = 20 * time.Millisecond
	report := runMetrics(t, opts, 10, found)
	if report.Dropped != 12 || !errors.Is(report.Err, ErrDiskFull) {
		t.Errorf("report: %+v", report)
	}
}

func TestNamedPipeOrDeviceNeedsNoSync(t *testing.T) {
	report := runMetrics(t, Options{Slug: "r", EmitterOptions: EmitterOptions{Targets: []Target{{Kind: TargetJSONL, Path: os.DevNull}}}}, 10)
	if report.Sent != 12 || report.Err != nil {
		t.Errorf("report: %+v", report)
	}
}

func TestPipeThatItsReaderClosedIsCounted(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	r.Close()
	report := runMetrics(t, Options{Slug: "r", EmitterOptions: EmitterOptions{Targets: []Target{{Kind: TargetStdout, Stdout: w}}}}, 10)
	if report.Dropped != 12 || !errors.Is(report.Err, ErrPipeClosed) {
		t.Errorf("report: %+v", report)
	}
}

// stuckWriter never returns until it is told to.
type stuckWriter struct{ release chan struct{} }

func (w stuckWriter) Write(b []byte) (int, error) {
	<-w.release
	return 0, io.ErrClosedPipe
}

func TestPipeThatNobodyReadsHoldsTrainingUpOnceAtMost(t *testing.T) {
	w := stuckWriter{make(chan struct{})}
	opts := Options{Slug: "r", EmitterOptions: EmitterOptions{
		Targets: []Target{{Kind: TargetStdout, Stdout: w}}, QueueBytes: 64 << 10, Patience: 10 * time.Millisecond, CloseTimeout: 10 * time.Millisecond}}
	report := runMetrics(t, opts, 50_000)
	close(w.release)
	if report.Dropped != 50_002 || !errors.Is(report.Err, ErrSlow) {
		t.Errorf("report: %+v", report)
	}
}

func TestReportIsReadable(t *testing.T) {
	r := Report{Targets: []TargetReport{
		{Target: "stdout", Sent: 3},
		{Target: "http://h", Sent: 1, Left: 2, Dropped: 4, NonFinite: 5, Err: &TargetError{"http://h", "send", ErrAway}},
	}}
	want := "stdout: 3 events\nhttp://h: 1 events, 4 dropped, 2 left in the file, 5 non-finite left out: send http://h: server away"
	if got := r.String(); got != want || r.Lost() != 6 {
		t.Errorf("got %q, lost %d", got, r.Lost())
	}
}

func TestParseTarget(t *testing.T) {
	for text, want := range map[string]string{
		"jsonl:a/b.jsonl": "jsonl:a/b.jsonl", "stdout": "stdout", "http://h:1/": "http://h:1", "https://u:p@h": "https://u:xxxxx@h",
		"": "", "jsonl:": "", "file:x": "", "http://": "", "http://h/?q=1": "",
	} {
		got, err := ParseTarget(text)
		if (err == nil) != (want != "") || err == nil && got.String() != want || err != nil && !errors.Is(err, ErrTarget) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}
