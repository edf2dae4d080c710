package datagen

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/internal/proctest"
	"github.com/foldlog/foldlog/internal/rough"
	"github.com/foldlog/foldlog/objstore"
)

// ledger is what workers were told of their checkpoints. Each has a token of its own in
// a field of the item.
type ledger struct {
	t     *testing.T
	token atomic.Int64
	round atomic.Int64

	mu    sync.Mutex
	acked map[int64]bool
	not   map[int64]bool
	open  int
	steps map[string]bool // that were acknowledged
	ended map[string]bool
}

func newLedger(t *testing.T) *ledger {
	return &ledger{t: t, acked: map[int64]bool{}, not: map[int64]bool{}, steps: map[string]bool{}, ended: map[string]bool{}}
}

// worked reports whether any checkpoint was acknowledged.
func (l *ledger) worked() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acked) > 0
}

// done are the steps that were acknowledged so far.
func (l *ledger) done() map[string]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.steps)
}

// resumed holds an item that was opened against the steps that were acknowledged before.
func (l *ledger) resumed(s *Stream, before map[string]bool) {
	for i := range stressSteps {
		if it := s.Item(); before[nthStep(s.ID(), i)] && (it == nil || !it.Done(step(i).Instance)) {
			l.t.Errorf("step %d of item %s was acknowledged, and is to run again", i, s.ID())
		}
	}
}

func nthStep(item string, i int) string { return fmt.Sprint(item, " ", i) }

// told takes down how a checkpoint went.
func (l *ledger) told(item string, i int, token int64, end bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch key := nthStep(item, i); {
	case err == nil && l.steps[key]:
		l.t.Errorf("step %d of item %s was acknowledged twice", i, item)
	case err == nil:
		l.acked[token], l.steps[key] = true, true
		if end {
			l.ended[item] = true
		}
	case errors.Is(err, ErrUnsure), errors.Is(err, ErrFenced), errors.Is(err, ErrClosed):
		l.open++
	default:
		l.not[token] = true
	}
}

// certain are the tokens that must be in the log by now, and the items that have ended.
func (l *ledger) certain() (acked map[int64]bool, ended map[string]bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.acked), maps.Clone(l.ended)
}

