package datagen

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/foldlog/foldlog/internal/sleep"
	"github.com/foldlog/foldlog/objstore"
)

// Outlast calls do, and calls it again with pauses that grow, for as long as
// Options.RetryFor while it fails because the storage does. It returns the last error.
// What do does must be right to do twice: reads are, and so is opening an item.
func (l *Log) Outlast(ctx context.Context, do func() error) error {
	r := retries{log: l}
	for {
		err := do()
		if !outage(err) || !r.again(ctx, err) {
			return err
		}
	}
}

// outage reports whether an error is of a storage that may do its work again later, as
// when a service is away or a disk is full. What an object is or is not, what may not be
// done, and what a caller ended are none.
func outage(err error) bool {
	var failed *objstore.Error
	if !errors.As(err, &failed) {
		return false
	}
	for _, final := range []error{
		context.Canceled, objstore.ErrNotFound, objstore.ErrExists, objstore.ErrMismatch, objstore.ErrTooLarge,
		objstore.ErrKey, objstore.ErrCrashed, objstore.ErrLeaseHeld, fs.ErrPermission, ErrFenced, ErrHeld, ErrClosed,
	} {
		if errors.Is(err, final) {
			return false
		}
	}
	return true
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
	pause := r.pause
	r.pause = min(2*pause, maxPause)
	_ = sleep.For(ctx, pause)
	return true
}
