//go:build unix

package journal

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/foldlog/foldlog/internal/fsx"
	"github.com/foldlog/foldlog/internal/proctest"
	"github.com/foldlog/foldlog/internal/serde"
)

// TestSoakKilledWriters kills writers at random moments, round after round.
// What they were told is durable stays, and the next round goes on at once.
func TestSoakKilledWriters(t *testing.T) {
	path := emptyJournal(t)
	var o outcome
	end := time.Now().Add(proctest.Lasts(t, 6*time.Second))
	rounds := 0
	for ; time.Now().Before(end) && !t.Failed(); rounds++ {
		var names []string
		var all []*child
		for i := range 4 {
			names = append(names, fmt.Sprintf("r%d.%d", rounds, i))
			all = append(all, start(t, "appender", path, names[i], "2s", "0s"))
		}
		waitFor(t, func() bool { return all[0].count() > 0 })
		for _, i := range rand.Perm(len(all)) {
			time.Sleep(rand.N(30 * time.Millisecond))
			all[i].kill()
		}
		for i, c := range all {
			o.acked = append(o.acked, c.transactions()...)
			o.unknown = append(o.unknown, c.next(names[i]))
		}
		o.check(t, readIDs(t, fsx.OS, path))
	}
	verifySound(t, fsx.OS, path)
	t.Logf("%d rounds, %d transactions acknowledged", rounds, len(o.acked))
}

// TestStoppedHolderIsFenced stops a writer in each phase of an append for longer
// than its lease. Another takes over and publishes. What the stopped one had
// written stays unpublished; it publishes its operation again, once.
func TestStoppedHolderIsFenced(t *testing.T) {
	for _, phase := range []struct {
		name, op, path string
		n              int
		visible        bool // the operation is published before the stop
	}{
		{"before writing", "create", ".d/data-", 1, false},
		{"before syncing data", "sync", ".d/data-", 1, false},
		{"before creating the ticket", "create", "/" + ticketPrefix, 1, false},
		{"before syncing the ticket", "sync", "/" + ticketPrefix, 1, false},
		{"before the rename", "rename", "/s.atj$", 1, false},
		{"after the rename", "syncdir", "/parent$", 2, true},
		{"before laying the lease down", "rename", "/free-", 1, true},
	} {
		t.Run(phase.name, func(t *testing.T) {
			t.Parallel()
			path := emptyJournal(t)
			holder := start(t, "stopper", path, phase.op, phase.path, fmt.Sprint(phase.n))
			for line := range holder.lines {
				if line == "stopping" {
					break
				}
			}
			want := []string{"taker-1", "taker-2"}
			if phase.visible {
				want = slices.Insert(want, 0, "stopped")
			}
			w := takeFrom(t, path, holder.cmd.Process.Pid)
			defer w.Close()
			mustPut(t, w, "taker-2")
			if got := readIDs(t, fsx.OS, path); !slices.Equal(got, want) {
				t.Errorf("while stopped: %v", got)
			}
			if err := holder.goOn(); err != nil {
				t.Error(err)
			}
			if !phase.visible {
				want = append(want, "stopped")
			}
			if got := readIDs(t, fsx.OS, path); !slices.Equal(got, want) {
				t.Errorf("after it went on: %v", got)
			}
			verifySound(t, fsx.OS, path)
		})
	}
}

// takeFrom appends with a writer that has to take the lease from a process over,
// and hears so.
func takeFrom(t *testing.T, path string, pid int) *Writer {
	t.Helper()
	var who Owner
	w, err := OpenWriter(t.Context(), path, WriterOptions{OnTakeover: func(o Owner) { who = o }}, new(ids))
	if err != nil {
		t.Fatal(err)
	}
	mustPut(t, w, "taker-1")
	if who.PID != pid || !strings.Contains(who.String(), fmt.Sprint(pid)) {
		t.Errorf("took the lease over from %q, want process %d", who, pid)
	}
	return w
}

// TestSoakManyProcesses lets fifty processes append for a while, with wall
// clocks that are wrong and step.
func TestSoakManyProcesses(t *testing.T) {
	path := emptyJournal(t)
	n := 50
	if testing.Short() {
		n = 12
	}
	var all []*child
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("p%d", i))
		skew := []string{"0s", "10m", "-10m"}[i%3]
		all = append(all, start(t, "appender", path, names[i], "2s", skew))
	}
	for _, c := range all {
		waitFor(t, func() bool { return c.count() > 0 })
	}
	var before []int
	for _, c := range all {
		before = append(before, c.count())
	}
	time.Sleep(proctest.Lasts(t, 8*time.Second))
	for i, c := range all { // a disk that stalls is slow for all, but nobody starves
		waitFor(t, func() bool { return c.count() > before[i] })
	}
	low, high, total := 1<<30, 0, 0
	for i, c := range all {
		n := c.count() - before[i]
		low, high, total = min(low, n), max(high, n), total+n
	}
	for _, c := range all {
		c.stdin.Close()
	}
	var o outcome
	for _, c := range all {
		if err := c.wait(); err != nil {
			t.Error(err)
		}
		o.acked = append(o.acked, c.transactions()...)
	}
	t.Logf("%d processes: %d transactions, %d to %d each", n, total, low, high)
	o.check(t, readIDs(t, fsx.OS, path))
	checkHolders(t, path)
	verifySound(t, fsx.OS, path)
}

// checkHolders checks by what the operations say of their leases that there was
// one holder at a time.
func checkHolders(t *testing.T, path string) {
	t.Helper()
	r, err := OpenReader(path, ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	last, holder := uint64(0), uint64(0)
	check := func(rec *Record) error {
		s := serde.NewScanner(rec.Op)
		generation := uint64(0)
		for s.Object(); s.NextKey(); {
			if string(s.Key()) == "generation" {
				generation = s.Uint64()
			} else {
				s.Skip()
			}
		}
		if generation < last || generation == last && rec.Worker != holder {
			t.Errorf("operation %d was written under lease %d of worker %d after lease %d of worker %d", rec.Seq, generation, rec.Worker, last, holder)
		}
		last, holder = generation, rec.Worker
		return nil
	}
	if err := r.Refresh(applyFunc(check)); err != nil {
		t.Fatal(err)
	}
	t.Logf("the lease changed hands up to generation %d", last)
}

// TestKilledHolderIsOvertakenAtOnce does not wait for the term of a holder that
// the kernel knows to be dead.
func TestKilledHolderIsOvertakenAtOnce(t *testing.T) {
	path := emptyJournal(t)
	holder := start(t, "stopper", path, "rename", "/s.atj$", "1")
	if got := <-holder.lines; got != "stopping" {
		t.Fatal(got)
	}
	pid := holder.cmd.Process.Pid
	holder.kill()
	var who Owner
	opts := WriterOptions{Term: MaxTerm, OnTakeover: func(o Owner) { who = o }}
	w, err := OpenWriter(t.Context(), path, opts, new(ids))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	mustPut(t, w, "next")
	if who.PID != pid {
		t.Errorf("took over from %v, want process %d", who, pid)
	}
}
