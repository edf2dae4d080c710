package datagen

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foldlog/foldlog/objstore"
)

// TestACheckpointThatMayBeInTheLogIsNeverSaidNotToBe loses the answer of the write that
// makes a checkpoint count, and then the storage fails for longer than is waited: wholly,
// or so that the shard can be claimed anew but nothing written to it.
func TestACheckpointThatMayBeInTheLogIsNeverSaidNotToBe(t *testing.T) {
	for name, fails := range map[string]func(objstore.Call) bool{
		"all fails":              func(objstore.Call) bool { return true },
		"what is written, fails": func(c objstore.Call) bool { return strings.Contains(c.Key, "_gen_") && c.Mutates() },
	} {
		for _, arrived := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				mem := objstore.NewMemory()
				var armed, down atomic.Bool
				store := objstore.NewFault(mem, func(c objstore.Call) objstore.Fate {
					manifest := c.Op == "put if absent" && strings.Contains(c.Key, "/manifest/")
					switch {
					case manifest && armed.CompareAndSwap(true, false):
						down.Store(true)
						return objstore.Fate{Err: objstore.ErrAmbiguous, Done: arrived}
					case down.Load() && fails(c):
						return objstore.Fate{Err: errors.New("storage is down")}
					}
					return objstore.Fate{}
				})
				opts := Options{LeaseTerm: 5 * time.Second, RetryFor: 100 * time.Millisecond}
				l, err := OpenOrCreate(t.Context(), store, "digits", "first", opts)
				check(t, err)
				w := newWriter(t, l)
				s, err := w.Open(t.Context(), "a", CreateOptions{})
				check(t, err)
				check(t, s.Checkpoint(t.Context(), step(0), nil))
				armed.Store(true)
				err = s.Checkpoint(t.Context(), step(1), []Change{set("x", 1)})
				down.Store(false)
				if !errors.Is(err, ErrUnsure) {
					t.Errorf("the checkpoint: %v", err)
				}
				for !s.Item().Done("step-1") {
					if errors.Is(err, ErrUnsure) {
						s, err = w.Open(t.Context(), "a", CreateOptions{})
						check(t, err)
						continue
					}
					check(t, s.Checkpoint(t.Context(), step(1), []Change{set("x", 1)}))
				}
				check(t, s.End(t.Context(), EndCompleted))
				it := itemOf(t, mem, "a")
				if len(it.Faults) > 0 || it.Status != StatusCompleted || it.LastSeq != 4 {
					t.Errorf("%s up to %d, faults %v", it.Status, it.LastSeq, it.Faults)
				}
			})
		}
	}
}

// TestAnAppendThatIsAlwaysInDoubtIsGivenUp loses the answer of every write that makes a
// checkpoint count, though the shard can be claimed anew each time.
func TestAnAppendThatIsAlwaysInDoubtIsGivenUp(t *testing.T) {
	for _, arrived := range []bool{true, false} {
		t.Run(fmt.Sprintf("arrived %t", arrived), func(t *testing.T) {
			mem := objstore.NewMemory()
			var armed, staged atomic.Bool
			store := objstore.NewFault(mem, func(c objstore.Call) objstore.Fate {
				switch {
				case c.Mutates() && strings.Contains(c.Key, "_gen_"):
					staged.Store(true)
				case c.Op == "put if absent" && strings.Contains(c.Key, "/manifest/") && staged.CompareAndSwap(true, false) && armed.Load():
					return objstore.Fate{Err: objstore.ErrAmbiguous, Done: arrived}
				}
				return objstore.Fate{}
			})
			l, err := OpenOrCreate(t.Context(), store, "digits", "first", Options{RetryFor: 50 * time.Millisecond})
			check(t, err)
			w := newWriter(t, l)
			s, err := w.Open(t.Context(), "a", CreateOptions{})
			check(t, err)
			check(t, s.Checkpoint(t.Context(), step(0), nil))
			armed.Store(true)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			err = s.Checkpoint(ctx, step(1), []Change{set("x", 1)})
			if !errors.Is(err, ErrUnsure) || !errors.Is(err, objstore.ErrAmbiguous) {
				t.Errorf("the checkpoint: %v", err)
			}
			armed.Store(false)
			s, err = w.Open(t.Context(), "a", CreateOptions{})
			check(t, err)
			if s.Item().Done("step-1") != arrived {
				t.Errorf("arrived %t, done %t", arrived, !arrived)
			}
			check(t, s.End(t.Context(), EndCompleted))
			if it := itemOf(t, mem, "a"); len(it.Faults) > 0 || it.Status != StatusCompleted {
				t.Errorf("%s, faults %v", it.Status, it.Faults)
			}
		})
	}
}

