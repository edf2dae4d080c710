package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/foldlog/foldlog/internal/fsx"
)

// trouble is a way for calls to fail while the process lives on.
type trouble struct {
	name string
	err  error
	// done lets the call take effect all the same; short is what a write
	// still brings to the disk.
	done  bool
	short int
	// lasting makes every later call of the same kind fail too, until the
	// cause is gone.
	lasting bool
}

var troubles = []trouble{
	{name: "disk full", err: syscall.ENOSPC},
	{name: "disk full for a while", err: syscall.ENOSPC, lasting: true},
	{name: "short write", err: syscall.ENOSPC, short: 10},
	{name: "input/output error", err: syscall.EIO},
	{name: "input/output error for a while", err: syscall.EIO, lasting: true},
	{name: "done, then input/output error", err: syscall.EIO, done: true},
	{name: "not permitted", err: syscall.EACCES, lasting: true},
	{name: "gone stale", err: syscall.ESTALE, done: true, lasting: true},
}

// watch sees that no file is appended to or synced again after that failed once.
type watch struct {
	mu     sync.Mutex
	failed map[string]string // path: op
	broken []string
}

func (w *watch) see(c fsx.Call, fails bool) {
	if c.Op != "write" && c.Op != "sync" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	base := path.Base(c.Path)
	if !strings.HasPrefix(base, dataPrefix) && !strings.HasPrefix(base, ticketPrefix) {
		return
	}
	if op, ok := w.failed[c.Path]; ok {
		w.broken = append(w.broken, fmt.Sprintf("%s of %s after its %s had failed", c.Op, c.Path, op))
	}
	if fails {
		w.failed[c.Path] = c.Op
	}
}

// TestFailureOfEveryCall fails each call that changes the file system, in every
// way. The caller gets a clear answer, and once the cause is gone the next
// append works, with the same handle and with a new one.
func TestFailureOfEveryCall(t *testing.T) {
	for _, sc := range scenarios {
		for _, tb := range troubles {
			t.Run(sc.name+"/"+tb.name, func(t *testing.T) {
				t.Parallel()
				for _, order := range orders {
					for n := int64(1); failOnce(t, sc, tb, order.run, n) && !t.Failed(); n++ {
					}
				}
			})
		}
	}
}

// failOnce fails the n-th call and reports whether there was one.
func failOnce(t *testing.T, sc scenario, tb trouble, together func(a, b func()), n int64) bool {
	t.Helper()
	var failing string
	w := &watch{failed: map[string]string{}}
	var mu sync.Mutex
	tr := newTrap(newMem(t), func(k int64, c fsx.Call) fsx.Fate {
		mu.Lock()
		defer mu.Unlock()
		if k == n {
			failing = c.Op
		}
		fails := k == n || tb.lasting && k > n && c.Op == failing
		w.see(c, fails)
		if !fails {
			return fsx.Fate{}
		}
		return fsx.Fate{Err: tb.err, Done: tb.done, Short: tb.short}
	})
	tr.together = together
	var o outcome
	sc.run(t, tr, &o)
	mu.Lock()
	where := fmt.Sprintf("%s, call %d (%s)", tb.name, n, failing)
	mu.Unlock()
	tr.armed.Store(false)
	o.reopen(t, tr.mem)
	for _, broken := range w.broken {
		t.Error(broken)
	}
	if t.Failed() {
		t.Fatalf("%s: %s", sc.name, where)
	}
	return failing != ""
}

// TestSameHandleGoesOnAfterTrouble checks what a handle does whose append failed:
// the error says what happened, the data file is sealed where it was, and the
// next append works.
func TestSameHandleGoesOnAfterTrouble(t *testing.T) {
	for _, tb := range troubles {
		t.Run(tb.name, func(t *testing.T) {
			t.Parallel()
			for n := int64(1); goOnOnce(t, tb, n) && !t.Failed(); n++ {
			}
		})
	}
}

