package datagen

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"time"
)

// ClaimsOptions says what [Writer.Claims] hands out. The zero value is the default.
type ClaimsOptions struct {
	// Create is how items that are new are begun.
	Create func(key string) CreateOptions
	// MaxAttempts leaves out items whose latest attempt failed and that have had this
	// many; zero is no bound.
	MaxAttempts int
	// Poll is how often items that others have are looked at again once nothing else is
	// left; zero is a fifth of the lease term.
	Poll time.Duration
}

// Claims hands out the next items of a list of keys to whoever asks, shared with the
// workers of other machines: each item is somebody's, and nobody takes more than it
// works on. It is safe for concurrent use.
type Claims struct {
	w    *Writer
	opts ClaimsOptions

	mu   sync.Mutex
	todo []pendingKey // taken from the end
	held []pendingKey
	busy int // handed out and being opened
	// moved is closed when something that was busy no longer is.
	moved chan struct{}
	// clashes counts items in a row that others had taken: then the list is old.
	clashes int
	failed  []string
	// patience is how long a failed item that another holds stays in the list.
	patience time.Duration
}

type pendingKey struct {
	key   string
	fresh bool
	// failed is the last event of an item that another holds and that has failed there, as
	// seen at since; zero if it has not.
	failed int64
	since  time.Time
}

// Claims classifies keys and hands out what is fresh or resumable.
func (w *Writer) Claims(ctx context.Context, keys []string, opts ClaimsOptions) (*Claims, error) {
	if opts.Poll == 0 {
		opts.Poll = max(w.log.opts.LeaseTerm/5, 10*time.Millisecond)
	}
	c := &Claims{w: w, opts: opts, moved: make(chan struct{}), patience: 3 * w.log.opts.LeaseTerm / 2}
	todo := make([]pendingKey, 0, len(keys))
	seen := make(map[string]bool, len(keys))
	for _, k := range keys {
		if !seen[k] {
			seen[k] = true
			todo = append(todo, pendingKey{key: k})
		}
	}
	var err error
	if c.todo, err = c.classify(ctx, todo); err != nil {
		return nil, err
	}
	return c, c.order(ctx)
}

