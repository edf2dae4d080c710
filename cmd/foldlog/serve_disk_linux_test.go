package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/foldlog/foldlog/metrics"
)

// smallDisk is a file system of 8 MiB, mounted for one test: only the goroutine of the test
// and the processes that it starts see it, and it is gone with them, however they end.
// Package server has the same tests on a disk that is full by arrangement, for where none
// may be mounted; in CI one must be.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	runtime.LockOSThread() // and never unlock it: no other goroutine is to be in this place
	err := syscall.Unshare(syscall.CLONE_NEWNS)
	if err == nil {
		err = syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, "")
	}
	if err == nil {
		err = syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=8m")
	}
	if (errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES)) && os.Getenv("CI") == "" {
		t.Skip("no file system may be mounted here")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// atServer is a client of a server that answers with statuses.
type atServer struct {
	t    *testing.T
	base string
}

// call returns the status of an answer, whose body it reads unless into is nil.
func (s *atServer) call(method, path string, body, into any) int {
	s.t.Helper()
	text, ok := body.([]byte)
	if !ok {
		var err error
		if text, err = json.Marshal(body); err != nil {
			s.t.Fatal(err)
		}
	}
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.base+path, bytes.NewReader(text))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	if resp.StatusCode/100 == 2 && into != nil {
		if err := json.Unmarshal(answer, into); err != nil {
			s.t.Fatalf("%s %s: %v: %s", method, path, err, answer)
		}
	}
	if resp.StatusCode/100 != 2 && resp.StatusCode != http.StatusInsufficientStorage {
		s.t.Fatalf("%s %s: %d %.300s", method, path, resp.StatusCode, answer)
	}
	return resp.StatusCode
}

// untilFull repeats what is done until the disk takes no more of it, and returns how
// often it was done.
func (s *atServer) untilFull(what string, do func(n int) int) (done int) {
	s.t.Helper()
	for n := range 20_000 {
		switch do(n) {
		case http.StatusInsufficientStorage:
			return done
		default:
			done++
		}
	}
	s.t.Errorf("%s: the disk is never full", what)
	return done
}

// must does what there is room for.
func (s *atServer) must(method, path string, body, into any) {
	s.t.Helper()
	if status := s.call(method, path, body, into); status/100 != 2 {
		s.t.Fatalf("%s %s: %d", method, path, status)
	}
}

// fill takes all the room that there is on a disk.
func fill(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "filler")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for piece := make([]byte, 4096); err == nil; {
		_, err = f.Write(piece)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	return path
}

// TestAServerOnAFullDisk fills the disk of a server that is taking things in, again
// and again: what it cannot store is a 507 and nothing of it stays, what it
// acknowledged is there, and it goes on when there is room.
func TestAServerOnAFullDisk(t *testing.T) {
	root, address := smallDisk(t), servedAt(t)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	journal := filepath.Join(root, "search.atj")
	if out, err := process(t, "foldlog", "study", "create", journal).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := serving(t, root, address)
	d := newFullDisk(t, root, address)
	for range 3 {
		d.work(3)
		filler := fill(t, root)
		d.workUntilFull()
		d.check()
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		d.work(3)
		d.check()
	}
	filler := fill(t, root)
	cmd = d.again(cmd)
	d.workUntilFull()
	d.check()
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	cmd = d.again(cmd)
	d.work(1)
	d.check()
	stop(t, cmd)
	intact(t, journal, d.log())
}

// fullDisk is what a client has sent to a server and knows to be stored.
type fullDisk struct {
	atServer
	root, address string
	stream        []byte
	runs          int
	study         string
	trials        int
	experiment    string
	items, made   int
	logs          int // that were tried to be made when the disk was full
}

func newFullDisk(t *testing.T, root, address string) *fullDisk {
	d := &fullDisk{atServer: atServer{t, "http://" + address}, root: root, address: address}
	var page struct {
		Items []struct{ ID string }
	}
	for deadline := time.Now().Add(longEnough); len(page.Items) == 0; time.Sleep(10 * time.Millisecond) {
		if d.must("GET", "/api/v1/studies", nil, &page); time.Now().After(deadline) {
			t.Fatal("the study is not listed") // lists do not wait for what is being read
		}
	}
	d.study = page.Items[0].ID
	var made struct{ ID string }
	d.must("POST", "/api/v1/datagen", map[string]string{"pipeline": "p", "experiment": "e"}, &made)
	d.experiment = made.ID
	d.push(longRun("run", 1))
	return d
}

func (d *fullDisk) log() string {
	return filepath.Join(d.root, "datagen_checkpoints", "p", "e", "log.lance")
}

// again starts the server once more.
func (d *fullDisk) again(cmd *exec.Cmd) *exec.Cmd {
	d.t.Helper()
	stop(d.t, cmd)
	return serving(d.t, d.root, d.address)
}

func (d *fullDisk) streamID() string {
	text := longRun("run", 0)
	return metrics.StreamID(text[:len(text)-1])
}

func (d *fullDisk) push(lines []byte) int {
	status := d.call("POST", fmt.Sprintf("/api/v1/runs/run/streams/%s?offset=%d", d.streamID(), len(d.stream)), lines, nil)
	if status == 200 {
		d.stream = append(d.stream, lines...)
	}
	return status
}

// points are lines of 64 KiB.
func (d *fullDisk) points() []byte {
	line := `{"ts_ms":1,"step":1,"kind":"metric","name":"loss","value":1,"metadata":{"text":"` + strings.Repeat("x", 900) + "\"}}\n"
	return []byte(strings.Repeat(line, 64))
}

