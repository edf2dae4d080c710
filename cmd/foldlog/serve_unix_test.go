//go:build !windows

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/foldlog/foldlog/internal/proctest"
	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/metrics"
	"github.com/foldlog/foldlog/study"
)

// servedAt is an address that nothing listens at.
func servedAt(t *testing.T) string {
	t.Helper()
	address, err := proctest.Address()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// newStudy makes a journal with the study search.
func newStudy(t *testing.T, path string) {
	t.Helper()
	j, err := study.CreateJournal(t.Context(), path, journal.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = study.OpenOrCreate(t.Context(), j, study.Config{Name: "search", Directions: []study.Direction{study.Minimize}})
	if err := errors.Join(err, j.Close()); err != nil {
		t.Fatal(err)
	}
}

// serving starts a server as a process of its own, and waits until it answers.
func serving(t *testing.T, root, address string, flags ...string) *exec.Cmd {
	t.Helper()
	cmd := process(t, append([]string{"foldlog", "serve", root, "--addr", address, "--quiet"}, flags...)...)
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+t.TempDir(), "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = t.Output()
	line, err := started(t, cmd).ReadString('\n')
	if err != nil || strings.TrimSpace(line) != "http://"+address {
		t.Fatalf("the server says %q: %v", line, err)
	}
	return cmd
}

func stop(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the server ends with %v", err)
	}
}

// longRun is a stream of so many points.
func longRun(slug string, points int) []byte {
	open, err := metrics.NewOpen(slug, "", "")
	if err != nil {
		panic(err)
	}
	b := open.Append(nil)
	for i := range points {
		e := metrics.Event{Kind: metrics.KindMetric, TSMS: int64(i), Step: int64(i), Name: "loss", Value: metrics.Float(float64(i))}
		b = e.Append(b)
	}
	return b
}

// enoughKills is how often a server must have been killed before its clients are done.
const enoughKills = 3

// TestAServerThatIsKilledLosesNothing kills a server again and again while clients
// push files that grow, and starts it again at the same address.
func TestAServerThatIsKilledLosesNothing(t *testing.T) {
	root, sources, address := t.TempDir(), t.TempDir(), servedAt(t)
	const runs, points = 6, 20_000
	ctx, cancel := context.WithTimeout(t.Context(), longEnough)
	defer cancel()
	var clients sync.WaitGroup
	var left, kills atomic.Int32
	left.Store(runs)
	for i := range runs {
		clients.Go(func() {
			defer left.Add(-1)
			pushAgainAndAgain(ctx, t, fmt.Sprintf("run-%d", i), sources, address, points, &kills)
		})
	}
	random := rand.New(rand.NewPCG(1, 2))
	for left.Load() > 0 && ctx.Err() == nil {
		cmd := serving(t, root, address)
		wait := time.After(time.Duration(50+random.IntN(300)) * time.Millisecond)
		if kills.Load() < 8 {
			<-wait
			kills.Add(1)
		} else {
			clients.Wait()
		}
		cmd.Process.Kill()
		cmd.Wait()
	}
	clients.Wait()
	if n := kills.Load(); n < enoughKills {
		t.Errorf("killed only %d times", n)
	}
	cmd := serving(t, root, address)
	defer stop(t, cmd)
	for i := range runs {
		slug := fmt.Sprintf("run-%d", i)
		want := longRun(slug, points)
		got, err := os.ReadFile(metrics.StreamPath(root, slug, metrics.StreamID(want[:bytes.IndexByte(want, '\n')])))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes at the server, %d were sent: %v", slug, len(got), len(want), err)
		}
		if entries, err := os.ReadDir(filepath.Join(root, metrics.RunsDir, slug)); err != nil || len(entries) != 1 {
			t.Errorf("%s has %d files: %v", slug, len(entries), err)
		}
		awaitEvents(t, address, slug, points+1)
	}
}

