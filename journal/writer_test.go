package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foldlog/foldlog/internal/fsx"
)

func TestCallersOfOneWriterShareExtents(t *testing.T) {
	synctest.Test(t, callersShareExtents)
}

// callersShareExtents has a disk that takes a moment, in which every caller comes.
func callersShareExtents(t *testing.T) {
	m := newMem(t)
	disk := fsx.NewFault(m, func(c fsx.Call) fsx.Fate {
		if c.Op == "sync" {
			time.Sleep(time.Millisecond)
		}
		return fsx.Fate{}
	})
	w, err := Create(t.Context(), memPath, memOptions(disk), new(ids))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	var o outcome
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			for k := range 20 {
				names := []string{fmt.Sprintf("%d-%d-a", i, k), fmt.Sprintf("%d-%d-b", i, k)}
				err := put(t.Context(), w, names...)
				mu.Lock()
				o.tell(err, false, names...)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	o.check(t, readIDs(t, m, memPath))
	info, err := Inspect(memPath, ReaderOptions{FS: m})
	if err != nil || info.Head.Ops != 32*20*2 || info.Extents > 2*20 {
		t.Errorf("%+v, %v", info, err)
	}
}

func TestTransactionThatFailsLeavesNothingAndHarmsNobody(t *testing.T) {
	m := newMem(t)
	w, err := Create(t.Context(), memPath, memOptions(m), new(ids))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	no := errors.New("no")
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if i%2 == 0 {
				if err := put(t.Context(), w, fmt.Sprint("good-", i)); err != nil {
					t.Error(err)
				}
				return
			}
			err := w.Do(t.Context(), func(tx *Tx) error {
				tx.Append(idOp("bad"))
				return no
			})
			if !errors.Is(err, no) {
				t.Errorf("got %v", err)
			}
		})
	}
	wg.Wait()
	if got := readIDs(t, m, memPath); len(got) != 10 || slices.Contains(got, "bad") {
		t.Errorf("journal holds %v", got)
	}
}

// TestRefusedAppendIsNotPublishedThoughItsCallerSaysSo keeps to the refusal where
// the transaction drops the error.
func TestRefusedAppendIsNotPublishedThoughItsCallerSaysSo(t *testing.T) {
	m := newMem(t)
	opts := memOptions(m)
	opts.MaxRecordBytes = 200
	w, err := Create(t.Context(), memPath, opts, new(ids))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	err = w.Do(t.Context(), func(tx *Tx) error {
		tx.Append(idOp(strings.Repeat("x", 200)))
		tx.Append(idOp("small"))
		return nil
	})
	var tooLarge *TooLargeError
	if !errors.As(err, &tooLarge) {
		t.Errorf("got %v", err)
	}
	if got := readIDs(t, m, memPath); len(got) != 0 {
		t.Errorf("journal holds %v", got)
	}
}

func TestGroupThatFillsTheExtentGoesOnInTheNext(t *testing.T) {
	m := newMem(t)
	opts := memOptions(m)
	opts.MaxExtentBytes = 1000
	w, err := Create(t.Context(), memPath, opts, new(ids))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			if err := put(t.Context(), w, fmt.Sprint(i, "a"), fmt.Sprint(i, "b"), fmt.Sprint(i, "c")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := readIDs(t, m, memPath); len(got) != 192 {
		t.Errorf("journal holds %d operations", len(got))
	}
	verifySound(t, m, memPath)
}

// TestFailedGroupFailsAllItsMembers fails the sync of an extent that several
// callers share.
func TestFailedGroupFailsAllItsMembers(t *testing.T) {
	var fail atomic.Bool
	tr := newTrap(newMem(t), func(_ int64, c fsx.Call) fsx.Fate {
		if fail.Load() && c.Op == "sync" {
			return fsx.Fate{Err: syscall.EIO}
		}
		return fsx.Fate{}
	})
	tr.armed.Store(true)
	m := new(ids)
	w, err := Create(t.Context(), memPath, memOptions(tr), m)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	mustPut(t, w, "before")
	fail.Store(true)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			if err := put(t.Context(), w, fmt.Sprint("failed-", i)); !errors.Is(err, syscall.EIO) {
				t.Errorf("got %v", err)
			}
		})
	}
	wg.Wait()
	fail.Store(false)
	mustPut(t, w, "after")
	want := []string{"before", "after"}
	if got := readIDs(t, tr.mem, memPath); !slices.Equal(got, want) || !slices.Equal(m.all, want) {
		t.Errorf("journal holds %v, the machine %v", got, m.all)
	}
}

