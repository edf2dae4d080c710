package journal

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/foldlog/foldlog/internal/fsx"
)

var errTaken = errors.New("the name is taken")

// claim appends a name unless the machine has it, queued names included.
func claim(w *Writer, name string) func(*Tx) error {
	m := w.m.(*ids)
	return func(tx *Tx) error {
		if slices.Contains(m.all, name) || slices.Contains(m.queued, name) {
			return errTaken
		}
		m.queued = append(m.queued, name)
		return tx.Append(idOp(name))
	}
}

// together runs transactions in one group, in order, and returns what they were told.
// Told, if not nil, is called as soon as one is.
func together(t *testing.T, w *Writer, told func(error), fns ...func(*Tx) error) []error {
	t.Helper()
	errs := make([]error, len(fns))
	begun, go_ := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	var once sync.Once
	wg.Go(func() {
		err := w.Do(t.Context(), func(*Tx) error {
			once.Do(func() { close(begun); <-go_ })
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-begun
	for i, fn := range fns {
		wg.Go(func() {
			if errs[i] = w.Do(t.Context(), fn); told != nil {
				told(errs[i])
			}
		})
		for n := 0; n <= i; n, _ = w.pending() {
		}
	}
	close(go_)
	wg.Wait()
	return errs
}

// TestRefusalForWhatIsNotPublishedYet fails the publishing of what another
// transaction of the group was refused for: that one is run again and succeeds.
func TestRefusalForWhatIsNotPublishedYet(t *testing.T) {
	m := newMem(t)
	var failing atomic.Bool
	disk := fsx.NewFault(m, func(c fsx.Call) fsx.Fate {
		if c.Op == "rename" && c.Path == memPath && failing.CompareAndSwap(true, false) {
			return fsx.Fate{Err: syscall.EIO}
		}
		return fsx.Fate{}
	})
	w, err := Create(t.Context(), memPath, memOptions(disk), new(ids))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	failing.Store(true)
	errs := together(t, w, nil, claim(w, "x"), claim(w, "x"))
	if !errors.Is(errs[0], syscall.EIO) || errs[1] != nil {
		t.Errorf("got %v", errs)
	}
	if got := readIDs(t, m, memPath); !slices.Equal(got, []string{"x"}) {
		t.Errorf("journal holds %v", got)
	}
}

// TestRefusalComesAfterWhatItIsFor reads the journal once a transaction was refused
// for what another one of its group wrote: it is there.
func TestRefusalComesAfterWhatItIsFor(t *testing.T) {
	m := newMem(t)
	var told atomic.Bool
	disk := fsx.NewFault(m, func(c fsx.Call) fsx.Fate {
		if c.Op == "rename" && c.Path == memPath {
			for i := 0; i < 100 && !told.Load(); i++ {
				time.Sleep(100 * time.Microsecond)
			}
		}
		return fsx.Fate{}
	})
	told.Store(true)
	w, err := Create(t.Context(), memPath, memOptions(disk), new(ids))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	told.Store(false)
	errs := together(t, w, func(err error) {
		told.Store(true)
		if got := readIDs(t, m, memPath); !slices.Equal(got, []string{"x"}) {
			t.Errorf("told %v, and the journal holds %v", err, got)
		}
	}, claim(w, "x"), claim(w, "x"))
	if errs[0] != nil || !errors.Is(errs[1], errTaken) {
		t.Errorf("got %v", errs)
	}
}

// TestNothingIsAnsweredFromBeforeATakeOver lets a writer that has lost its lease
// unnoticed answer transactions that append nothing: they see what the other one
// has published meanwhile.
func TestNothingIsAnsweredFromBeforeATakeOver(t *testing.T) {
	for _, refuse := range []error{nil, errTaken} {
		m := newMem(t)
		opts := memOptions(m)
		opts.Term = MaxTerm // so that it does not notice
		w, err := Create(t.Context(), memPath, opts, new(ids))
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		mine, seen, runs := w.m.(*ids), false, 0
		err = w.Do(t.Context(), func(*Tx) error {
			if runs++; runs == 1 {
				if err := takeOver(t, w); err != nil {
					return err
				}
			}
			seen = slices.Contains(mine.all, "theirs")
			return refuse
		})
		if !errors.Is(err, refuse) || !seen {
			t.Errorf("seen: %v, %v", seen, err)
		}
	}
}

// takeOver publishes as another writer, which takes the lease as if its term were over.
func takeOver(t *testing.T, from *Writer) error {
	free := baton{generation: from.lease.baton.generation + 1}
	if err := from.l.fs.Rename(from.lease.dir(), from.keeper.rack.path(free)); err != nil {
		return err
	}
	opts := memOptions(from.l.fs)
	opts.Worker = new(uint64(8))
	w, err := OpenWriter(t.Context(), memPath, opts, new(ids))
	if err != nil {
		return err
	}
	return errors.Join(put(t.Context(), w, "theirs"), w.Close())
}
