package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/foldlog/foldlog/server/internal/wire"
)

// dial opens a connection of its own, in which little fits that is not read.
func (s *site) dial() net.Conn {
	s.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err == nil {
		err = conn.(*net.TCPConn).SetReadBuffer(64 << 10)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	return conn
}

// TestClientsThatAreTooSlowAreGivenUp sends bodies byte by byte, to handlers that read
// them and to such that do not.
func TestClientsThatAreTooSlowAreGivenUp(t *testing.T) {
	patient := newSite(t, Options{})
	patient.post("/api/v1/datagen", map[string]any{"pipeline": "p", "experiment": "e"}, nil)
	patient.end()
	s := newSite(t, Options{Root: patient.root, Limits: Limits{Read: 300 * time.Millisecond, Write: 300 * time.Millisecond}})
	for name, request := range map[string]string{
		"a stream":           "POST /api/v1/runs/run/streams/0123456789abcdef?offset=0 HTTP/1.1\r\n",
		"JSON":               "POST /api/v1/datagen HTTP/1.1\r\nContent-Type: application/json\r\n",
		"an object":          "PUT /api/v1/objects?key=datagen_checkpoints/p/e/log.lance/x HTTP/1.1\r\n",
		"a new object":       "PUT /api/v1/objects?key=datagen_checkpoints/p/e/log.lance/y HTTP/1.1\r\nIf-None-Match: *\r\n",
		"what nobody reads":  "GET /healthz HTTP/1.1\r\n",
		"what is refused":    "POST /api/v1/nothing HTTP/1.1\r\n",
		"what is not for us": "POST /api/v1/runs/run/streams/0123456789abcdef?offset=0 HTTP/1.1\r\nContent-Encoding: gzip\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			conn := s.dial()
			fmt.Fprint(conn, request, "Host: localhost\r\nContent-Length: 200000\r\n\r\n")
			closed := make(chan struct{})
			go func() {
				io.Copy(io.Discard, conn)
				close(closed)
			}()
			for range 60_000 {
				select {
				case <-closed:
					return
				case <-time.After(10 * time.Millisecond):
					conn.Write([]byte("x"))
				}
			}
			t.Error("the connection is still there")
		})
	}
	if !s.bodies.take(s.limits.Bodies) {
		t.Error("bodies that never came still count")
	}
}

// TestWhatIsDoneWithABodyMayTakeLonger lets a request wait that has come in time.
func TestWhatIsDoneWithABodyMayTakeLonger(t *testing.T) {
	s := newSite(t, Options{Limits: Limits{Read: 300 * time.Millisecond}})
	var made wire.CreatedExperiment
	s.post("/api/v1/datagen", map[string]any{"pipeline": "p", "experiment": "e"}, &made)
	l, err := s.experiment(made.ID)
	if err != nil {
		t.Fatal(err)
	}
	l.writing.Lock()
	time.AfterFunc(time.Second, l.writing.Unlock)
	var got wire.ItemClaim
	s.post("/api/v1/datagen/"+made.ID+"/claims", map[string]any{"items": []string{"a"}}, &got)
	if got.Claim == "" {
		t.Errorf("%+v", got)
	}
}

// TestASubscriberThatNeverReadsIsGivenUp follows a run that is longer than what fits
// between the two.
func TestASubscriberThatNeverReadsIsGivenUp(t *testing.T) {
	s := newSite(t, Options{Limits: Limits{Write: 300 * time.Millisecond}})
	text := stream("run", 100_000)
	s.write("run.jsonl", text)
	s.hasRun("run", 100_001)
	conn := s.dial()
	fmt.Fprintf(conn, "GET /api/v1/runs/run/live?cursor=%s:0 HTTP/1.1\r\nHost: localhost\r\n\r\n", s.store.Run("run").ID)
	if line, err := bufio.NewReaderSize(conn, 16).ReadString('\n'); err != nil || !strings.Contains(line, "200") {
		t.Fatalf("%q %v", line, err)
	}
	s.eventually("the stream is given up", func() bool { return s.stats.subscribers.Load() == 0 })
}
