package lance

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/foldlog/foldlog/internal/sleep"
	"github.com/foldlog/foldlog/lance/internal/format"
	"github.com/foldlog/foldlog/objstore"
)

// MaxCommitAge is how long one attempt to commit may take from its planning on. Later
// it is given up with ErrStale: clean-up may have taken its files for abandoned.
const MaxCommitAge = 2 * time.Hour

// minKeepAge is the least that clean-up keeps versions for. A manifest that is put
// within half of it after the latest was read cannot take a number that was used.
const minKeepAge = 10 * time.Minute

// maxCommitPause bounds the pause between two tries, which keeps many committers
// from colliding for ever.
const maxCommitPause = 200 * time.Millisecond

// errReplan tells an operation to look at the latest version and plan anew.
var errReplan = errors.New("plan again")

// change is what one commit does.
type change struct {
	txn *format.Transaction
	// apply makes the next version of a clone of the latest. It may run several
	// times, each on a fresh clone.
	apply func(latest *format.Manifest) error
	// check, if there, judges one transaction that came in between beyond the
	// rules for its kind.
	check func(latest *format.Manifest) error
	// start is when planning began.
	start time.Time
}

// commit makes a change the next version after whatever is the latest.
func (d *Dataset) commit(ctx context.Context, c change) (*Dataset, error) {
	next, err := d.tryCommit(ctx, c)
	if err != nil && !errors.Is(err, errReplan) {
		err = fmt.Errorf("commit %s: %w", c.txn.Kind, err)
	}
	return next, err
}

