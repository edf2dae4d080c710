// Package pins keeps files from clean-up while somebody reads them. A pin is two
// objects in the table's store: what is held, and a beat that its reader renews. Whoever
// cleans up honours a pin until it has seen its beat stand still for long, by its own
// monotonic clock.
//
// Reader and cleaner meet without relying on time: the reader puts its pin and then
// looks whether what it pins is still named; the cleaner removes the name and then looks
// for pins before it removes the files. One of the two sees the other.
package pins

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/foldlog/foldlog/internal/sleep"
	"github.com/foldlog/foldlog/lance/internal/format"
	"github.com/foldlog/foldlog/objstore"
)

// Root is where the pins of a table are.
const Root = "_pins/"

// The objects of a pin, below its directory.
const (
	heldName = "held.json"
	beatName = "beat.json"
)

// Times are how long things take. Tests shorten them.
type Times struct {
	// After is how long a read lasts before it takes a pin.
	After time.Duration
	// Term is how long a pin stands unrenewed before its reader takes it for lost. It
	// is renewed three times within a term; observers wait for two terms.
	Term time.Duration
}

// Default are the times of every table.
var Default = Times{After: time.Minute, Term: 30 * time.Second}

// Held is what a pin keeps: keys of objects, and directories with their slash.
type Held struct {
	Version uint64   `json:"version"`
	Keys    []string `json:"keys"`
}

// beat is what the renewed object says.
type beat struct {
	Number uint64 `json:"number"`
	TermMS int64  `json:"term_ms"`
}

// Pin is a pin that was taken and is renewed until it is released.
type Pin struct {
	store objstore.Store
	dir   string
	held  []byte
	check func(context.Context) error
	times Times

	number  uint64
	renewed time.Time

	stop chan struct{}
	once sync.Once
	done sync.WaitGroup
}

// Take puts a pin, asks check whether what it holds is still named, and renews the pin
// in the background. What check answers is returned; the pin is gone then.
func Take(ctx context.Context, store objstore.Store, held Held, check func(context.Context) error) (*Pin, error) {
	b, err := json.Marshal(held)
	if err != nil {
		return nil, err
	}
	p := &Pin{store: store, dir: newDir(), held: b, check: check, times: Default, stop: make(chan struct{})}
	if err := p.put(ctx); err != nil {
		p.remove()
		return nil, fmt.Errorf("pin version %d: %w", held.Version, err)
	}
	p.done.Go(p.keep)
	return p, nil
}

func newDir() string { return Root + format.NewUUID().String() + "/" }

func (p *Pin) put(ctx context.Context) error {
	if err := p.store.Put(ctx, p.dir+heldName, p.held); err != nil {
		return err
	}
	if err := p.renew(ctx); err != nil {
		return err
	}
	return p.check(ctx)
}

func (p *Pin) renew(ctx context.Context) error {
	start := time.Now()
	b, err := json.Marshal(beat{p.number + 1, p.times.Term.Milliseconds()})
	if err == nil {
		err = p.store.Put(ctx, p.dir+beatName, b)
	}
	if err == nil {
		p.number, p.renewed = p.number+1, start
	}
	return err
}

// keep renews the pin. After a gap it is put anew and under another name, for an observer
// may have removed it, or have found it dead and be about to.
func (p *Pin) keep() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-p.stop:
		case <-ctx.Done():
			return
		}
		// A renewal that is cut short may arrive after the removal: it is waited for.
		_ = sleep.For(ctx, releaseTimeout)
		cancel()
	}()
	for {
		select {
		case <-p.stop:
			return
		case <-time.After(p.times.Term / 3):
		}
		if sleep.Since(p.renewed) > p.times.Term {
			old := p.dir
			p.dir = newDir()
			_ = p.put(ctx) // if the files have gone meanwhile, reading them says so
			_ = remove(ctx, p.store, old)
		} else {
			_ = p.renew(ctx) // tried again soon
		}
	}
}

// Release removes the pin. What it does not manage to remove expires.
func (p *Pin) Release() {
	p.once.Do(func() {
		close(p.stop)
		p.done.Wait()
		p.remove()
	})
}

// releaseTimeout bounds the removal of a pin from a store that hangs.
const releaseTimeout = 10 * time.Second

func (p *Pin) remove() {
	ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
	defer cancel()
	_ = remove(ctx, p.store, p.dir)
}

func remove(ctx context.Context, store objstore.Store, dir string) error {
	return errors.Join(store.Delete(ctx, dir+heldName), store.Delete(ctx, dir+beatName))
}

