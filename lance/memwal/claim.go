package memwal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/foldlog/foldlog/internal/sleep"
	"github.com/foldlog/foldlog/lance"
	"github.com/foldlog/foldlog/lance/internal/format"
	"github.com/foldlog/foldlog/objstore"
)

// shard is a claimed shard. Its methods are not for concurrent use.
type shard struct {
	store  objstore.Store
	fields []format.Field
	key    string
	state  *state
	// fresh is when the state was put or read.
	fresh time.Time
}

// minGrace is the least that clean-up keeps versions of a manifest for. A put that
// follows the one before within half of it cannot take a number that was cleaned up.
const minGrace = 10 * time.Minute

// current checks, after a put that came late, that the version before is still there, or
// that the first is the only one: the oldest are removed first, so then ours was never
// another's. What was put where another's was is taken back, lest it is taken for the latest.
func (sh *shard) current(ctx context.Context, next *state) error {
	if sleep.Since(sh.fresh) < minGrace/2 {
		return nil
	}
	fenced, err := sh.overtaken(ctx, next)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnsure, err)
	}
	if fenced {
		_ = sh.store.Delete(ctx, manifestKey(next.id, next.version)) // hints begin above it
		return ErrFenced
	}
	return nil
}

// overtaken reports whether a version that was put had been another's before.
func (sh *shard) overtaken(ctx context.Context, next *state) (bool, error) {
	if next.version == 1 {
		highest, err := listed(ctx, sh.store, next.id)
		return highest > 1, err
	}
	_, err := sh.store.Stat(ctx, manifestKey(next.id, next.version-1))
	if errors.Is(err, objstore.ErrNotFound) {
		return true, nil
	}
	return false, err
}

// tableOf reads what a shard must know of the table.
func tableOf(ctx context.Context, d *lance.Dataset) (fields []format.Field, key string, err error) {
	b, err := d.Store().Get(ctx, format.ManifestKey(d.Version()), 1<<30)
	if err != nil {
		return nil, "", err
	}
	m, err := format.ParseManifest(b)
	if err != nil {
		return nil, "", err
	}
	if err := m.Writable(); err != nil {
		return nil, "", err
	}
	for _, f := range m.Fields {
		if f.PrimaryKey && f.Logical == "string" && f.Name == d.PrimaryKey() {
			key = f.Name
		}
		if f.Name == Tombstone {
			return nil, "", fmt.Errorf("the table has a column %q", Tombstone)
		}
	}
	if key == "" {
		return nil, "", ErrNoKey
	}
	return fieldsOfGeneration(m.Fields, key), key, nil
}

// claim takes a shard over with the next epoch, or makes it unless it must exist. Whoever
// had it cannot publish any more once this returns.
func claim(ctx context.Context, d *lance.Dataset, id ID, existing bool) (*shard, error) {
	fields, key, err := tableOf(ctx, d)
	if err != nil {
		return nil, err
	}
	sh := &shard{store: d.Store(), fields: fields, key: key}
	target := uint64(0)
	for {
		sh.fresh = time.Now()
		old, err := latestState(ctx, sh.store, id)
		var next *state
		switch {
		case errors.Is(err, objstore.ErrNotFound) && (existing || target != 0):
			return nil, ErrSealed
		case errors.Is(err, objstore.ErrNotFound):
			if err := neverMerged(ctx, d, id); err != nil {
				return nil, err
			}
			next = &state{version: 1, epoch: 1, next: 1, id: id}
		case err != nil:
			return nil, err
		case old.status != statusActive:
			return nil, ErrSealed
		case target != 0 && old.epoch >= target:
			return nil, ErrFenced
		default:
			next = old.clone()
			next.version++
			next.epoch++
		}
		target = next.epoch
		err = sh.store.PutIfAbsent(ctx, manifestKey(id, next.version), next.message())
		if errors.Is(err, objstore.ErrExists) {
			continue
		}
		if err != nil {
			return nil, err
		}
		sh.state = next
		if err := sh.current(ctx, next); err != nil {
			return nil, err
		}
		if next.epoch == 1 {
			return sh, nil
		}
		return sh, sh.takeOver(ctx)
	}
}

// neverMerged is ErrSealed for a shard that was sealed, merged and removed: its generations
// would begin from one again, which the table takes for merged.
func neverMerged(ctx context.Context, d *lance.Dataset, id ID) error {
	d, err := d.Latest(ctx)
	if err != nil {
		return err
	}
	merged, _, err := d.MergeProgress()
	if err != nil {
		return err
	}
	if merged[id] > 0 {
		return ErrSealed
	}
	return nil
}

// takeOver fences the owner before and replays what it left in the log: each entry
// becomes a generation of its own.
func (sh *shard) takeOver(ctx context.Context) error {
	end, err := fence(ctx, sh.store, sh.state)
	if err != nil {
		return fmt.Errorf("fence: %w", err)
	}
	for at := sh.state.replayAfter + 1; at < end; at++ {
		e, err := readWAL(ctx, sh.store, sh.state.id, at)
		if err != nil {
			return fmt.Errorf("replay: %w", err)
		}
		if e.epoch > sh.state.epoch {
			return ErrFenced
		}
		if e.sentinel {
			continue
		}
		if err := sh.flush(ctx, e.batches, at); err != nil {
			return fmt.Errorf("replay entry %d: %w", at, err)
		}
	}
	return sh.update(ctx, func(next *state) { next.replayAfter, next.lastSeen = end, max(next.lastSeen, end) })
}

// flush makes rows a generation. With its manifest it is acknowledged; before that
// nothing has happened, and the next flush takes the same number.
func (sh *shard) flush(ctx context.Context, batches []arrow.RecordBatch, replayed uint64) error {
	g, files, err := sh.layout(batches)
	if err != nil {
		return err
	}
	next := sh.state.clone()
	next.version++
	next.generations = append(next.generations, g)
	next.next = g.number + 1
	next.replayAfter = max(next.replayAfter, replayed)
	next.lastSeen = max(next.lastSeen, replayed)
	commit, err := objstore.Stage(ctx, sh.store, files, objstore.Object{Key: manifestKey(next.id, next.version), Data: next.message()})
	if err != nil {
		return err
	}
	return sh.publish(ctx, next, commit)
}

// layout makes the files of a generation out of batches, whose memory may be hostile: the
// Arrow library panics on some only when they are read.
func (sh *shard) layout(batches []arrow.RecordBatch) (g generation, files []objstore.Object, err error) {
	defer corruptOnPanic(&err)
	c, err := gather(sh.fields, sh.key, batches)
	if err != nil {
		return generation{}, nil, err
	}
	return c.layout(sh.state.id, sh.state.next)
}

// update puts the next version of the manifest.
func (sh *shard) update(ctx context.Context, change func(*state)) error {
	next := sh.state.clone()
	next.version++
	change(next)
	return sh.publish(ctx, next, func(ctx context.Context) error {
		return sh.store.PutIfAbsent(ctx, manifestKey(next.id, next.version), next.message())
	})
}

// publish puts a manifest. ErrFenced says that the shard is another's, ErrUnsure that
// this cannot be told.
func (sh *shard) publish(ctx context.Context, next *state, put func(context.Context) error) error {
	start := time.Now()
	err := put(ctx)
	switch {
	case err == nil:
		if err := sh.current(ctx, next); err != nil {
			return err
		}
		sh.state, sh.fresh = next, start
		return nil
	case errors.Is(err, objstore.ErrExists):
		return ErrFenced // only a claim takes a version that is ours
	}
	return fmt.Errorf("%w: %w", ErrUnsure, err)
}
