package datagen

import (
	"context"
	"fmt"
	"iter"

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

// Verify checks the table and its generations as memwal.Table.Verify does, that copies
// of an event are the same, that every item folds without a fault, and the checksum of
// every blob. It tells found every finding and goes on. Memory is that of View.Folds.
func (l *Log) Verify(ctx context.Context, found func(error)) (VerifyStats, error) {
	return l.VerifyVersions(ctx, 1, found)
}

// VerifyVersions is Verify, and besides looks at versions of the table that are still
// listed, at most limit of them with the latest; zero is all.
func (l *Log) VerifyVersions(ctx context.Context, limit int, found func(error)) (stats VerifyStats, err error) {
	if stats.VerifyStats, err = l.table.VerifyVersions(ctx, limit, found); err == nil {
		var v *View
		if v, err = l.View(ctx); err == nil {
			err = v.verifyEvents(ctx, &stats, found)
		}
	}
	if err != nil {
		err = fmt.Errorf("verify: %w", err)
	}
	return stats, err
}

// Verify checks what the events of one state say, as Log.Verify does, which checks the files
// as well.
func (v *View) Verify(ctx context.Context, found func(error)) (stats VerifyStats, err error) {
	if err = v.verifyEvents(ctx, &stats, found); err != nil {
		err = fmt.Errorf("verify: %w", err)
	}
	return stats, err
}

// verifyEvents folds all items, with every copy of their events.
func (v *View) verifyEvents(ctx context.Context, stats *VerifyStats, found func(error)) error {
	var p *parts
	defer func() { p.close() }()
	err := v.held(ctx, func(m *memwal.View) error {
		p.close()
		p = v.log.newParts()
		return copies(ctx, m, p.add)
	})
	if err != nil {
		return err
	}
	return p.each(func(events iter.Seq2[Event, error]) error {
		folders, err := foldersOf(events)
		if err != nil {
			return err
		}
		stats.Items += len(folders)
		for _, f := range folders {
			if err := v.verifyItem(ctx, f, stats, found); err != nil {
				return err
			}
		}
		return nil
	})
}

func (v *View) verifyItem(ctx context.Context, f *Folder, stats *VerifyStats, found func(error)) error {
	for _, fault := range f.Item().Faults {
		found(&fault)
	}
	events := f.Events()
	stats.Events += int64(len(events))
	for i := range events {
		field := events[i].Field
		if field == nil || field.Value.Kind != Blob {
			continue
		}
		stats.Blobs++
		if _, err := v.Blob(ctx, field.Value.Blob); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			found(err)
		}
	}
	return nil
}

// copies passes over every copy of every event.
func copies(ctx context.Context, m *memwal.View, take func(*Event) error) error {
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
