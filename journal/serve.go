package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"time"
)

const (
	// linger is how long an idle writer keeps a lease that nobody wants, and
	// lingerEvery how often it looks whether somebody does.
	linger      = 20 * time.Millisecond
	lingerEvery = time.Millisecond
	// pause is how long a writer waits for its caller's next operation before
	// it gives a wanted lease away within its quantum.
	pause = 200 * time.Microsecond
)

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
	if rs := w.takeRefreshes(); rs != nil {
		settle(rs, w.catchUp())
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

const (
	// maxPatience is how long a writer at most waits for callers to come back.
	maxPatience = 2 * time.Millisecond
	// maxHaste is how many groups at most begin without a wait.
	maxHaste = 64
)

// gather lets the callers of the last group, who have just been told of it, come
// back with their next operations before a new group begins. Without it callers
// fall into two halves, one of which always waits for the other to be published.
// But callers who take longer to come back than that costs are not waited for: a
// wait in vain makes the writer do without for a while, for longer each time.
func (w *Writer) gather() {
	for range 64 {
		if n, _ := w.pending(); n >= w.due {
			return
		}
		runtime.Gosched()
	}
	if w.haste > 0 {
		w.haste--
		return
	}
	if w.lease.wanted() {
		return
	}
	for until := time.Now().Add(min(w.took/2, maxPatience)); ; {
		n, closing := w.pending()
		left := time.Until(until)
		switch {
		case n >= w.due:
			w.inVain = 0
			return
		case left <= 0 || closing:
			w.inVain = min(max(1, 2*w.inVain), maxHaste)
			w.haste = w.inVain
			return
		}
		w.awake(left)
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
	return w.catchUp()
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
// the writer; one that is out of reach may come back. After an error the machine may
// be anywhere: the lease is laid down, since whoever takes it catches up first.
func (w *Writer) catchUp() error {
	restarts := w.reader.restarts
	err := w.reader.Refresh(w.m)
	if w.reader.restarts != restarts {
		w.leave()
	}
	if err != nil {
		w.hide()
		w.layDown()
		if !passing(err) {
			w.ended = err
		}
		return err
	}
	w.show(nil)
	return nil
}
