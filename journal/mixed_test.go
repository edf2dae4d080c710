package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/foldlog/foldlog/internal/fsx"
)

// TestMixedCallersAreToldTheTruth has writers that hand the lease around on a disk that
// delays and fails, with callers that write, look, give up, and close and open their
// writer again. What one was told is what every other one sees from then on, and what the
// journal holds in the end.
func TestMixedCallersAreToldTheTruth(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	m := newMem(t)
	var quiet atomic.Bool
	disk := troubledDisk(m, seed, &quiet)
	quiet.Store(true)
	w, err := Create(t.Context(), memPath, memOptions(m), new(ids))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	handles := make([]*mixedHandle, 3)
	for i := range handles {
		handles[i] = &mixedHandle{disk: disk, worker: uint64(i + 10)}
	}
	quiet.Store(false)
	var mu sync.Mutex
	var o outcome
	var known []string // that somebody was told of
	var callers, refreshing sync.WaitGroup
	done := make(chan struct{})
	for _, h := range handles {
		refreshing.Go(func() { h.refresh(t.Context(), done) })
	}
	for c := range 12 {
		callers.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(c)))
			for k := range 100 {
				h := handles[rng.IntN(len(handles))]
				ctx, cancel := t.Context(), context.CancelFunc(func() {})
				if rng.IntN(4) == 0 {
					ctx, cancel = context.WithTimeout(ctx, time.Duration(rng.IntN(300))*time.Microsecond)
				}
				mu.Lock()
				want := slices.Clone(known)
				mu.Unlock()
				name := fmt.Sprintf("%d-%d", c, k)
				switch rng.IntN(8) {
				case 0:
					h.close()
				case 1, 2:
					h.look(ctx, t, want)
				default:
					err := h.put(ctx, name)
					mu.Lock()
					if o.tell(err, false, name); err == nil {
						known = append(known, name)
					}
					mu.Unlock()
				}
				cancel()
			}
		})
	}
	callers.Wait()
	close(done)
	refreshing.Wait()
	quiet.Store(true)
	for _, h := range handles {
		h.close()
	}
	got := readIDs(t, m, memPath)
	o.check(t, got)
	if len(o.acked) < 20 {
		t.Errorf("only %d of the operations were acknowledged", len(o.acked))
	}
}

// troubledDisk delays and fails some of what a writer does once it runs.
func troubledDisk(m fsx.FS, seed uint64, quiet *atomic.Bool) fsx.FS {
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(seed, 99))
	return fsx.NewFault(m, func(c fsx.Call) fsx.Fate {
		mu.Lock()
		n := rng.IntN(300)
		mu.Unlock()
		switch {
		case quiet.Load():
		case n < 4 && (c.Op == "sync" || c.Op == "write" || c.Op == "rename" || c.Op == "syncdir"):
			return fsx.Fate{Err: syscall.EIO, Done: n%2 == 0}
		case n == 5 && (c.Op == "read" || c.Op == "open"):
			return fsx.Fate{Err: syscall.EIO}
		case n < 40 && c.Mutates():
			time.Sleep(time.Duration(n) * 5 * time.Microsecond)
		}
		return fsx.Fate{}
	})
}

// mixedHandle is a writer that anybody may close; the next caller opens it again.
type mixedHandle struct {
	disk   fsx.FS
	worker uint64
	mu     sync.Mutex
	w      *Writer
}

func (h *mixedHandle) writer(ctx context.Context) (*Writer, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.w == nil {
		opts := memOptions(h.disk)
		opts.Worker = new(h.worker)
		w, err := OpenWriter(ctx, memPath, opts, new(ids))
		if err != nil {
			return nil, err
		}
		h.w = w
	}
	return h.w, nil
}

func (h *mixedHandle) close() {
	h.mu.Lock()
	w := h.w
	h.w = nil
	h.mu.Unlock()
	if w != nil {
		_ = w.Close()
	}
}

// refresh asks the writer's goroutine for what is new, all the time.
func (h *mixedHandle) refresh(ctx context.Context, done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		default:
		}
		if w, err := h.writer(ctx); err == nil {
			_ = w.submit(ctx, nil)
		}
	}
}

func (h *mixedHandle) put(ctx context.Context, name string) error {
	w, err := h.writer(ctx)
	if err != nil {
		return err
	}
	return put(ctx, w, name)
}

// look checks that a transaction sees what was known before it began, whether it is
// refused or has nothing to append.
func (h *mixedHandle) look(ctx context.Context, t *testing.T, want []string) {
	w, err := h.writer(ctx)
	if err != nil {
		return
	}
	m := w.m.(*ids)
	missing := ""
	err = w.Do(ctx, func(*Tx) error {
		missing = ""
		for _, name := range want {
			if !slices.Contains(m.all, name) && !slices.Contains(m.queued, name) {
				missing = name
				return fs.ErrNotExist
			}
		}
		return nil
	})
	if missing != "" && errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s was acknowledged and is not seen by worker %d", missing, h.worker)
	}
}