func (d *Dataset) tryCommit(ctx context.Context, c change) (*Dataset, error) {
	c.txn.ReadVersion = d.m.Version
	c.txn.UUID = format.NewUUID().String()
	if err := d.m.Writable(); err != nil {
		return nil, err
	}
	name := c.txn.FileName()
	if err := d.store.PutIfAbsent(ctx, transactionsDir+name, c.txn.Message()); err != nil {
		return nil, err
	}
	select {
	case <-d.cache.commits:
		defer func() { d.cache.commits <- struct{}{} }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	base := d
	for try := 0; ; try++ {
		read := time.Now()
		latest, err := base.Latest(ctx)
		if err != nil {
			return nil, err
		}
		if latest.m.Version > base.m.Version {
			if err := c.judge(ctx, base, latest); err != nil {
				return nil, err
			}
			base = latest
		}
		if sleep.Since(c.start) > MaxCommitAge {
			return nil, ErrStale
		}
		next, err := base.put(ctx, c, name)
		if err == nil {
			if err := next.descends(ctx, base, read); err != nil {
				return nil, err
			}
			return next, nil
		}
		if !errors.Is(err, objstore.ErrExists) {
			return nil, err
		}
		if err := sleep.For(ctx, rand.N(min(maxCommitPause, time.Millisecond<<min(try, 10)))); err != nil {
			return nil, err
		}
	}
}

// judge holds the change against every version that came in between.
func (c change) judge(ctx context.Context, base, latest *Dataset) error {
	if err := latest.m.Writable(); err != nil {
		return err
	}
	for v := base.m.Version + 1; v <= latest.m.Version; v++ {
		other, err := cached(latest.cache, fmt.Sprintf("version#%d", v), func() (*format.Transaction, int64, error) {
			t, err := latest.transaction(ctx, v)
			return t, transactionCost, err
		})
		if errors.Is(err, ErrNotFound) {
			err = ErrStale
		}
		if err != nil {
			return fmt.Errorf("read what version %d changed: %w", v, err)
		}
		if err := conflict(c.txn, other); err != nil {
			return err
		}
	}
	if c.check != nil {
		return c.check(latest.m)
	}
	return nil
}

// transactionCost is about what a transaction takes in memory, in bytes.
const transactionCost = 4096

// transaction reads what a version changed.
func (d *Dataset) transaction(ctx context.Context, version uint64) (*format.Transaction, error) {
	m := d.m
	if version != m.Version {
		var err error
		if m, err = readManifest(ctx, d.store, version); err != nil {
			return nil, err
		}
	}
	if m.Inline != nil {
		return format.ParseTransaction(m.Inline)
	}
	if m.TransactionFile == "" {
		return nil, &UnsupportedError{What: "a version without a transaction"}
	}
	key := transactionsDir + m.TransactionFile
	b, err := d.store.Get(ctx, key, maxManifest)
	if err != nil {
		return nil, missing(key, err)
	}
	t, err := format.ParseTransaction(b)
	return t, in(key, err)
}

// put writes the manifest that makes the change version d+1: the commit point.
func (d *Dataset) put(ctx context.Context, c change, txnFile string) (*Dataset, error) {
	m := d.m.Clone()
	if err := c.apply(m); err != nil {
		return nil, err
	}
	m.Version = d.m.Version + 1
	m.Time = time.Now()
	m.TransactionFile = txnFile
	m.Inline = nil
	if err := d.store.PutIfAbsent(ctx, manifestKey(m.Version), m.File()); err != nil {
		return nil, err
	}
	m.Writer = format.WriterName + " " + format.WriterVersion
	return d.other(newDataset(d.store, m, d.cache))
}

// descends checks, after a put that came late, that the version we built on is still
// there: clean-up removes the oldest first, so then ours was never removed and written
// anew by us.
func (d *Dataset) descends(ctx context.Context, base *Dataset, read time.Time) error {
	if sleep.Since(read) < minKeepAge/2 {
		return nil
	}
	_, err := d.store.Stat(ctx, manifestKey(base.m.Version))
	switch {
	case errors.Is(err, objstore.ErrNotFound):
		return ErrStale
	case err != nil:
		return fmt.Errorf("%w: %w", objstore.ErrAmbiguous, err)
	}
	return nil
}

// conflict judges a change against one that was committed first. It returns nil if
// both can stand, errReplan if ours must be planned anew, or ErrConflict.
func conflict(ours, theirs *format.Transaction) error {
	incompatible := fmt.Errorf("%w: another committed %s", ErrConflict, theirs.Kind)
	switch theirs.Kind {
	case format.Append, format.ReserveFragments, format.UpdateConfig:
		return nil
	case format.Delete, format.Update:
		return conflictUpdate(ours, theirs)
	case format.Rewrite:
		return conflictRewrite(ours, theirs)
	case format.CreateIndex:
		return conflictIndex(ours, theirs)
	case format.UpdateMemWALState:
		for _, x := range ours.NewIndexes {
			if x.Name == format.MemWALName {
				return errReplan
			}
		}
		return nil // merge progress is looked at when the manifest is made
	}
	return incompatible
}

// touched returns the fragments that a transaction modifies or removes.
func touched(t *format.Transaction) map[uint64]bool {
	ids := map[uint64]bool{}
	for _, f := range t.Updated {
		ids[f.ID] = true
	}
	for _, id := range t.Removed {
		ids[id] = true
	}
	for _, g := range t.Groups {
		for _, f := range g.Old {
			ids[f.ID] = true
		}
	}
	return ids
}

func overlap(a, b map[uint64]bool) bool {
	for id := range a {
		if b[id] {
			return true
		}
	}
	return false
}

func conflictUpdate(ours, theirs *format.Transaction) error {
	if overlap(touched(ours), touched(theirs)) {
		return errReplan
	}
	for _, a := range ours.Compacted {
		for _, b := range theirs.Compacted {
			if a.Shard == b.Shard {
				return errReplan
			}
		}
	}
	return nil
}

// conflictRewrite: rows that we hold addresses of have moved.
func conflictRewrite(ours, theirs *format.Transaction) error {
	moved := touched(theirs)
	if overlap(touched(ours), moved) {
		return errReplan
	}
	for _, x := range ours.NewIndexes {
		if x.Fragments == nil {
			return errReplan
		}
		for id := range moved {
			if x.Fragments.Contains(uint32(id)) {
				return errReplan
			}
		}
	}
	for _, a := range ours.Rewritten {
		for _, b := range theirs.Rewritten {
			if a.Old == b.Old {
				return errReplan
			}
		}
	}
	return nil
}

// conflictIndex: an index of the same name, or one over rows that we are moving.
func conflictIndex(ours, theirs *format.Transaction) error {
	for _, b := range theirs.NewIndexes {
		for _, a := range ours.NewIndexes {
			if a.Name == b.Name {
				return errReplan
			}
		}
		if ours.Kind == format.Rewrite && b.Name != format.MemWALName {
			return errReplan
		}
	}
	if ours.Kind == format.Rewrite && len(theirs.RemovedIndexes) > 0 {
		return errReplan
	}
	return nil
}
