package datagen

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/foldlog/foldlog/lance/memwal"
	"github.com/foldlog/foldlog/objstore"
)

// WriterOptions configures a [Writer]. The zero value is the default.
type WriterOptions struct {
	// Run attributes the events to a run of the pipeline; empty is a random name.
	Run string
	// MergeAfter is how many generations start a merge in the background; zero is
	// memwal.DefaultMergeAfter, negative leaves merging to the maintenance.
	MergeAfter int
	// MaxLive is how many unmerged generations make checkpoints wait; zero is
	// memwal.DefaultMaxLive, negative is no bound.
	MaxLive int
}

// Writer writes events through a shard of its own, and has a lease in the store by
// which others see that it lives. It is safe for concurrent use: checkpoints of many
// streams share a generation.
type Writer struct {
	log   *Log
	opts  WriterOptions
	run   string
	shard memwal.ID
	epoch atomic.Uint64 // counts the items that were opened

	// life ends when the writer stops, for whatever reason.
	life context.Context
	stop context.CancelCauseFunc
	quit chan struct{}
	keep sync.WaitGroup

	closing  sync.Once
	closeErr error

	mu      sync.Mutex
	mem     *memwal.Writer
	claimed uint64         // the number of our claim on the shard
	doubt   *memwal.Writer // the claim that an append was given up in, its outcome unknown
	open    map[string]bool
	raw     map[string]*Stream
	closed  bool
}

// NewWriter begins a writer with a shard and a lease of its own. While the storage fails
// it tries again for as long as Options.RetryFor.
func (l *Log) NewWriter(ctx context.Context, opts WriterOptions) (w *Writer, err error) {
	err = l.Outlast(ctx, func() error {
		w, err = l.newWriter(ctx, opts)
		return err
	})
	return w, err
}

// newWriter draws a shard, so that nothing of a try before is in its way.
func (l *Log) newWriter(ctx context.Context, opts WriterOptions) (*Writer, error) {
	w := &Writer{log: l, opts: opts, run: opts.Run, shard: memwal.NewID(), quit: make(chan struct{}), open: map[string]bool{}, raw: map[string]*Stream{}}
	if w.run == "" {
		w.run = "run-" + rand.Text()[:12]
	}
	if err := checkText(w.run, true, MaxTextBytes); err != nil {
		return nil, fmt.Errorf("new writer: run: %w", err)
	}
	election, err := l.leaseOf(w.shard, w.holder())
	if err != nil {
		return nil, fmt.Errorf("new writer: %w", err)
	}
	lease, err := election.Try(ctx)
	if err != nil {
		return nil, fmt.Errorf("new writer: lease: %w", err)
	}
	if w.mem, err = l.table.NewWriter(ctx, w.shardOptions()); err != nil {
		_ = lease.Release(context.WithoutCancel(ctx))
		return nil, fmt.Errorf("new writer: %w", err)
	}
	w.claimed = w.mem.Epoch()
	w.life, w.stop = context.WithCancelCause(context.Background())
	w.keep.Go(func() { w.keepLease(election, lease) })
	return w, nil
}

func (w *Writer) holder() holder {
	h := self()
	h.Writer, h.Run = w.shard.String(), w.run
	return h
}

func (w *Writer) shardOptions() memwal.WriterOptions {
	return memwal.WriterOptions{Shard: w.shard, MergeAfter: w.opts.MergeAfter, MaxLive: w.opts.MaxLive, MergeOptions: w.log.merging}
}

// Run is the name of the run that the writer's events are attributed to.
func (w *Writer) Run() string { return w.run }

// Shard is the writer's shard, which its writer epochs begin with.
func (w *Writer) Shard() memwal.ID { return w.shard }

// Err is why the writer stopped, nil while it has not.
func (w *Writer) Err() error { return context.Cause(w.life) }

// MergeError is what the last merge in the background failed with, nil if it did not.
func (w *Writer) MergeError() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mem.MergeError()
}

// keepLease renews the lease until the writer stops. Who finds that another took it
// stops the writer. A storage that fails is tried again for ever: the lease may be
// taken meanwhile, and until then the writer can go on once the storage can.
func (w *Writer) keepLease(election *objstore.Election, lease *objstore.Lease) {
	term := w.log.opts.LeaseTerm
	for wait := term / 3; ; {
		select {
		case <-w.quit:
			out, cancel := context.WithTimeout(context.Background(), term)
			defer cancel()
			_ = lease.Release(out) // unreleased it dies with its term
			return
		case <-time.After(wait):
		}
		ctx, cancel := context.WithTimeout(context.Background(), term)
		wait = term / 3
		switch err := lease.Renew(ctx); {
		case errors.Is(err, objstore.ErrLeaseLost):
			if next := w.leaseLost(ctx, election); next != nil {
				lease = next
			}
		case err != nil:
			wait = term / 10
		}
		cancel()
		if errors.Is(w.Err(), ErrFenced) {
			return
		}
	}
}

// leaseLost finds out who has the lease. If it is this writer itself, whose answer was
// lost, it takes it anew as soon as it can be had.
func (w *Writer) leaseLost(ctx context.Context, election *objstore.Election) *objstore.Lease {
	info, err := election.Look(ctx)
	if err != nil {
		return nil
	}
	if h := parseHolder(info.Holder); h.By != "" {
		w.fence(h.By, objstore.ErrLeaseLost)
		return nil
	}
	lease, err := election.Try(ctx)
	if err != nil {
		return nil
	}
	return lease
}