// judge holds the folds of all items against what was told before they were read.
func (l *ledger) judge(who string, acked map[int64]bool, v *View) error {
	there := map[int64]bool{}
	for it, err := range v.Folds(context.Background()) {
		if err != nil {
			return err
		}
		if len(it.Faults) > 0 {
			l.t.Errorf("%s: item %s: %v", who, it.ID, it.Faults)
		}
		f, ok := it.Field("token")
		if !ok {
			f = &FieldState{}
		}
		if len(f.Values) != len(it.Steps) {
			l.t.Errorf("%s: item %s has %d steps, and %d tokens", who, it.ID, len(it.Steps), len(f.Values))
		}
		if names := instances(it); len(names) != len(it.Steps) {
			l.t.Errorf("%s: item %s has steps twice: %v", who, it.ID, it.Steps)
		}
		for _, val := range f.Values {
			there[val.Int] = true
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for token := range acked {
		if !there[token] {
			l.t.Errorf("%s: checkpoint %d was acknowledged, and is not there", who, token)
		}
	}
	for token := range there {
		if l.not[token] {
			l.t.Errorf("%s: checkpoint %d was told not to be there, and is", who, token)
		}
	}
	return nil
}

func instances(it *Item) map[string]bool {
	names := map[string]bool{}
	for _, s := range it.Steps {
		names[s.Instance] = true
	}
	return names
}

const (
	stressItems = 60
	stressSteps = 4
)

// keys are the items of the present round.
func (l *ledger) keys() (keys []string, round int64) {
	round = l.round.Load()
	for i := range stressItems {
		keys = append(keys, fmt.Sprintf("%d-%d", round, i))
	}
	return keys, round
}

// hand is a process of the stress.
type hand struct {
	*ledger
	store objstore.Store
	rand  *rand.Rand
	until time.Time
}

// over reports whether the time is, in which something must have been acknowledged.
func (h *hand) over() bool { return time.Now().After(h.until) && h.worked() }

var stressOptions = Options{LeaseTerm: 400 * time.Millisecond, RetryFor: 30 * time.Millisecond}

// work works with one writer after the other, of which some are closed and some die.
func (h *hand) work() {
	ctx := context.Background()
	for !h.over() {
		log, err := OpenOrCreate(ctx, h.store, "digits", "first", stressOptions)
		if err != nil {
			continue
		}
		for range 1 + h.rand.IntN(3) {
			w, err := log.NewWriter(ctx, WriterOptions{MergeAfter: 2 + h.rand.IntN(3), MaxLive: 4 + h.rand.IntN(20)})
			if err != nil {
				continue
			}
			h.with(w)
			if h.rand.IntN(6) == 0 {
				crash(w)
			} else if w.Close(ctx) != nil {
				crash(w)
			}
		}
	}
}

// with works with one writer for a while.
func (h *hand) with(w *Writer) {
	keys, round := h.keys()
	claims, err := w.Claims(context.Background(), keys, ClaimsOptions{Poll: 20 * time.Millisecond})
	if err != nil {
		return
	}
	until := time.Now().Add(time.Duration(h.rand.IntN(1000)) * time.Millisecond)
	var all sync.WaitGroup
	for range 3 {
		r := rand.New(rand.NewPCG(h.rand.Uint64(), 0))
		all.Go(func() {
			for time.Now().Before(until) && !h.over() {
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				before := h.done()
				s, err := claims.Next(ctx)
				cancel()
				if errors.Is(err, io.EOF) {
					h.round.CompareAndSwap(round, round+1)
					return
				}
				if err == nil {
					h.resumed(s, before)
					h.item(w, s, r)
				} else if w.Err() != nil {
					return
				}
			}
		})
	}
	all.Wait()
}

// item does steps of an item, and opens it anew where its stream is of no use any more.
func (h *hand) item(w *Writer, s *Stream, r *rand.Rand) {
	ctx := context.Background()
	for range 3 * stressSteps {
		if r.IntN(60) == 0 {
			break
		}
		i := 0
		for it := s.Item(); it != nil && i < stressSteps && it.Done(step(i).Instance); i++ {
		}
		err := h.step(s, i, r)
		if err == nil && i == stressSteps-1 {
			return
		}
		if errors.Is(err, ErrUnsure) {
			before := h.done()
			again, err := w.Open(ctx, s.ID(), CreateOptions{})
			if err != nil {
				return
			}
			h.resumed(again, before)
			s = again
		} else if errors.Is(err, ErrFenced) || errors.Is(err, ErrClosed) || errors.Is(err, ErrHeld) {
			return
		}
	}
	_ = s.Close(ctx)
}

// step writes a checkpoint, now and then with a context that soon ends, or a failure.
func (h *hand) step(s *Stream, i int, r *rand.Rand) error {
	ctx := context.Background()
	if r.IntN(6) == 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(r.IntN(4000))*time.Microsecond)
		defer cancel()
	}
	if r.IntN(10) == 0 {
		return s.Fail(ctx, nil, Failure{Type: "odd"})
	}
	token := h.token.Add(1)
	changes := []Change{Append("token", IntValue(token))}
	var err error
	if last := i == stressSteps-1; last {
		err = s.CheckpointEnd(ctx, step(i), changes, EndCompleted)
	} else {
		err = s.Checkpoint(ctx, step(i), changes)
	}
	h.told(s.ID(), i, token, i == stressSteps-1, err)
	return err
}

