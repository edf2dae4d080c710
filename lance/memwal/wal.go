package memwal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/foldlog/foldlog/lance"
	"github.com/foldlog/foldlog/lance/internal/arrowipc"
	"github.com/foldlog/foldlog/objstore"
)

// A write-ahead log entry is an Arrow stream at a position, from 1 on, whose schema
// says in its metadata which epoch wrote it. A fence sentinel is an entry without
// rows, which takes the position that an owner before would write next.
const (
	metaEpoch    = "writer_epoch"
	metaSentinel = "fence_sentinel"
	maxWALEntry  = 1 << 30
)

type walEntry struct {
	epoch    uint64
	sentinel bool
	batches  []arrow.RecordBatch
}

// parseWAL reads an entry, whose bytes may be hostile.
func parseWAL(b []byte) (e *walEntry, err error) {
	defer corruptOnPanic(&err)
	r, err := arrowipc.Stream(b)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", lance.ErrCorrupt, err)
	}
	defer r.Release()
	e = &walEntry{}
	meta := r.Schema().Metadata()
	epoch, there := meta.GetValue(metaEpoch)
	if e.epoch, err = strconv.ParseUint(epoch, 10, 64); !there || err != nil {
		return nil, fmt.Errorf("%w: writer epoch %q", lance.ErrCorrupt, epoch)
	}
	sentinel, _ := meta.GetValue(metaSentinel)
	e.sentinel = sentinel == "true"
	for r.Next() {
		rec := r.RecordBatch()
		rec.Retain()
		e.batches = append(e.batches, rec)
	}
	if err := r.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", lance.ErrCorrupt, err)
	}
	return e, nil
}

// corruptOnPanic makes an error of a panic of the Arrow library, which some bytes cause.
func corruptOnPanic(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: %v", lance.ErrCorrupt, p)
	}
}

// readWAL reads the entry at a position; objstore.ErrNotFound is the log's end.
func readWAL(ctx context.Context, store objstore.Store, id ID, position uint64) (*walEntry, error) {
	key := walKey(id, position)
	b, err := store.Get(ctx, key, maxWALEntry)
	if err != nil {
		return nil, err
	}
	e, err := parseWAL(b)
	if err != nil {
		return nil, &lance.CorruptError{Path: key, Err: err}
	}
	return e, nil
}

// sentinelBytes is the entry that fences the owners of earlier epochs.
func sentinelBytes(epoch uint64) ([]byte, error) {
	meta := arrow.NewMetadata([]string{metaEpoch, metaSentinel}, []string{strconv.FormatUint(epoch, 10), "true"})
	var b bytes.Buffer
	w := ipc.NewWriter(&b, ipc.WithSchema(arrow.NewSchema(nil, &meta)))
	err := w.Close()
	return b.Bytes(), err
}

// fence puts a sentinel at the end of the log and returns its position.
func fence(ctx context.Context, store objstore.Store, s *state) (uint64, error) {
	b, err := sentinelBytes(s.epoch)
	if err != nil {
		return 0, err
	}
	for at := s.replayAfter + 1; ; at++ {
		_, err := store.Stat(ctx, walKey(s.id, at))
		if err == nil {
			continue
		}
		if !errors.Is(err, objstore.ErrNotFound) {
			return 0, err
		}
		err = store.PutIfAbsent(ctx, walKey(s.id, at), b)
		if err == nil {
			return at, nil
		}
		if !errors.Is(err, objstore.ErrExists) {
			return 0, err
		}
	}
}
