package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/foldlog/foldlog/metrics"
)

func (s *site) file(slug, first string) string {
	return metrics.StreamPath(s.root, slug, metrics.StreamID([]byte(first)))
}

func (s *site) content(path string) string {
	s.t.Helper()
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		s.t.Fatal(err)
	}
	return string(b)
}

func TestAppendsAreComparedAndPassedOver(t *testing.T) {
	s := newSite(t, Options{})
	text := stream("run", 20)
	first, half := firstLine(text), len(stream("run", 10))
	steps := []struct {
		name     string
		offset   int
		lines    string
		status   int
		expected int64 // of the stream afterwards
	}{
		{"a question about nothing", 0, "", 200, 0},
		{"a gap before anything", 10, "x\n", 409, 0},
		{"the first half", 0, text[:half], 200, int64(half)},
		{"it again", 0, text[:half], 200, int64(half)},
		{"a part of it", len(first) + 1, text[len(first)+1 : half], 200, int64(half)},
		{"a gap", half + 1, text[half:], 409, int64(half)},
		{"other bytes", half - 5, "else\n", 409, int64(half)},
		{"the whole", 0, text, 200, int64(len(text))},
		{"the cursor", len(text), "", 200, int64(len(text))},
		{"the cursor from beyond", len(text) + 1, "", 409, int64(len(text))},
		{"a line cut short", len(text), `{"ts_ms":1`, 400, int64(len(text))},
		{"an open of another run", len(text), openLine("other", "{}"), 422, int64(len(text))},
	}
	for _, step := range steps {
		a := s.do("POST", streamAt("run", first, step.offset), []byte(step.lines))
		if a.status != step.status {
			t.Fatalf("%s: %d %s", step.name, a.status, a.body)
		}
		if got := s.content(s.file("run", first)); int64(len(got)) != step.expected || !strings.HasPrefix(text, got) {
			t.Fatalf("%s: the file has %d bytes, want %d", step.name, len(got), step.expected)
		}
		if step.status == 409 {
			if p := a.problem(t); p.Expected == nil || *p.Expected != step.expected {
				t.Errorf("%s: %s", step.name, a.body)
			}
		}
	}
	s.hasRun("run", 21)
}

func TestATornEndIsWrittenOver(t *testing.T) {
	s := newSite(t, Options{})
	text := stream("run", 4)
	first, end := firstLine(text), len(stream("run", 2))
	for _, torn := range []string{text[end : end+7], "\x00\x00\x00", `{"ts_ms":9`} {
		path := s.file("run", first)
		os.RemoveAll(path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text[:end]+torn), 0o644); err != nil {
			t.Fatal(err)
		}
		if a := s.do("POST", streamAt("run", first, end), []byte{}); a.status != 200 || !strings.Contains(string(a.body), fmt.Sprintf(`"offset":%d,`, end)) {
			t.Fatalf("the cursor behind %q: %d %s", torn, a.status, a.body)
		}
		if a := s.do("POST", streamAt("run", first, 0), []byte(text)); a.status != 200 {
			t.Fatalf("%d %s", a.status, a.body)
		}
		if s.content(path) != text {
			t.Errorf("after %q the file is not the stream", torn)
		}
	}
}

func TestASlugThatIsKnownIsTheSameRun(t *testing.T) {
	s := newSite(t, Options{})
	one := stream("run", 3) + `{"ts_ms":1790000000009,"kind":"done","slug":"run"}` + "\n"
	again := strings.Replace(openLine("run", `{"knobs":{"lr":0.2}}`), "1790000000000", "1790000001000", 1)
	s.post(streamAt("run", firstLine(one), 0), []byte(one), nil)
	s.hasRun("run", 5)
	if got := s.store.Run("run"); got.Status != metrics.StatusDone {
		t.Errorf("%v", got.Status)
	}
	var ack metrics.Ack
	s.post(streamAt("run", firstLine(again), 0), []byte(again), &ack)
	if ack.Run != "run" || ack.Page != s.url+"/runs/run" {
		t.Errorf("%+v", ack)
	}
	s.hasRun("run", 6)
	got := s.store.Run("run")
	if got.Status != metrics.StatusRunning || got.Metadata != `{"knobs":{"lr":0.2}}` || len(got.Streams) != 2 {
		t.Errorf("%+v", got.Digest)
	}
}

