package datagen

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/foldlog/foldlog/lance/memwal"
	"github.com/foldlog/foldlog/objstore"
)

// The names below coordination/.
const (
	coordination   = "coordination"
	writersDir     = "writers/"
	claimsDir      = "claims/"
	maintenanceDir = "maintenance"
)

// watches is what this process has seen of the writers of a log, each by its lease:
// only who watches for a term can find one dead.
type watches struct {
	log *Log
	mu  sync.Mutex
	by  map[memwal.ID]*watch
}

// watch is one writer as it is seen from here.
type watch struct {
	log   *Log
	shard memwal.ID

	sealing  sync.Mutex // held by the one that seals it
	mu       sync.Mutex
	election *objstore.Election
	sealed   bool
	// version is the manifest of a shard that has no lease, since when it stands.
	version uint64
	since   time.Time
}

func (ws *watches) of(shard memwal.ID) *watch {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.by == nil {
		ws.by = map[memwal.ID]*watch{}
	}
	w := ws.by[shard]
	if w == nil {
		w = &watch{log: ws.log, shard: shard}
		ws.by[shard] = w
	}
	return w
}

// forget drops writers of which nothing is left in the store.
func (ws *watches) forget(gone map[memwal.ID]bool) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	maps.DeleteFunc(ws.by, func(shard memwal.ID, _ *watch) bool { return gone[shard] })
}

// leaseOf is a participant in the lease of a writer.
func (l *Log) leaseOf(shard memwal.ID, h holder) (*objstore.Election, error) {
	return objstore.NewElection(l.coord, writersDir+shard.String(), objstore.LeaseOptions{Holder: h.text(), Term: l.opts.LeaseTerm})
}

// standing is how a writer stands.
type standing struct {
	// sealed: nothing can be acknowledged in its shard any more.
	sealed bool
	// dead: it lives no more, as far as can be told.
	dead bool
	// gone: it is a process of this machine that ended.
	gone bool
	// holder is who it is, free in how long it is taken for dead.
	holder *holder
	free   time.Duration
}

// stand looks at a writer.
func (w *watch) stand(ctx context.Context) (standing, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sealed {
		return standing{sealed: true, dead: true, holder: &holder{}}, nil
	}
	info, err := w.log.table.Shard(ctx, w.shard)
	if err != nil && !errors.Is(err, objstore.ErrNotFound) {
		return standing{}, err
	}
	// A shard that was there and is not is sealed, for only sealed ones are removed. One
	// that was never there may be about to begin, so this is not remembered.
	if err != nil || info.Sealed {
		w.sealed = err == nil
		return standing{sealed: true, dead: true, holder: &holder{}}, nil
	}
	s, err := w.lease(ctx)
	if errors.Is(err, objstore.ErrNotFound) {
		return w.unleased(info), nil
	}
	return s, err
}

// lease judges a writer by its lease.
func (w *watch) lease(ctx context.Context) (standing, error) {
	if w.election == nil {
		e, err := w.log.leaseOf(w.shard, self())
		if err != nil {
			return standing{}, err
		}
		w.election = e
	}
	info, err := w.election.Look(ctx)
	if err != nil {
		return standing{}, err
	}
	h := parseHolder(info.Holder)
	gone := h.By == "" && h.goneFromHere()
	return standing{dead: info.Free || gone, gone: gone, holder: h, free: max(0, info.Term-info.Unmoved)}, nil
}

// unleased judges a writer that has no lease, such as another program, by its shard:
// it is taken for dead once that has stood still for a term.
func (w *watch) unleased(info memwal.ShardInfo) standing {
	if w.since.IsZero() || info.Version != w.version {
		w.version, w.since = info.Version, time.Now()
	}
	left := w.log.opts.LeaseTerm - time.Since(w.since)
	return standing{dead: left <= 0, holder: &holder{}, free: max(0, left)}
}

// inherit makes sure that a writer can write no more: if it is dead its shard is
// claimed and sealed. A writer that lives is a HeldError, without an item. What was read
// of the shard before is old: the writer may have gone on until then.
func (w *watch) inherit(ctx context.Context, by string) error {
	w.sealing.Lock()
	defer w.sealing.Unlock()
	s, err := w.stand(ctx)
	if err != nil || s.sealed {
		return err
	}
	if !s.dead {
		return &HeldError{By: w.shard.String(), Holder: s.holder.String(), Free: s.free}
	}
	if !s.gone {
		if err := w.notify(ctx, by); err != nil {
			return err
		}
	}
	if err := w.log.table.Seal(ctx, w.shard); err != nil {
		return fmt.Errorf("take over from writer %s: %w", w.shard, err)
	}
	w.mu.Lock()
	w.sealed = true
	w.mu.Unlock()
	return nil
}

// notify takes the lease of a dead writer, so that it stops should it wake up, and so
// that of several who found it dead one seals its shard; whoever comes second waits
// for the first. It is the sealing that makes it safe, so other failures do not matter.
func (w *watch) notify(ctx context.Context, by string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.election == nil {
		return nil // it has no lease
	}
	h := self()
	h.Writer, h.By = w.shard.String(), by
	_, err := w.election.TryAs(ctx, h.text())
	if errors.Is(err, objstore.ErrLeaseHeld) {
		return &HeldError{By: w.shard.String(), Holder: "another that takes over from it", Free: w.log.opts.LeaseTerm}
	}
	return nil
}

// leased reports whether the writer ever had a lease.
func (w *watch) leased(ctx context.Context) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.lease(ctx)
	if errors.Is(err, objstore.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}
