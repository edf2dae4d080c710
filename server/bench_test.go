package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/metrics"
	"github.com/foldlog/foldlog/objstore"
	"github.com/foldlog/foldlog/study"
)

// The load tests run on loopback, end by themselves, and report percentiles.
// FOLDLOG_BENCH_SCALE makes the root smaller: 0.1 is a tenth of everything.
// FOLDLOG_BENCH_ROOT is a directory that the root is kept in from one time to the next.

func scaled(n int) int {
	if f, err := strconv.ParseFloat(os.Getenv("FOLDLOG_BENCH_SCALE"), 64); err == nil && f > 0 {
		return max(1, int(float64(n)*f))
	}
	return n
}

// bigRoot is a root as large as the goals name, made once.
var bigRoot = sync.OnceValues(func() (string, error) {
	root := os.Getenv("FOLDLOG_BENCH_ROOT")
	if root == "" {
		made, err := os.MkdirTemp("", "foldlog-bench-")
		if err != nil {
			return "", err
		}
		return made, fillRoot(made)
	}
	if _, err := os.Stat(filepath.Join(root, "big.atj")); err == nil {
		return root, nil
	}
	return root, errors.Join(os.MkdirAll(root, 0o755), fillRoot(root))
})

// fillRoot makes the study last, so that one that is there tells of a whole root.
func fillRoot(root string) error {
	for i := range scaled(30_000) {
		if err := benchRun(root, fmt.Sprintf("small-%05d", i), 20, 5); err != nil {
			return err
		}
	}
	for i := range scaled(100) {
		if err := benchRun(root, fmt.Sprintf("mid-%03d", i), scaled(100_000), 1); err != nil {
			return err
		}
	}
	if err := benchRun(root, "large", scaled(1_000_000), 1); err != nil {
		return err
	}
	if err := benchItems(root, scaled(1_000_000)); err != nil {
		return err
	}
	return benchStudy(filepath.Join(root, "big.atj"), scaled(50_000))
}

// benchItems makes a datagen log of so many items, each with one step.
func benchItems(root string, items int) error {
	ctx := context.Background()
	store, err := objstore.OpenLocal(root, objstore.LocalOptions{NoSync: true})
	if err != nil {
		return err
	}
	l, err := datagen.OpenOrCreate(ctx, store, "big", "e", datagen.Options{})
	if err != nil {
		return err
	}
	d, err := l.Table().Base(ctx)
	if err != nil {
		return err
	}
	if _, err := d.Append(ctx, benchRows(items)); err != nil {
		return err
	}
	_, err = l.MaintainOnce(ctx, datagen.MaintainOptions{All: true, Rate: -1})
	return err
}

func benchRows(items int) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		const each = 4096
		for lo := 0; lo < items; lo += each {
			var events []datagen.Event
			for i := lo; i < min(lo+each, items); i++ {
				events = append(events, benchItem(i)...)
			}
			rows, err := datagen.Record(events)
			if !yield(rows, err) || err != nil {
				return
			}
		}
	}
}

// benchItem is the events of one item; every fiftieth has failed.
func benchItem(i int) []datagen.Event {
	id, checkpoint := fmt.Sprintf("source-%08d", i), fmt.Sprintf("checkpoint-%d", i)
	step, x := stepOf("draw", 0), datagen.Set("x", datagen.IntValue(int64(i)))
	events := []datagen.Event{{Kind: datagen.ItemCreated}, {Kind: datagen.FieldSet, Step: &step, Field: &x.Field}, {Kind: datagen.StepCompleted, Step: &step}}
	if i%50 == 0 {
		events = append(events[:1], datagen.Event{Kind: datagen.StepFailed, Step: &step, Failure: &datagen.Failure{Type: fmt.Sprint("Odd", i%7)}})
	}
	for k := range events {
		e := &events[k]
		e.ID, e.Item, e.Root, e.Checkpoint, e.Seq = datagen.EventID(id, checkpoint, k), id, id, checkpoint, int64(k)
		e.Run, e.Epoch, e.Schema = "run", "0f0e0d0c-0b0a-4908-8706-050403020100.1.1", datagen.SchemaVersion
		e.Time = time.UnixMicro(1_700_000_000_000_000 + int64(i)).UTC()
	}
	return events
}

