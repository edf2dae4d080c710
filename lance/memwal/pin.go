package memwal

import (
	"context"

	"github.com/foldlog/foldlog/internal/parallel"
	"github.com/foldlog/foldlog/lance"
	"github.com/foldlog/foldlog/lance/internal/format"
	"github.com/foldlog/foldlog/lance/internal/pins"
)

// Pin keeps the files of a view from clean-up and collection, whoever calls them and
// however short their ages, until it is released. See lance.Pin.
type Pin struct {
	base *lance.Pin
	gens *pins.Pin
}

// Release ends the pin.
func (p *Pin) Release() {
	if p.base != nil {
		p.base.Release()
	}
	if p.gens != nil {
		p.gens.Release()
	}
}

// Pin keeps the view's files until the pin is released. If some have gone already, it is
// an error for which errors.Is with lance.ErrNotFound or objstore.ErrNotFound holds.
// Scans that last longer than a minute pin by themselves.
func (v *View) Pin(ctx context.Context) (*Pin, error) {
	p := &Pin{}
	var err error
	if p.base, err = v.base.Pin(ctx); err != nil {
		return nil, err
	}
	if len(v.gens) == 0 {
		return p, nil
	}
	held := pins.Held{Version: v.base.Version()}
	for _, src := range v.gens {
		held.Keys = append(held.Keys, src.dir+"/")
	}
	if p.gens, err = pins.Take(ctx, v.table.store, held, v.stillThere); err != nil {
		p.base.Release()
		return nil, err
	}
	return p, nil
}

// stillThere fails if the version of a generation has been removed.
func (v *View) stillThere(ctx context.Context) error {
	return parallel.Each(len(v.gens), ioWorkers, func(i int) error {
		_, err := v.table.store.Stat(ctx, v.gens[i].dir+"/"+format.ManifestKey(1))
		return err
	})
}

// guard pins the view once reading it lasts.
func (v *View) guard() (release func()) { return pins.Guard(pins.Default.After, v.Pin) }
