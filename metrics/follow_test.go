package metrics

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/internal/fsx"
)

// tailer collects what a follower hands over, events by their step.
type tailer struct {
	*Follower
	t    *testing.T
	path string
	got  []string
}

func newTailer(t *testing.T) *tailer {
	path := filepath.Join(t.TempDir(), "run.jsonl")
	f := &tailer{Follower: NewFollower(path), t: t, path: path}
	t.Cleanup(func() { f.Close() })
	return f
}

func (f *tailer) expect(want ...string) {
	f.t.Helper()
	f.got = nil
	must(f.t, f.Poll(func(it *Item) {
		switch it.Kind {
		case ItemEvent:
			f.got = append(f.got, fmt.Sprintf("%d:%d", it.Number, it.Event.Step))
		case ItemRewritten:
			f.got = append(f.got, strings.TrimPrefix(it.Err.Error(), "file was "))
		default:
			f.got = append(f.got, fmt.Sprintf("bad %d", it.Number))
		}
	}))
	if diff := cmp.Diff(want, f.got); diff != "" {
		f.t.Errorf("-want +got:\n%s", diff)
	}
}

// write replaces the content, add appends to it.
func (f *tailer) write(text string) {
	f.t.Helper()
	must(f.t, os.WriteFile(f.path, []byte(text), 0o644))
}

