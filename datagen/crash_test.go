package datagen

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/objstore"
)

// world is what a pipeline did outside of the log: which steps ran, and which of them
// were acknowledged.
type world struct {
	mu   sync.Mutex
	runs map[string]int
	done map[string]bool
	// again are steps that ran although they had been acknowledged.
	again []string
	// said, if there, is told of steps that begin and steps that are acknowledged.
	said func(verb, key string)
}

func newWorld() *world { return &world{runs: map[string]int{}, done: map[string]bool{}} }

// step runs a step of an item unless it is complete.
func (w *world) step(ctx context.Context, s *Stream, i int, end End) error {
	st := step(i)
	if s.Item().Done(st.Instance) {
		return nil
	}
	key := s.ID() + " " + st.Instance
	w.mu.Lock()
	w.runs[key]++
	if w.done[key] {
		w.again = append(w.again, key)
	}
	w.mu.Unlock()
	if w.said != nil {
		w.said("run", key)
	}
	changes := []Change{set("x", int64(i)), {Append: true, Field: Field{Name: "log", Type: "int", Codec: 1, Value: Value{Kind: Int, Int: int64(i)}}}}
	if i == 1 {
		changes = append(changes, Change{Field: Field{Name: "image", Type: "png", Codec: 1, Value: Value{Kind: Blob, Blob: NewBlob([]byte(s.ID()))}}})
	}
	var err error
	if end != "" {
		err = s.CheckpointEnd(ctx, st, changes, end)
	} else {
		err = s.Checkpoint(ctx, st, changes)
	}
	if err == nil {
		w.mu.Lock()
		w.done[key] = true
		w.mu.Unlock()
		if w.said != nil {
			w.said("done", key)
		}
	}
	return err
}

// item runs the pipeline of one item: two steps, sub-items, and a last step.
func (w *world) item(ctx context.Context, s *Stream) error {
	for i := range 2 {
		if err := w.step(ctx, s, i, ""); err != nil {
			return err
		}
	}
	for k := range int64(2) {
		sub, err := s.Sub(ctx, "sub", k, CreateOptions{})
		if errors.Is(err, ErrEnded) {
			continue
		}
		if err == nil {
			err = w.step(ctx, sub, 0, EndFiltered)
		}
		if err != nil {
			return err
		}
	}
	return w.step(ctx, s, 2, EndCompleted)
}

// run works on all items until each has ended.
func (w *world) run(ctx context.Context, store objstore.Store, opts Options, keys []string, workers int) (err error) {
	l, err := OpenOrCreate(ctx, store, "digits", "first", opts)
	if err != nil {
		return err
	}
	wr, err := l.NewWriter(ctx, WriterOptions{Run: "run", MergeAfter: 4})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, wr.Close(ctx)) }()
	claims, err := wr.Claims(ctx, keys, ClaimsOptions{Poll: 20 * time.Millisecond})
	if err != nil {
		return err
	}
	errs := make(chan error, workers)
	for range workers {
		go func() {
			errs <- func() error {
				for {
					s, err := claims.Next(ctx)
					if errors.Is(err, io.EOF) {
						return nil
					}
					if err == nil {
						err = w.item(ctx, s)
					}
					if err != nil {
						return err
					}
				}
			}()
		}()
	}
	for range workers {
		err = errors.Join(err, <-errs)
	}
	return err
}

// outcome is what all items are in the end, without what differs between runs.
func outcome(t *testing.T, store objstore.Store) map[string]string {
	t.Helper()
	l, err := Open(t.Context(), store, "digits", "first", quick)
	check(t, err)
	v, err := l.View(t.Context())
	check(t, err)
	out := map[string]string{}
	for s, err := range v.Items(t.Context(), ItemQuery{}) {
		check(t, err)
		it, err := v.Item(t.Context(), s.ID, AsOf{})
		check(t, err)
		if len(it.Faults) > 0 || s.Suspect {
			t.Errorf("item %s: suspect %t, faults %v", s.ID, s.Suspect, it.Faults)
		}
		if s.Status != it.Status || s.LastSeq != it.LastSeq {
			t.Errorf("item %s: the list says %s to %d, the fold %s to %d", s.ID, s.Status, s.LastSeq, it.Status, it.LastSeq)
		}
		text := string(it.Status)
		for _, f := range it.Fields {
			for _, val := range f.Values {
				text += fmt.Sprintf(" %s=%d", f.Name, val.Int)
				if val.Kind == Blob {
					b, err := v.Blob(t.Context(), val.Blob)
					check(t, err)
					text += string(b)
				}
			}
		}
		out[s.ID] = text
	}
	return out
}

var crashKeys = []string{"a", "b"}

// hurried are options under which a writer is dead after moments.
var hurried = Options{LeaseTerm: 40 * time.Millisecond, RetryFor: -1}

func expected(t *testing.T) map[string]string {
	t.Helper()
	s := objstore.NewMemory()
	check(t, newWorld().run(t.Context(), s, quick, crashKeys, 2))
	return outcome(t, s)
}

// TestACrashAnywhereLosesNothing stops a process at every change that it makes to its
// store, before it and after it, and lets another process finish.
func TestACrashAnywhereLosesNothing(t *testing.T) {
	want := expected(t)
	if len(want) != 6 {
		t.Fatalf("items %v", want)
	}
	stride := 1
	if testing.Short() {
		stride = 7
	}
	for n := 1; ; n += stride {
		finished := false
		for _, after := range []bool{false, true} {
			mem := objstore.NewMemory()
			w := newWorld()
			if err := w.run(t.Context(), crashing(mem, n, after), hurried, crashKeys, 2); err == nil {
				finished = true
			}
			check(t, w.run(t.Context(), mem, hurried, crashKeys, 2))
			if d := cmp.Diff(want, outcome(t, mem)); d != "" {
				t.Fatalf("crash at change %d, done %t: %s", n, after, d)
			}
			if len(w.again) > 0 {
				t.Fatalf("crash at change %d, done %t: ran again: %v", n, after, w.again)
			}
		}
		if finished {
			t.Logf("%d changes", n)
			return
		}
	}
}

// crashing is a store whose process ends at a change: before it takes effect, or after
// it with its answer lost.
func crashing(s objstore.Store, n int, after bool) objstore.Store {
	var mu sync.Mutex
	over := false
	return objstore.NewFault(s, func(c objstore.Call) objstore.Fate {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case over:
			return objstore.Fate{Err: objstore.ErrCrashed}
		case c.Mutates() && c.N == n:
			over = true
			return objstore.Fate{Err: objstore.ErrCrashed, Done: after, Crash: !after}
		}
		return objstore.Fate{}
	})
}

// TestACrashOnDiskLosesNothing is the same on a directory, at some of the changes.
func TestACrashOnDiskLosesNothing(t *testing.T) {
	want := expected(t)
	for n := 2; n < 88; n += 17 {
		disk, err := objstore.OpenLocal(t.TempDir(), objstore.LocalOptions{})
		check(t, err)
		w := newWorld()
		_ = w.run(t.Context(), crashing(disk, n, n%2 == 0), hurried, crashKeys, 2)
		check(t, w.run(t.Context(), disk, hurried, crashKeys, 2))
		if d := cmp.Diff(want, outcome(t, disk)); d != "" {
			t.Fatalf("crash at change %d: %s", n, d)
		}
		if len(w.again) > 0 {
			t.Fatalf("crash at change %d: ran again: %v", n, w.again)
		}
	}
}