// TestManyClientsSendEachEventOnce sends duplicates, overlaps and wrong orders from
// many clients at once, some to the same stream.
func TestManyClientsSendEachEventOnce(t *testing.T) {
	s := newSite(t, Options{})
	const runs, points = 8, 300
	var clients sync.WaitGroup
	for i := range 3 * runs {
		clients.Go(func() {
			slug := fmt.Sprintf("run-%d", i%runs)
			text := stream(slug, points)
			random := rand.New(rand.NewPCG(uint64(i), 1))
			c := &metrics.Client{Base: s.url, HTTP: s.client}
			id := metrics.StreamID([]byte(firstLine(text)))
			for at := 0; at < len(text); {
				from := lineStartAt(text, max(0, at-random.IntN(2000)))
				to := lineStartAt(text, min(len(text), at+1+random.IntN(4000)))
				ack, err := c.Append(t.Context(), slug, id, int64(from), []byte(text[from:max(from, to)]))
				var conflict *metrics.ConflictError
				switch {
				case errors.As(err, &conflict):
					at = int(conflict.Expected)
				case err != nil:
					t.Error(err)
					return
				default:
					at = int(ack.Offset)
				}
				if at == 0 {
					at = 1
				}
			}
		})
	}
	clients.Wait()
	for i := range runs {
		slug := fmt.Sprintf("run-%d", i)
		text := stream(slug, points)
		if s.content(s.file(slug, firstLine(text))) != text {
			t.Errorf("%s is not what was sent", slug)
		}
		s.hasRun(slug, points+1)
	}
}

// lineStartAt is the last beginning of a line up to an offset.
func lineStartAt(text string, at int) int { return strings.LastIndexByte(text[:at], '\n') + 1 }

// brokenFile fails as a disk does.
type brokenFile struct {
	streamFile
	room  *int64 // bytes that the disk still takes
	syncs *int   // that fail from now on
}

func (f brokenFile) WriteAt(b []byte, off int64) (int, error) {
	n := int(min(int64(len(b)), *f.room))
	*f.room -= int64(n)
	if k, err := f.streamFile.WriteAt(b[:n], off); err != nil {
		return k, err
	}
	if n < len(b) {
		return n, &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}
	}
	return n, nil
}

func (f brokenFile) Sync() error {
	if *f.syncs > 0 {
		*f.syncs--
		return syscall.EIO
	}
	return f.streamFile.Sync()
}

