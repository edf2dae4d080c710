package server

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/foldlog/foldlog/metrics"
	"github.com/foldlog/foldlog/server/internal/wire"
)

// twoServers are two of one root, with projections of their own.
func twoServers(t *testing.T) []*site {
	root := t.TempDir()
	return []*site{newSite(t, Options{Root: root, Cache: t.TempDir()}), newSite(t, Options{Root: root, Cache: t.TempDir()})}
}

// TestTwoServersOfARootKeepStreamsWhole sends parts of streams to both, in any order and
// several times, as clients do behind something that loses and repeats their requests.
func TestTwoServersOfARootKeepStreamsWhole(t *testing.T) {
	sites := twoServers(t)
	const streams, points, senders = 4, 400, 3
	var all sync.WaitGroup
	for n := range streams {
		slug := fmt.Sprint("run-", n)
		text := stream(slug, points)
		for k := range senders {
			all.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(n), uint64(k)))
				for known := 0; known < len(text); {
					from := lineStartAt(text, known-rng.IntN(min(known, 2000)+1))
					to := lineStartAt(text, min(len(text), from+300+rng.IntN(4000)))
					s := sites[rng.IntN(2)]
					a := s.do("POST", streamAt(slug, firstLine(text), from), []byte(text[from:to]))
					if a.status == 503 {
						continue // as every client does
					}
					var ack metrics.Ack
					switch err := json.Unmarshal(a.body, &ack); {
					case a.status == 409 && strings.Contains(string(a.body), "a gap"):
						t.Errorf("%s lost what was acknowledged: %s", slug, a.body)
						return
					case a.status != 200 || err != nil || ack.Offset < int64(to) || ack.Offset > int64(len(text)):
						t.Errorf("%d %s", a.status, a.body)
						return
					}
					known = max(known, int(ack.Offset))
				}
			})
		}
	}
	all.Wait()
	for n := range streams {
		slug := fmt.Sprint("run-", n)
		text := stream(slug, points)
		if got := sites[0].content(sites[0].file(slug, firstLine(text))); got != text {
			t.Errorf("%s has %d bytes, want %d", slug, len(got), len(text))
		}
		for _, s := range sites {
			s.hasRun(slug, points+1)
		}
	}
}

// TestTagsThatTwoServersEditAreAllKept adds tags at both at once.
func TestTagsThatTwoServersEditAreAllKept(t *testing.T) {
	sites := twoServers(t)
	sites[0].write("run.jsonl", stream("run", 1))
	for _, s := range sites {
		s.hasRun("run", 2)
	}
	const each = 30
	var all sync.WaitGroup
	for i, s := range sites {
		all.Go(func() {
			for n := range each {
				if a := s.do("POST", "/api/v1/runs/run/tags", map[string]any{"add": []string{fmt.Sprintf("%d-%02d", i, n)}}); a.status != 200 {
					t.Errorf("%d %s", a.status, a.body)
				}
			}
		})
	}
	all.Wait()
	var got wire.Labels
	sites[0].post("/api/v1/runs/run/tags", map[string]any{"add": []string{"last"}}, &got)
	if len(got.Tags) != 2*each+1 {
		t.Errorf("%d tags, want %d: %q", len(got.Tags), 2*each+1, got.Tags)
	}
}

// halvedFile writes in two halves, and is told when to go on with the second.
type halvedFile struct {
	osStream
	half, goOn chan struct{}
}

func (f halvedFile) WriteAt(b []byte, off int64) (int, error) {
	if _, err := f.osStream.WriteAt(b[:len(b)/2], off); err != nil {
		return 0, err
	}
	close(f.half)
	<-f.goOn
	n, err := f.osStream.WriteAt(b[len(b)/2:], off+int64(len(b)/2))
	return len(b)/2 + n, err
}

// TestAServerDoesNotCutWhatAnotherIsWriting sends the first line again to one server while
// the other is in the middle of writing many: what is there of them is no torn end.
func TestAServerDoesNotCutWhatAnotherIsWriting(t *testing.T) {
	sites := twoServers(t)
	halved := halvedFile{half: make(chan struct{}), goOn: make(chan struct{})}
	sites[0].sink.open = func(f *os.File) streamFile { return halvedFile{osStream{f}, halved.half, halved.goOn} }
	text := stream("run", 20)
	first := firstLine(text)
	send := func(s *site, lines string) <-chan answer {
		done := make(chan answer, 1)
		go func() { done <- s.do("POST", streamAt("run", first, 0), []byte(lines)) }()
		return done
	}
	all := send(sites[0], text)
	<-halved.half
	one := send(sites[1], text[:len(first)+1])
	time.Sleep(50 * time.Millisecond) // so that it would have been answered, were it not waiting
	if len(one) > 0 {
		t.Error("it is answered before")
	}
	close(halved.goOn)
	for _, a := range []answer{<-all, <-one} {
		if a.status != 200 {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	if got := sites[1].content(sites[1].file("run", first)); got != text {
		t.Errorf("%d bytes of %d: %q", len(got), len(text), got)
	}
}