// pushAgainAndAgain writes a file piece by piece and pushes it after each, until the
// server has all of it. The last piece waits until the server was killed often enough.
func pushAgainAndAgain(ctx context.Context, t *testing.T, slug, dir, address string, points int, kills *atomic.Int32) {
	text := longRun(slug, points)
	path := filepath.Join(dir, slug+".jsonl")
	client := &metrics.Client{Base: "http://" + address, HTTP: &http.Client{Timeout: 10 * time.Second}}
	defer client.HTTP.CloseIdleConnections()
	const pieces = 25
	for i := 1; i <= pieces; {
		for i == pieces && kills.Load() < enoughKills && ctx.Err() == nil {
			time.Sleep(20 * time.Millisecond)
		}
		if err := os.WriteFile(path, text[:len(text)*i/pieces], 0o644); err != nil {
			t.Error(err)
			return
		}
		_, err := client.Push(ctx, path)
		switch {
		case err == nil:
			i++
		case !errors.Is(err, metrics.ErrAway) || ctx.Err() != nil:
			t.Errorf("%s: %v", slug, err)
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// awaitEvents waits until the server has read a run.
func awaitEvents(t *testing.T, address, slug string, want int) {
	t.Helper()
	var got struct {
		Events string `json:"events"`
	}
	for deadline := time.Now().Add(longEnough); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		resp, err := http.Get("http://" + address + "/api/v1/runs/" + slug)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err == nil && json.Unmarshal(body, &got) == nil && got.Events == fmt.Sprint(want) {
			return
		}
	}
	t.Errorf("%s has %s events, want %d", slug, got.Events, want)
}

// TestAServerAnswersWhatItHasBeforeItEnds interrupts a server in the middle of a
// request.
func TestAServerAnswersWhatItHasBeforeItEnds(t *testing.T) {
	root, address := t.TempDir(), servedAt(t)
	cmd := serving(t, root, address)
	text := longRun("run", 10)
	id := metrics.StreamID(text[:bytes.IndexByte(text, '\n')])
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /api/v1/runs/run/streams/%s?offset=0 HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n", id, len(text))
	const begun = "HTTP/1.1 100 Continue\r\n\r\n" // once the body is being read
	head := make([]byte, len(begun))
	if _, err := io.ReadFull(conn, head); err != nil || string(head) != begun {
		t.Fatalf("%v: %s", err, head)
	}
	conn.Write(text[:50])
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	untilRefused(t, address)
	conn.Write(text[50:])
	answer, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 200") {
		t.Errorf("%v: %s", err, answer)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the server ends with %v", err)
	}
	if got, err := os.ReadFile(metrics.StreamPath(root, "run", id)); err != nil || !bytes.Equal(got, text) {
		t.Errorf("%d bytes are there: %v", len(got), err)
	}
}

// untilRefused waits until a server takes no connections any more.
func untilRefused(t *testing.T, address string) {
	t.Helper()
	for deadline := time.Now().Add(longEnough); ; time.Sleep(5 * time.Millisecond) {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return
		}
		if conn.Close(); time.Now().After(deadline) {
			t.Fatal("a server that was told to end takes connections")
		}
	}
}

// TestManyIdleConnectionsLeaveRoom holds ten thousand connections, fewer where the
// system allows no more, each of which has asked something and then says nothing: the
// server still answers, and each has cost it little memory.
func TestManyIdleConnectionsLeaveRoom(t *testing.T) {
	address := servedAt(t)
	cmd := serving(t, t.TempDir(), address)
	defer stop(t, cmd)
	defer http.DefaultClient.CloseIdleConnections()
	all := idleConnections(t)
	some := all / 21 // after which the server has what it needs for any
	hold(t, address, some)
	before := residentOf(t, cmd.Process.Pid)
	most := all - some
	hold(t, address, most)
	more := residentOf(t, cmd.Process.Pid) - before
	t.Logf("%d connections more take %d bytes", most, more)
	// Short tests run under the race detector, whose memory is not the server's own. What
	// is collected later than at best has room besides.
	if !testing.Short() && more > int64(most)*64<<10+64<<20 {
		t.Errorf("%d idle connections take %d bytes", most, more)
	}
	resp, err := http.Get("http://" + address + "/healthz")
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("%v", err)
	}
	resp.Body.Close()
}

// idleConnections is how many connections this process may have, up to 10,500.
func idleConnections(t *testing.T) int {
	t.Helper()
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		t.Fatal(err)
	}
	most := uint64(10_500)
	if testing.Short() {
		most = 1500
	}
	// The server, a child, may have as many files, half of them connections, and this
	// process has others too.
	const others = 100
	if files.Cur < 4*others {
		t.Fatalf("%d open files are too few for any test", files.Cur)
	}
	return int(min(most, files.Cur/2-others))
}

// hold opens connections, asks something by each, and keeps them until the test ends.
func hold(t *testing.T, address string, n int) {
	t.Helper()
	for range n {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		fmt.Fprint(conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
		if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, "200") {
			t.Fatalf("%q %v", line, err)
		}
	}
}

// residentOf is how many bytes of memory a process has, 0 where the system does not tell
// by files.
func residentOf(t *testing.T, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if errors.Is(err, os.ErrNotExist) {
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n << 10
		}
	}
	return 0
}
