package metrics_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/internal/streamtest"
	"github.com/foldlog/foldlog/metrics"
)

// streamText is a run of n metrics without its done.
func streamText(slug string, n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"ts_ms":1,"kind":"open","slug":%q,"description":"","metadata":{}}`+"\n", slug)
	for i := range n {
		fmt.Fprintf(&b, `{"ts_ms":2,"step":%d,"kind":"metric","name":"loss","value":"NaN","metadata":{}}`+"\n", i)
	}
	return b.String()
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(text), 0o644))
}

// C6, C10, C21: a stream that grows, has NaN and no done is pushed again and
// again.
func TestPushAgainSendsOnlyWhatIsNew(t *testing.T) {
	server := streamtest.New("", nil)
	defer server.Close()
	client := &metrics.Client{Base: server.URL}
	path := filepath.Join(t.TempDir(), "run.jsonl")
	whole := streamText("größe 1", 50_000)
	id := firstID([]byte(whole))
	last := int64(0)
	for _, cut := range []int{100, len(whole) / 2, len(whole) / 2, len(whole) - 7, len(whole), len(whole)} {
		writeFile(t, path, whole[:cut])
		p, err := client.Push(t.Context(), path)
		must(t, err)
		complete := int64(strings.LastIndexByte(whole[:cut], '\n') + 1)
		want := metrics.PushStats{Slug: "größe 1", Stream: id, Events: int64(strings.Count(whole[last:complete], "\n")),
			Bytes: complete - last, Total: complete, Torn: int64(cut) - complete, Page: p.Page}
		if diff := cmp.Diff(want, p); diff != "" {
			t.Errorf("cut at %d: -want +got:\n%s", cut, diff)
		}
		if got := string(server.Stream("größe 1", id)); got != whole[:complete] {
			t.Fatalf("cut at %d: the server has %d other bytes", cut, len(got))
		}
		last = complete
	}
	posts := server.Posts()
	if _, err := client.Push(t.Context(), path); err != nil || server.Posts()-posts > 2 {
		t.Errorf("a complete push took %d posts, %v", server.Posts()-posts, err)
	}
}

func TestPushOfOtherBytesTakesAnotherIdEachTimeTheSame(t *testing.T) {
	server := streamtest.New("", nil)
	defer server.Close()
	client := &metrics.Client{Base: server.URL}
	path := filepath.Join(t.TempDir(), "run.jsonl")
	whole := streamText("r", 100)
	id := firstID([]byte(whole))
	server.Put("r", id, []byte(streamText("r", 0)+"other\nbytes\n"))
	for i, events := range []int64{101, 0} {
		writeFile(t, path, whole)
		p, err := client.Push(t.Context(), path)
		must(t, err)
		if p.Stream == id || p.Events != events || string(server.Stream("r", p.Stream)) != whole {
			t.Errorf("push %d: %+v", i, p)
		}
	}
	if n := len(server.Streams()); n != 2 {
		t.Errorf("%d streams", n)
	}
}

func TestPushGoesBackToWhatTheServerStillHas(t *testing.T) {
	server := streamtest.New("", nil)
	defer server.Close()
	whole := streamText("r", 60_000)
	id := firstID([]byte(whole))
	path := filepath.Join(t.TempDir(), "run.jsonl")
	writeFile(t, path, whole)
	client := &metrics.Client{Base: server.URL}
	_, err := client.Push(t.Context(), path)
	must(t, err)
	server.Put("r", id, []byte(whole[:strings.Index(whole, "\n")+1]))
	p, err := client.Push(t.Context(), path)
	must(t, err)
	if p.Events != 60_000 || string(server.Stream("r", id)) != whole {
		t.Errorf("%+v", p)
	}
}

func TestPushSendsSmallerRequestsWhereTheServerWantsThem(t *testing.T) {
	first := true
	server := streamtest.New("", func(n int) streamtest.Fault {
		if n > 1 && first {
			first = false
			return streamtest.Fault{Status: 413}
		}
		return streamtest.Fault{}
	})
	defer server.Close()
	path := filepath.Join(t.TempDir(), "run.jsonl")
	whole := streamText("r", 30_000)
	writeFile(t, path, whole)
	p, err := (&metrics.Client{Base: server.URL}).Push(t.Context(), path)
	must(t, err)
	if first || string(server.Stream("r", p.Stream)) != whole {
		t.Errorf("%+v", p)
	}
}

func TestPushErrorsAreTyped(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "good.jsonl")
	writeFile(t, good, streamText("r", 3))
	closed := filepath.Join(dir, "empty.jsonl")
	writeFile(t, closed, "")
	noOpen := filepath.Join(dir, "noopen.jsonl")
	writeFile(t, noOpen, "hello\n"+strings.SplitAfterN(streamText("r", 1), "\n", 2)[1])
	for name, c := range map[string]struct {
		path   string
		status int
		want   error
	}{
		"no such file":  {filepath.Join(dir, "no"), 0, os.ErrNotExist},
		"empty":         {closed, 0, metrics.ErrMissing},
		"no open":       {noOpen, 0, metrics.ErrMissing},
		"401":           {good, 401, metrics.ErrUnauthorized},
		"403":           {good, 403, metrics.ErrUnauthorized},
		"404":           {good, 404, metrics.ErrRefused},
		"409 at a loss": {good, 409, metrics.ErrRefused},
	} {
		server := streamtest.New("", func(int) streamtest.Fault { return streamtest.Fault{Status: c.status} })
		_, err := (&metrics.Client{Base: server.URL}).Push(t.Context(), c.path)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		server.Close()
	}
}

func TestServerThatHangsHoldsNothingUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.jsonl")
	server := streamtest.New("", func(int) streamtest.Fault { return streamtest.Fault{Delay: time.Hour} })
	defer server.Close()
	opts := options(jsonl(path), metrics.Target{Kind: metrics.TargetHTTP, URL: server.URL})
	opts.CloseTimeout = 100 * time.Millisecond
	rt := start(t, opts)
	for i := range 1000 {
		must(t, rt.Run().Metric(int64(i), "loss", metrics.Int(1), ""))
	}
	awaitLines(t, path, 1001)
	r := rt.Done()
	if r.Targets[0].Sent != 1002 || r.Targets[1].Left != 1002 || r.Targets[1].Err == nil {
		t.Errorf("report: %s", r)
	}
}

func TestResumedRunCompletesTheServerFromItsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.jsonl")
	rt := start(t, options(jsonl(path)))
	must(t, rt.Run().Metric(1, "loss", metrics.Int(1), ""))
	rt.Close()
	server := streamtest.New("", nil)
	defer server.Close()
	rt = start(t, options(jsonl(path), metrics.Target{Kind: metrics.TargetHTTP, URL: server.URL}))
	must(t, rt.Run().Metric(2, "loss", metrics.Int(1), ""))
	if r := rt.Done(); r.Lost() != 0 {
		t.Errorf("report: %s", r)
	}
	want, err := os.ReadFile(path)
	must(t, err)
	if got := server.Stream("my-run", firstID(want)); !bytes.Equal(got, want) || bytes.Count(got, []byte("\n")) != 5 {
		t.Errorf("server has\n%sfile has\n%s", got, want)
	}
}

func TestTwoFilesOfOneSlugAreTwoStreams(t *testing.T) {
	server := streamtest.New("", nil)
	defer server.Close()
	for i := range 2 {
		opts := options(metrics.Target{Kind: metrics.TargetHTTP, URL: server.URL})
		opts.Open = metrics.Metadata(fmt.Sprintf(`{"rank":%d}`, i))
		start(t, opts).Done()
	}
	if n := len(server.Streams()); n != 2 {
		t.Errorf("%d streams", n)
	}
}

// The same first line, to the millisecond, from two processes without files.
func TestStreamIdThatIsTakenIsLeftToItsOwner(t *testing.T) {
	server := streamtest.New("", nil)
	defer server.Close()
	for i := range 2 {
		rt := start(t, options(metrics.Target{Kind: metrics.TargetHTTP, URL: server.URL}))
		must(t, rt.Run().Metric(int64(i), "loss", metrics.Int(1), ""))
		if r := rt.Done(); r.Lost() != 0 {
			t.Errorf("report: %s", r)
		}
	}
	streams := server.Streams()
	for key, b := range streams {
		if n := bytes.Count(b, []byte("\n")); n != 3 {
			t.Errorf("%s has %d lines", key, n)
		}
	}
	if len(streams) != 2 {
		t.Errorf("%d streams", len(streams))
	}
}
