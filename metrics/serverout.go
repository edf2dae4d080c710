package metrics

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/foldlog/foldlog/internal/sleep"
)

// serverOutput sends a stream to a server while it is written. Beside a file
// it sends what the file has, so that the server's bytes are the file's and a
// server that is away costs no memory; without one, or where non-finite
// metrics are left out, it sends from a backlog in memory.
type serverOutput struct {
	target Target
	path   string // of the file, "" for the backlog
	file   *os.File
	memory *backlog
	up     *uploader
	every  time.Duration

	ctx     context.Context
	cancel  context.CancelFunc
	wake    chan struct{}
	closing chan struct{}
	gone    chan struct{}

	// Of the goroutine, until it has ended.
	end     int64
	retries int64
	err     error
}

func newServerOutput(t Target, opts EmitterOptions, file string) *serverOutput {
	if t.Client == nil {
		t.Client = ownClient()
	}
	o := &serverOutput{target: t, path: file, every: opts.FlushEvery,
		up:   &uploader{client: &Client{Base: t.URL, Token: t.Token, HTTP: t.Client}},
		wake: make(chan struct{}, 1), closing: make(chan struct{}), gone: make(chan struct{})}
	if file == "" || t.DropNonFinite {
		o.path, o.memory = "", &backlog{limit: opts.QueueBytes}
		o.up.src = o.memory
	}
	o.ctx, o.cancel = context.WithCancel(context.Background())
	go o.loop()
	return o
}

// ownClient has connections of its own, which end with the target, where the program has
// not put another transport in the place of net/http's.
func ownClient() *http.Client {
	c := &http.Client{Timeout: DefaultRequestTimeout}
	if t, ok := http.DefaultTransport.(*http.Transport); ok {
		c.Transport = t.Clone()
	}
	return c
}

func (o *serverOutput) filtered() bool { return o.target.DropNonFinite }

func (o *serverOutput) put(c *chunk) {
	if o.memory != nil {
		o.memory.put(c)
	}
	signalTo(o.wake)
}

func (o *serverOutput) loop() {
	defer close(o.gone)
	tick := time.NewTicker(o.every)
	defer tick.Stop()
	backoff := firstBackoff
	for {
		last := isClosed(o.closing)
		err := o.step()
		switch {
		case err == nil && last:
			return
		case err == nil:
			backoff = firstBackoff
			if o.err != nil && errors.Is(o.err, ErrAway) {
				o.err = nil
			}
			o.wait(tick.C)
		case o.ctx.Err() != nil:
			o.note(err)
			return
		case !errors.Is(err, ErrAway):
			o.note(err)
			return
		default:
			o.note(err)
			o.retries++
			if !last && o.pause(max(backoff, retryIn(err))) {
				backoff = firstBackoff
				continue
			}
			if last && sleep.For(o.ctx, max(backoff, retryIn(err))) != nil {
				return
			}
			backoff = min(2*backoff, lastBackoff)
		}
	}
}

// pause waits, and is true if the end of the run cut it short: what is left of
// the time is for trying.
func (o *serverOutput) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-o.closing:
		return true
	case <-timer.C:
		return false
	}
}

// note keeps the latest reason; that the end of the run cut a request short
// does not hide the one before.
func (o *serverOutput) note(err error) {
	if o.err == nil || !errors.Is(err, context.Canceled) {
		o.err = &TargetError{o.target.String(), "send", err}
	}
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (o *serverOutput) wait(tick <-chan time.Time) {
	select {
	case <-o.closing:
	case <-tick:
	case <-o.wake:
	}
}

// step sends what there is.
func (o *serverOutput) step() error {
	end, err := o.available()
	if err != nil || end == o.up.cursor {
		return err
	}
	o.end = end
	if found, err := o.up.identify(end); !found || err != nil {
		return err
	}
	err = o.up.sync(o.ctx, end)
	if o.memory != nil && o.up.cursor > int64(len(o.up.firstLine)+len(newline)) {
		// The overlap of the next comparison is not needed: the server has
		// acknowledged these bytes to this very process. The first line alone may
		// have been that of another process; the stream then begins anew elsewhere.
		o.memory.trim(o.up.cursor)
	}
	return err
}

// available is how many bytes of whole lines the source has.
func (o *serverOutput) available() (int64, error) {
	if o.memory != nil {
		return o.memory.end(), nil
	}
	if o.file == nil {
		f, err := os.Open(o.path)
		if err != nil {
			return 0, fmt.Errorf("read stream: %w", diagnose(err))
		}
		o.file, o.up.src = f, f
	}
	info, err := o.file.Stat()
	if err != nil {
		return 0, fmt.Errorf("read stream: %w", diagnose(err))
	}
	if info.Size() < o.up.cursor {
		return 0, fmt.Errorf("read stream: %w", ErrRewritten)
	}
	if info.Size() == o.end {
		return o.end, nil
	}
	return LastLineEnd(o.file, info.Size())
}

// close lets the goroutine send the rest until the deadline.
func (o *serverOutput) close(deadline time.Time) TargetReport {
	close(o.closing)
	waitUntil(o.gone, deadline)
	o.cancel()
	<-o.gone
	o.target.Client.CloseIdleConnections()
	r := TargetReport{Target: o.target.String(), Sent: o.up.events, Bytes: o.up.bytes, Retries: o.retries, Page: o.up.ack.Page}
	if o.memory != nil {
		dropped, waiting := o.memory.lost(o.up.cursor)
		r.Dropped = dropped + waiting
	} else {
		r.Left = o.leftInFile()
	}
	lost := r.Dropped+r.Left > 0
	switch {
	case o.err != nil && (lost || !errors.Is(o.err, ErrAway)):
		r.Err = o.err
	case lost:
		r.Err = &TargetError{r.Target, "send", ErrSlow}
	}
	return r
}

// leftInFile counts the whole lines behind the cursor.
func (o *serverOutput) leftInFile() int64 {
	if o.file == nil {
		return 0
	}
	defer o.file.Close()
	info, err := o.file.Stat()
	if err != nil || info.Size() <= o.up.cursor {
		return 0
	}
	n := int64(0)
	in := io.NewSectionReader(o.file, o.up.cursor, info.Size()-o.up.cursor)
	buf := make([]byte, chunkSize)
	for {
		k, err := in.Read(buf)
		n += int64(bytes.Count(buf[:k], newline))
		if err != nil {
			return n
		}
	}
}