func TestAFullDiskTakesAllOrNothing(t *testing.T) {
	s := newSite(t, Options{})
	room, syncs := int64(1000), 0
	s.sink.open = func(f *os.File) streamFile { return brokenFile{osStream{f}, &room, &syncs} }
	text := stream("run", 30)
	first := firstLine(text)
	a := s.do("POST", streamAt("run", first, 0), []byte(text))
	if p := a.problem(t); a.status != http.StatusInsufficientStorage || strings.Contains(p.Detail, s.root) {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if got := s.content(s.file("run", first)); got != "" {
		t.Errorf("%d bytes are half stored", len(got))
	}
	room = 1 << 20
	s.post(streamAt("run", first, 0), []byte(text), nil)
	if s.content(s.file("run", first)) != text {
		t.Error("after there was room again the file is not the stream")
	}
}

func TestAFailedSyncIsNotAcknowledged(t *testing.T) {
	s := newSite(t, Options{})
	room, syncs := int64(1<<20), 0
	s.sink.open = func(f *os.File) streamFile { return brokenFile{osStream{f}, &room, &syncs} }
	text := stream("run", 30)
	first, half := firstLine(text), len(stream("run", 10))
	s.post(streamAt("run", first, 0), []byte(text[:half]), nil)
	syncs = 1
	if a := s.do("POST", streamAt("run", first, half), []byte(text[half:])); a.status != 500 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if got := s.content(s.file("run", first)); got != text[:half] {
		t.Errorf("%d bytes stay of which nobody knows whether the disk has them, want %d", len(got), half)
	}
	s.post(streamAt("run", first, half), []byte(text[half:]), nil)
	if s.content(s.file("run", first)) != text {
		t.Error("the file is not the stream")
	}
}

// heldFile lets its syncs wait, and fail.
type heldFile struct {
	streamFile
	syncs   chan struct{}
	answers chan error
}

func (f heldFile) Sync() error {
	f.syncs <- struct{}{}
	if err := <-f.answers; err != nil {
		return err
	}
	return f.streamFile.Sync()
}

func TestASyncThatFailedAnswersForNobodyWhoWaited(t *testing.T) {
	for _, before := range []bool{true, false} {
		s := newSite(t, Options{})
		held := heldFile{syncs: make(chan struct{}), answers: make(chan error)}
		s.sink.open = func(f *os.File) streamFile { return heldFile{osStream{f}, held.syncs, held.answers} }
		text := stream("run", 30)
		first, parts := firstLine(text), []int{0, len(stream("run", 10)), len(stream("run", 20)), len(text)}
		send := func(part int) <-chan answer {
			done := make(chan answer, 1)
			go func() {
				done <- s.do("POST", streamAt("run", first, parts[part]), []byte(text[parts[part]:parts[part+1]]))
			}()
			return done
		}
		release := func(err error) {
			<-held.syncs
			held.answers <- err
		}
		sent := 0
		if before { // something that is known to be durable
			done := send(sent)
			release(nil)
			sent++
			if a := <-done; a.status != 200 {
				t.Fatalf("%d %s", a.status, a.body)
			}
		}
		one := send(sent)
		<-held.syncs
		two := send(sent + 1)
		s.eventually("the second has written", func() bool { return len(s.content(s.file("run", first))) == parts[sent+2] })
		held.answers <- syscall.EIO
		if a := <-one; a.status/100 != 5 {
			t.Errorf("the sync failed: %d %s", a.status, a.body)
		}
		if a := <-two; a.status/100 != 5 {
			t.Errorf("the sync before its own failed: %d %s", a.status, a.body)
		}
		if got := s.content(s.file("run", first)); got != text[:parts[sent]] {
			t.Errorf("%d bytes stay, want %d", len(got), parts[sent])
		}
		for ; sent < 3; sent++ {
			done := send(sent)
			release(nil)
			if a := <-done; a.status != 200 {
				t.Fatalf("again: %d %s", a.status, a.body)
			}
		}
		if s.content(s.file("run", first)) != text {
			t.Error("the file is not the stream")
		}
	}
}

func TestRequestsBeyondTheLimitsAreRefused(t *testing.T) {
	s := newSite(t, Options{Limits: Limits{Body: 2 << 20, Bodies: 3 << 20, Header: 2 * time.Second}})
	text := stream("run", 1)
	first := firstLine(text)
	long := append([]byte(text), append(bytes.Repeat([]byte("x"), maxLine+1), '\n')...)
	if a := s.do("POST", streamAt("run", first, 0), long); a.status != 413 {
		t.Errorf("a long line: %d %s", a.status, a.body)
	}
	huge := bytes.Repeat([]byte("x\n"), 2<<20)
	if a := s.do("POST", streamAt("run", first, 0), huge); a.status != 413 {
		t.Errorf("a large body: %d %s", a.status, a.body)
	}
	chunked := func(r *http.Request) { r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(huge)), -1 }
	if a := s.do("POST", streamAt("run", first, 0), []byte{}, chunked); a.status != 413 {
		t.Errorf("a large body of unknown length: %d %s", a.status, a.body)
	}
	for _, slug := range []string{strings.Repeat("x", 201), "a%2Fb", "%00", "%FF", "a%0Ab"} {
		if a := s.do("POST", streamAt(slug, first, 0), []byte(text)); a.status != 400 && a.status != 422 {
			t.Errorf("slug %.20q: %d %s", slug, a.status, a.body)
		}
	}
	for _, id := range []string{"0123", "0123456789ABCDEF", "..", "0123456789abcdeg"} {
		if a := s.do("POST", "/api/v1/runs/run/streams/"+id+"?offset=0", []byte(text)); a.status/100 != 4 && a.status/100 != 3 {
			t.Errorf("stream %q: %d", id, a.status)
		}
	}
	for _, offset := range []string{"", "-1", "1e3", "99999999999999999999"} {
		if a := s.do("POST", "/api/v1/runs/run/streams/0123456789abcdef?offset="+offset, []byte(text)); a.status != 400 && a.status != 422 {
			t.Errorf("offset %q: %d %s", offset, a.status, a.body)
		}
	}
	if !s.bodies.take(s.limits.Bodies) {
		t.Error("bodies that were refused still count")
	}
	if a := s.do("POST", streamAt("run", first, 0), []byte(text)); a.status != 503 || a.header.Get("Retry-After") == "" {
		t.Errorf("beyond what all may hold: %d %s", a.status, a.body)
	}
	s.bodies.give(s.limits.Bodies)
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
	conn.SetReadDeadline(time.Now().Add(longEnough))
	if _, err := io.ReadAll(conn); err != nil {
		t.Errorf("a head that never ends is not given up: %v", err)
	}
	s.post(streamAt("run", first, 0), []byte(text), nil)
}