// TestCloseWaitsForTheCloseThatRuns has another close while the hand-over, which fails in
// the end, is held up.
func TestCloseWaitsForTheCloseThatRuns(t *testing.T) {
	mem := objstore.NewMemory()
	var armed atomic.Bool
	begun, goOn := make(chan struct{}), make(chan struct{})
	store := objstore.NewFault(mem, func(c objstore.Call) objstore.Fate {
		if !armed.Load() || !strings.Contains(c.Key, "/manifest/") || !c.Mutates() {
			return objstore.Fate{}
		}
		if armed.CompareAndSwap(true, false) {
			close(begun)
			<-goOn
		}
		return objstore.Fate{Err: objstore.ErrDenied}
	})
	l, err := OpenOrCreate(t.Context(), store, "digits", "first", Options{RetryFor: -1})
	check(t, err)
	w, err := l.NewWriter(t.Context(), WriterOptions{})
	check(t, err)
	_, err = w.Open(t.Context(), "a", CreateOptions{})
	check(t, err)
	armed.Store(true)
	answers := make(chan error, 2)
	go func() { answers <- w.Close(context.Background()) }()
	<-begun
	go func() { answers <- w.Close(context.Background()) }()
	select {
	case err := <-answers:
		t.Errorf("a close was over before the hand-over: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	close(goOn)
	first, second := <-answers, <-answers
	if !errors.Is(first, objstore.ErrDenied) || !errors.Is(second, objstore.ErrDenied) || !errors.Is(w.Close(context.Background()), objstore.ErrDenied) {
		t.Errorf("closed twice: %v, %v", first, second)
	}
}

// itemOf folds an item as a new reader finds it.
func itemOf(t *testing.T, s objstore.Store, id string) *Item {
	t.Helper()
	v, err := newLog(t, s).View(t.Context())
	check(t, err)
	it, err := v.Item(t.Context(), id, AsOf{})
	check(t, err)
	return it
}

// TestStreamsAreCreatedOnce has callers create new items at once, as sub-items that are
// opened at once do with their parent.
func TestStreamsAreCreatedOnce(t *testing.T) {
	w := newWriter(t, newLog(t, objstore.NewMemory()))
	for i := range 20 {
		s, err := w.Open(t.Context(), fmt.Sprint(i), CreateOptions{})
		check(t, err)
		var all sync.WaitGroup
		s.mu.Lock() // for so long, and once more, that all wait and then take turns
		for range 4 {
			all.Go(func() {
				if err := s.Create(context.Background()); err != nil {
					t.Errorf("item %d: %v", i, err)
				}
			})
		}
		for range 2 {
			time.Sleep(2 * time.Millisecond)
			s.mu.Unlock()
			s.mu.Lock()
		}
		s.mu.Unlock()
		all.Wait()
		check(t, s.End(t.Context(), EndCompleted))
		if it := s.Item(); it.Creations != 1 || it.LastSeq != 1 {
			t.Errorf("item %+v", it)
		}
	}
}

// TestAWriterDoesNotComeBackInAShardThatWasRemoved: it slept with an item of which it had
// written nothing, until its empty shard was sealed and removed and the item another's, and
// has no network yet when it wakes.
func TestAWriterDoesNotComeBackInAShardThatWasRemoved(t *testing.T) {
	synctest.Test(t, aWriterDoesNotComeBackInAShardThatWasRemoved)
}

func aWriterDoesNotComeBackInAShardThatWasRemoved(t *testing.T) {
	mem := objstore.NewMemory()
	var asleep paused
	var offline atomic.Int64
	l, err := OpenOrCreate(t.Context(), objstore.NewFault(asleep.store(mem), func(c objstore.Call) objstore.Fate {
		if c.Op == "put if absent" && strings.Contains(c.Key, "/manifest/") && offline.Add(-1) >= 0 {
			return objstore.Fate{Err: errors.New("no network")}
		}
		return objstore.Fate{}
	}), "digits", "first", quick)
	check(t, err)
	w := newWriter(t, l)
	s, err := w.Open(t.Context(), "a", CreateOptions{})
	check(t, err)
	wake := asleep.stop()
	other := logWith(t, mem, quick)
	younger := newWriter(t, other)
	taken := eventually(t, younger, "a")
	check(t, taken.Checkpoint(t.Context(), step(0), nil))
	for !errors.Is(err, objstore.ErrNotFound) { // until nothing of it is left
		_, err = other.MaintainOnce(t.Context(), MaintainOptions{AnyAge: true, Now: time.Now().Add(time.Hour)})
		check(t, err)
		var e *objstore.Election
		if e, err = other.leaseOf(w.Shard(), self()); err == nil {
			_, err = e.Look(t.Context())
		}
		time.Sleep(quick.LeaseTerm / 4)
	}
	offline.Store(1)
	wake()
	if err := s.Checkpoint(t.Context(), step(0), nil); !errors.Is(err, ErrFenced) {
		t.Errorf("its checkpoint: %v", err)
	}
	check(t, taken.End(t.Context(), EndCompleted))
	if it := itemOf(t, mem, "a"); len(it.Faults) > 0 || len(it.Epochs) != 1 {
		t.Errorf("epochs %v, faults %v", it.Epochs, it.Faults)
	}
}

// TestABlobIsFoundThoughItsGenerationWasMergedAndRemoved reads blobs in a view that is
// older than that, and than a compaction which moved all rows.
func TestABlobIsFoundThoughItsGenerationWasMergedAndRemoved(t *testing.T) {
	mem := objstore.NewMemory()
	l := newLog(t, mem)
	image := func(item string) Change { return Set("image", BlobValue([]byte("image of "+item))) }
	write := func(w *Writer, item string) {
		s, err := w.Open(t.Context(), item, CreateOptions{})
		check(t, err)
		check(t, s.CheckpointEnd(t.Context(), step(0), []Change{image(item)}, EndCompleted))
	}
	tidy := func() {
		for range 2 {
			_, err := l.MaintainOnce(t.Context(), MaintainOptions{AnyAge: true, All: true, Rate: -1, Now: time.Now().Add(time.Hour)})
			check(t, err)
		}
	}
	first, second := newWriter(t, l), newWriter(t, l)
	for i := range 4 {
		write(first, fmt.Sprint("first-", i))
	}
	check(t, first.Close(t.Context()))
	for i := range 4 {
		write(second, fmt.Sprint("second-", i))
	}
	v, err := l.View(t.Context())
	check(t, err)
	refs := map[string]BlobRef{}
	for it, err := range v.Folds(t.Context()) {
		check(t, err)
		f, _ := it.Field("image")
		refs[it.ID] = f.Value().Blob
	}
	for _, reopen := range []bool{false, true} {
		if reopen { // so that nothing is in memory
			l2 := newLog(t, mem)
			v, err = l2.View(t.Context())
			check(t, err)
			check(t, second.Close(t.Context()))
			tidy()
		}
		for id, ref := range refs {
			b, err := v.Blob(t.Context(), ref)
			if err != nil || string(b) != "image of "+id {
				t.Errorf("blob of %s, reopened %t: %q, %v", id, reopen, b, err)
			}
		}
	}
}
