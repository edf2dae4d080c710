// Package rough gives tests a store that is as bad as one over a network may be: it is
// slow, fails, loses answers of what it has done, and does what it said it could not, later.
// What it does follows from a seed and the order of the calls.
package rough

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/foldlog/foldlog/objstore"
)

// ErrDown is what a call that failed, or of which the answer was lost, says.
var ErrDown = errors.New("the store does not answer")

// Options are how bad it is, the chances in calls of a thousand. The zero value is a good
// store.
type Options struct {
	Seed uint64
	// Slow is the chance of a delay of up to Delay.
	Slow  int
	Delay time.Duration
	// Read and Write are the chances of a call that fails without having done anything.
	Read, Write int
	// Lost is the chance of a write that is done, and its answer lost.
	Lost int
	// Late is the chance of a conditional write whose answer is lost and that is done
	// afterwards, within Delay, if its key is free then.
	Late int
}

// Store is a rough store. It is safe for concurrent use.
type Store struct {
	under objstore.Store
	opts  Options
	calm  atomic.Bool

	mu   sync.Mutex
	rand *rand.Rand
	late sync.WaitGroup
}

var _ objstore.Store = (*Store)(nil)

// New makes a store rough.
func New(under objstore.Store, opts Options) *Store {
	return &Store{under: under, opts: opts, rand: rand.New(rand.NewPCG(opts.Seed, 0))}
}

// Calm ends the bad times, and returns once nothing is on its way any more.
func (s *Store) Calm() {
	s.calm.Store(true)
	s.late.Wait()
}

type fate int

const (
	good fate = iota
	failed
	lost
	late
)

// draw waits, and draws what becomes of a call.
func (s *Store) draw(fails, loses, comesLate int) (f fate, after time.Duration) {
	if s.calm.Load() {
		return good, 0
	}
	s.mu.Lock()
	wait := s.rand.IntN(1000) < s.opts.Slow
	delay, after := s.some(), s.some()
	switch n := s.rand.IntN(1000); {
	case n < fails:
		f = failed
	case n < fails+loses:
		f = lost
	case n < fails+loses+comesLate:
		f = late
		s.late.Add(1)
	}
	s.mu.Unlock()
	if wait {
		time.Sleep(delay)
	}
	return f, after
}

func (s *Store) some() time.Duration { return time.Duration(s.rand.Int64N(int64(s.opts.Delay) + 1)) }

func fail(op, key string, err error) error { return &objstore.Error{Op: op, Key: key, Err: err} }

func read[T any](s *Store, op, key string, do func() (T, error)) (v T, err error) {
	if f, _ := s.draw(s.opts.Read, 0, 0); f == failed {
		return v, fail(op, key, ErrDown)
	}
	return do()
}

func (s *Store) write(op, key string, do func() error) error {
	f, _ := s.draw(s.opts.Write, s.opts.Lost, 0)
	if f == failed {
		return fail(op, key, ErrDown)
	}
	err := do()
	if err == nil && f == lost {
		err = fail(op, key, ErrDown)
	}
	return err
}

// Get implements objstore.Store.
func (s *Store) Get(ctx context.Context, key string, limit int64) ([]byte, error) {
	return read(s, "get", key, func() ([]byte, error) { return s.under.Get(ctx, key, limit) })
}

// GetRange implements objstore.Store.
func (s *Store) GetRange(ctx context.Context, key string, off, n int64) ([]byte, error) {
	return read(s, "get range", key, func() ([]byte, error) { return s.under.GetRange(ctx, key, off, n) })
}

// Stat implements objstore.Store.
func (s *Store) Stat(ctx context.Context, key string) (objstore.Info, error) {
	return read(s, "stat", key, func() (objstore.Info, error) { return s.under.Stat(ctx, key) })
}

// List implements objstore.Store. It fails at its beginning.
func (s *Store) List(ctx context.Context, opts objstore.ListOptions) iter.Seq2[objstore.Info, error] {
	list, err := read(s, "list", opts.Prefix, func() (iter.Seq2[objstore.Info, error], error) { return s.under.List(ctx, opts), nil })
	if err != nil {
		return func(yield func(objstore.Info, error) bool) { yield(objstore.Info{}, err) }
	}
	return list
}

// Put implements objstore.Store.
func (s *Store) Put(ctx context.Context, key string, data []byte) error {
	return s.write("put", key, func() error { return s.under.Put(ctx, key, data) })
}

// PutIfAbsent implements objstore.Store.
func (s *Store) PutIfAbsent(ctx context.Context, key string, data []byte) error {
	f, after := s.draw(s.opts.Write, s.opts.Lost, s.opts.Late)
	switch f {
	case failed:
		return fail("put if absent", key, ErrDown)
	case late:
		data = append([]byte(nil), data...)
		go func() {
			defer s.late.Done()
			time.Sleep(after)
			_ = s.under.PutIfAbsent(context.WithoutCancel(ctx), key, data)
		}()
	default:
		if err := s.under.PutIfAbsent(ctx, key, data); err != nil || f == good {
			return err
		}
	}
	return fail("put if absent", key, errors.Join(objstore.ErrAmbiguous, ErrDown))
}

// Create implements objstore.Store. What may go wrong is the writer's Close.
func (s *Store) Create(ctx context.Context, key string) (objstore.Writer, error) {
	w, err := s.under.Create(ctx, key)
	if err != nil {
		return nil, err
	}
	return &writer{w, s, key}, nil
}

// Delete implements objstore.Store.
func (s *Store) Delete(ctx context.Context, key string) error {
	return s.write("delete", key, func() error { return s.under.Delete(ctx, key) })
}

type writer struct {
	objstore.Writer
	store *Store
	key   string
}

func (w *writer) Close() error {
	err := w.store.write("close", w.key, w.Writer.Close)
	if err != nil {
		_ = w.Abort()
	}
	return err
}