// benchRun writes a run of so many points, spread over names.
func benchRun(root, slug string, points, names int) error {
	b := []byte(openLine(slug, fmt.Sprintf(`{"knobs":{"lr":%g,"layers":%d},"seed":%d}`, float64(len(slug)%7)/10, points%9, points)))
	path := metrics.StreamPath(root, slug, metrics.StreamID(b[:len(b)-1]))
	for i := range points {
		e := metrics.Event{Kind: metrics.KindMetric, TSMS: 1_790_000_000_000 + int64(i), Step: int64(i / names),
			Name: "metric/" + strconv.Itoa(i%names), Value: metrics.Float(1 / float64(1+i%9973)), Metadata: `{"split":"train","stage":"hard"}`}
		b = e.Append(b)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o644)
}

func benchStudy(path string, trials int) error {
	j, err := study.CreateJournal(context.Background(), path, journal.WriterOptions{})
	if err != nil {
		return err
	}
	defer j.Close()
	id, _, err := study.OpenOrCreate(context.Background(), j, study.Config{Name: "big", Directions: []study.Direction{study.Minimize}})
	for n := 0; n < trials && err == nil; n += 1000 {
		err = j.Update(context.Background(), func(tx *study.Tx) error {
			for i := range min(1000, trials-n) {
				if err := benchTrial(tx, id, n+i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return err
}

func benchTrial(tx *study.Tx, id study.StudyID, n int) error {
	ref, err := tx.CreateTrial(id, nil)
	if err != nil {
		return err
	}
	if err := tx.Transition(ref.ID, study.Waiting, study.Running); err != nil {
		return err
	}
	var params []study.Param
	for i := range 6 {
		params = append(params, study.Param{Name: "p" + strconv.Itoa(i), Dist: study.FloatDist{Low: 0, High: 1}, Value: study.F64(float64(n*(i+3)%1009) / 1009)})
	}
	if err := tx.ParamsBatch(ref.ID, params); err != nil {
		return err
	}
	if err := tx.SetValues(ref.ID, float64(n*7%9973)); err != nil {
		return err
	}
	return tx.Transition(ref.ID, study.Running, study.Complete)
}

// benchSite serves a root, once everything has been read.
func benchSite(b *testing.B, root string) (*Server, string) {
	b.Helper()
	s, err := New(Options{Root: root})
	if err != nil {
		b.Fatal(err)
	}
	h := httptest.NewServer(s.Handler())
	b.Cleanup(func() {
		s.live.close()
		h.Close()
		s.Close()
	})
	for s.index.pending() > 0 || !slices.ContainsFunc(s.datagens.all(), (*datagenLog).isReady) && s.datagens.count() > 0 {
		time.Sleep(10 * time.Millisecond)
	}
	return s, h.URL
}

func (l *datagenLog) isReady() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.item.Ready
}

// took reports how long calls take, in milliseconds.
func took(b *testing.B, times []time.Duration) {
	slices.Sort(times)
	for _, p := range []int{50, 90, 99, 100} {
		b.ReportMetric(float64(times[(len(times)-1)*p/100].Microseconds())/1000, fmt.Sprintf("p%d-ms", p))
	}
}

// BenchmarkCalls answers what the dashboard asks of a large root.
func BenchmarkCalls(b *testing.B) {
	root, err := bigRoot()
	if err != nil {
		b.Fatal(err)
	}
	s, base := benchSite(b, root)
	slugs := make([]string, scaled(100))
	for i := range slugs {
		slugs[i] = fmt.Sprintf("%q", fmt.Sprintf("mid-%03d", i))
	}
	study := "/api/v1/studies/" + studyID("big.atj", 0)
	items := "/api/v1/datagen/" + datagenID(datagen.Path("big", "e"))
	for _, c := range []struct{ name, path, body string }{
		{"list", "/api/v1/runs", ""},
		{"list-by-metric", "/api/v1/runs?sort=metric:metric/0&metric=metric/0&meta=knobs/lr", ""},
		{"list-where-metadata", "/api/v1/runs?where=knobs/lr%3E0.1&sort=knobs/layers", ""},
		{"list-text", "/api/v1/runs?q=99", ""},
		{"names", "/api/v1/names", ""},
		{"keys", "/api/v1/keys", ""},
		{"overview", "/api/v1/overview", ""},
		{"run", "/api/v1/runs/large", ""},
		{"million-points", seriesPath, `{"runs":["large"],"names":["metric/0"],"points":2000}`},
		{"million-points-zoomed", seriesPath, `{"runs":["large"],"names":["metric/0"],"points":2000,"from":1234,"to":56789}`},
		{"hundred-runs", seriesPath, `{"runs":[` + strings.Join(slugs, ",") + `],"names":["metric/0"],"points":500}`},
		{"hundred-runs-at-rest", seriesPath, `{"runs":[` + strings.Join(slugs, ",") + `],"names":["metric/0"],"points":500}`},
		{"study", study, ""},
		{"trials", study + "/trials?sort=value&where=param:p0%3C0.5", ""},
		{"trial-columns", study + "/columns", ""},
		{"importance", study + "/importance", ""},
		{"experiment", items, ""},
		{"items", items + "/items", ""},
		{"items-failed", items + "/items?status=failed&limit=100", ""},
		{"items-prefix", items + "/items?prefix=source-0009&limit=100", ""},
		{"failures", items + "/failures", ""},
		{"item", items + "/items/source-00000007", ""},
		{"trajectory", items + "/items/source-00000007/trajectory", ""},
	} {
		b.Run(c.name, func(b *testing.B) {
			var times []time.Duration
			size := 0
			for b.Loop() {
				if strings.HasSuffix(c.name, "-at-rest") {
					if err := s.store.Flush(); err != nil {
						b.Fatal(err)
					}
				}
				start := time.Now()
				size = benchCall(b, base+c.path, c.body)
				times = append(times, time.Since(start))
			}
			took(b, times)
			b.ReportMetric(float64(size)/1e6, "MB")
		})
	}
	runtime.GC()
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	b.Logf("%d runs, heap %d MB, from the system %d MB", len(s.store.Runs()), mem.HeapAlloc>>20, (mem.Sys-mem.HeapReleased)>>20)
}

func benchCall(b *testing.B, url, body string) int {
	b.Helper()
	var resp *http.Response
	var err error
	if body == "" {
		resp, err = http.Get(url)
	} else {
		resp, err = http.Post(url, "application/json", strings.NewReader(body))
	}
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	if err != nil || resp.StatusCode != 200 {
		b.Fatalf("%s: %d %v", url, resp.StatusCode, err)
	}
	return int(n)
}

// BenchmarkRestart opens a large root with a projection that is up to date.
func BenchmarkRestart(b *testing.B) {
	root, err := bigRoot()
	if err != nil {
		b.Fatal(err)
	}
	s, _ := benchSite(b, root)
	runs := len(s.store.Runs())
	s.live.close()
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	var times []time.Duration
	for b.Loop() {
		start := time.Now()
		s, err := New(Options{Root: root})
		if err != nil {
			b.Fatal(err)
		}
		times = append(times, time.Since(start))
		if len(s.store.Runs()) != runs || s.index.pending() > 0 {
			b.Errorf("%d runs of %d, %d to be read", len(s.store.Runs()), runs, s.index.pending())
		}
		s.Close()
	}
	took(b, times)
}

// BenchmarkIngest appends batches of 1,000 events from several clients, each
// answered after its sync, to a root that is empty and to a large one.
func BenchmarkIngest(b *testing.B) {
	for name, root := range map[string]func() (string, error){
		"empty-root": func() (string, error) { return b.TempDir(), nil }, "large-root": bigRoot,
	} {
		b.Run(name, func(b *testing.B) {
			root, err := root()
			if err != nil {
				b.Fatal(err)
			}
			_, base := benchSite(b, root)
			benchIngest(b, base)
		})
	}
}

func benchIngest(b *testing.B, base string) {
	const clients, batch = 8, 1000
	var next atomic.Int64
	var mu sync.Mutex
	var times []time.Duration
	var all sync.WaitGroup
	start := time.Now()
	stamp := start.UnixNano()
	b.ResetTimer()
	for c := range clients {
		all.Go(func() {
			slug := fmt.Sprintf("ingest-%d-%d", stamp, c)
			first := openLine(slug, "{}")
			id := metrics.StreamID([]byte(first[:len(first)-1]))
			client := &metrics.Client{Base: base, HTTP: &http.Client{}}
			defer client.HTTP.CloseIdleConnections()
			at := int64(0)
			lines := []byte(first)
			for i := range batch {
				lines = append(lines, benchPoint(i)...)
			}
			for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
				begin := time.Now()
				ack, err := client.Append(b.Context(), slug, id, at, lines)
				if err != nil {
					b.Error(err)
					return
				}
				mu.Lock()
				times = append(times, time.Since(begin))
				mu.Unlock()
				if at == 0 {
					lines = lines[len(first):]
				}
				at = ack.Offset
			}
		})
	}
	all.Wait()
	b.StopTimer()
	b.ReportMetric(float64(len(times)*batch)/time.Since(start).Seconds(), "events/s")
	took(b, times)
}

func benchPoint(i int) []byte {
	e := metrics.Event{Kind: metrics.KindMetric, TSMS: 1_790_000_000_000 + int64(i), Step: int64(i), Name: "train/loss",
		Value: metrics.Float(1 / float64(i+1)), Metadata: `{"split":"train","stage":"hard"}`}
	return e.Append(nil)
}
