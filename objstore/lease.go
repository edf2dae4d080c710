package objstore

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/foldlog/foldlog/internal/sleep"
)

// DefaultLeaseTerm is how long a lease stands unmoved before others may take it.
const DefaultLeaseTerm = 15 * time.Second

// Errors of leases, for errors.Is.
var (
	// ErrLeaseHeld: another holder's lease has not stood still for its term yet.
	ErrLeaseHeld = errors.New("lease is held")
	// ErrLeaseLost: a successor of this lease exists, or its term ran out here.
	ErrLeaseLost = errors.New("lease is lost")
)

// LeaseOptions configures an [Election].
type LeaseOptions struct {
	// Holder names whoever asks, for people to read.
	Holder string
	// Term is how long the lease lasts unrenewed; zero is DefaultLeaseTerm.
	Term time.Duration
}

// Election is one participant's view of one lease: a row of numbered objects of
// which the highest counts. To take, renew or release the lease is to put the next
// number, which only one participant can. A lease is dead once this observer has
// seen the same number for the term written in it, by its own monotonic clock; no
// clock of another machine or of the store is ever read.
type Election struct {
	store Store
	dir   string
	opts  LeaseOptions

	mu    sync.Mutex
	seen  uint64
	since time.Time
	doc   leaseDoc
}

// leaseDoc is what a lease object holds, as JSON. The nonce tells our bytes from
// those of another participant.
type leaseDoc struct {
	Holder   string `json:"holder"`
	Nonce    string `json:"nonce"`
	TermMS   int64  `json:"term_ms"`
	Released bool   `json:"released,omitempty"`
}

const (
	maxLeaseDoc  = 16 << 10
	maxLeaseTerm = 24 * time.Hour
	keepLeases   = 4
)

// NewElection returns a participant for the lease under a key prefix.
func NewElection(s Store, dir string, opts LeaseOptions) (*Election, error) {
	if opts.Term == 0 {
		opts.Term = DefaultLeaseTerm
	}
	if opts.Term < time.Millisecond || opts.Term > maxLeaseTerm {
		return nil, fmt.Errorf("lease term of %v is not between 1ms and %v", opts.Term, maxLeaseTerm)
	}
	dir = strings.TrimSuffix(dir, "/")
	if err := CheckKey(dir); err != nil {
		return nil, err
	}
	return &Election{store: s, dir: dir + "/", opts: opts}, nil
}

func (e *Election) key(n uint64) string { return fmt.Sprintf("%s%020d.lease", e.dir, n) }

// latest returns the highest number, zero if there is none.
func (e *Election) latest(ctx context.Context) (n uint64, older []string, err error) {
	for info, err := range e.store.List(ctx, ListOptions{Prefix: e.dir}) {
		if err != nil {
			return 0, nil, err
		}
		digits, ok := strings.CutSuffix(strings.TrimPrefix(info.Key, e.dir), ".lease")
		v, err := strconv.ParseUint(digits, 10, 64)
		if !ok || len(digits) != 20 || err != nil {
			continue
		}
		n, older = v, append(older, info.Key)
	}
	return n, older, nil
}

// Try takes the lease if it is free, released or dead, and is ErrLeaseHeld
// otherwise. Only repeated calls on the same Election can find a lease dead.
func (e *Election) Try(ctx context.Context) (*Lease, error) { return e.TryAs(ctx, e.opts.Holder) }

// TryAs is Try in the name of another holder.
func (e *Election) TryAs(ctx context.Context, holder string) (*Lease, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	n, _, err := e.latest(ctx)
	if err != nil {
		return nil, err
	}
	if free, err := e.free(ctx, n); err != nil || !free {
		if err == nil {
			err = fmt.Errorf("%w by %s", ErrLeaseHeld, e.doc.Holder)
		}
		return nil, err
	}
	l := &Lease{election: e, holder: holder, number: n, start: time.Now()}
	if err := l.succeed(ctx, false); err != nil {
		if errors.Is(err, ErrLeaseLost) {
			err = ErrLeaseHeld
		}
		return nil, err
	}
	return l, nil
}