// Guard takes a pin by itself once a read has lasted for a delay, and tries again while
// that fails: a table that cannot be written to is read without. The function that it
// returns ends the pin.
func Guard[P interface{ Release() }](delay time.Duration, take func(context.Context) (P, error)) (release func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Add(1)
	timer := time.AfterFunc(delay, func() {
		defer done.Done()
		hold(ctx, take)
	})
	return func() {
		cancel()
		if timer.Stop() {
			return
		}
		done.Wait()
	}
}

// hold has a pin until the context ends.
func hold[P interface{ Release() }](ctx context.Context, take func(context.Context) (P, error)) {
	for ctx.Err() == nil {
		p, err := take(ctx)
		if err == nil {
			<-ctx.Done()
			p.Release()
			return
		}
		_ = sleep.For(ctx, Default.Term/3)
	}
}

// Names is a set of keys and directories that pins hold.
type Names map[string]bool

// Has reports whether a key, or a directory that it is in, is held.
func (n Names) Has(key string) bool {
	if n[key] {
		return true
	}
	for i, c := range key {
		if c == '/' && n[key[:i+1]] {
			return true
		}
	}
	return false
}

// Watch remembers the beats of pins between looks. The zero value has seen none.
type Watch struct {
	mu   sync.Mutex
	seen map[string]sighting
}

// sighting is a beat and since when it stands.
type sighting struct {
	beat  string
	since time.Time
	// moved says that the beat has changed under our eyes.
	moved bool
}

// Look returns what pins hold that are not known to be dead, and how many pins are not
// known to live either. It removes dead ones.
func (w *Watch) Look(ctx context.Context, store objstore.Store) (held Names, unknown int, err error) {
	dirs, err := list(ctx, store)
	if err != nil {
		return nil, 0, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	held = Names{}
	seen := map[string]sighting{}
	defer func() { w.seen = seen }()
	var broken error
	for _, dir := range dirs {
		s, dead, err := w.look(ctx, store, dir)
		if err != nil {
			return nil, 0, err
		}
		if dead {
			if err := remove(ctx, store, dir); err != nil {
				return nil, 0, err
			}
			continue
		}
		if seen[dir] = s; !s.moved {
			unknown++
		}
		if err := read(ctx, store, dir, held); err != nil {
			broken = err // the others are looked at, so that it can expire
		}
	}
	return held, unknown, broken
}

// Settle looks until every pin is known to live or to be dead.
func (w *Watch) Settle(ctx context.Context, store objstore.Store) (Names, error) {
	for {
		held, unknown, err := w.Look(ctx, store)
		if err != nil || unknown == 0 {
			return held, err
		}
		if err := sleep.For(ctx, Default.Term/6); err != nil {
			return nil, err
		}
	}
}

// list returns the directories of the pins.
func list(ctx context.Context, store objstore.Store) (dirs []string, err error) {
	for info, err := range store.List(ctx, objstore.ListOptions{Prefix: Root, Delimiter: true}) {
		if err != nil {
			return nil, err
		}
		if _, err := format.ParseUUID(strings.TrimSuffix(strings.TrimPrefix(info.Key, Root), "/")); err == nil {
			dirs = append(dirs, info.Key)
		}
	}
	return dirs, nil
}

// maxPin bounds what a pin says, in bytes.
const maxPin = 256 << 20

func (w *Watch) look(ctx context.Context, store objstore.Store, dir string) (s sighting, dead bool, err error) {
	b, err := store.Get(ctx, dir+beatName, 1<<10)
	if err != nil && !errors.Is(err, objstore.ErrNotFound) && !errors.Is(err, objstore.ErrTooLarge) {
		return s, false, err
	}
	term := Default.Term
	var says beat
	if json.Unmarshal(b, &says) == nil && says.TermMS > 0 {
		term = time.Duration(min(says.TermMS, time.Hour.Milliseconds())) * time.Millisecond
	}
	old, known := w.seen[dir]
	switch {
	case !known:
		return sighting{string(b), time.Now(), false}, false, nil
	case old.beat != string(b):
		return sighting{string(b), time.Now(), true}, false, nil
	}
	return old, time.Since(old.since) > 2*term, nil
}

// read adds what a pin holds. One that cannot be read is an error: it may hold anything.
func read(ctx context.Context, store objstore.Store, dir string, into Names) error {
	b, err := store.Get(ctx, dir+heldName, maxPin)
	if errors.Is(err, objstore.ErrNotFound) {
		return nil // released, or not taken yet
	}
	if err != nil {
		return err
	}
	var h Held
	if err := json.Unmarshal(b, &h); err != nil {
		return fmt.Errorf("pin %s: %w", dir+heldName, err)
	}
	for _, k := range h.Keys {
		into[k] = true
	}
	return nil
}
