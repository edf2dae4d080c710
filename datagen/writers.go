package datagen

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/foldlog/foldlog/lance/memwal"
	"github.com/foldlog/foldlog/objstore"
)

// WriterInfo is a writer of the log as it is seen from here.
type WriterInfo struct {
	// Shard is the writer's, which its writer epochs begin with.
	Shard memwal.ID
	// Run, Host and PID are what it says of itself; empty for other programs.
	Run, Host string
	PID       int
	// Alive says that it moved within its lease's term, as far as was watched. Sealed
	// says that it can write no more. Free is in how long it is taken for dead.
	Alive, Sealed bool
	Free          time.Duration
	// Unmerged counts its generations that the table does not have yet, with Rows.
	Unmerged int
	Rows     int64
}

// Writers describes the writers whose shards are still there.
func (l *Log) Writers(ctx context.Context) ([]WriterInfo, error) {
	shards, err := l.table.Shards(ctx)
	if err != nil {
		return nil, fmt.Errorf("list writers: %w", err)
	}
	var out []WriterInfo
	for _, s := range shards {
		st, err := l.watches.of(s.ID).stand(ctx)
		if err != nil {
			return nil, fmt.Errorf("list writers: %w", err)
		}
		out = append(out, WriterInfo{
			Shard: s.ID, Run: st.holder.Run, Host: st.holder.Host, PID: st.holder.PID,
			Alive: !st.dead, Sealed: st.sealed, Free: st.free, Unmerged: s.Unmerged, Rows: s.Rows,
		})
	}
	return out, nil
}

// others reports whether there are writers besides one that have a lease.
func (l *Log) others(ctx context.Context, but *Writer) (bool, error) {
	for info, err := range l.coord.List(ctx, objstore.ListOptions{Prefix: writersDir, Delimiter: true}) {
		if err != nil {
			return false, err
		}
		id, err := memwal.ParseID(strings.TrimSuffix(strings.TrimPrefix(info.Key, writersDir), "/"))
		if err != nil || id == but.shard {
			continue
		}
		st, err := l.watches.of(id).stand(ctx)
		if err != nil && !errors.Is(err, objstore.ErrNotFound) {
			return false, err
		}
		if !st.dead {
			return true, nil
		}
	}
	return false, nil
}

// leaseShard is the shard of the writer whose lease a file is.
func leaseShard(key string) (memwal.ID, bool) {
	name, _, ok := strings.Cut(strings.TrimPrefix(key, writersDir), "/")
	id, err := memwal.ParseID(name)
	return id, ok && err == nil
}

// over reports whether a writer's shard is gone and its lease, if it has one, dead: a
// writer takes its lease before it makes its shard.
func (w *watch) over(ctx context.Context) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.log.table.Shard(ctx, w.shard)
	if !errors.Is(err, objstore.ErrNotFound) {
		return false, err
	}
	s, err := w.lease(ctx)
	if errors.Is(err, objstore.ErrNotFound) {
		return true, nil
	}
	return s.dead, err
}