// free reports whether number n may be succeeded, and remembers since when it has
// been the latest.
func (e *Election) free(ctx context.Context, n uint64) (bool, error) {
	if n == 0 {
		return true, nil
	}
	if n != e.seen {
		b, err := e.store.Get(ctx, e.key(n), maxLeaseDoc)
		if errors.Is(err, ErrNotFound) {
			return false, nil // succeeded and tidied meanwhile
		}
		if err != nil {
			return false, err
		}
		var doc leaseDoc
		if json.Unmarshal(b, &doc) != nil || doc.TermMS <= 0 || doc.TermMS > maxLeaseTerm.Milliseconds() {
			doc = leaseDoc{Holder: "an unreadable lease", TermMS: e.opts.Term.Milliseconds()}
		}
		e.seen, e.since, e.doc = n, time.Now(), doc
	}
	return e.doc.Released || time.Since(e.since) > time.Duration(e.doc.TermMS)*time.Millisecond, nil
}

// Wait takes the lease as soon as it can be had, or returns the context's error.
func (e *Election) Wait(ctx context.Context) (*Lease, error) {
	for {
		l, err := e.Try(ctx)
		if err == nil || !errors.Is(err, ErrLeaseHeld) {
			return l, err
		}
		if err := sleep.For(ctx, e.opts.Term/5); err != nil {
			return nil, err
		}
	}
}

// Lease is a lease that was won.
type Lease struct {
	election *Election
	holder   string

	mu     sync.Mutex
	number uint64
	start  time.Time
	lost   bool
	// doubt is what was put as the next number without an answer, nil if there is no such.
	doubt []byte
}

// Held reports whether the lease cannot have been taken yet, as far as this
// process's clock can tell.
func (l *Lease) Held() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.lost && sleep.Since(l.start) < l.election.opts.Term
}

// Renew extends the lease by its term from the moment of the call. ErrLeaseLost is
// final; after other errors the lease stands until its term ends.
func (l *Lease) Renew(ctx context.Context) error { return l.succeed(ctx, false) }

// Release lets others take the lease at once.
func (l *Lease) Release(ctx context.Context) error {
	err := l.succeed(ctx, true)
	l.mu.Lock()
	l.lost = true
	l.mu.Unlock()
	return err
}

// Keep renews the lease three times a term until the context ends, then releases
// it and returns nil, or until it is lost, then returns ErrLeaseLost.
func (l *Lease) Keep(ctx context.Context) error {
	for {
		if sleep.For(ctx, l.election.opts.Term/3) != nil {
			out, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.election.opts.Term/3)
			defer cancel()
			_ = l.Release(out) // unreleased it dies with its term
			return nil
		}
		if err := l.Renew(ctx); errors.Is(err, ErrLeaseLost) || err != nil && ctx.Err() == nil && !l.Held() {
			return errors.Join(ErrLeaseLost, err)
		}
	}
}

// succeed puts the next number. Numbers that are long past are tidied away, so one
// of them could be put again by a participant that slept: it counts only if it is
// the highest.
func (l *Lease) succeed(ctx context.Context, release bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost {
		return ErrLeaseLost
	}
	if err := l.settle(ctx); err != nil {
		return err
	}
	e := l.election
	doc, err := json.Marshal(leaseDoc{Holder: l.holder, Nonce: rand.Text(), TermMS: e.opts.Term.Milliseconds(), Released: release})
	if err != nil {
		return err
	}
	start := time.Now()
	if err := l.put(ctx, doc); err != nil {
		return err
	}
	n, all, err := e.latest(ctx)
	if err != nil {
		l.number++ // ours, but not known to be the highest: the term is not extended
		return err
	}
	if n != l.number+1 {
		l.lost = true
		return ErrLeaseLost
	}
	l.number, l.start = n, start
	for _, key := range all[:max(0, len(all)-keepLeases)] {
		_ = e.store.Delete(ctx, key) // the next success tries again
	}
	return nil
}

// settle finds out what became of a number that was put without an answer, by putting it
// again: if it is there it is ours, and the next one may follow.
func (l *Lease) settle(ctx context.Context) error {
	if l.doubt == nil {
		return nil
	}
	if err := l.put(ctx, l.doubt); err != nil {
		return err
	}
	l.number++
	return nil
}

// put puts the next number.
func (l *Lease) put(ctx context.Context, doc []byte) error {
	err := l.election.store.PutIfAbsent(ctx, l.election.key(l.number+1), doc)
	if errors.Is(err, ErrExists) {
		l.lost = true
		return ErrLeaseLost
	}
	l.doubt = nil
	if err != nil {
		l.doubt = doc
	}
	return err
}
