package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/foldlog/foldlog/internal/fsx"
)

const (
	// DefaultMaxRecordBytes caps one operation line.
	DefaultMaxRecordBytes = 16 << 20
	// DefaultMaxExtentBytes caps the payload of one extent, and so what one
	// transaction may write.
	DefaultMaxExtentBytes = 64 << 20

	// linger is how long an idle writer keeps a lease that nobody wants, and
	// lingerEvery how often it looks whether somebody does.
	linger      = 20 * time.Millisecond
	lingerEvery = time.Millisecond
	// pause is how long a writer waits for its caller's next operation before
	// it gives a wanted lease away within its quantum.
	pause = 200 * time.Microsecond
	// groupBytes ends a group: what more is waiting goes into the next extent.
	groupBytes = 4 << 20
)

// WriterOptions configure a [Writer]. The zero value is ready for use.
type WriterOptions struct {
	// FS is the file system, [fsx.OS] if nil.
	FS fsx.FS
	// Worker is the id that every operation carries, below 2^53 so that JSON
	// readers keep it. 0 draws one at random; set WorkerZero to mean 0 itself.
	Worker     uint64
	WorkerZero bool
	// Clock tells the wall time for at_millis and the header, time.Now if nil.
	Clock func() time.Time
	// Program goes into the header of a journal that is created.
	Program string
	// Term is how long the lease lasts unless renewed, [DefaultTerm] if 0.
	Term time.Duration
	// MaxRecordBytes, MaxExtentBytes and MaxJournalBytes are the caps of an
	// operation line, an extent's payload and the virtual stream. 0 means
	// [DefaultMaxRecordBytes], [DefaultMaxExtentBytes] and no cap.
	MaxRecordBytes, MaxExtentBytes, MaxJournalBytes int64
	// DataFile names the n-th data file of this handle, from 0. The default is
	// data-WORKER-N-RANDOM in hexadecimal.
	DataFile func(worker, n uint64) string
	// OnTakeover hears who held a lease that was taken over because its holder
	// had stopped. It is called while the lease is acquired and must be quick.
	OnTakeover func(Owner)
	// OnMigrate hears that a journal of an older format is about to be
	// migrated, and where its old file stays.
	OnMigrate func(from uint64, kept string)
}

func (o *WriterOptions) withDefaults() (WriterOptions, error) {
	var c WriterOptions
	if o != nil {
		c = *o
	}
	c.FS = orOS(c.FS)
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Worker == 0 && !c.WorkerZero {
		c.Worker = 1 + rand.Uint64N(1<<53-1)
	}
	if c.Program == "" {
		c.Program = "foldlog"
	}
	if c.Term == 0 {
		c.Term = DefaultTerm
	}
	if c.MaxRecordBytes == 0 {
		c.MaxRecordBytes = DefaultMaxRecordBytes
	}
	if c.MaxExtentBytes == 0 {
		c.MaxExtentBytes = DefaultMaxExtentBytes
	}
	if c.DataFile == nil {
		c.DataFile = func(worker, n uint64) string {
			return fmt.Sprintf("%s%016x-%08x-%016x", dataPrefix, worker, n, random64())
		}
	}
	return c, c.check()
}

func (o *WriterOptions) check() error {
	switch {
	case o.Worker >= 1<<53:
		return fmt.Errorf("worker id %d is not below 2^53", o.Worker)
	case o.Term < MinTerm || o.Term > MaxTerm:
		return fmt.Errorf("lease term %v is not between %v and %v", o.Term, MinTerm, MaxTerm)
	case o.MaxRecordBytes < 0 || o.MaxExtentBytes < 0 || o.MaxJournalBytes < 0:
		return errors.New("a cap is negative")
	case o.MaxExtentBytes > HardLimit || o.MaxRecordBytes > HardLimit:
		return fmt.Errorf("a cap is over the %d bytes that readers admit", HardLimit)
	}
	return nil
}

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

	mu     sync.Mutex
	queue  []*request
	closed bool

	// What follows belongs to the one goroutine.
	reader   *Reader
	lease    *lease
	data     *dataFile
	nFiles   uint64
	nTickets uint64
	group    int // size of the last group
	ended    error
}

// request is one call of Do or Refresh.
type request struct {
	fn      func(*Tx) error // nil: refresh only
	err     error
	settled chan struct{}
}

