package journal

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/foldlog/foldlog/internal/fsx"
)

// Writer appends to a journal. Any number of goroutines may call it; what they
// have waiting at one time shares an extent and its syncs. Any number of
// processes may write the same journal.
type Writer struct {
	opts   WriterOptions
	l      layout
	m      Machine
	keeper *leaseKeeper
	header Header

	wake chan struct{}
	done chan struct{}

	// view is where the goroutine stands, nil if nobody else can tell.
	view atomic.Pointer[view]

	mu     sync.Mutex
	queue  []*request
	closed bool

	// What follows belongs to the one goroutine.
	reader   *Reader
	lease    *lease
	data     *dataFile
	nFiles   uint64
	nTickets uint64
	due      int           // callers who wait, or may be back at once
	took     time.Duration // to publish the last group
	haste    int           // groups that are not to wait for those that are due
	inVain   int           // what haste was after the last wait, 0 if it was not in vain
	ended    error
}

// request is one call of Do or Refresh.
type request struct {
	fn      func(*Tx) error // nil: refresh only
	alone   bool            // it saw nothing but what was published when it ran
	err     error
	settled chan struct{}
}

// OpenWriter opens a journal for writing and applies its history to m. A
// journal of format 1 to 5 is migrated first.
func OpenWriter(ctx context.Context, path string, opts WriterOptions, m Machine) (*Writer, error) {
	w, err := newWriter(path, opts, m)
	if err != nil {
		return nil, err
	}
	snap, err := w.l.readHead()
	if err != nil {
		return nil, err
	}
	if snap.legacy() {
		if err := w.migrate(ctx); err != nil {
			return nil, fmt.Errorf("migrate %s: %w", w.l.head, err)
		}
	}
	if err := w.start(); err != nil {
		return nil, err
	}
	return w, nil
}

func newWriter(path string, opts WriterOptions, m Machine) (*Writer, error) {
	o, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	if o.FS == fsx.OS {
		if fsx.Writable() != nil {
			return nil, ErrReadOnlyPlatform
		}
	}
	l, err := newLayout(o.FS, path)
	if err != nil {
		return nil, err
	}
	return &Writer{
		opts: o, l: l, m: m,
		keeper: newLeaseKeeper(l, *o.Worker, o.Term, o.OnTakeover),
		wake:   make(chan struct{}, 1), done: make(chan struct{}),
	}, nil
}

// start replays the history and begins to serve.
func (w *Writer) start() (err error) {
	if w.reader, err = newReader(w.l); err != nil {
		return err
	}
	if err := w.reader.Refresh(w.m); err != nil {
		w.reader.Close()
		return err
	}
	w.header = w.reader.Header()
	w.show(nil)
	go w.serve()
	return nil
}

// Worker returns the id that this writer's operations carry.
func (w *Writer) Worker() uint64 { return *w.opts.Worker }

// Path returns the study path with its symbolic links resolved.
func (w *Writer) Path() string { return w.l.head }

// Header returns the journal's header.
func (w *Writer) Header() Header { return w.header }

// Do runs fn under the lease, with the machine caught up, and publishes the
// operations that it appends in one extent. Nil means that they are durable. If
// fn fails nothing of it is published. Fn runs on the writer's own goroutine
// and may run again if the lease was lost before anything was published, so it
// must have no effect beside its results. If fn fails or appends nothing, Do still
// returns only once everything that fn saw is published.
//
// Errors: that of fn; [*TooLargeError]; [*UncertainError]; ctx's, if the
// operations were not begun; everything else says that nothing was published.
func (w *Writer) Do(ctx context.Context, fn func(*Tx) error) error {
	return w.submit(ctx, fn)
}

// Refresh applies what others have published since the last call. What a call of
// Do is publishing at this moment need not be applied before that call returns.
// Errors: those of [Reader.Refresh] and ctx's.
func (w *Writer) Refresh(ctx context.Context) error {
	if ctx.Err() == nil && w.open() && w.fresh() {
		return nil
	}
	return w.submit(ctx, nil)
}

func (w *Writer) open() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.closed
}

func (w *Writer) submit(ctx context.Context, fn func(*Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r := &request{fn: fn, settled: make(chan struct{})}
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return ErrClosed
	}
	w.queue = append(w.queue, r)
	w.mu.Unlock()
	w.nudge()
	select {
	case <-r.settled:
		return r.err
	case <-ctx.Done():
	}
	if w.withdraw(r) {
		return ctx.Err()
	}
	<-r.settled
	return r.err
}

func (w *Writer) nudge() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// withdraw takes back a request that has not been begun.
func (w *Writer) withdraw(r *request) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.Index(w.queue, r)
	if i < 0 {
		return false
	}
	w.queue = slices.Delete(w.queue, i, i+1)
	w.nudge()
	return true
}

// Close publishes what is waiting, lays the lease down and ends the writer.
func (w *Writer) Close() error {
	w.mu.Lock()
	already := w.closed
	w.closed = true
	w.mu.Unlock()
	if already {
		<-w.done
		return nil
	}
	w.nudge()
	<-w.done
	return w.reader.Close()
}

// pending returns how many requests wait, and whether the writer is closing.
func (w *Writer) pending() (int, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.queue), w.closed
}

// takeQueue takes every waiting request; from now on none can be withdrawn.
func (w *Writer) takeQueue() []*request {
	w.mu.Lock()
	defer w.mu.Unlock()
	taken := w.queue
	w.queue = nil
	return taken
}

// takeRefreshes takes what is waiting if all of it are refreshes, for which no lease
// is needed, and nothing otherwise.
func (w *Writer) takeRefreshes() []*request {
	w.mu.Lock()
	defer w.mu.Unlock()
	if slices.ContainsFunc(w.queue, func(r *request) bool { return r.fn != nil }) {
		return nil
	}
	taken := w.queue
	w.queue = nil
	return taken
}

// putBack returns requests to the front of the queue.
func (w *Writer) putBack(rs []*request) {
	if len(rs) == 0 {
		return
	}
	w.mu.Lock()
	w.queue = append(rs[:len(rs):len(rs)], w.queue...)
	w.mu.Unlock()
}

func settle(rs []*request, err error) {
	for _, r := range rs {
		r.err = err
		close(r.settled)
	}
}
