package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/foldlog/foldlog/internal/fsx"
	"github.com/foldlog/foldlog/internal/proctest"
)

// noSync is the operating system's file system without its syncs, for tests of
// what processes see of each other, thousands of times.
type noSync struct{ fsx.FS }

type noSyncFile struct{ fsx.File }

func (noSyncFile) Sync() error          { return nil }
func (noSync) SyncDir(dir string) error { return nil }

func (n noSync) OpenFile(name string, flag int, perm fs.FileMode) (fsx.File, error) {
	f, err := n.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return noSyncFile{f}, nil
}

// spin passes a short time without sleeping.
func spin(n int) {
	for range n {
		runtime.Gosched()
	}
}

// waitFor waits for what must happen sooner or later.
func waitFor(t testing.TB, happened func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); !happened(); {
		if time.Now().After(end) {
			t.Fatal("it did not happen within five minutes")
		}
		time.Sleep(time.Millisecond)
	}
}

// TestSoakRenameAgainstTakeOver lets a holder rename its ticket onto the head at
// the very moment at which another takes the lease over. Once the taker has
// swept the lease, a ticket that is not the head never becomes it, nor does the
// taker's own before its time.
func TestSoakRenameAgainstTakeOver(t *testing.T) {
	dir := t.TempDir()
	l := layout{fs: fsx.OS, head: filepath.Join(dir, "h"), parent: dir, data: filepath.Join(dir, "h.d")}
	if err := os.Mkdir(l.data, 0o777); err != nil {
		t.Fatal(err)
	}
	rack := newBatonRack(l)
	published, fenced := 0, 0
	end := time.Now().Add(proctest.Lasts(t, 2*time.Second))
	for try := 0; time.Now().Before(end) || (published == 0 || fenced == 0) && try < 100_000; try++ {
		holder := holdBaton(t, rack)
		ticket := filepath.Join(rack.path(holder), holder.ticketFile(0))
		text := fmt.Sprint("try ", try)
		if err := os.WriteFile(ticket, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		var renamed error
		var wg sync.WaitGroup
		var start atomic.Bool
		delay := rand.IntN(40)
		wg.Go(func() {
			for !start.Load() {
			}
			spin(delay)
			renamed = rawRename(ticket, l.head)
		})
		taker := baton{generation: holder.generation + 1, nonce: random64(), held: true}
		start.Store(true)
		spin(rand.IntN(20))
		moved, err := rack.move(holder, taker)
		if !moved || err != nil {
			t.Fatal(moved, err)
		}
		if err := rack.sweep(taker, nil); err != nil {
			t.Fatal(err)
		}
		seen, _ := os.ReadFile(l.head)
		own := filepath.Join(rack.path(taker), taker.ticketFile(0))
		if err := os.WriteFile(own, []byte("unpublished"), 0o666); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		last, _ := os.ReadFile(l.head)
		switch {
		case string(seen) != string(last):
			t.Fatalf("try %d: the head changed from %q to %q after the take-over", try, seen, last)
		case renamed == nil && string(last) != text:
			t.Fatalf("try %d: the rename succeeded and the head is %q", try, last)
		case renamed == nil:
			published++
		case errors.Is(renamed, fs.ErrNotExist):
			fenced++
		default:
			t.Fatal(renamed)
		}
	}
	t.Logf("published before the take-over: %d, fenced: %d", published, fenced)
	if published == 0 || fenced == 0 {
		t.Error("the race always ended the same way")
	}
}

// holdBaton takes the baton in whatever state it is.
func holdBaton(t *testing.T, rack batonRack) baton {
	t.Helper()
	b, _, err := rack.current()
	if err != nil {
		t.Fatal(err)
	}
	ours := baton{generation: b.generation + 1, nonce: random64(), held: true}
	if moved, err := rack.move(b, ours); !moved || err != nil {
		t.Fatal(moved, err)
	}
	return ours
}

// TestALateCallOfAFormerHolderFindsNothingOfTheNext names the files of two
// holders of one baton: a call that the first began by path and that the kernel
// finishes in the directory of the second must not meet a file of the same name.
func TestALateCallOfAFormerHolderFindsNothingOfTheNext(t *testing.T) {
	a, b := baton{5, 1, true}, baton{6, 2, true}
	for n := range uint64(3) {
		if a.ticketFile(n) == b.ticketFile(n) || a.ownerFile() == b.ownerFile() {
			t.Errorf("holders share the names %s, %s", a.ticketFile(n), a.ownerFile())
		}
	}
}

// TestSoakTakeOversUnderRunningWriters lets a thief take the lease from writers
// that are alive, again and again, while their renames are delayed.
func TestSoakTakeOversUnderRunningWriters(t *testing.T) {
	path := emptyJournal(t)
	fsys := noSync{fsx.OS}
	var o outcome
	var mu sync.Mutex
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var published atomic.Int64
	var wg sync.WaitGroup
	for i := range 3 {
		wg.Go(func() {
			slow := fsx.NewFault(fsys, func(c fsx.Call) fsx.Fate {
				if c.Op == "rename" && c.Path == path {
					spin(rand.IntN(30))
				}
				return fsx.Fate{}
			})
			w, err := OpenWriter(t.Context(), path, WriterOptions{FS: slow}, new(ids))
			if err != nil {
				t.Error(err)
				return
			}
			defer w.Close()
			for k := 0; ctx.Err() == nil; k++ {
				name := fmt.Sprintf("%d-%d", i, k)
				err := put(t.Context(), w, name)
				mu.Lock()
				o.tell(err, false, name)
				mu.Unlock()
				if err != nil {
					t.Error(err)
				}
				published.Add(1)
			}
		})
	}
	end := time.Now().Add(proctest.Lasts(t, 4*time.Second))
	stolen, moved := steal(t, path, fsys, func(stolen int) bool {
		// Whatever the machine lets the writers do, they are given time for something.
		waitFor(t, func() bool { return t.Failed() || int64(stolen) <= 20*(published.Load()+1) })
		return t.Failed() || time.Now().After(end) && stolen >= 10 && published.Load() >= 10
	})
	cancel()
	wg.Wait()
	got := readIDs(t, fsx.OS, path)
	o.check(t, got)
	verifySound(t, fsx.OS, path)
	t.Logf("%d operations, %d take-overs, of which %d while the head was moving", len(got), stolen, moved)
}

// steal takes the lease from whoever holds it and sees that nobody publishes
// while it is stolen. Moved counts the thefts just after which the head was not
// what it had been just before. Enough hears how often, and ends it.
func steal(t *testing.T, path string, fsys fsx.FS, enough func(stolen int) bool) (stolen, moved int) {
	l, err := newLayout(fsys, path)
	if err != nil {
		t.Fatal(err)
	}
	k := newLeaseKeeper(l, 99, DefaultTerm, nil)
	for !enough(stolen) {
		time.Sleep(rand.N(time.Millisecond))
		b, strays, err := k.rack.current()
		if err != nil {
			t.Fatal(err)
		}
		if !b.held {
			continue
		}
		before, _ := l.readHead()
		mine := baton{generation: b.generation + 1, nonce: random64(), held: true}
		if ok, err := k.rack.move(b, mine); !ok || err != nil {
			continue
		}
		lease, err := k.take(mine, strays)
		if err != nil || lease == nil {
			t.Fatal(lease, err)
		}
		stolen++
		head, err := l.readHead()
		if err != nil {
			t.Fatal(err)
		}
		spin(rand.IntN(100))
		if after, err := l.readHead(); err != nil || !after.head.same(head.head) {
			t.Errorf("somebody published during a stolen lease: %+v, then %+v, %v", head.head, after.head, err)
		}
		if !before.head.same(head.head) {
			moved++
		}
		lease.release()
	}
	return stolen, moved
}
