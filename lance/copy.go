package lance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/foldlog/foldlog/objstore"
)

// CopyOptions configures [Dataset.Copy]. The zero value is the default.
type CopyOptions struct {
	// Progress, if not nil, gets the bytes copied so far and those of the whole copy.
	Progress func(done, total int64)
}

// CopyStats counts what was copied.
type CopyStats struct {
	Files int
	Bytes int64
}

// Copy writes the version, with all its files and no version before it, into another
// store, its manifest last: until then there is no dataset. It is ErrExists if there is
// one already. The version is pinned meanwhile, if its store can be written to. The
// shards of a MemWAL are left out; package memwal copies them.
func (d *Dataset) Copy(ctx context.Context, to objstore.Store, opts CopyOptions) (CopyStats, error) {
	stats, err := d.copyTo(ctx, to, opts)
	if err != nil {
		return stats, fmt.Errorf("copy: %w", err)
	}
	return stats, nil
}

func (d *Dataset) copyTo(ctx context.Context, to objstore.Store, opts CopyOptions) (CopyStats, error) {
	if _, err := latestVersion(ctx, to); !errors.Is(err, ErrNotFound) {
		if err == nil {
			err = ErrExists
		}
		return CopyStats{}, err
	}
	pin, err := d.Pin(ctx)
	if errors.Is(err, ErrNotFound) {
		return CopyStats{}, err
	}
	if err == nil {
		defer pin.Release()
	}
	manifest, err := d.store.Get(ctx, manifestKey(d.m.Version), maxManifest)
	if err != nil {
		return CopyStats{}, err
	}
	objects, err := d.objects(ctx)
	if err != nil {
		return CopyStats{}, err
	}
	c := copier{from: d.store, to: to, progress: opts.Progress}
	for _, o := range objects {
		c.total += o.Size
	}
	for _, o := range objects {
		if err := c.object(ctx, o); err != nil {
			return c.stats, err
		}
	}
	err = to.PutIfAbsent(ctx, manifestKey(d.m.Version), manifest)
	if errors.Is(err, objstore.ErrExists) {
		err = ErrExists
	}
	if err != nil {
		return c.stats, err
	}
	c.stats.Files++
	c.stats.Bytes += int64(len(manifest))
	return c.stats, nil
}

// objects describes the files that the version names. A transaction that is inside the
// manifest may have no file.
func (d *Dataset) objects(ctx context.Context) ([]objstore.Info, error) {
	var out []objstore.Info
	for _, key := range d.heldKeys() {
		if key[len(key)-1] == '/' {
			for info, err := range d.store.List(ctx, objstore.ListOptions{Prefix: key}) {
				if err != nil {
					return nil, err
				}
				out = append(out, info)
			}
			continue
		}
		info, err := d.store.Stat(ctx, key)
		if errors.Is(err, objstore.ErrNotFound) && d.m.Inline != nil && key == transactionsDir+d.m.TransactionFile {
			continue
		}
		if err != nil {
			return nil, missing(key, err)
		}
		out = append(out, info)
	}
	slices.SortFunc(out, func(a, b objstore.Info) int { return strings.Compare(a.Key, b.Key) })
	return out, nil
}

// copier copies objects from one store to another.
type copier struct {
	from, to objstore.Store
	progress func(done, total int64)
	total    int64
	stats    CopyStats
}

// object copies one object.
func (c *copier) object(ctx context.Context, info objstore.Info) error {
	err := objstore.CopyTo(ctx, c.to, named{c.from}, info, func(n int64) {
		if c.stats.Bytes += n; c.progress != nil {
			c.progress(c.stats.Bytes, c.total)
		}
	})
	if err == nil {
		c.stats.Files++
	}
	return err
}

// named reads objects that a version names: one that is not there is corruption.
type named struct{ objstore.Store }

// Get implements objstore.Store.
func (n named) Get(ctx context.Context, key string, limit int64) ([]byte, error) {
	b, err := n.Store.Get(ctx, key, limit)
	return b, missing(key, err)
}

// GetRange implements objstore.Store.
func (n named) GetRange(ctx context.Context, key string, off, size int64) ([]byte, error) {
	b, err := n.Store.GetRange(ctx, key, off, size)
	return b, missing(key, err)
}
