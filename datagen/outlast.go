package datagen

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/foldlog/foldlog/internal/sleep"
	"github.com/foldlog/foldlog/lance"
	"github.com/foldlog/foldlog/objstore"
)

// Outlast calls do, and calls it again with pauses that grow, for as long as
// Options.RetryFor while it fails because the storage does, and then returns ErrOutage
// with the last error. What do does must be right to do twice: reads are, and so is
// opening an item.
func (l *Log) Outlast(ctx context.Context, do func() error) error {
	r := retries{log: l}
	for {
		err := do()
		if !outage(err) {
			r.over(err)
			return err
		}
		if !r.again(ctx, err) {
			return r.givenUp(err)
		}
	}
}

// finals are what storage says of objects, and of what may not be done: waiting does not
// change it.
var finals = []error{
	context.Canceled, objstore.ErrNotFound, objstore.ErrExists, objstore.ErrTooLarge,
	objstore.ErrKey, objstore.ErrDenied, objstore.ErrNoBucket, objstore.ErrRefused, objstore.ErrCrashed, objstore.ErrLeaseHeld,
	fs.ErrPermission, syscall.ENOTDIR, syscall.EISDIR, syscall.EROFS, syscall.ENAMETOOLONG, syscall.ELOOP, syscall.EINVAL,
	lance.ErrCorrupt, ErrFenced, ErrHeld, ErrClosed,
}

// outage reports whether an error is of a storage that may do its work again later, as
// when a service is away or a disk is full.
func outage(err error) bool {
	var failed *objstore.Error
	return errors.As(err, &failed) && !isFinal(err)
}

func isFinal(err error) bool {
	return slices.ContainsFunc(finals, func(final error) bool { return errors.Is(err, final) })
}

// The pauses between tries double.
const (
	firstPause = 10 * time.Millisecond
	maxPause   = 2 * time.Second
)

// retries paces the tries of something that the storage failed.
type retries struct {
	log      *Log
	deadline time.Time // from the first failure on
	pause    time.Duration
}

// again waits after a failure; false says that it is to be given up.
func (r *retries) again(ctx context.Context, err error) bool {
	if r.deadline.IsZero() {
		r.deadline, r.pause = time.Now().Add(r.log.opts.RetryFor), firstPause
	}
	if ctx.Err() != nil || !time.Now().Before(r.deadline) {
		return false
	}
	if outage(err) {
		r.log.outages.failed(err)
	}
	_ = sleep.For(ctx, r.pause)
	r.pause = min(2*r.pause, maxPause)
	return true
}

// over says that there is an answer, whatever it is.
func (r *retries) over(err error) {
	if !r.deadline.IsZero() && !errors.Is(err, context.Canceled) {
		r.log.outages.over()
	}
}

// givenUp is the error of something that was tried for as long as it may be.
func (r *retries) givenUp(err error) error {
	if r.deadline.IsZero() || r.log.opts.RetryFor <= 0 {
		return err
	}
	return fmt.Errorf("%w for %v: %w", ErrOutage, r.log.opts.RetryFor, err)
}

// Outage is a time in which the storage did not answer, or not as it should.
type Outage struct {
	// Began is when it was noticed, Err the failure that was seen last.
	Began time.Time
	Err   error
	// Took is how long it lasted; zero while it does.
	Took time.Duration
}

// toldAfter is how long an outage lasts before it is told.
const toldAfter = time.Second

// outages puts together what those who wait at the same time see.
type outages struct {
	tell func(Outage)

	mu   sync.Mutex
	now  Outage
	told bool
}

func (o *outages) failed(err error) {
	if o.tell == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.now.Began.IsZero() {
		o.now.Began = time.Now()
	}
	o.now.Err = err
	if !o.told && time.Since(o.now.Began) >= toldAfter {
		o.told = true
		o.tell(o.now)
	}
}

func (o *outages) over() {
	if o.tell == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.told {
		o.now.Took = time.Since(o.now.Began)
		o.tell(o.now)
	}
	o.now, o.told = Outage{}, false
}
