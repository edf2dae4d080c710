package memwal

import (
	"context"
	"errors"
	"fmt"

	"github.com/foldlog/foldlog/lance"
	"github.com/foldlog/foldlog/objstore"
)

// Copy writes one state of the table, its latest version and what its shards have beyond
// it, into another store, the table's manifest last: until then there is no dataset. It
// is lance.ErrExists if there is one already. What it copies is pinned meanwhile, if the
// store can be written to. The copy has the shards under their ids, so a writer that
// claims one there goes on as if alone. It needs memory for objstore.CopyPart bytes.
// Progress gets a total only once the table itself is copied, which comes last.
func (t *Table) Copy(ctx context.Context, to objstore.Store, opts lance.CopyOptions) (lance.CopyStats, error) {
	if _, err := lance.Open(ctx, to, lance.OpenOptions{}); !errors.Is(err, lance.ErrNotFound) {
		if err == nil {
			err = lance.ErrExists
		}
		return lance.CopyStats{}, fmt.Errorf("copy: %w", err)
	}
	for try := 1; ; try++ {
		c := &copying{t: t, to: to, progress: opts.Progress}
		err := c.run(ctx, opts)
		if err == nil || try == planTries || !gone(err) {
			return c.stats, err
		}
	}
}

type copying struct {
	t        *Table
	to       objstore.Store
	progress func(done, total int64)
	stats    lance.CopyStats
}

func (c *copying) run(ctx context.Context, opts lance.CopyOptions) error {
	v, states, err := c.t.plan(ctx)
	if err != nil {
		return fmt.Errorf("copy: %w", err)
	}
	pin, err := v.Pin(ctx)
	if err == nil {
		defer pin.Release()
	} else if gone(err) {
		return fmt.Errorf("copy: %w", err)
	}
	for _, src := range v.gens {
		if err := c.below(ctx, src.dir+"/"); err != nil {
			return fmt.Errorf("copy: %w", src.named(err))
		}
	}
	for _, s := range states {
		if err := c.shard(ctx, s); err != nil {
			return fmt.Errorf("copy shard %s: %w", s.id, err)
		}
	}
	before := c.stats.Bytes
	if c.progress != nil {
		opts.Progress = func(done, total int64) { c.progress(before+done, before+total) }
	}
	stats, err := v.base.Copy(ctx, c.to, opts)
	c.stats.Files += stats.Files
	c.stats.Bytes += stats.Bytes
	return err
}

// shard copies the log, whose entries may hold rows that no generation has yet, and then
// the manifest. What goes meanwhile makes the copy begin anew.
func (c *copying) shard(ctx context.Context, s *state) error {
	if err := c.below(ctx, shardDir(s.id)+"wal/"); err != nil {
		return err
	}
	info, err := c.t.store.Stat(ctx, manifestKey(s.id, s.version))
	if err == nil {
		err = c.object(ctx, info)
	}
	if err != nil {
		return err
	}
	return putHint(ctx, c.to, s.id, s.version)
}

// below copies the objects of a directory.
func (c *copying) below(ctx context.Context, dir string) error {
	for info, err := range c.t.store.List(ctx, objstore.ListOptions{Prefix: dir}) {
		if err == nil {
			err = c.object(ctx, info)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *copying) object(ctx context.Context, info objstore.Info) error {
	err := objstore.CopyTo(ctx, c.to, c.t.store, info, func(n int64) {
		if c.stats.Bytes += n; c.progress != nil {
			c.progress(c.stats.Bytes, 0)
		}
	})
	if err == nil {
		c.stats.Files++
	}
	return err
}
