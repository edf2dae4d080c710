package journal

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foldlog/foldlog/internal/fsx"
)

// testRack is a lease on the operating system's file system.
func testRack(t *testing.T) (layout, batonRack) {
	t.Helper()
	dir := t.TempDir()
	l := layout{fs: fsx.OS, head: filepath.Join(dir, "h"), parent: dir, data: filepath.Join(dir, "h.d")}
	if err := os.Mkdir(l.data, 0o777); err != nil {
		t.Fatal(err)
	}
	return l, newBatonRack(l)
}

// here is an owner on this machine.
func here() Owner {
	o := self()
	o.TermMillis = 1000
	return o
}

// noPause tries on without a break.
func noPause(time.Duration) bool { return true }

// once looks one time.
func once(time.Duration) bool { return false }

func TestLeaseIsMadeOnceWhateverIsLeftOfIt(t *testing.T) {
	for _, tt := range []struct {
		name string
		left func(rack batonRack) error
	}{
		{"nothing", func(rack batonRack) error { return nil }},
		{"an empty directory", func(rack batonRack) error { return os.Mkdir(rack.dir, 0o777) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, rack := testRack(t)
			if err := tt.left(rack); err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					if b, _, err := rack.current(); err != nil || b.String() != "free-0000000000000001" {
						t.Errorf("%v, %v", b, err)
					}
				})
			}
			wg.Wait()
			if entries, err := os.ReadDir(rack.l.data); err != nil || len(entries) != 1 {
				t.Errorf("left behind: %v, %v", entries, err)
			}
		})
	}
}

