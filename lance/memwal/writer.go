package memwal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/foldlog/foldlog/lance"
)

// Defaults of [WriterOptions].
const (
	// DefaultMaxRows is how many rows one generation takes at most.
	DefaultMaxRows = 8192
	// DefaultMaxBytes is from what size on a generation takes no more callers.
	DefaultMaxBytes = 32 << 20
	// DefaultMergeAfter is how many generations start a merge.
	DefaultMergeAfter = 64
	// DefaultMaxLive is how many unmerged generations make appends wait.
	DefaultMaxLive = 1024
)

// WriterOptions configures a [Writer]. The zero value is a new shard with the
// defaults.
type WriterOptions struct {
	// Shard is the shard to claim; zero is a new one.
	Shard ID
	// Existing says that the shard was there: if it is not any more, that is ErrSealed,
	// since only sealed shards are removed, and it is not made anew.
	Existing bool
	// MaxRows and MaxBytes bound what callers put into one generation together; a
	// batch is never split. Zero is DefaultMaxRows and DefaultMaxBytes.
	MaxRows  int64
	MaxBytes int64
	// MergeAfter is how many generations start a merge in the background; zero is
	// DefaultMergeAfter, negative leaves merging to calls of Merge.
	MergeAfter int
	// MaxLive is how many unmerged generations make appends wait for a merge; zero is
	// DefaultMaxLive, negative is no bound.
	MaxLive int
	// MergeOptions are those of its merges.
	MergeOptions
}

func (o WriterOptions) withDefaults() WriterOptions {
	if o.Shard == (ID{}) {
		o.Shard = NewID()
	}
	if o.MaxRows == 0 {
		o.MaxRows = DefaultMaxRows
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if o.MergeAfter == 0 {
		o.MergeAfter = DefaultMergeAfter
	}
	if o.MaxLive == 0 {
		o.MaxLive = DefaultMaxLive
	}
	return o
}

// Writer owns a shard. It is safe for concurrent use.
type Writer struct {
	table *Table
	opts  WriterOptions
	id    ID

	// mu guards the shard: whoever holds it may put its manifest.
	mu     sync.Mutex
	shard  *shard
	broken error

	// merging is held by the one merge that runs.
	merging sync.Mutex

	queue chan *pending
	quit  chan struct{}
	kick  chan struct{}
	freed chan struct{}
	once  sync.Once
	done  sync.WaitGroup

	// merged is the error of the last merge in the background.
	mergedMu sync.Mutex
	mergeErr error
}

// pending is an append that waits for its generation.
type pending struct {
	batch  arrow.RecordBatch
	bytes  int64
	answer chan error
}

// NewWriter claims a shard, replays what an owner before left in its log, and starts
// to take rows. The table must have a primary key of strings; its MemWAL is installed
// if need be.
func (t *Table) NewWriter(ctx context.Context, opts WriterOptions) (*Writer, error) {
	opts = opts.withDefaults()
	d, err := t.install(ctx)
	if err != nil {
		return nil, fmt.Errorf("open shard: %w", err)
	}
	sh, err := claim(ctx, d, opts.Shard, opts.Existing)
	if err != nil {
		return nil, fmt.Errorf("open shard %s: %w", opts.Shard, err)
	}
	w := &Writer{
		table: t, opts: opts, id: opts.Shard, shard: sh,
		queue: make(chan *pending), quit: make(chan struct{}),
		kick: make(chan struct{}, 1), freed: make(chan struct{}, 1),
	}
	w.done.Go(w.flushLoop)
	if opts.MergeAfter > 0 {
		w.done.Go(w.mergeLoop)
	}
	return w, nil
}

// Shard is the writer's shard.
func (w *Writer) Shard() ID { return w.id }

// Epoch is the number of the writer's claim.
func (w *Writer) Epoch() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.shard.state.epoch
}

// Generations counts those that are not known to be merged yet.
func (w *Writer) Generations() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.shard.state.generations)
}

// Append writes rows and returns once they are durable. A batch goes into one
// generation as a whole. It needs the table's columns; nullable ones may be missing, and a
// column Tombstone may say which rows delete their key. After ErrFenced or ErrUnsure
// the writer cannot be used any more; after other errors the rows were not written, and
// the writer goes on. A context that ends while rows are being written is ErrUnsure for
// this caller alone.
func (w *Writer) Append(ctx context.Context, batch arrow.RecordBatch) error {
	if batch.NumRows() == 0 {
		return nil
	}
	if _, err := partOf(w.shard.fields, w.shard.key, batch); err != nil {
		return fmt.Errorf("append: %w", err) // this caller's fault must not be the others'
	}
	p := &pending{batch: batch, bytes: sizeOf(batch), answer: make(chan error, 1)}
	batch.Retain() // until it is flushed, though the caller may give up before
	var err error
	select {
	case w.queue <- p:
	case <-w.quit:
		err = ErrClosed
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		batch.Release()
		return fmt.Errorf("append: %w", err)
	}
	select {
	case err = <-p.answer:
	case <-ctx.Done():
		err = fmt.Errorf("%w: %w", ErrUnsure, ctx.Err())
	}
	if err != nil {
		return fmt.Errorf("append: %w", err)
	}
	return nil
}

func sizeOf(batch arrow.RecordBatch) (n int64) {
	for _, c := range batch.Columns() {
		n += int64(c.Data().SizeInBytes())
	}
	return n
}

// flushLoop makes generations of what waits.
func (w *Writer) flushLoop() {
	g := gathering{w: w}
	for {
		group := g.next()
		if group == nil {
			return
		}
		start := time.Now()
		err := w.flush(group)
		g.took = time.Since(start)
		for _, p := range group {
			p.batch.Release()
			p.answer <- err
		}
	}
}

