package journal

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/foldlog/foldlog/internal/fsx"
)

// trap crashes or fails a file system at one call after it was armed.
type trap struct {
	*fsx.Fault
	mem   *fsx.Mem
	armed atomic.Bool
	calls atomic.Int64
	// together is in which order writers write what they write at once.
	together func(a, b func())
}

// orders are the orders in which an extent and the head that names it can be
// written: both at once is anything between the two.
var orders = []struct {
	name string
	run  func(a, b func())
}{
	{"extent first", func(a, b func()) { a(); b() }},
	{"head first", func(a, b func()) { b(); a() }},
	{"at once", atOnce},
}

func newTrap(mem *fsx.Mem, fate func(n int64, c fsx.Call) fsx.Fate) *trap {
	tr := &trap{mem: mem}
	tr.Fault = fsx.NewFault(mem, func(c fsx.Call) fsx.Fate {
		if !tr.armed.Load() || !c.Mutates() {
			return fsx.Fate{}
		}
		return fate(tr.calls.Add(1), c)
	})
	return tr
}

// scenario is something a writer does. It arms the trap when it begins with
// what it is about, and reports what it was told.
type scenario struct {
	name string
	run  func(t *testing.T, tr *trap, o *outcome)
}

var scenarios = []scenario{
	{"create", runCreate},
	{"first append", runFirstAppend},
	{"later append", runLaterAppend},
	{"take-over", runTakeOver},
	{"release and hand-over", runHandOver},
	{"migrate", runMigrate},
}

func (tr *trap) crashed() bool {
	_, err := tr.Stat("/")
	return errors.Is(err, fsx.ErrCrashed)
}

func runCreate(t *testing.T, tr *trap, o *outcome) {
	tr.armed.Store(true)
	w, err := Create(t.Context(), memPath, memOptions(tr), new(ids))
	if err == nil {
		o.created = true
		w.Close()
	}
}

// seed makes a journal that holds what was acknowledged before the faults.
func seed(t *testing.T, fsys fsx.FS, o *outcome) {
	t.Helper()
	w, err := Create(t.Context(), memPath, memOptions(fsys), new(ids))
	if err != nil {
		t.Fatal(err)
	}
	mustPut(t, w, "old-1")
	mustPut(t, w, "old-2", "old-3")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	o.created = true
	o.acked = [][]string{{"old-1"}, {"old-2", "old-3"}}
}

// tryPut appends and notes what was told.
func tryPut(w *Writer, tr *trap, o *outcome, names ...string) {
	err := put(context.Background(), w, names...)
	o.tell(err, tr.crashed(), names...)
}

func runFirstAppend(t *testing.T, tr *trap, o *outcome) {
	seed(t, tr.mem, o)
	tr.armed.Store(true)
	w, err := OpenWriter(t.Context(), memPath, memOptions(tr), new(ids))
	if err != nil {
		return
	}
	defer w.Close()
	tryPut(w, tr, o, "first-1", "first-2")
}

func runLaterAppend(t *testing.T, tr *trap, o *outcome) {
	seed(t, tr.mem, o)
	w, err := OpenWriter(t.Context(), memPath, memOptions(tr), new(ids))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	mustPut(t, w, "first")
	o.acked = append(o.acked, []string{"first"})
	tr.armed.Store(true)
	tryPut(w, tr, o, "later-1", "later-2")
	tryPut(w, tr, o, "later-3")
}

// runTakeOver finds a lease whose holder died between ticket and rename.
func runTakeOver(t *testing.T, tr *trap, o *outcome) {
	seed(t, tr.mem, o)
	holder := newTrap(tr.mem, func(_ int64, c fsx.Call) fsx.Fate {
		return fsx.Fate{Crash: c.Op == "rename" && c.Path == memPath}
	})
	dead, err := OpenWriter(t.Context(), memPath, memOptions(holder), new(ids))
	if err != nil {
		t.Fatal(err)
	}
	holder.armed.Store(true)
	tryPut(dead, holder, o, "dead-1", "dead-2")
	dead.Close()
	runFirstAppendTo(t, tr, o)
}

