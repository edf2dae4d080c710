package objstore

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/foldlog/foldlog/internal/fault"
)

var errClosed = errors.New("writer is closed")

// ErrCrashed is what every call through a [Fault] answers after a crash.
var ErrCrashed = errors.New("objstore: the process has crashed here")

// Call names one call that goes through a [Fault].
type Call struct {
	// N counts the calls that change something, from 1. Calls that only read
	// carry the number of the change before them.
	N int
	// Op is the method in words: "put", "put if absent", "close", "delete",
	// "sweep"; and the reading ones: "get", "get range", "stat",
	// "list", "create".
	Op string
	// Key is the object's key or the prefix.
	Key string
}

// Mutates reports whether the call changes the store.
func (c Call) Mutates() bool {
	switch c.Op {
	case "get", "get range", "stat", "list", "create":
		return false
	}
	return true
}

// Fate is what becomes of a call. The zero value lets it pass.
type Fate struct {
	// Err, if not nil, is what the caller gets.
	Err error
	// Done lets the call take effect before Err is returned, as when an answer
	// is lost.
	Done bool
	// Crash makes this and every later call fail with [ErrCrashed].
	Crash bool
}

// Fault passes calls on to another store unless the hook decides otherwise.
type Fault struct {
	calls fault.Calls
	store Store
	hook  func(Call) Fate
}

var (
	_ Store   = (*Fault)(nil)
	_ Sweeper = (*Fault)(nil)
)

// NewFault wraps a store. The hook is called once before every call, by whichever
// goroutine makes it; it may sleep to be a slow store.
func NewFault(s Store, hook func(Call) Fate) *Fault { return &Fault{store: s, hook: hook} }

// Changes returns the number of changing calls so far.
func (f *Fault) Changes() int { return f.calls.Changes() }

// Crash makes every later call fail with [ErrCrashed].
func (f *Fault) Crash() { f.calls.Crash() }

func (f *Fault) fate(op, key string) (fate Fate) {
	c := Call{Op: op, Key: key}
	if !f.calls.Admit(c.Mutates(), func(n int) bool { c.N = n; fate = f.hook(c); return fate.Crash }) {
		fate.Err = ErrCrashed
	}
	return fate
}

func faulty[T any](f *Fault, op, key string, call func() (T, error)) (v T, err error) {
	fate := f.fate(op, key)
	if fate.Err == nil {
		return call()
	}
	if fate.Done {
		if v, err := call(); err != nil {
			return v, err
		}
	}
	return v, wrap(op, key, fate.Err)
}

func (f *Fault) do(op, key string, call func() error) error {
	_, err := faulty(f, op, key, func() (struct{}, error) { return struct{}{}, call() })
	return err
}

// Get implements [Store].
func (f *Fault) Get(ctx context.Context, key string, limit int64) ([]byte, error) {
	return faulty(f, "get", key, func() ([]byte, error) { return f.store.Get(ctx, key, limit) })
}

// GetRange implements [Store].
func (f *Fault) GetRange(ctx context.Context, key string, off, n int64) ([]byte, error) {
	return faulty(f, "get range", key, func() ([]byte, error) { return f.store.GetRange(ctx, key, off, n) })
}

// Stat implements [Store].
func (f *Fault) Stat(ctx context.Context, key string) (Info, error) {
	return faulty(f, "stat", key, func() (Info, error) { return f.store.Stat(ctx, key) })
}

// List implements [Store].
func (f *Fault) List(ctx context.Context, opts ListOptions) iter.Seq2[Info, error] {
	if fate := f.fate("list", opts.Prefix); fate.Err != nil {
		return func(yield func(Info, error) bool) { yield(Info{}, wrap("list", opts.Prefix, fate.Err)) }
	}
	return f.store.List(ctx, opts)
}

// Put implements [Store].
func (f *Fault) Put(ctx context.Context, key string, data []byte) error {
	return f.do("put", key, func() error { return f.store.Put(ctx, key, data) })
}

// PutIfAbsent implements [Store].
func (f *Fault) PutIfAbsent(ctx context.Context, key string, data []byte) error {
	return f.do("put if absent", key, func() error { return f.store.PutIfAbsent(ctx, key, data) })
}

// Create implements [Store]. The call that counts is the writer's Close.
func (f *Fault) Create(ctx context.Context, key string) (Writer, error) {
	w, err := faulty(f, "create", key, func() (Writer, error) { return f.store.Create(ctx, key) })
	if err != nil {
		return nil, err
	}
	return &faultWriter{Writer: w, fault: f, key: key}, nil
}

// Delete implements [Store].
func (f *Fault) Delete(ctx context.Context, key string) error {
	return f.do("delete", key, func() error { return f.store.Delete(ctx, key) })
}

// Sweep implements [Sweeper].
func (f *Fault) Sweep(ctx context.Context, prefix string, age time.Duration) (int, error) {
	sw, ok := f.store.(Sweeper)
	if !ok {
		return 0, nil
	}
	return faulty(f, "sweep", prefix, func() (int, error) { return sw.Sweep(ctx, prefix, age) })
}

type faultWriter struct {
	Writer
	fault *Fault
	key   string
}

func (w *faultWriter) Close() error {
	err := w.fault.do("close", w.key, w.Writer.Close)
	if err != nil {
		_ = w.Writer.Abort()
	}
	return err
}