func TestLeaseAmongJunkIsRefusedByName(t *testing.T) {
	_, rack := testRack(t)
	if err := errors.Join(os.Mkdir(rack.dir, 0o777), os.WriteFile(filepath.Join(rack.dir, "junk"), nil, 0o666)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := rack.current(); err == nil || !strings.Contains(err.Error(), "no lease among its 1 entries") {
		t.Errorf("got %v", err)
	}
}

// TestCopiedLeaseIsClearedBeforeTheHeadIsRead gives the rack a second baton, as a
// careless restore does: who takes the newer one leaves no way to publish by the
// older.
func TestCopiedLeaseIsClearedBeforeTheHeadIsRead(t *testing.T) {
	l, rack := testRack(t)
	stray := baton{generation: 3, nonce: 5, held: true}
	newer := baton{generation: 9}
	for _, b := range []baton{stray, newer} {
		if err := os.MkdirAll(rack.path(b), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	ticket := filepath.Join(rack.path(stray), stray.ticketFile(0))
	if err := os.WriteFile(ticket, []byte("old"), 0o666); err != nil {
		t.Fatal(err)
	}
	lease, err := newLeaseKeeper(l, 1, DefaultTerm, nil).acquire(once)
	if err != nil {
		t.Fatal(err)
	}
	defer lease.release()
	if lease.baton.generation != 10 {
		t.Errorf("took %v", lease.baton)
	}
	if err := os.Rename(ticket, l.head); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("publishing by the stray: %v", err)
	}
	if entries, _ := os.ReadDir(rack.dir); len(entries) != 1 {
		t.Errorf("the rack holds %v", entries)
	}
}

func TestLeaseOfALivingHolderIsNotTakenWithinItsTerm(t *testing.T) {
	synctest.Test(t, livingHolderKeepsItsLease)
}

func livingHolderKeepsItsLease(t *testing.T) {
	l, _ := testRack(t)
	const term = 2 * time.Second
	holder, err := newLeaseKeeper(l, 1, term, nil).acquire(once)
	if err != nil {
		t.Fatal(err)
	}
	looks := 0
	other := newLeaseKeeper(l, 2, term, func(o Owner) { t.Errorf("took it from %v", o) })
	_, err = other.acquire(func(d time.Duration) bool {
		time.Sleep(term / 10)
		looks++
		return looks < 30 // three terms, through which it is renewed
	})
	if !errors.Is(err, errGaveUp) {
		t.Fatalf("got %v", err)
	}
	holder.release()
	next, err := other.acquire(noPause)
	if err != nil {
		t.Fatal(err)
	}
	next.release()
}

// silent is a holder that took the lease and is never heard of again, on a
// machine that the kernel here knows nothing of.
func silent(t *testing.T, l layout, o Owner) baton {
	t.Helper()
	rack := newBatonRack(l)
	b := holdBaton(t, rack)
	text, err := o.encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(rack.path(b), b.ownerFile()), text, 0o666); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestSilentHolderIsOvertakenAfterItsTermAndNamed(t *testing.T) {
	l, _ := testRack(t)
	silent(t, l, Owner{Host: "elsewhere", PID: 4711, Worker: 12, TermMillis: 100})
	var who Owner
	began := time.Now()
	lease, err := newLeaseKeeper(l, 1, MaxTerm, func(o Owner) { who = o }).acquire(func(d time.Duration) bool {
		time.Sleep(d)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	defer lease.release()
	if got := who.String(); got != "worker 12 (process 4711 on elsewhere)" {
		t.Errorf("took it from %q", got)
	}
	if waited := time.Since(began); waited < 100*time.Millisecond {
		t.Errorf("took it after %v, before the term was over", waited)
	}
}

// TestWaiterOfAnotherMachineKeepsItsPlace puts a waiter into the queue whose
// kernel lock is free here, as it is where locks do not reach other machines.
func TestWaiterOfAnotherMachineKeepsItsPlace(t *testing.T) {
	l, _ := testRack(t)
	q := newWaitQueue(l)
	w, lock, err := q.join(77, Owner{Host: "elsewhere", PID: 1, TermMillis: 1000})
	if err != nil {
		t.Fatal(err)
	}
	lock.Close()
	if got, ok, err := q.next(); err != nil || !ok || got != w {
		t.Errorf("next is %v, %v, %v", got, ok, err)
	}
}

func TestDeadWaitersAreLeftOut(t *testing.T) {
	l, _ := testRack(t)
	q := newWaitQueue(l)
	_, dead, err := q.join(1, here())
	if err != nil {
		t.Fatal(err)
	}
	living, lock, err := q.join(2, here())
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	dead.Close()
	if got, ok, err := q.next(); err != nil || !ok || got != living {
		t.Errorf("next is %v, %v, %v", got, ok, err)
	}
	if all, err := q.list(); err != nil || len(all) != 1 {
		t.Errorf("the queue holds %v, %v", all, err)
	}
}

func TestQueueIsFirstComeFirstServed(t *testing.T) {
	l, _ := testRack(t)
	q := newWaitQueue(l)
	for nonce := uint64(9); nonce > 0; nonce-- {
		w, lock, err := q.join(nonce, here())
		if err != nil {
			t.Fatal(err)
		}
		defer lock.Close()
		if at, err := q.position(w); err != nil || at != int(9-nonce) {
			t.Errorf("waiter %d is at %d, %v", nonce, at, err)
		}
	}
}

// TestLeaseHandedToWhoDoesNotWaitAnyMoreIsLaidDown lets the waiter leave between
// the holder's look at the queue and its hand-over.
func TestLeaseHandedToWhoDoesNotWaitAnyMoreIsLaidDown(t *testing.T) {
	l, rack := testRack(t)
	k := newLeaseKeeper(l, 1, DefaultTerm, nil)
	b := holdBaton(t, rack)
	gone := waiter{number: 1, nonce: 42}
	handed := baton{generation: b.generation + 1, nonce: gone.nonce, held: true}
	if ok, err := rack.move(b, handed); !ok || err != nil {
		t.Fatal(ok, err)
	}
	k.handedOver(handed, gone)
	if now, _, err := rack.current(); err != nil || now.held {
		t.Errorf("the lease is %v, %v", now, err)
	}
}

// TestHandOverInTheLastMomentIsNoTakeOver lets the holder hand the lease over
// after the waiter has found it dead.
func TestHandOverInTheLastMomentIsNoTakeOver(t *testing.T) {
	_, rack := testRack(t)
	b := holdBaton(t, rack)
	mine := baton{generation: b.generation + 1, nonce: 42, held: true}
	if ok, err := rack.move(b, mine); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if moved, ours, err := rack.rename(b, mine); !moved || ours || err != nil {
		t.Errorf("moved %t, by us %t, %v; want a baton that was moved by the holder", moved, ours, err)
	}
}

func TestWaiterThatGivesUpPassesTheLeaseOn(t *testing.T) {
	l, rack := testRack(t)
	holder, err := newLeaseKeeper(l, 1, DefaultTerm, nil).acquire(once)
	if err != nil {
		t.Fatal(err)
	}
	looks := 0
	_, err = newLeaseKeeper(l, 2, DefaultTerm, nil).acquire(func(time.Duration) bool {
		if looks++; looks == 3 {
			holder.release() // hands it to the one that waits
			return false
		}
		return true
	})
	if !errors.Is(err, errGaveUp) {
		t.Errorf("got %v", err)
	}
	if now, _, err := rack.current(); err != nil || now.held {
		t.Errorf("the lease is %v, %v", now, err)
	}
	if all, err := newWaitQueue(l).list(); err != nil || len(all) != 0 {
		t.Errorf("the queue holds %v, %v", all, err)
	}
}

// TestFileSystemsWithoutLinksOrLocksWork runs writers that fall silent where the
// kernel cannot tell that they died.
func TestFileSystemsWithoutLinksOrLocksWork(t *testing.T) {
	m := newMem(t)
	m.NoLinks, m.NoLocks = true, true
	var o outcome
	runTakeOver(t, newTrap(m, func(int64, fsx.Call) fsx.Fate { return fsx.Fate{} }), &o)
	if len(o.acked) != 3 {
		t.Errorf("acknowledged: %v", o.acked)
	}
	o.reopen(t, m)
	putFromMany(t, memPath, func(int) WriterOptions { return memOptions(m) }, 4, 20)
	if got := readIDs(t, m, memPath); len(got) != 3+2+2+80 && len(got) != 3+2+2+2+80 {
		t.Errorf("journal holds %d operations: %v", len(got), got)
	}
}

// TestWrongWallClocksHarmNothing lets writers whose clocks are ten minutes off,
// or step backwards, pass the lease to and fro.
func TestWrongWallClocksHarmNothing(t *testing.T) {
	m := newMem(t)
	var o outcome
	seed(t, m, &o)
	real := time.Now()
	clocks := []func(k int) time.Time{
		func(k int) time.Time { return real.Add(10 * time.Minute) },
		func(k int) time.Time { return real.Add(-10 * time.Minute) },
		func(k int) time.Time { return real.Add(-time.Duration(k) * time.Hour) },
		func(k int) time.Time { return time.Unix(-1, 0) },
	}
	putFromMany(t, memPath, func(i int) WriterOptions {
		opts := memOptions(m)
		opts.Term = MaxTerm // in which every living writer does something, however busy the machine
		calls := 0
		opts.Clock = func() time.Time { calls++; return clocks[i](calls) }
		opts.OnTakeover = func(o Owner) { t.Errorf("took the lease from %v, which was alive", o) }
		return opts
	}, len(clocks), 25)
	got := readIDs(t, m, memPath)
	slices.Sort(got)
	if n := len(slices.Compact(got)); n != 103 {
		t.Errorf("journal holds %d operations", n)
	}
	verifySound(t, m, memPath)
}