func runFirstAppendTo(t *testing.T, tr *trap, o *outcome) {
	tr.armed.Store(true)
	w, err := OpenWriter(t.Context(), memPath, memOptions(tr), new(ids))
	if err != nil {
		return
	}
	defer w.Close()
	tryPut(w, tr, o, "taker-1", "taker-2")
}

// runHandOver crashes one of two writers that pass the lease to and fro; the
// other must go on.
func runHandOver(t *testing.T, tr *trap, o *outcome) {
	seed(t, tr.mem, o)
	a, err := OpenWriter(t.Context(), memPath, memOptions(tr), new(ids))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := OpenWriter(t.Context(), memPath, memOptions(tr.mem), new(ids))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	mustPut(t, a, "held")
	o.acked = append(o.acked, []string{"held"})
	tr.armed.Store(true)
	var wg sync.WaitGroup
	var ofB outcome
	wg.Go(func() {
		for i := range 2 {
			name := fmt.Sprintf("b-%d", i)
			err := put(context.Background(), b, name)
			if err != nil {
				t.Errorf("the other writer: %v", err)
			}
			ofB.tell(err, false, name)
		}
	})
	tryPut(a, tr, o, "a-1", "a-2")
	tryPut(a, tr, o, "a-3")
	wg.Wait()
	o.acked = append(o.acked, ofB.acked...)
}

func runMigrate(t *testing.T, tr *trap, o *outcome) {
	writeLegacy(t, tr.mem, memPath, 5, "", "old-1", "old-2", "old-3")
	o.created = true
	o.acked = [][]string{{"old-1"}, {"old-2"}, {"old-3"}}
	tr.armed.Store(true)
	w, err := OpenWriter(t.Context(), memPath, memOptions(tr), new(ids))
	if err != nil {
		return
	}
	defer w.Close()
	tryPut(w, tr, o, "new-1", "new-2")
}

// writeLegacy writes a durable single-file journal of an older format, with a
// torn end.
func writeLegacy(t testing.TB, fsys fsx.FS, path string, format int, torn string, names ...string) {
	t.Helper()
	b := fmt.Appendf(nil, `{"record":"header","format":%d,"atune":"0.9.0","created_at_millis":5,"created_by":3,"site":"lab"}`+"\n", format)
	for i, name := range names {
		b = appendRecord(b, uint64(i)+1, 3, 5, idOp(name))
	}
	b = append(b, torn...)
	f, err := fsys.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(fsx.WriteFull(f, b, 0), f.Sync(), f.Close(), fsys.SyncDir("/j"))
	if err != nil {
		t.Fatal(err)
	}
}

// TestCrashAtEveryCall kills the process, or the power, at each call that
// changes the file system.
func TestCrashAtEveryCall(t *testing.T) {
	for _, sc := range scenarios {
		for _, order := range orders {
			t.Run(sc.name+"/"+order.name, func(t *testing.T) {
				t.Parallel()
				points := 0
				for n := int64(1); crashOnce(t, sc, order.run, n) && !t.Failed(); n++ {
					points++
				}
				if points < 5 {
					t.Errorf("only %d crash points", points)
				}
				t.Logf("%d crash points", points)
			})
		}
	}
}

const lossSeeds = 8

// crashOnce crashes at the n-th call and reports whether there was one.
func crashOnce(t *testing.T, sc scenario, together func(a, b func()), n int64) bool {
	where := "nowhere"
	tr := newTrap(newMem(t), func(k int64, c fsx.Call) fsx.Fate {
		if k == n {
			where = fmt.Sprintf("call %d: %s %s", k, c.Op, c.Path)
		}
		return fsx.Fate{Crash: k == n}
	})
	tr.together = together
	var o outcome
	sc.run(t, tr, &o)
	crashed := tr.crashed()
	after := map[string]*fsx.Mem{"process": tr.mem.Clone(), "power": tr.mem.PowerLoss(nil)}
	for i := range lossSeeds {
		after[fmt.Sprintf("power, some kept, seed %d", i)] = tr.mem.PowerLoss(rand.New(rand.NewPCG(uint64(n), uint64(i))))
	}
	for flavour, mem := range after {
		o.reopen(t, mem)
		if t.Failed() {
			t.Fatalf("%s crashed at %s", flavour, where)
		}
	}
	return crashed
}
