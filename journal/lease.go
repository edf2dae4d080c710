package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/foldlog/foldlog/internal/fsx"
)

const (
	// DefaultTerm is how long a lease that is not renewed stands before another
	// writer may take it over.
	DefaultTerm = 2 * time.Second
	// MinTerm and MaxTerm bound every term, also one read from an owner file.
	MinTerm = 20 * time.Millisecond
	MaxTerm = 5 * time.Minute

	// quantum is how long a writer with more to publish keeps a lease that
	// others wait for.
	quantum = 10 * time.Millisecond
	// watchEvery is how often a waiter looks whether the holder still lives.
	watchEvery = 10 * time.Millisecond
)

func random64() uint64 { return rand.Uint64() }

// errGaveUp says that nobody needs the lease any more.
var errGaveUp = errors.New("waiting for the lease was given up")

// leaseKeeper acquires leases for one writer.
type leaseKeeper struct {
	rack  batonRack
	queue waitQueue
	me    Owner
	// onTakeover hears of each lease taken from a writer that had stopped.
	onTakeover func(Owner)
}

func newLeaseKeeper(l layout, worker uint64, term time.Duration, onTakeover func(Owner)) *leaseKeeper {
	me := self()
	me.Worker, me.TermMillis = worker, term.Milliseconds()
	return &leaseKeeper{newBatonRack(l), newWaitQueue(l), me, onTakeover}
}

// lease is a baton in our hands.
type lease struct {
	k     *leaseKeeper
	baton baton
	since time.Time
	// lock is the owner file, held open for its kernel lock.
	lock fsx.File
	lost atomic.Bool
	stop chan struct{}
	done sync.WaitGroup
}

// dir is the path under which the ticket must be created and renamed.
func (l *lease) dir() string { return l.k.rack.path(l.baton) }

// acquire waits until the lease is ours. Between two looks it calls pause with
// the time to wait; if that answers false nobody needs the lease any more, and
// acquire returns errGaveUp.
func (k *leaseKeeper) acquire(pause func(time.Duration) bool) (*lease, error) {
	a := attempt{k: k, nonce: random64()}
	defer a.leave()
	for {
		l, err := a.try()
		if l != nil || err != nil {
			return l, err
		}
		wait, err := a.wait()
		if err != nil {
			return nil, err
		}
		if !pause(wait) {
			return nil, a.giveUp()
		}
	}
}

// attempt is one wait for the lease.
type attempt struct {
	k     *leaseKeeper
	nonce uint64
	place waiter
	lock  fsx.File // of our place in the queue, nil outside

	// seen is the holder as last observed, since when, on our own clock.
	seen    baton
	owner   []byte
	since   time.Time
	watched time.Time
}

// try looks once and takes the lease if it may.
func (a *attempt) try() (*lease, error) {
	b, strays, err := a.k.rack.current()
	if err != nil {
		return nil, err
	}
	mine := baton{generation: b.generation + 1, nonce: a.nonce, held: true}
	switch {
	case b.held && b.nonce == a.nonce:
		return a.k.take(b, strays)
	case b.held:
		gone, err := a.holderGone(b)
		if !gone || err != nil {
			return nil, err
		}
	}
	moved, ours, err := a.k.rack.rename(b, mine)
	if !moved || err != nil {
		return nil, err
	}
	if b.held && ours && a.k.onTakeover != nil {
		a.k.onTakeover(decodeOwner(a.owner))
	}
	return a.k.take(mine, strays)
}

// holderGone tells whether the holder may be overtaken: it has not moved for
// its whole term on our clock, or the kernel of this machine says that it died.
func (a *attempt) holderGone(b baton) (bool, error) {
	now := time.Now()
	if b == a.seen && now.Sub(a.watched) < watchEvery {
		return false, nil
	}
	a.watched = now
	path := filepath.Join(a.k.rack.path(b), b.ownerFile())
	owner, err := fsx.ReadFile(a.k.rack.l.fs, path, ownerSize)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, fsx.ErrTooLong) {
		return false, fmt.Errorf("read lease owner: %w", err)
	}
	if b != a.seen || !bytes.Equal(owner, a.owner) {
		a.seen, a.owner, a.since = b, owner, now
	}
	o := decodeOwner(owner)
	if o.TermMillis == 0 {
		o = a.k.me // whoever did not say is given what we would ask for
	}
	if now.Sub(a.since) > o.term() {
		return true, nil
	}
	if owner == nil {
		return false, nil
	}
	dead, err := ownerDied(a.k.rack.l.fs, path, owner)
	return dead && err == nil, nil
}