func (f *tailer) add(text string) {
	f.t.Helper()
	file, err := os.OpenFile(f.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	must(f.t, err)
	_, err = file.WriteString(text)
	must(f.t, err)
	must(f.t, file.Close())
}

func steps(from, to int) string {
	text := ""
	for i := from; i <= to; i++ {
		text += metricLine(i, "l", "1") + "\n"
	}
	return text
}

func TestFollowerWaitsForTheFileAndForEachNewline(t *testing.T) {
	f := newTailer(t)
	f.expect()
	f.add(steps(1, 1))
	f.expect("1:1")
	f.expect()
	next := steps(2, 2)
	for i := range len(next) - 1 {
		f.add(next[i : i+1])
		f.expect()
	}
	if f.reader.lines.pending() != int64(len(next)-1) {
		t.Errorf("torn %d", f.reader.lines.pending())
	}
	f.add("\n" + "junk\n" + steps(3, 3))
	f.expect("2:2", "bad 3", "4:3")
}

func TestFollowerSurvivesRewriting(t *testing.T) {
	t.Run("truncated and written anew", func(t *testing.T) {
		f := newTailer(t)
		f.add(steps(1, 3) + `{"torn`)
		f.expect("1:1", "2:2", "3:3")
		f.write("")
		f.expect("bad 4", "rewritten: truncated from 222 to 0 bytes")
		f.add(steps(7, 8))
		f.expect("1:7", "2:8")
	})
	t.Run("truncated and grown beyond between two looks", func(t *testing.T) {
		f := newTailer(t)
		f.add(steps(1, 2))
		f.expect("1:1", "2:2")
		f.write(steps(7, 10))
		f.expect("rewritten: overwritten", "1:7", "2:8", "3:9", "4:10")
	})
	t.Run("shortened by its end", func(t *testing.T) {
		f := newTailer(t)
		f.add(steps(1, 4))
		f.expect("1:1", "2:2", "3:3", "4:4")
		must(t, os.Truncate(f.path, int64(len(steps(1, 2)))))
		f.expect("rewritten: shortened from 288 to 144 bytes")
		f.add(steps(5, 5))
		f.expect("3:5")
	})
	t.Run("rotated", func(t *testing.T) {
		f := newTailer(t)
		f.add(steps(1, 2))
		f.expect("1:1", "2:2")
		must(t, os.Rename(f.path, f.path+".1"))
		old, err := os.OpenFile(f.path+".1", os.O_APPEND|os.O_WRONLY, 0)
		must(t, err)
		f.expect()
		_, err = old.WriteString(steps(3, 3))
		must(t, err)
		must(t, old.Close())
		f.add(steps(4, 4))
		f.expect("3:3", "rewritten: replaced", "1:4")
	})
	t.Run("replaced by a longer copy of itself", func(t *testing.T) {
		f := newTailer(t)
		f.add(steps(1, 2) + `{"ts_ms":2,`)
		f.expect("1:1", "2:2")
		must(t, os.WriteFile(f.path+".tmp", []byte(steps(1, 4)), 0o644))
		must(t, os.Rename(f.path+".tmp", f.path))
		f.expect("3:3", "4:4")
	})
	t.Run("replaced by another", func(t *testing.T) {
		f := newTailer(t)
		f.add(steps(1, 2) + `{"torn`)
		f.expect("1:1", "2:2")
		must(t, os.WriteFile(f.path+".tmp", []byte(steps(5, 5)), 0o644))
		must(t, os.Rename(f.path+".tmp", f.path))
		f.expect("bad 3", "rewritten: replaced", "1:5")
	})
}

func TestAReadThatFailsIsNoRewriting(t *testing.T) {
	tell := newTailer(t)
	failing := 0 // the read that fails, from 1
	errIO := errors.New("input/output error")
	tell.FS = fsx.NewFault(fsx.OS, func(c fsx.Call) fsx.Fate {
		if c.Op == "read" {
			if failing--; failing == 0 {
				return fsx.Fate{Err: errIO}
			}
		}
		return fsx.Fate{}
	})
	tell.add(steps(1, 2))
	tell.expect("1:1", "2:2")
	fails := func(read int) {
		t.Helper()
		failing = read
		if err := tell.Poll(func(it *Item) {
			if it.Kind == ItemEvent {
				t.Errorf("event %d comes again", it.Number)
			}
		}); !errors.Is(err, errIO) {
			t.Errorf("error %v", err)
		}
	}
	tell.add(steps(3, 3))
	fails(1) // whether it is what it was
	tell.expect("3:3")
	must(t, os.Truncate(tell.path, int64(len(steps(1, 2)))))
	fails(1)
	fails(2) // what is kept of it
	tell.expect("rewritten: shortened from 216 to 144 bytes")
	tell.add(steps(4, 4))
	tell.expect("3:4")
}

func TestTwoProcessesOfOneFileAreFollowedAlike(t *testing.T) {
	f := newTailer(t)
	target := func(slug string) *Runtime {
		rt, err := Start(Options{Slug: slug, EmitterOptions: EmitterOptions{Targets: []Target{{Kind: TargetJSONL, Path: f.path}}, FlushEvery: time.Millisecond}})
		must(t, err)
		return rt
	}
	a, b := target("r"), target("r")
	for i := range 3000 {
		must(t, a.Run().Metric(int64(i), "a", Int(1), ""))
		must(t, b.Run().Metric(int64(i), "b", Int(1), ""))
	}
	a.Done()
	b.Done()
	last := map[string]int64{"a": -1, "b": -1}
	must(t, f.Poll(func(it *Item) {
		if it.Kind != ItemEvent {
			t.Fatalf("line %d: %v", it.Number, it.Err)
		}
		if it.Event.Kind != KindMetric {
			return
		}
		if it.Event.Step != last[it.Event.Name]+1 {
			t.Fatalf("step %d of %s after %d", it.Event.Step, it.Event.Name, last[it.Event.Name])
		}
		last[it.Event.Name]++
	}))
	if last["a"] != 2999 || last["b"] != 2999 {
		t.Errorf("%v", last)
	}
}

func TestFollowEndsWithItsContext(t *testing.T) {
	f := newTailer(t)
	f.add(steps(1, 1))
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	n := 0
	err := f.Follow(ctx, time.Millisecond, func(it *Item) {
		if n++; n == 1 {
			f.add(steps(2, 2))
			return
		}
		cancel(why)
	})
	if !errors.Is(err, why) || n != 2 {
		t.Errorf("%d events, %v", n, err)
	}
}

// C24: memory of writer and follower does not grow with what went through.
func TestWriterAndFollowerMemoryIsFlat(t *testing.T) {
	f := newTailer(t)
	rt, err := Start(Options{Slug: "r", EmitterOptions: EmitterOptions{Targets: []Target{{Kind: TargetJSONL, Path: f.path}}, FlushEvery: time.Millisecond}})
	must(t, err)
	run, meta := rt.Run(), Meta("split", "train")
	n, seen := int64(0), int64(0)
	// Rounds of the writer and the follower together, after which nothing is queued.
	round := func() {
		for range 20_000 {
			n++
			must(t, run.Metric(n, "loss", Float(float64(n)), meta))
		}
		for deadline := time.Now().Add(5 * time.Minute); seen < n+1; time.Sleep(time.Millisecond) {
			if must(t, f.Poll(func(it *Item) { seen++ })); time.Now().After(deadline) {
				t.Fatalf("%d of %d events", seen, n+1)
			}
		}
	}
	round()
	before := heapInUse()
	for range 20 {
		round()
	}
	if grown := heapInUse() - before; grown > 4<<20 {
		t.Errorf("heap grew by %d bytes over %d events", grown, n)
	}
	rt.Done()
	must(t, f.Poll(func(it *Item) { seen++ }))
	if seen != n+2 {
		t.Errorf("%d of %d events", seen, n+2)
	}
}

func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