// OpenWriter opens a journal for writing and applies its history to m. A
// journal of format 1 to 5 is migrated first.
func OpenWriter(ctx context.Context, path string, opts *WriterOptions, m Machine) (*Writer, error) {
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

func newWriter(path string, opts *WriterOptions, m Machine) (*Writer, error) {
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
		keeper: newLeaseKeeper(l, o.Worker, o.Term, o.OnTakeover),
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
	go w.serve()
	return nil
}

// Worker returns the id that this writer's operations carry.
func (w *Writer) Worker() uint64 { return w.opts.Worker }

// Path returns the study path with its symbolic links resolved.
func (w *Writer) Path() string { return w.l.head }

// Header returns the journal's header.
func (w *Writer) Header() Header { return w.header }

// Do runs fn under the lease, with the machine caught up, and publishes the
// operations that it appends in one extent. Nil means that they are durable. If
// fn fails nothing of it is published. Fn runs on the writer's own goroutine
// and may run again if the lease was lost before anything was published, so it
// must have no effect beside its results.
//
// Errors: that of fn; [*TooLargeError]; [*UncertainError]; ctx's, if the
// operations were not begun; everything else says that nothing was published.
func (w *Writer) Do(ctx context.Context, fn func(*Tx) error) error {
	return w.submit(ctx, fn)
}

// Refresh applies what others have published since the last call. Errors: those
// of [Reader.Refresh] and ctx's.
func (w *Writer) Refresh(ctx context.Context) error { return w.submit(ctx, nil) }

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

// serve is the writer's one goroutine.
func (w *Writer) serve() {
	defer close(w.done)
	for {
		n, closing := w.pending()
		switch {
		case n > 0:
			w.round()
		case closing:
			w.layDown()
			w.data.close()
			return
		default:
			w.idle()
		}
	}
}

// idle waits for the next request. Meanwhile it keeps the lease as long as
// nobody wants it, and not for ever.
func (w *Writer) idle() {
	if w.lease == nil {
		<-w.wake
		return
	}
	began := time.Now()
	first := pause
	if time.Since(w.lease.since) > quantum {
		first = 0
	}
	for wait := first; ; wait = lingerEvery {
		if wait > 0 && w.awake(wait) {
			return
		}
		if w.lease.lost.Load() || w.lease.wanted() || time.Since(began) > linger {
			w.layDown()
			return
		}
	}
}

// awake waits until there is something to do or the time is over.
func (w *Writer) awake(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-w.wake:
		return true
	case <-t.C:
		return false
	}
}

func (w *Writer) layDown() {
	if w.lease != nil {
		w.lease.release()
		w.lease = nil
	}
}

// round serves what is waiting, as one group.
func (w *Writer) round() {
	if w.ended != nil {
		settle(w.takeQueue(), w.ended)
		return
	}
	if !w.leaseNeeded() {
		settle(w.takeQueue(), w.catchUp())
		return
	}
	if w.lease != nil && (w.lease.lost.Load() || time.Since(w.lease.since) > quantum && w.lease.wanted()) {
		w.layDown()
	}
	if err := w.hold(); err != nil {
		if !errors.Is(err, errGaveUp) {
			settle(w.takeQueue(), err)
		}
		return
	}
	w.gather()
	w.commit(w.takeQueue())
}

// leaseNeeded tells whether any of what waits is more than a refresh.
func (w *Writer) leaseNeeded() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.queue, func(r *request) bool { return r.fn != nil })
}

// gather lets the callers of the last group, who are just being told of it,
// come back with their next operations before a new group begins.
func (w *Writer) gather() {
	for i := 0; i < 64 && w.group > 1; i++ {
		if n, _ := w.pending(); n >= w.group {
			return
		}
		runtime.Gosched()
	}
}

// hold makes sure that we have the lease and are caught up.
func (w *Writer) hold() error {
	if w.lease != nil {
		return nil
	}
	lease, err := w.keeper.acquire(func(d time.Duration) bool {
		if d < time.Millisecond {
			nap(d)
		} else {
			w.awake(d)
		}
		n, _ := w.pending()
		return n > 0
	})
	if err != nil {
		return w.leaseError(err)
	}
	w.lease = lease
	if err := w.catchUp(); err != nil {
		w.layDown()
		return err
	}
	return nil
}

// leaseError explains an acquisition that failed because the journal is gone.
func (w *Writer) leaseError(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		if _, headErr := w.l.readHead(); headErr != nil {
			return headErr
		}
		if _, statErr := w.l.fs.Stat(w.l.data); errors.Is(statErr, fs.ErrNotExist) {
			return fmt.Errorf("%s: %w", w.l.data, ErrDataMissing)
		}
	}
	return err
}

// catchUp applies what is published. A journal that holds what it must not ends
// the writer; one that is out of reach may come back.
func (w *Writer) catchUp() error {
	err := w.reader.Refresh(w.m)
	if err != nil && !passing(err) {
		w.ended = err
	}
	return err
}