// classify drops what has ended.
func (c *Claims) classify(ctx context.Context, keys []pendingKey) ([]pendingKey, error) {
	var classes *Classes
	err := c.w.log.Outlast(ctx, func() error {
		v, err := c.w.log.View(ctx)
		if err == nil {
			classes, err = v.Classes(ctx)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	out := make([]pendingKey, 0, len(keys))
	for _, k := range keys {
		switch classes.Of(k.key) {
		case Fresh:
			k.fresh = true
			out = append(out, k)
		case Resumable:
			k.fresh = false
			out = append(out, k)
		}
	}
	return out, nil
}

// order turns the list around, since it is taken from the end. Where other writers live
// each begins somewhere else, so that they seldom meet.
func (c *Claims) order(ctx context.Context) error {
	var others bool
	err := c.w.log.Outlast(ctx, func() (err error) {
		others, err = c.w.log.others(ctx, c.w)
		return err
	})
	if err != nil {
		return err
	}
	n := len(c.todo)
	turned := make([]pendingKey, n)
	from := 0
	if others && n > 0 {
		from = rand.IntN(n)
	}
	for i := range turned {
		turned[n-1-i] = c.todo[(from+i)%n]
	}
	c.todo = turned
	return nil
}

// Next opens the next item, or returns io.EOF when every item has ended, or is left
// out, here or at other workers. While others still work on the last items it waits,
// for it takes over what they leave behind should they die. An item that failed at a
// worker which lives and has not tried it again for longer than the lease term is left to
// it: two that waited for each other's failures would wait for ever. While the storage
// fails it tries again, as [Writer.Open] does.
func (c *Claims) Next(ctx context.Context) (*Stream, error) {
	for {
		if err := c.renew(ctx); err != nil {
			return nil, err
		}
		k, state := c.pop()
		switch state {
		case nothing:
			return nil, io.EOF
		case waiting:
			if err := c.wait(ctx); err != nil {
				return nil, err
			}
			continue
		}
		s, err := c.open(ctx, k)
		if s != nil || err != nil {
			return s, err
		}
	}
}

type popped int

const (
	taken popped = iota
	waiting
	nothing
)

func (c *Claims) pop() (pendingKey, popped) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.todo); n > 0 {
		k := c.todo[n-1]
		c.todo = c.todo[:n-1]
		c.busy++
		return k, taken
	}
	if len(c.held) > 0 || c.busy > 0 {
		return pendingKey{}, waiting
	}
	return pendingKey{}, nothing
}

// open opens one item; it returns nil without an error if others have the item.
func (c *Claims) open(ctx context.Context, k pendingKey) (*Stream, error) {
	var opts CreateOptions
	if c.opts.Create != nil {
		opts = c.opts.Create(k.key)
	}
	guess := int64(-1)
	if k.fresh {
		guess = 0
	}
	s, err := c.w.openAt(ctx, k.key, opts, guess)
	exhausted := err == nil && c.exhausted(s)
	if exhausted {
		_ = s.Close(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle()
	switch {
	case exhausted:
		c.failed = append(c.failed, k.key)
	case err == nil:
		c.clashes = 0
		return s, nil
	case errors.Is(err, ErrHeld):
		k.fresh = false
		c.held = append(c.held, k)
		c.clashes++
	case errors.Is(err, ErrEnded):
		c.clashes++
	case errors.Is(err, ErrFault):
		c.failed = append(c.failed, k.key)
	default:
		c.todo = append(c.todo, k)
		return nil, err
	}
	return nil, nil
}

func (c *Claims) exhausted(s *Stream) bool {
	it := s.Item()
	return c.opts.MaxAttempts > 0 && it.Failure() != nil && int(it.Attempt)+1 >= c.opts.MaxAttempts
}

// Left are the keys that were left out: items at fault, and those that failed too often.
func (c *Claims) Left() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.failed...)
}

// idle says that something is busy no more. The caller holds the lock.
func (c *Claims) idle() {
	c.busy--
	close(c.moved)
	c.moved = make(chan struct{})
}

// wait pauses until something moves, and looks anew at what others held.
func (c *Claims) wait(ctx context.Context) error {
	c.mu.Lock()
	moved, still := c.moved, c.busy > 0 || len(c.held) > 0
	c.mu.Unlock()
	if !still {
		return nil
	}
	t := time.NewTimer(c.opts.Poll)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-c.w.life.Done():
		return c.w.Err()
	case <-moved:
		return nil
	case <-t.C:
	}
	c.mu.Lock()
	held := c.held
	if len(held) == 0 {
		c.mu.Unlock()
		return nil
	}
	c.held = nil
	c.busy++ // so that nobody takes this for the end
	c.mu.Unlock()
	left, err := c.classify(ctx, held)
	if err == nil {
		left, err = c.unsettled(ctx, left)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle()
	if err != nil {
		c.held = append(c.held, held...)
		return err
	}
	c.todo = append(c.todo, left...)
	return nil
}

// unsettled are those of the held items that did not fail at their worker for good. Each
// is looked at when it is seen first, and after a time in which a worker that had died
// would have been noticed.
func (c *Claims) unsettled(ctx context.Context, keys []pendingKey) ([]pendingKey, error) {
	out := make([]pendingKey, 0, len(keys))
	for _, k := range keys {
		if k.since.IsZero() || time.Since(k.since) > c.patience {
			failed, err := c.failedAt(ctx, k.key)
			if err != nil {
				return nil, err
			}
			if failed != 0 && failed == k.failed {
				continue
			}
			k.failed, k.since = failed, time.Now()
		}
		out = append(out, k)
	}
	return out, nil
}

// failedAt is the last event of an item that has failed, zero of another one.
func (c *Claims) failedAt(ctx context.Context, key string) (seq int64, err error) {
	err = c.w.log.Outlast(ctx, func() error {
		v, err := c.w.log.View(ctx)
		if err != nil {
			return err
		}
		it, err := v.Item(ctx, key, AsOf{})
		if errors.Is(err, ErrNoItem) {
			return nil
		}
		if err == nil && it.Status == StatusFailed {
			seq = it.LastSeq
		}
		return err
	})
	return seq, err
}

// manyClashes is after how many items in a row that others had the list is renewed.
const manyClashes = 32

// renew drops what has ended since from a list that has become old, and goes on
// somewhere else in it.
func (c *Claims) renew(ctx context.Context) error {
	c.mu.Lock()
	if c.clashes < manyClashes || len(c.todo) < manyClashes {
		c.mu.Unlock()
		return nil
	}
	old := c.todo
	c.todo, c.clashes = nil, 0
	c.busy++ // so that nobody takes this for the end
	c.mu.Unlock()
	left, err := c.classify(ctx, old)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle()
	if err != nil {
		left = old
	}
	if n := len(left); n > 0 {
		from := rand.IntN(n)
		left = append(append(make([]pendingKey, 0, n), left[from:]...), left[:from]...)
	}
	c.todo = append(c.todo, left...)
	return err
}
