package lance

import (
	"context"
	"iter"
	"testing"
	"time"

	"github.com/foldlog/foldlog/internal/lancetest"
	"github.com/foldlog/foldlog/objstore"
)

// behind is a store whose clock is behind this machine's.
type behind struct {
	objstore.Store
	by time.Duration
}

// Stat implements objstore.Store.
func (b behind) Stat(ctx context.Context, key string) (objstore.Info, error) {
	info, err := b.Store.Stat(ctx, key)
	info.Modified = info.Modified.Add(-b.by)
	return info, err
}

// List implements objstore.Store.
func (b behind) List(ctx context.Context, opts objstore.ListOptions) iter.Seq2[objstore.Info, error] {
	return func(yield func(objstore.Info, error) bool) {
		for info, err := range b.Store.List(ctx, opts) {
			info.Modified = info.Modified.Add(-b.by)
			if !yield(info, err) {
				return
			}
		}
	}
}

// cleaning cleans a table up right before a version is put.
type cleaning struct {
	objstore.Store
	clean func()
}

// PutIfAbsent implements objstore.Store.
func (c *cleaning) PutIfAbsent(ctx context.Context, key string, data []byte) error {
	if clean := c.clean; clean != nil && len(key) > len(versionsDir) && key[:len(versionsDir)] == versionsDir {
		c.clean = nil
		clean()
	}
	return c.Store.PutIfAbsent(ctx, key, data)
}

// TestACleanUpWithAClockThatIsAheadLeavesWhatIsBeingWritten: files of a commit under way
// are young by the clock of the store that they are in.
func TestACleanUpWithAClockThatIsAheadLeavesWhatIsBeingWritten(t *testing.T) {
	store := &cleaning{Store: behind{objstore.NewMemory(), 48 * time.Hour}}
	d := filled(t, store, 50, 10)
	versions := 0
	for range 20 {
		next, err := d.Append(t.Context(), Batches(lancetest.Batch(0, 10)))
		ok(t, err)
		d = next
	}
	store.clean = func() {
		stats, err := d.CleanUp(t.Context(), CleanUpOptions{})
		ok(t, err)
		versions = stats.Versions
	}
	d, err := d.Append(t.Context(), Batches(lancetest.Batch(50, 60)))
	ok(t, err)
	if store.clean != nil || versions > 0 {
		t.Errorf("%d young versions were removed", versions)
	}
	rows := int64(0)
	for rec, err := range d.Scan(t.Context(), ScanOptions{}) {
		ok(t, err)
		rows += rec.NumRows()
	}
	if rows != d.Rows() {
		t.Errorf("%d of %d rows are there", rows, d.Rows())
	}
}
