package lance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/foldlog/foldlog/internal/sleep"
	"github.com/foldlog/foldlog/lance/internal/pins"
	"github.com/foldlog/foldlog/objstore"
)

// Pin keeps the files of one version from [Dataset.CleanUp], whoever calls it and
// however short its ages, until it is released. It is renewed in the background; that
// of a process that died expires once cleaners have seen it stand still for a minute.
type Pin struct{ p *pins.Pin }

// Release ends the pin.
func (p *Pin) Release() { p.p.Release() }

// Pin keeps the version's files until the pin is released. It is ErrNotFound if clean-up
// has passed the version. Scans that last longer than a minute pin by themselves.
func (d *Dataset) Pin(ctx context.Context) (*Pin, error) {
	p, err := d.pin(ctx)
	if err != nil {
		return nil, err
	}
	return &Pin{p}, nil
}

func (d *Dataset) pin(ctx context.Context) (*pins.Pin, error) {
	return pins.Take(ctx, d.store, pins.Held{Version: d.m.Version, Keys: d.heldKeys()}, d.stillListed)
}

// heldKeys are the files that the version names.
func (d *Dataset) heldKeys() []string {
	named := map[string]bool{}
	nameFiles(d.m, named)
	keys := make([]string, 0, len(named))
	for k := range named {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// stillListed fails if the version has been removed.
func (d *Dataset) stillListed(ctx context.Context) error {
	_, err := d.store.Stat(ctx, manifestKey(d.m.Version))
	if errors.Is(err, objstore.ErrNotFound) {
		return fmt.Errorf("version %d: %w", d.m.Version, ErrNotFound)
	}
	return err
}

// freshness is when a handle was last known to be of the latest version.
type freshness struct {
	mu sync.Mutex
	at time.Time
}

func (f *freshness) set(at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at = at
}

func (f *freshness) age() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return sleep.Since(f.at)
}

// guard pins the version once a read lasts, and returns what ends that. Shorter reads
// rest on the grace of clean-up, which begins when a version is not the latest any more:
// a handle that is older has less of it left, and pins earlier.
func (d *Dataset) guard() (release func()) {
	if d.guarded {
		return func() {}
	}
	delay := pins.Default.After
	if d.fresh.age() > minKeepAge/2 {
		delay = min(delay, time.Second)
	}
	return pins.Guard(delay, d.pin)
}
