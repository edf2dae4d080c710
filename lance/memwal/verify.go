package memwal

import (
	"context"
	"errors"
	"fmt"

	"github.com/foldlog/foldlog/lance"
	"github.com/foldlog/foldlog/lance/internal/format"
	"github.com/foldlog/foldlog/objstore"
)

// sidecars are the files of a generation that its version does not name.
var sidecars = []string{keyPages, keyLookup, bloomName}

// Verify checks the table as lance.Dataset.Verify does, and every generation that a
// shard names and the table does not have: that it is there with its sidecars, that it
// decodes, and has the rows that the shard's manifest says. It tells found every fault
// and goes on.
func (t *Table) Verify(ctx context.Context, found func(error)) (lance.VerifyStats, error) {
	return t.VerifyVersions(ctx, 1, found)
}

// VerifyVersions checks what Verify does, and also the versions of the table that are
// still listed, at most limit of them; zero is all. See lance.Dataset.VerifyVersions.
func (t *Table) VerifyVersions(ctx context.Context, limit int, found func(error)) (lance.VerifyStats, error) {
	states, err := t.states(ctx)
	if err != nil {
		return lance.VerifyStats{}, fmt.Errorf("verify: %w", err)
	}
	base, err := t.Base(ctx)
	if err != nil {
		return lance.VerifyStats{}, fmt.Errorf("verify: %w", err)
	}
	merged, _, err := base.MergeProgress()
	if err != nil {
		return lance.VerifyStats{}, fmt.Errorf("verify: %w", err)
	}
	var total lance.VerifyStats
	for _, s := range states { // first, for those that are merged may go while the base is read
		for _, g := range s.generations {
			if g.number <= merged[s.id] {
				continue
			}
			stats, err := t.verifyGeneration(ctx, s.id, g, found)
			total.Files += stats.Files
			total.Bytes += stats.Bytes
			total.Rows += stats.Rows
			if err != nil {
				return total, err
			}
		}
	}
	stats, err := base.VerifyVersions(ctx, limit, found)
	stats.Files += total.Files
	stats.Bytes += total.Bytes
	stats.Rows += total.Rows
	return stats, err
}

func (t *Table) verifyGeneration(ctx context.Context, id ID, g generation, found func(error)) (lance.VerifyStats, error) {
	dir := shardDir(id) + g.dir + "/"
	src, err := t.generation(ctx, id, g)
	if err != nil {
		found(err)
		return lance.VerifyStats{}, ctx.Err()
	}
	stats, err := src.d.Verify(ctx, func(err error) { found(src.named(err)) })
	if err != nil {
		return stats, err
	}
	if g.rows > 0 && g.rows != uint64(src.d.Rows()) {
		found(src.named(&lance.CorruptError{Path: format.ManifestKey(1), Err: fmt.Errorf("%w: %d rows, the shard says %d", lance.ErrCorrupt, src.d.Rows(), g.rows)}))
	}
	for _, name := range sidecars {
		info, err := t.store.Stat(ctx, dir+name)
		switch {
		case errors.Is(err, objstore.ErrNotFound):
			found(src.named(&lance.CorruptError{Path: name, Err: fmt.Errorf("%w: %w", lance.ErrCorrupt, err)}))
		case err != nil:
			found(err)
		default:
			stats.Files++
			stats.Bytes += info.Size
		}
	}
	return stats, ctx.Err()
}
