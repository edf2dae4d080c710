package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/foldlog/foldlog/internal/proctest"
	"github.com/foldlog/foldlog/metrics"
	"github.com/foldlog/foldlog/server/internal/wire"
)

func TestMain(m *testing.M) {
	proctest.Role(serveEnv, serveChild)
	os.Exit(proctest.Run(m))
}

// site is a server over a root, reached by real connections.
type site struct {
	*Server
	t      *testing.T
	root   string
	url    string
	token  string
	http   *httptest.Server
	client *http.Client
}

func newSite(t *testing.T, opts Options) *site {
	t.Helper()
	s := &site{t: t, root: opts.Root}
	if s.root == "" {
		s.root = t.TempDir()
		opts.Root = s.root
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	var err error
	if s.Server, err = New(opts); err != nil {
		t.Fatal(err)
	}
	s.http = httptest.NewUnstartedServer(s.Handler())
	s.http.Config.ReadHeaderTimeout = s.limits.Header
	s.http.Config.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		_ = conn.(*net.TCPConn).SetWriteBuffer(64 << 10) // so that who never reads is noticed
		return ctx
	}
	s.http.Start()
	s.url, s.client = s.http.URL, s.http.Client()
	t.Cleanup(s.end)
	return s
}

func (s *site) end() {
	s.live.close()
	s.http.Close()
	s.client.CloseIdleConnections()
	if err := s.Close(); err != nil {
		s.t.Error(err)
	}
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a answer) problem(t *testing.T) wire.Problem {
	t.Helper()
	var p wire.Problem
	if err := json.Unmarshal(a.body, &p); err != nil || a.header.Get("Content-Type") != "application/problem+json" {
		t.Fatalf("no problem document: %d %q %s", a.status, a.header.Get("Content-Type"), a.body)
	}
	return p
}

func (s *site) do(method, path string, body any, edit ...func(*http.Request)) answer {
	s.t.Helper()
	var in io.Reader
	kind := "application/json"
	switch b := body.(type) {
	case nil:
	case []byte:
		in, kind = bytes.NewReader(b), "application/x-ndjson"
	default:
		text, err := json.Marshal(b)
		if err != nil {
			s.t.Fatal(err)
		}
		in = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, in)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", kind)
	if s.token != "" {
		req.Header.Set("Authorization", "Bearer "+s.token)
	}
	for _, e := range edit {
		e(req)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, b}
}

// get reads JSON.
func (s *site) get(path string, into any) {
	s.t.Helper()
	s.read(s.do("GET", path, nil), into)
}

func (s *site) post(path string, body, into any) {
	s.t.Helper()
	s.read(s.do("POST", path, body), into)
}

func (s *site) read(a answer, into any) {
	s.t.Helper()
	if a.status/100 != 2 {
		s.t.Fatalf("%d %s", a.status, a.body)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal(a.body, into); err != nil {
		s.t.Fatalf("%v: %s", err, a.body)
	}
}

// write puts a file under the root.
func (s *site) write(name, text string) {
	s.t.Helper()
	path := filepath.Join(s.root, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := f.WriteString(text); err != nil {
		s.t.Fatal(err)
	}
	f.Close()
}

// longEnough is for how long tests wait for what comes at once unless the machine is busy.
const longEnough = 5 * time.Minute

// eventually waits for what happens in the background.
func (s *site) eventually(what string, ok func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(longEnough); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	s.t.Fatalf("still not: %s", what)
}

// hasRun waits until a run has that many events.
func (s *site) hasRun(slug string, events int) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("run %s has %d events", slug, events), func() bool {
		r := s.store.Run(slug)
		return r != nil && r.Events == int64(events)
	})
}

// stream spells a run: an open and points of one name.
func stream(slug string, points int) string {
	b := []byte(openLine(slug, `{"knobs":{"lr":0.1},"seed":7}`))
	for i := range points {
		b = append(b, pointLine(i)...)
	}
	return string(b)
}

func openLine(slug, meta string) string {
	e, err := metrics.NewOpen(slug, "a run", metrics.Metadata(meta))
	if err != nil {
		panic(err)
	}
	e.TSMS = 1_790_000_000_000
	return string(e.Append(nil))
}

func pointLine(i int) string {
	e := metrics.Event{Kind: metrics.KindMetric, TSMS: 1_790_000_000_000 + int64(i), Step: int64(i), Name: "loss",
		Value: metrics.Float(1 / float64(i+1)), Metadata: `{"split":"train"}`}
	return string(e.Append(nil))
}

func streamAt(slug, first string, offset int) string {
	return fmt.Sprintf("/api/v1/runs/%s/streams/%s?offset=%d", slug, metrics.StreamID([]byte(first)), offset)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// events reads server-sent events until it has seen enough; it may run beside the
// test.
func (s *site) events(ctx context.Context, path, last string, enough func(id, kind, data string) bool) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(ctx, "GET", s.url+path, nil)
	if err != nil {
		s.t.Error(err)
		return
	}
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	if s.token != "" {
		req.AddCookie(&http.Cookie{Name: sessionCookie, Value: s.token})
	}
	resp, err := s.client.Do(req)
	if err != nil {
		s.t.Error(err)
		return
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
		s.t.Errorf("%s: %d", path, resp.StatusCode)
		return
	}
	var id, kind, data string
	buf := make([]byte, 1)
	var line []byte
	for {
		if _, err := resp.Body.Read(buf); err != nil {
			s.t.Errorf("%s ended: %v", path, err)
			return
		}
		if buf[0] != '\n' {
			line = append(line, buf[0])
			continue
		}
		field, value, _ := strings.Cut(string(line), ": ")
		switch field {
		case "id":
			id = value
		case "event":
			kind = value
		case "data":
			data = value
		case "":
			if kind != "" && kind != "beat" && enough(id, kind, data) {
				return
			}
			id, kind, data = "", "", ""
		}
		line = line[:0]
	}
}
