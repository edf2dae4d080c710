package format

import (
	"fmt"
	"time"

	"github.com/foldlog/foldlog/lance/internal/wire"
)

// NewMemWALIndex returns the system index of a table whose shards are made by hand:
// one "unsharded" sharding spec, as LanceDB writes it.
func NewMemWALIndex(datasetVersion uint64) Index {
	field := wire.Builder(nil).String(1, "bucket").String(3, "unsharded").String(5, "int32")
	spec := wire.Builder(nil).Uint(1, 1).Bytes(2, field)
	return Index{
		UUID: NewUUID(), Name: MemWALName, DatasetVersion: datasetVersion,
		DetailsURL: memWALDetails, Details: wire.Builder(nil).Uint(2, 1).Bytes(7, spec),
		CreatedMS: uint64(time.Now().UnixMilli()),
	}
}

// detailCompacted is the field of the details that holds the merge progress.
const detailCompacted = 9

// MergeProgress returns up to which generation each shard is merged.
func (x Index) MergeProgress() (map[UUID]uint64, error) {
	fields, err := wire.Parse(x.Details)
	if err != nil {
		return nil, fmt.Errorf("%w: index %s: %w", ErrCorrupt, x.Name, err)
	}
	done := map[UUID]uint64{}
	for f := range fields.All() {
		if f.Num != detailCompacted {
			continue
		}
		c, err := ParseCompacted(f.B)
		if err != nil {
			return nil, fmt.Errorf("%w: index %s: %w", ErrCorrupt, x.Name, err)
		}
		done[c.Shard] = max(done[c.Shard], c.Generation)
	}
	return done, nil
}

// WithProgress returns the index with one shard's progress replaced.
func (x Index) WithProgress(c Compacted) (Index, error) {
	fields, err := wire.Parse(x.Details)
	if err != nil {
		return x, fmt.Errorf("%w: index %s: %w", ErrCorrupt, x.Name, err)
	}
	details := wire.Builder(nil)
	for f := range fields.All() {
		if f.Num == detailCompacted {
			old, err := ParseCompacted(f.B)
			if err != nil {
				return x, fmt.Errorf("%w: index %s: %w", ErrCorrupt, x.Name, err)
			}
			if old.Shard == c.Shard {
				continue
			}
		}
		details = details.Raw(f.Raw)
	}
	next := x.Changed()
	next.Details = details.Bytes(detailCompacted, c.Message())
	return next, nil
}