func TestCallThatIsCancelledBeforeItBeganIsNotPublished(t *testing.T) {
	m := newMem(t)
	var o outcome
	seed(t, m, &o)
	l, err := newLayout(m, memPath)
	if err != nil {
		t.Fatal(err)
	}
	held, err := newLeaseKeeper(l, 1, MaxTerm, nil).acquire(once)
	if err != nil {
		t.Fatal(err)
	}
	w, err := OpenWriter(t.Context(), memPath, memOptions(m), new(ids))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := put(ctx, w, "cancelled"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	held.release()
	mustPut(t, w, "next")
	if got := readIDs(t, m, memPath); !slices.Equal(got, []string{"old-1", "old-2", "old-3", "next"}) {
		t.Errorf("journal holds %v", got)
	}
}

func TestClosedHandlesSaySo(t *testing.T) {
	m := newMem(t)
	w, err := Create(t.Context(), memPath, memOptions(m), new(ids))
	if err != nil {
		t.Fatal(err)
	}
	r, err := OpenReader(memPath, ReaderOptions{FS: m})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Close(), w.Close(), r.Close()); err != nil {
		t.Error(err)
	}
	for name, err := range map[string]error{
		"append": put(t.Context(), w, "x"), "refresh": w.Refresh(t.Context()), "read": r.Refresh(new(ids)),
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCloseWaitsForWhatIsUnderWay(t *testing.T) {
	m := newMem(t)
	w, err := Create(t.Context(), memPath, memOptions(m), new(ids))
	if err != nil {
		t.Fatal(err)
	}
	var o outcome
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			name := fmt.Sprint(i)
			err := put(t.Context(), w, name)
			if err != nil && !errors.Is(err, ErrClosed) {
				t.Error(err)
			}
			mu.Lock()
			o.tell(err, false, name)
			mu.Unlock()
		})
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	wg.Wait()
	o.check(t, readIDs(t, m, memPath))
}

// TestReadersPollingCauseNoWriterError lets readers poll as fast as they can.
func TestReadersPollingCauseNoWriterError(t *testing.T) {
	m := newMem(t)
	var o outcome
	seed(t, m, &o)
	ctx, cancel := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for ctx.Err() == nil {
				r, err := OpenReader(memPath, ReaderOptions{FS: m})
				if err != nil {
					t.Error(err)
					return
				}
				if err := r.Refresh(new(ids)); err != nil {
					t.Error(err)
				}
				r.Close()
			}
		})
	}
	putFromMany(t, memPath, func(int) WriterOptions { return WriterOptions{FS: m} }, 8, 20)
	cancel()
	readers.Wait()
	if got := readIDs(t, m, memPath); len(got) != 163 {
		t.Errorf("journal holds %d operations", len(got))
	}
}

// TestRefreshesTakeNoOperationAlong lets operations come in the moment in which
// refreshes alone are served: they are not to be answered with those.
func TestRefreshesTakeNoOperationAlong(t *testing.T) {
	m := newMem(t)
	w, err := Create(t.Context(), memPath, memOptions(m), new(ids))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	ctx, cancel := context.WithCancel(t.Context())
	var refreshing, appending sync.WaitGroup
	for range 4 {
		refreshing.Go(func() {
			for ctx.Err() == nil {
				if err := w.submit(t.Context(), nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	var o outcome
	var mu sync.Mutex
	for i := range 4 {
		appending.Go(func() {
			for k := range 1000 {
				name := fmt.Sprintf("%d-%d", i, k)
				err := put(t.Context(), w, name)
				mu.Lock()
				o.tell(err, false, name)
				mu.Unlock()
			}
		})
	}
	appending.Wait()
	cancel()
	refreshing.Wait()
	o.check(t, readIDs(t, m, memPath))
}

func TestOptionsThatMakeNoSenseAreRefused(t *testing.T) {
	for name, o := range map[string]WriterOptions{
		"worker":          {Worker: new(uint64(1 << 53))},
		"short term":      {Term: time.Millisecond},
		"long term":       {Term: time.Hour},
		"negative cap":    {MaxRecordBytes: -1},
		"unreadable cap":  {MaxExtentBytes: HardLimit + 1},
		"data file names": {DataFile: func(uint64, uint64) string { return "../x" }},
		"other names":     {DataFile: func(uint64, uint64) string { return "x" }},
	} {
		m := newMem(t)
		o.FS = m
		w, err := Create(t.Context(), memPath, o, new(ids))
		if err == nil {
			err = put(t.Context(), w, "x")
			w.Close()
		}
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