// fence stops the writer because another took over.
func (w *Writer) fence(by string, cause error) error {
	w.mu.Lock()
	epoch := fmt.Sprintf("%s.%d", w.shard, w.claimed)
	w.mu.Unlock()
	if by == "" {
		by = w.successor()
	}
	w.stop(&FencedError{Epoch: epoch, By: by, Err: cause})
	return w.Err()
}

// successor is who took the shard, as far as its lease and its manifest tell.
func (w *Writer) successor() string {
	ctx, cancel := context.WithTimeout(context.Background(), w.log.opts.LeaseTerm)
	defer cancel()
	claim := "a later claim"
	if info, err := w.log.table.Shard(ctx, w.shard); err == nil {
		claim = fmt.Sprintf("%s.%d", w.shard, info.Epoch)
	}
	if e, err := w.log.leaseOf(w.shard, w.holder()); err == nil {
		if info, err := e.Look(ctx); err == nil {
			if h := parseHolder(info.Holder); h.By != "" {
				return fmt.Sprintf("writer %s, %s, with epoch %s", h.By, h, claim)
			}
		}
	}
	return claim
}

// append makes rows durable. If an answer is lost, the shard is claimed again, which
// fences what was on its way, and the same rows are appended again: rows that had
// arrived have the same keys, so they count once.
func (w *Writer) append(rows arrow.RecordBatch) error {
	r := retries{log: w.log}
	var doubt *memwal.Writer // the last claim in which the rows may have come about
	settled := false
	for {
		mem, err := w.current()
		if err != nil {
			return err
		}
		err = mem.Append(context.WithoutCancel(w.life), rows)
		if err == nil {
			r.over(nil)
			return nil
		}
		if errors.Is(err, memwal.ErrUnsure) {
			doubt = mem
		}
		if errors.Is(err, memwal.ErrUnsure) || errors.Is(err, memwal.ErrClosed) {
			again := w.reclaim(mem)
			if again == nil && !settled { // one lost answer is no reason to wait
				settled = true
				continue
			}
			err = errors.Join(err, again)
		}
		if errors.Is(err, memwal.ErrFenced) || errors.Is(err, memwal.ErrSealed) {
			return w.fence("", err)
		}
		if isFinal(err) || !r.again(w.life, err) {
			return w.outcome(doubt, r.givenUp(err))
		}
	}
}

// outcome is the error of an append that was given up. If one of its tries was in doubt,
// so is the append, whatever the last one failed with.
func (w *Writer) outcome(doubt *memwal.Writer, err error) error {
	var fenced *FencedError
	if errors.As(w.Err(), &fenced) {
		return fenced
	}
	if doubt == nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mem == doubt { // else nothing that was on its way can come about any more
		w.doubt = doubt
	}
	return fmt.Errorf("%w: %w", ErrUnsure, err)
}

// current returns the claim to append with.
func (w *Writer) current() (*memwal.Writer, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.Err(); err != nil {
		return nil, err
	}
	return w.mem, nil
}

// settle makes sure that no append that was given up can still come about, so that what
// the log says of our items stays true.
func (w *Writer) settle() error {
	w.mu.Lock()
	doubt := w.doubt
	w.mu.Unlock()
	if doubt == nil {
		return nil
	}
	err := w.reclaim(doubt)
	if errors.Is(err, memwal.ErrFenced) || errors.Is(err, memwal.ErrSealed) {
		return w.fence("", err)
	}
	return err
}

// reclaim claims the shard anew, if nobody has since, in place of a claim that is of no
// use any more.
func (w *Writer) reclaim(old *memwal.Writer) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mem != old || w.closed {
		return w.Err()
	}
	_ = old.Close()
	ctx, cancel := context.WithTimeout(w.life, w.log.opts.LeaseTerm)
	defer cancel()
	opts := w.shardOptions()
	opts.Existing = true // else others have removed it, who found us dead
	mem, err := w.log.table.NewWriter(ctx, opts)
	if err != nil {
		return err
	}
	w.mem, w.claimed, w.doubt = mem, mem.Epoch(), nil
	return nil
}

// Close stops the writer: what was acknowledged is merged and the shard sealed, so that
// others can take the items over at once. Open streams cannot be used any more. The
// context bounds the work; what is left undone, others do once the lease has run out.
// Further calls wait for the first and return its result.
func (w *Writer) Close(ctx context.Context) error {
	w.closing.Do(func() { w.closeErr = w.close(ctx) })
	return w.closeErr
}

func (w *Writer) close(ctx context.Context) error {
	w.mu.Lock()
	w.closed = true
	mem := w.mem
	w.mu.Unlock()
	fenced := w.Err()
	w.stop(ErrClosed)
	err := mem.Close()
	if fenced == nil {
		err = errors.Join(err, w.handOver(ctx))
	}
	close(w.quit) // the lease is released last
	w.keep.Wait()
	if err != nil {
		return fmt.Errorf("close writer: %w", err)
	}
	return nil
}

// handOver merges and seals the shard. What fails is tried again for a while.
func (w *Writer) handOver(ctx context.Context) error {
	for r := (retries{log: w.log}); ; {
		_, err := w.log.table.Adopt(ctx, w.shard, w.log.merging)
		if err == nil || errors.Is(err, objstore.ErrNotFound) { // another merged and removed it
			r.over(nil)
			return nil
		}
		if isFinal(err) || !r.again(ctx, err) {
			return r.givenUp(err)
		}
	}
}