// otherRun begins a run.
func (d *fullDisk) otherRun() int {
	text := longRun(fmt.Sprintf("other-%d", d.runs), 300)
	id := metrics.StreamID(text[:bytes.IndexByte(text, '\n')])
	status := d.call("POST", fmt.Sprintf("/api/v1/runs/other-%d/streams/%s?offset=0", d.runs, id), text, nil)
	if status == 200 {
		d.runs++
	}
	return status
}

// trial asks for a trial and tells its end, which is not asked for before.
func (d *fullDisk) trial() int {
	var got struct{ Number int }
	status := d.call("POST", "/api/v1/studies/"+d.study+"/ask", map[string]any{"lease_ms": 3_600_000}, &got)
	if status != 200 {
		return status
	}
	if got.Number != d.trials {
		d.t.Errorf("trial %d follows %d trials", got.Number, d.trials)
	}
	d.trials++
	return d.call("POST", "/api/v1/studies/"+d.study+"/attrs", map[string]any{"key": "text", "value": strings.Repeat("x", 4096)}, nil)
}

func (d *fullDisk) event(n int) []byte {
	return fmt.Appendf(nil, `{"item_id":"appended-%d","item_seq":0,"checkpoint_id":"c%d","event_type":"ITEM_CREATED","event_ts":"2026-01-02T03:04:05Z","query_tags":{"text":%q}}`,
		n, n, strings.Repeat("y", 4096))
}

func (d *fullDisk) append() int {
	status := d.call("POST", "/api/v1/datagen/"+d.experiment+"/append", d.event(d.items), nil)
	if status == 200 {
		d.items++
	}
	return status
}

// item claims an item and ends it with a field.
func (d *fullDisk) item(attempt int) int {
	var got struct{ Claim string }
	status := d.call("POST", "/api/v1/datagen/"+d.experiment+"/claims", map[string]any{"items": []string{fmt.Sprintf("made-%d", d.made)}}, &got)
	if status != 200 {
		return status
	}
	status = d.call("POST", "/api/v1/datagen/"+d.experiment+"/claims/"+got.Claim+"/checkpoint", map[string]any{"key": "1", "step": map[string]any{"name": "draw"},
		"end": "completed", "changes": []any{map[string]any{"name": "text", "value": strings.Repeat("z", 4096)}}}, nil)
	if status == 200 {
		d.made++
		return status
	}
	d.call("POST", "/api/v1/datagen/"+d.experiment+"/claims/"+got.Claim+"/release", nil, nil)
	return status
}

func (d *fullDisk) work(times int) {
	d.t.Helper()
	for range times {
		for what, status := range map[string]int{"push": d.push(d.points()), "run": d.otherRun(), "trial": d.trial(), "append": d.append(), "item": d.item(0),
			"note": d.call("PUT", "/api/v1/runs/run/note", map[string]string{"note": "x"}, nil)} {
			if status/100 != 2 {
				d.t.Errorf("%s: %d though there is room", what, status)
			}
		}
	}
}

func (d *fullDisk) workUntilFull() {
	d.t.Helper()
	d.untilFull("push", func(int) int { return d.push(d.points()) })
	d.untilFull("run", func(int) int { return d.otherRun() })
	d.untilFull("trial", func(int) int { return d.trial() })
	d.untilFull("append", func(int) int { return d.append() })
	d.untilFull("item", d.item)
	d.untilFull("note", func(n int) int {
		return d.call("PUT", "/api/v1/runs/run/note", map[string]string{"note": fmt.Sprint(n, strings.Repeat("x", 1000))}, nil)
	})
	// What the server tidies up meanwhile may make room for one more.
	for range 3 {
		d.untilFull("journal", func(int) int {
			d.logs++
			return d.call("POST", "/api/v1/journals", map[string]string{"path": fmt.Sprintf("new-%d.atj", d.logs)}, nil)
		})
		d.untilFull("experiment", func(int) int {
			d.logs++
			return d.call("POST", "/api/v1/datagen", map[string]string{"pipeline": "new", "experiment": fmt.Sprint("e", d.logs)}, nil)
		})
	}
}

// check compares what is there with what was acknowledged.
func (d *fullDisk) check() {
	d.t.Helper()
	got, err := os.ReadFile(metrics.StreamPath(d.root, "run", d.streamID()))
	if err != nil || !bytes.Equal(got, d.stream) {
		d.t.Errorf("the stream has %d bytes, %d were acknowledged: %v", len(got), len(d.stream), err)
	}
	var study struct{ Trials int }
	d.must("GET", "/api/v1/studies/"+d.study, nil, &study)
	if study.Trials != d.trials {
		d.t.Errorf("the study has %d trials, %d were acknowledged", study.Trials, d.trials)
	}
	var items struct{ Total int }
	d.must("GET", "/api/v1/datagen/"+d.experiment+"/items?limit=1&prefix=appended-", nil, &items)
	if items.Total != d.items {
		d.t.Errorf("%d items were appended, %d were acknowledged", items.Total, d.items)
	}
	d.must("GET", "/api/v1/datagen/"+d.experiment+"/items?limit=1&prefix=made-&status=completed", nil, &items)
	if items.Total != d.made {
		d.t.Errorf("%d items were made, %d were acknowledged", items.Total, d.made)
	}
	intact(d.t, filepath.Join(d.root, "search.atj"), d.log())
}