// gathering puts callers into groups.
type gathering struct {
	w *Writer
	// carry is what would have exceeded the bounds of the group before.
	carry *pending
	// size is how many callers the group before had, and took how long their flush
	// took.
	size int
	took time.Duration
}

// next waits for an append and takes those that wait with it, up to the bounds. Callers
// that were together the last time and append again are on their way once they have
// their answer: for as many as those the group stays open for a moment that is short
// against a flush. A caller alone never waits.
func (g *gathering) next() []*pending {
	first := g.carry
	g.carry = nil
	if first == nil {
		select {
		case first = <-g.w.queue:
		case <-g.w.quit:
			return nil
		}
	}
	group := []*pending{first}
	rows, bytes := first.batch.NumRows(), first.bytes
	var timer *time.Timer
	for {
		p := g.another(len(group), &timer)
		if p == nil {
			break
		}
		rows, bytes = rows+p.batch.NumRows(), bytes+p.bytes
		if rows > g.w.opts.MaxRows || bytes > g.w.opts.MaxBytes {
			g.carry = p
			break
		}
		group = append(group, p)
	}
	if timer != nil {
		timer.Stop()
	}
	g.size = len(group)
	return group
}

// another takes one more append, nil if none comes.
func (g *gathering) another(have int, timer **time.Timer) *pending {
	select {
	case p := <-g.w.queue:
		return p
	default:
	}
	if have >= g.size {
		return nil
	}
	if *timer == nil {
		*timer = time.NewTimer(g.took / 8)
	}
	select {
	case p := <-g.w.queue:
		return p
	case <-(*timer).C:
		return nil
	case <-g.w.quit:
		return nil
	}
}

// flush writes one generation for a group of callers. Their contexts do not stop it:
// one caller's haste is no reason to fail the others.
func (w *Writer) flush(group []*pending) error {
	if err := w.room(); err != nil {
		return err
	}
	batches := make([]arrow.RecordBatch, len(group))
	for i, p := range group {
		batches[i] = p.batch
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken != nil {
		return w.broken
	}
	err := w.shard.flush(context.Background(), batches, 0)
	w.note(err)
	if n := len(w.shard.state.generations); w.opts.MergeAfter > 0 && n >= w.opts.MergeAfter {
		wake(w.kick)
	}
	return err
}

// note remembers an error that ends the writer.
func (w *Writer) note(err error) {
	if errors.Is(err, ErrFenced) || errors.Is(err, ErrUnsure) || errors.Is(err, ErrSealed) {
		w.broken = err
	}
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// room waits until there are fewer unmerged generations than the bound, or never will be.
func (w *Writer) room() error {
	for {
		full, err := w.full()
		if !full || err != nil {
			return err
		}
		wake(w.kick)
		select {
		case <-w.freed:
		case <-time.After(time.Second): // another may have merged
		case <-w.quit:
			return ErrClosed
		}
	}
}

// full reports whether there are as many unmerged generations as may be, and what ended
// the writer.
func (w *Writer) full() (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.opts.MaxLive > 0 && len(w.shard.state.generations) >= w.opts.MaxLive, w.broken
}

// mergeLoop merges in the background. Failures are kept for Close and tried again at
// the next generation.
func (w *Writer) mergeLoop() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-w.quit:
			cancel()
		case <-ctx.Done():
		}
	}()
	for {
		select {
		case <-w.quit:
			return
		case <-w.kick:
		}
		_, err := w.Merge(ctx)
		if errors.Is(err, context.Canceled) {
			err = nil
		}
		w.mergedMu.Lock()
		w.mergeErr = err
		w.mergedMu.Unlock()
	}
}

// MergeError is what the last merge in the background failed with, nil if it did not.
func (w *Writer) MergeError() error {
	w.mergedMu.Lock()
	defer w.mergedMu.Unlock()
	return w.mergeErr
}

// Merge brings the shard's generations into the table and returns how many rows came.
// Appends go on meanwhile; only dropping the merged generations from the manifest,
// one small write, comes between two of them.
func (w *Writer) Merge(ctx context.Context) (lance.MergeStats, error) {
	w.merging.Lock()
	defer w.merging.Unlock()
	w.mu.Lock()
	s := w.shard.state.clone()
	w.mu.Unlock()
	stats, upTo, err := w.table.merge(ctx, s, w.opts.MergeOptions)
	if err != nil {
		return stats, fmt.Errorf("merge shard %s: %w", w.id, err)
	}
	version, err := w.trim(ctx, upTo)
	if err != nil {
		return stats, fmt.Errorf("merge shard %s: %w", w.id, err)
	}
	_ = putHint(ctx, w.table.store, w.id, version) // only a hint
	return stats, nil
}

// trim drops generations that are merged, and returns the version of the manifest. Once
// begun it is not given up: whether the manifest is there would not be known.
func (w *Writer) trim(ctx context.Context, upTo uint64) (version uint64, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer wake(w.freed)
	if err := cmp.Or(w.broken, ctx.Err()); err != nil {
		return 0, err
	}
	err = w.shard.trim(context.WithoutCancel(ctx), upTo)
	w.note(err)
	return w.shard.state.version, err
}

// trim drops generations that are merged.
func (sh *shard) trim(ctx context.Context, upTo uint64) error {
	var live []generation
	for _, g := range sh.state.generations {
		if g.number > upTo {
			live = append(live, g)
		}
	}
	if len(live) == len(sh.state.generations) {
		return nil
	}
	return sh.update(ctx, func(next *state) { next.generations = live })
}

// Close ends the writer. What was acknowledged stays in the shard for readers; the
// next writer of the shard, or an adoption, merges it.
func (w *Writer) Close() error {
	w.once.Do(func() {
		close(w.quit)
		w.done.Wait()
	})
	return nil
}