func goOnOnce(t *testing.T, tb trouble, n int64) bool {
	t.Helper()
	var failing fsx.Call
	var mu sync.Mutex
	watched := &watch{failed: map[string]string{}}
	tr := newTrap(newMem(t), func(k int64, c fsx.Call) fsx.Fate {
		mu.Lock()
		defer mu.Unlock()
		if k == n {
			failing = c
		}
		fails := k == n || tb.lasting && k > n && c.Op == failing.Op
		watched.see(c, fails)
		if !fails {
			return fsx.Fate{}
		}
		return fsx.Fate{Err: tb.err, Done: tb.done, Short: tb.short}
	})
	var o outcome
	seed(t, tr.mem, &o)
	m := new(ids)
	w, err := OpenWriter(t.Context(), memPath, memOptions(tr), m)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	tr.armed.Store(true)
	err = put(t.Context(), w, "troubled-1", "troubled-2")
	tr.armed.Store(false)
	mu.Lock()
	defer mu.Unlock()
	o.tell(err, false, "troubled-1", "troubled-2")
	if err != nil && !errors.Is(err, tb.err) {
		t.Errorf("the error does not name its cause: %v", err)
	}
	if got := readIDs(t, tr.mem, memPath); err != nil && len(got) > 3 {
		var uncertain *UncertainError
		if !errors.As(err, &uncertain) {
			t.Errorf("append failed plainly and is visible: %v, %v", got, err)
		}
	}
	if err := put(t.Context(), w, "next"); err != nil {
		t.Errorf("the next append: %v", err)
	}
	o.acked = append(o.acked, []string{"next"})
	o.check(t, readIDs(t, tr.mem, memPath))
	o.check(t, m.all)
	verifySound(t, tr.mem, memPath)
	for _, broken := range watched.broken {
		t.Error(broken)
	}
	if t.Failed() {
		t.Fatalf("call %d: %s %s: %v\n%s", n, failing.Op, failing.Path, err, listing(tr.mem, "/j"))
	}
	return failing.Op != ""
}

// TestLostAnswerOfPublishingIsNoFailure makes the head's rename take effect and
// answer with an error: that is success, unless the directory cannot be synced.
func TestLostAnswerOfPublishingIsNoFailure(t *testing.T) {
	for _, tt := range []struct {
		name     string
		failSync bool
	}{{"success", false}, {"uncertain where the directory cannot be synced", true}} {
		t.Run(tt.name, func(t *testing.T) {
			lost := false
			tr := newTrap(newMem(t), func(_ int64, c fsx.Call) fsx.Fate {
				switch {
				case c.Op == "rename" && c.Path == memPath:
					lost = true
					return fsx.Fate{Err: syscall.EIO, Done: true}
				case lost && tt.failSync && c.Op == "syncdir":
					return fsx.Fate{Err: syscall.EIO}
				}
				return fsx.Fate{}
			})
			var o outcome
			seed(t, tr.mem, &o)
			w, err := OpenWriter(t.Context(), memPath, memOptions(tr), new(ids))
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			tr.armed.Store(true)
			err = put(context.Background(), w, "answered-late")
			var uncertain *UncertainError
			switch {
			case !tt.failSync && err != nil:
				t.Errorf("got %v, want success", err)
			case tt.failSync && (!errors.As(err, &uncertain) || !uncertain.Visible || uncertain.First != 4 || uncertain.Last != 4):
				t.Errorf("got %#v, want operation 4 uncertain and visible", err)
			}
			tr.armed.Store(false)
			if got := readIDs(t, tr.mem, memPath); len(got) != 4 {
				t.Errorf("journal holds %v", got)
			}
		})
	}
}

// TestCreateWhoseAnswerIsLostIsNoFailure is the same for the first head.
func TestCreateWhoseAnswerIsLostIsNoFailure(t *testing.T) {
	tr := newTrap(newMem(t), func(_ int64, c fsx.Call) fsx.Fate {
		return fsx.Fate{Err: map[bool]error{true: syscall.EIO}[c.Op == "rename" && c.Path == memPath], Done: true}
	})
	tr.armed.Store(true)
	w, err := Create(t.Context(), memPath, memOptions(tr), new(ids))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	tr.armed.Store(false)
	mustPut(t, w, "one")
	if _, err := Create(t.Context(), memPath, memOptions(tr.mem), new(ids)); !errors.Is(err, ErrExist) || !errors.Is(err, fs.ErrExist) {
		t.Errorf("creating again: %v", err)
	}
}