// look folds everything, and keeps an index.
func (h *hand) look() {
	ctx := context.Background()
	var log *Log
	var x *Index
	for !h.over() {
		if log == nil || h.rand.IntN(10) == 0 {
			var err error
			if log, err = Open(ctx, h.store, "digits", "first", stressOptions); err != nil {
				log = nil
				continue
			}
			x = log.NewIndex()
		}
		time.Sleep(time.Duration(h.rand.IntN(20)) * time.Millisecond)
		acked, ended := h.certain()
		if v, err := log.View(ctx); err == nil {
			_ = h.judge("meanwhile", acked, v)
		}
		if _, err := x.Update(ctx); err != nil {
			continue
		}
		for id := range ended {
			if c := x.Class(id); c != Finished {
				h.t.Errorf("item %s has ended, and the index says %s", id, c)
			}
		}
	}
}

// tend maintains the log as if all were old.
func (h *hand) tend() {
	ctx, cancel := context.WithDeadline(context.Background(), h.until)
	defer cancel()
	for !h.over() {
		time.Sleep(time.Duration(h.rand.IntN(30)) * time.Millisecond)
		if log, err := Open(ctx, h.store, "digits", "first", stressOptions); err == nil {
			_, _ = log.MaintainOnce(ctx, MaintainOptions{Rate: -1, All: h.rand.IntN(3) == 0, Now: time.Now().Add(2 * time.Hour)})
		}
	}
}

// TestWhatWasToldOfCheckpointsIsTrueUnderStress has processes work on the same items, be
// cut short, die, take over and maintain, on a rough store.
func TestWhatWasToldOfCheckpointsIsTrueUnderStress(t *testing.T) {
	last, seed := proctest.Lasts(t, time.Second), proctest.Seed(t)
	mem := objstore.NewMemory()
	led := newLedger(t)
	following := followed(t, newLog(t, mem))
	until := time.Now().Add(last)
	var all sync.WaitGroup
	var stores []*rough.Store
	const lookers = 3
	for i, run := range []func(*hand){(*hand).work, (*hand).work, (*hand).work, (*hand).look, (*hand).tend} {
		opts := rough.Options{Seed: seed + uint64(i), Slow: 50, Delay: time.Millisecond, Read: 2, Write: 8, Lost: 8, Late: 8}
		if i == lookers { // a pin whose removal fails holds the maintenance up for a minute
			opts.Write, opts.Lost, opts.Late = 0, 0, 0
		}
		s := rough.New(mem, opts)
		stores = append(stores, s)
		h := &hand{ledger: led, store: s, rand: rand.New(rand.NewPCG(seed, uint64(i))), until: until}
		all.Go(func() { run(h) })
	}
	all.Wait()
	for _, s := range stores {
		s.Calm()
	}
	t.Logf("%d checkpoints acknowledged, %d told not to be there, %d unsure; %d rounds", len(led.acked), len(led.not), led.open, led.round.Load())
	log := newLog(t, mem)
	v, err := log.View(t.Context())
	check(t, err)
	acked, _ := led.certain()
	check(t, led.judge("in the end", acked, v))
	_, err = log.Verify(t.Context(), func(err error) { t.Error(err) })
	check(t, err)
	following(v)
}

// followed follows the log, and returns what holds that which was yielded against a view.
func followed(t *testing.T, log *Log) (compare func(*View)) {
	ctx, cancel := context.WithCancel(t.Context())
	seen := map[string][]string{}
	var quiet atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		opts := FollowOptions{Existing: true, Poll: 10 * time.Millisecond, Quiet: func() { quiet.Add(1) }}
		for e, err := range log.Follow(ctx, opts) {
			if err != nil {
				t.Error(err)
				return
			}
			seen[e.Item] = append(seen[e.Item], e.ID)
		}
	}()
	return func(v *View) {
		for from := quiet.Load(); quiet.Load() < from+2; { // one poll that began after now
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
			}
		}
		cancel()
		<-done
		want := map[string][]string{}
		for e, err := range v.All(t.Context()) {
			check(t, err)
			want[e.Item] = append(want[e.Item], "")
		}
		for id := range want {
			events, err := v.Events(t.Context(), id)
			check(t, err)
			want[id] = want[id][:0]
			for _, e := range events {
				want[id] = append(want[id], e.ID)
			}
		}
		if d := cmp.Diff(want, seen); d != "" {
			t.Errorf("followed: %s", d)
		}
	}
}
