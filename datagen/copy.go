package datagen

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/foldlog/foldlog/lance"
	"github.com/foldlog/foldlog/lance/memwal"
	"github.com/foldlog/foldlog/objstore"
)

// Copy writes the state into an empty store, as one table without shards, and returns how
// many events it has. It is lance.ErrExists if there is a table already. What it reads is
// kept from clean-up meanwhile, whatever its age. Until it returns nil the store holds no
// event. Progress, if not nil, is told the events copied and to be copied, as far as known.
func (v *View) Copy(ctx context.Context, to objstore.Store, progress func(done, total int64)) (events int64, err error) {
	d, err := lance.Create(ctx, to, v.state().Base().Schema())
	if err != nil {
		return 0, fmt.Errorf("copy log: %w", err)
	}
	err = v.held(ctx, func(m *memwal.View) error {
		full, err := d.Append(ctx, rowsOf(ctx, m, progress))
		if err == nil {
			events = full.Rows()
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("copy log: %w", err)
	}
	return events, nil
}

// rowsOf are the rows of a state, each event once.
func rowsOf(ctx context.Context, m *memwal.View, progress func(done, total int64)) func(func(arrow.RecordBatch, error) bool) {
	return func(yield func(arrow.RecordBatch, error) bool) {
		done := int64(0)
		for rows, err := range m.Scan(ctx, lance.ScanOptions{}) {
			if !yield(rows.RecordBatch, err) || err != nil {
				return
			}
			if done += rows.NumRows(); progress != nil {
				progress(done, max(done, m.Base().Rows()))
			}
		}
	}
}
