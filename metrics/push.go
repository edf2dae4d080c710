package metrics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/foldlog/foldlog/internal/sleep"
)

// PushStats is what [Client.Push] did.
type PushStats struct {
	Slug   string // of the file's first open
	Stream string // id at the server
	// Events and Bytes are what the server did not have; Total is how many
	// bytes of whole lines the file has, and the server now too.
	Events, Bytes, Total int64
	// Torn is the bytes of the last line, left out while it has no newline.
	Torn int64
	// Page is where the server shows the run.
	Page string
}

// pushTries is how often in a row a server may be away.
const pushTries = 6

// Push completes a stream at the server from a file, which may still be
// written. Doing it again sends only what is new, and nothing twice. A file
// whose stream id has other bytes at the server goes under another id, which
// the bytes decide. A file without an open is an [ErrMissing].
func (c *Client) Push(ctx context.Context, path string) (PushStats, error) {
	f, err := os.Open(path)
	if err != nil {
		return PushStats{}, fmt.Errorf("push stream: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return PushStats{}, fmt.Errorf("push stream: %w", err)
	}
	return c.PushFrom(ctx, f, info.Size())
}

// PushFrom is [Client.Push] of the first size bytes of what is read.
func (c *Client) PushFrom(ctx context.Context, src io.ReaderAt, size int64) (PushStats, error) {
	end, err := LastLineEnd(src, size)
	if err != nil {
		return PushStats{}, fmt.Errorf("push stream: %w", err)
	}
	u := &uploader{client: c, src: src}
	found, err := u.identify(end)
	if err == nil && !found {
		err = fmt.Errorf("%w: no open", ErrMissing)
	}
	if err == nil {
		err = u.persist(ctx, end)
	}
	p := PushStats{Slug: u.slug, Stream: u.id, Events: u.events, Bytes: u.bytes, Total: end, Torn: size - end, Page: u.ack.Page}
	if err != nil {
		return p, fmt.Errorf("push stream: %w", err)
	}
	return p, nil
}

// persist syncs with back-off while the server is away.
func (u *uploader) persist(ctx context.Context, end int64) error {
	wait := firstBackoff
	for try := 1; ; try++ {
		before := u.cursor
		err := u.sync(ctx, end)
		if err == nil || !errors.Is(err, ErrAway) {
			return err
		}
		if u.cursor > before {
			try, wait = 0, firstBackoff
		}
		if try == pushTries || sleep.For(ctx, max(wait, retryIn(err))) != nil {
			return err
		}
		wait = min(2*wait, lastBackoff)
	}
}

// retryIn is the time a server asked to be left alone.
func retryIn(err error) time.Duration {
	var status *StatusError
	if errors.As(err, &status) {
		return status.RetryAfter
	}
	return 0
}