func TestALimitedListenerLetsOthersWait(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	open := int64(0)
	l := newLimitListener(inner, 1, func(d int64) { open += d })
	dial := func() net.Conn {
		c, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	one, two := dial(), dial()
	defer one.Close()
	defer two.Close()
	first, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan net.Conn)
	go func() { c, _ := l.Accept(); accepted <- c }()
	select {
	case <-accepted:
		t.Error("accepted beyond the limit")
	case <-time.After(20 * time.Millisecond):
	}
	first.Close()
	first.Close()
	second := <-accepted
	second.Close()
	go func() { l.Close() }()
	if _, err := l.Accept(); err == nil {
		t.Error("accepted after the end")
	}
	l.Close()
	if open != 0 {
		t.Errorf("%d connections count as open", open)
	}
}

// TestTheEmitterReachesTheServer is about the library's own target.
func TestTheEmitterReachesTheServer(t *testing.T) {
	s := newSite(t, Options{})
	rt, err := metrics.Start(metrics.Options{Slug: "emitted", EmitterOptions: metrics.EmitterOptions{
		Targets: []metrics.Target{{Kind: metrics.TargetHTTP, URL: s.url}}}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 500 {
		if err := rt.Run().Metric(int64(i), "loss", metrics.Float(float64(i)), ""); err != nil {
			t.Fatal(err)
		}
	}
	report := rt.Done()
	if err := report.Err(); err != nil || report.Targets[0].Page != s.url+"/runs/emitted" {
		t.Fatalf("%v %+v", err, report)
	}
	s.hasRun("emitted", 502)
	if got := s.store.Run("emitted"); got.Status != metrics.StatusDone {
		t.Errorf("%v", got.Status)
	}
}

func TestAFilePushedThriceIsThereOnce(t *testing.T) {
	s := newSite(t, Options{})
	text := stream("run", 5000)
	path := filepath.Join(t.TempDir(), "run.jsonl")
	c := &metrics.Client{Base: s.url, HTTP: s.client}
	for _, end := range []int{lineStartAt(text, len(text)/2), len(text), len(text)} {
		if err := os.WriteFile(path, []byte(text[:end]), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Push(context.Background(), path); err != nil {
			t.Fatal(err)
		}
	}
	s.hasRun("run", 5001)
}
