package datagen

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/lance/memwal"
	"github.com/foldlog/foldlog/objstore"
)

// eventually opens an item once the writer that has it is dead.
func eventually(t *testing.T, w *Writer, item string) *Stream {
	t.Helper()
	for {
		s, err := w.Open(t.Context(), item, CreateOptions{})
		if err == nil {
			return s
		}
		if !errors.Is(err, ErrHeld) {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// paused is a store that stands still while it is asked to.
type paused struct {
	mu   sync.Mutex
	gate chan struct{} // nil while nothing is held up
}

func (p *paused) store(s objstore.Store) objstore.Store {
	return objstore.NewFault(s, func(objstore.Call) objstore.Fate {
		p.mu.Lock()
		gate := p.gate
		p.mu.Unlock()
		if gate != nil {
			<-gate
		}
		return objstore.Fate{}
	})
}

// stop makes the store stand still until goOn is called.
func (p *paused) stop() (goOn func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	gate := make(chan struct{})
	p.gate = gate
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.gate = nil
		close(gate)
	}
}

func TestAPausedWriterIsFencedWhenItWakes(t *testing.T) {
	mem := objstore.NewMemory()
	var p paused
	older, err := OpenOrCreate(t.Context(), p.store(mem), "digits", "first", quick)
	check(t, err)
	w := newWriter(t, older)
	s, err := w.Open(t.Context(), "a", CreateOptions{})
	check(t, err)
	check(t, s.Checkpoint(t.Context(), step(0), nil))
	idle := newWriter(t, older)
	_, err = idle.Open(t.Context(), "b", CreateOptions{})
	check(t, err)

	goOn := p.stop()
	younger := newWriter(t, newLog(t, mem))
	taken := eventually(t, younger, "a")
	check(t, taken.Checkpoint(t.Context(), step(1), nil))
	eventually(t, younger, "b") // claimed only
	goOn()

	err = s.Checkpoint(t.Context(), step(1), []Change{set("x", 666)})
	var fenced *FencedError
	if !errors.As(err, &fenced) {
		t.Fatalf("the older writer: %v", err)
	}
	if !strings.HasPrefix(fenced.Epoch, w.Shard().String()) || !strings.Contains(fenced.By, younger.Shard().String()) {
		t.Errorf("%v does not name %s and %s", err, w.Shard(), younger.Shard())
	}
	if _, err := w.Open(t.Context(), "c", CreateOptions{}); !errors.Is(err, ErrFenced) {
		t.Errorf("the fenced writer opens: %v", err)
	}
	<-idle.life.Done() // by its lease, without writing
	if err := idle.Err(); !errors.Is(err, ErrFenced) || !strings.Contains(err.Error(), younger.Shard().String()) {
		t.Errorf("the idle writer: %v", err)
	}
	check(t, taken.End(t.Context(), EndCompleted))
	if got := outcome(t, mem); got["a"] != "completed" {
		t.Errorf("outcome %v", got)
	}
}

func TestOfTwoRecoverersOneWins(t *testing.T) {
	mem := objstore.NewMemory()
	dead := newWriter(t, logWith(t, mem, quick))
	for i := range 20 {
		s, err := dead.Open(t.Context(), fmt.Sprint(i), CreateOptions{})
		check(t, err)
		check(t, s.Checkpoint(t.Context(), step(0), nil))
	}
	crash(dead)
	var writers []*Writer
	for range 4 {
		writers = append(writers, newWriter(t, newLog(t, mem)))
	}
	var won [20]atomic.Int32
	var wg sync.WaitGroup
	for _, w := range writers {
		wg.Go(func() {
			for i := range 20 {
				for won[i].Load() == 0 {
					s, err := w.Open(t.Context(), fmt.Sprint(i), CreateOptions{})
					if errors.Is(err, ErrHeld) {
						time.Sleep(time.Millisecond)
						continue
					}
					if err != nil {
						t.Error(err)
						return
					}
					won[i].Add(1)
					if err := s.Checkpoint(t.Context(), step(1), nil); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	for i := range won {
		if n := won[i].Load(); n != 1 {
			t.Errorf("item %d was taken %d times", i, n)
		}
	}
	if n := len(outcome(t, mem)); n != 20 {
		t.Errorf("%d items", n)
	}
}

// crash ends a writer as if its process had died.
func crash(w *Writer) {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.stop(&FencedError{Err: errors.New("crashed")}) // stops the lease without releasing it
	_ = w.mem.Close()
}

// TestWritersThatBeginOneItemAtOnce lets many open and create the same new items.
func TestWritersThatBeginOneItemAtOnce(t *testing.T) {
	mem := objstore.NewMemory()
	var wg sync.WaitGroup
	var won [30]atomic.Int32
	for range 6 {
		w := newWriter(t, newLog(t, mem))
		wg.Go(func() {
			for i := range won {
				s, err := w.openAt(t.Context(), fmt.Sprint(i), CreateOptions{}, 0)
				if errors.Is(err, ErrHeld) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				won[i].Add(1)
				if err := s.Checkpoint(t.Context(), step(0), nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for i := range won {
		if n := won[i].Load(); n != 1 {
			t.Errorf("item %d was begun %d times", i, n)
		}
	}
	outcome(t, mem)
}

func wipeClaims(t *testing.T, l *Log) {
	t.Helper()
	for info, err := range l.coord.List(t.Context(), objstore.ListOptions{Prefix: claimsDir}) {
		check(t, err)
		check(t, l.coord.Delete(t.Context(), info.Key))
	}
}

// TestLostClaimFilesCostNothing removes the claim files of items that are begun or
// taken over, and lets another writer claim them too.
func TestLostClaimFilesCostNothing(t *testing.T) {
	mem := objstore.NewMemory()
	l := newLog(t, mem)
	dead := newWriter(t, logWith(t, mem, quick))
	old, err := dead.Open(t.Context(), "old", CreateOptions{})
	check(t, err)
	check(t, old.Checkpoint(t.Context(), step(0), nil))
	crash(dead)
	first, second := newWriter(t, l), newWriter(t, newLog(t, mem))
	one := []*Stream{eventually(t, first, "old"), eventually(t, first, "new")}
	alone := eventually(t, first, "alone")
	wipeClaims(t, l)
	two := []*Stream{eventually(t, second, "old"), eventually(t, second, "new")}
	for i := range one {
		err := one[i].Checkpoint(t.Context(), step(1), nil)
		if !errors.Is(err, ErrHeld) || !strings.Contains(err.Error(), second.Shard().String()) {
			t.Errorf("whose claim was lost: %v", err)
		}
		check(t, two[i].CheckpointEnd(t.Context(), step(1), nil, EndCompleted))
	}
	check(t, alone.CheckpointEnd(t.Context(), step(1), nil, EndCompleted))
	want := map[string]string{"old": "completed", "new": "completed", "alone": "completed"}
	if d := cmp.Diff(want, outcome(t, mem)); d != "" {
		t.Error(d)
	}
	if err := first.Err(); err != nil {
		t.Errorf("the writer stopped: %v", err)
	}
}

// TestAnswersThatGetLostLeaveOneCopy loses the answers of writes: some took effect,
// some did not, and the writer cannot tell.
func TestAnswersThatGetLostLeaveOneCopy(t *testing.T) {
	mem := objstore.NewMemory()
	var mu sync.Mutex
	r := rand.New(rand.NewPCG(1, 2))
	s := objstore.NewFault(mem, func(c objstore.Call) objstore.Fate {
		if strings.Contains(c.Key, "/manifest/") && c.Op == "put if absent" {
			mu.Lock()
			defer mu.Unlock()
			switch r.IntN(10) {
			case 0:
				return objstore.Fate{Err: objstore.ErrAmbiguous}
			case 1:
				return objstore.Fate{Err: objstore.ErrAmbiguous, Done: true}
			}
		}
		return objstore.Fate{}
	})
	w := newWorld()
	check(t, w.run(t.Context(), s, steady, []string{"a", "b", "c", "d"}, 3))
	for key, runs := range w.runs {
		if runs != 1 {
			t.Errorf("%s ran %d times", key, runs)
		}
	}
	if got := outcome(t, mem); len(got) != 12 {
		t.Errorf("outcome %v", got)
	}
}

// TestAnOutageInTheMiddleOfATakeOver fails every call for a while, beginning at each of
// the changes that taking an item over and going on makes.
func TestAnOutageInTheMiddleOfATakeOver(t *testing.T) {
	for n := 1; n < 16; n++ {
		mem := objstore.NewMemory()
		l, err := OpenOrCreate(t.Context(), mem, "digits", "first", hurried)
		check(t, err)
		dead, err := l.NewWriter(t.Context(), WriterOptions{})
		check(t, err)
		s, err := dead.Open(t.Context(), "a", CreateOptions{})
		check(t, err)
		check(t, s.Checkpoint(t.Context(), step(0), nil))
		crash(dead)

		var down atomic.Bool
		flaky := objstore.NewFault(mem, func(c objstore.Call) objstore.Fate {
			if c.Mutates() && c.N == n {
				down.Store(true)
			}
			if down.Load() {
				return objstore.Fate{Err: errors.New("storage is down"), Done: c.N == n && n%2 == 0}
			}
			return objstore.Fate{}
		})
		recovery, err := Open(t.Context(), flaky, "digits", "first", hurried)
		check(t, err)
		for {
			err := resume(t.Context(), recovery)
			if err == nil {
				break
			}
			down.Store(false)
		}
		if got := outcome(t, mem); got["a"] != "completed x=1" {
			t.Errorf("outage at change %d: %v", n, got)
		}
	}
}

func resume(ctx context.Context, l *Log) error {
	w, err := l.NewWriter(ctx, WriterOptions{})
	if err != nil {
		return err
	}
	defer crash(w)
	for {
		s, err := w.Open(ctx, "a", CreateOptions{})
		if errors.Is(err, ErrHeld) {
			time.Sleep(5 * time.Millisecond)
			continue
		}
		if errors.Is(err, ErrEnded) {
			return nil
		}
		if err != nil {
			return err
		}
		if !s.Item().Done("step-1") {
			if err := s.Checkpoint(ctx, step(1), []Change{set("x", 1)}); err != nil {
				return err
			}
		}
		return s.End(ctx, EndCompleted)
	}
}

// TestAWriterThatIsAboutToBeginIsNotTakenForSealed looks at a writer that has its lease
// and no shard yet.
func TestAWriterThatIsAboutToBeginIsNotTakenForSealed(t *testing.T) {
	l := newLog(t, objstore.NewMemory())
	w := newWriter(t, l)
	id := memwal.NewID()
	other := newWriter(t, l)
	election, err := l.leaseOf(id, other.holder())
	check(t, err)
	_, err = election.Try(t.Context())
	check(t, err)
	if _, err := l.others(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	_, err = l.Writers(t.Context())
	check(t, err)
	mem, err := l.table.NewWriter(t.Context(), memwal.WriterOptions{Shard: id})
	check(t, err)
	defer mem.Close()
	if err := l.watches.of(id).inherit(t.Context(), "another"); !errors.Is(err, ErrHeld) {
		t.Errorf("its shard was taken: %v", err)
	}
}

// TestAClaimWhoseOutcomeIsUnknownIsSettled loses answers of claims.
func TestAClaimWhoseOutcomeIsUnknownIsSettled(t *testing.T) {
	for _, done := range []bool{false, true} {
		mem := objstore.NewMemory()
		n := 0
		s := objstore.NewFault(mem, func(c objstore.Call) objstore.Fate {
			if c.Op != "put if absent" || !strings.Contains(c.Key, claimsDir) {
				return objstore.Fate{}
			}
			if n++; n > 2 {
				return objstore.Fate{}
			}
			return objstore.Fate{Err: objstore.ErrAmbiguous, Done: done}
		})
		l, err := OpenOrCreate(t.Context(), s, "digits", "first", steady)
		check(t, err)
		st, err := newWriter(t, l).Open(t.Context(), "a", CreateOptions{})
		check(t, err)
		check(t, st.CheckpointEnd(t.Context(), step(0), nil, EndCompleted))
		if got := outcome(t, mem); got["a"] != "completed" {
			t.Errorf("outcome %v", got)
		}
	}
}