// wait lines up, if not yet in the queue, and returns how long to wait before
// the next look: the longer the more are before us.
func (a *attempt) wait() (time.Duration, error) {
	position := -1
	if a.lock != nil {
		var err error
		if position, err = a.k.queue.position(a.place); err != nil {
			return 0, err
		}
	}
	if position < 0 {
		a.leave()
		place, lock, err := a.k.queue.join(a.nonce, a.k.me)
		if err != nil {
			return 0, err
		}
		a.place, a.lock = place, lock
		return 100 * time.Microsecond, nil
	}
	return min(300*time.Microsecond+time.Duration(position)*quantum/4, 25*time.Millisecond), nil
}

// leave gives up our place in the queue, if we have one.
func (a *attempt) leave() {
	if a.lock == nil {
		return
	}
	a.k.queue.leave(a.place)
	a.lock.Close()
	a.lock = nil
}

// giveUp leaves the queue and passes the lease on if it was handed to us before
// that; a holder that hands it to us after that sees that we have left.
func (a *attempt) giveUp() error {
	a.leave()
	if b, strays, err := a.k.rack.current(); err == nil && b.held && b.nonce == a.nonce {
		if l, err := a.k.take(b, strays); err == nil && l != nil {
			l.release()
		}
	}
	return errGaveUp
}

// take makes a baton that bears our nonce a lease. If that fails the baton is
// passed on.
func (k *leaseKeeper) take(b baton, strays []string) (*lease, error) {
	l := &lease{k: k, baton: b, since: time.Now(), stop: make(chan struct{})}
	err := k.rack.sweep(b, strays)
	if err == nil {
		owner := filepath.Join(l.dir(), b.ownerFile())
		l.lock, err = createOwned(k.rack.l.fs, owner, owner+".new", k.me)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil // overtaken already: look again
	case err != nil:
		l.release()
		return nil, err
	}
	l.done.Add(1)
	go l.renew()
	return l, nil
}

// renew shows watchers that we live, until the lease is released or lost.
func (l *lease) renew() {
	defer l.done.Done()
	tick := time.NewTicker(l.k.me.term() / 4)
	defer tick.Stop()
	me := l.k.me
	for {
		select {
		case <-l.stop:
			return
		case <-tick.C:
		}
		me.Renewed++
		if err := l.rewriteOwner(me); errors.Is(err, fs.ErrNotExist) {
			l.lost.Store(true)
			return
		}
	}
}

func (l *lease) rewriteOwner(o Owner) error {
	b, err := o.encode()
	if err != nil {
		return err
	}
	f, err := l.k.rack.l.fs.OpenFile(filepath.Join(l.dir(), l.baton.ownerFile()), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(fsx.WriteFull(f, b, 0), f.Close())
}

// wanted tells whether somebody waits for the lease.
func (l *lease) wanted() bool {
	all, err := l.k.queue.list()
	return err == nil && len(all) > 0
}

// release hands the lease to whoever waits longest, or lays it down. A lease
// that cannot be released runs out by itself.
func (l *lease) release() {
	close(l.stop)
	l.done.Wait()
	if l.lock != nil {
		defer l.lock.Close()
	}
	next := baton{generation: l.baton.generation + 1}
	w, found, err := l.k.queue.next()
	if err == nil && found {
		next.held, next.nonce = true, w.nonce
	}
	if moved, err := l.k.rack.move(l.baton, next); moved && err == nil && found {
		l.k.handedOver(next, w)
	}
}

// handedOver takes the next holder out of the queue. One that had left of its
// own accord, without taking the lease, does not wait for it any more: the lease
// is laid down.
func (k *leaseKeeper) handedOver(b baton, w waiter) {
	if k.queue.leave(w) {
		return
	}
	_, err := k.rack.l.fs.Lstat(filepath.Join(k.rack.path(b), b.ownerFile()))
	if errors.Is(err, fs.ErrNotExist) {
		k.rack.move(b, baton{generation: b.generation + 1})
	}
}
