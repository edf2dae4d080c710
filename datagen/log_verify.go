package datagen

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/foldlog/foldlog/lance"
	"github.com/foldlog/foldlog/lance/memwal"
)

// VerifyStats counts what a verification looked at.
type VerifyStats struct {
	lance.VerifyStats
	Items  int
	Events int64
	Blobs  int
}

// foldAtOnce bounds how many events one pass of a verification keeps.
const foldAtOnce = 200_000

// Verify checks the table and its generations as memwal.Table.Verify does, that copies
// of an event are the same, that every item folds without a fault, and the checksum of
// every blob. It tells found every finding and goes on. Memory is that of a Summary and
// of some hundred thousand events.
func (l *Log) Verify(ctx context.Context, found func(error)) (VerifyStats, error) {
	var stats VerifyStats
	var err error
	if stats.VerifyStats, err = l.table.Verify(ctx, found); err != nil {
		return stats, fmt.Errorf("verify: %w", err)
	}
	v, err := l.View(ctx)
	if err != nil {
		return stats, fmt.Errorf("verify: %w", err)
	}
	sum, err := v.Summary(ctx)
	if err != nil {
		return stats, fmt.Errorf("verify: %w", err)
	}
	o := sum.Overview()
	stats.Items, stats.Events = o.Items, o.Events
	parts := int(o.Events/foldAtOnce) + 1
	for part := range parts {
		if err := v.verifyPart(ctx, uint64(part), uint64(parts), &stats, found); err != nil {
			return stats, fmt.Errorf("verify: %w", err)
		}
	}
	return stats, nil
}

// verifyPart folds the items of one part of all, with every copy of their events.
func (v *View) verifyPart(ctx context.Context, part, parts uint64, stats *VerifyStats, found func(error)) error {
	var folders map[string]*Folder
	var blobs []BlobRef
	take := func(e *Event) {
		if hashItem(e.Item).lo%parts != part {
			return
		}
		if folders[e.Item] == nil {
			folders[e.Item] = &Folder{}
		}
		folders[e.Item].Add(*e)
		if e.Field != nil && e.Field.Value.Kind == Blob {
			blobs = append(blobs, e.Field.Value.Blob)
		}
	}
	err := v.read(ctx, func(m *memwal.View) error {
		folders, blobs = map[string]*Folder{}, nil
		return v.copies(ctx, m, take)
	})
	if err != nil {
		return err
	}
	for _, f := range folders {
		for _, fault := range f.Item().Faults {
			found(&fault)
		}
	}
	for _, ref := range blobs {
		stats.Blobs++
		if _, err := v.Blob(ctx, ref); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			found(err)
		}
	}
	return nil
}

// copies passes over every copy of every event.
func (v *View) copies(ctx context.Context, m *memwal.View, take func(*Event)) error {
	for _, src := range m.Sources() {
		for rec, err := range src.Data.Scan(ctx, lance.ScanOptions{Columns: LightColumns(src.Data.Schema())}) {
			if err == nil {
				err = decodeAll(rec, take)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func decodeAll(rec arrow.RecordBatch, take func(*Event)) error {
	for e, err := range Decode(rec) {
		if err != nil {
			return err
		}
		take(&e)
	}
	return nil
}
