package study

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/foldlog/foldlog/internal/sleep"
	"github.com/foldlog/foldlog/journal"
)

// Log is a log of operations that is kept elsewhere, such as by a server.
type Log interface {
	// Since hands over the records after a sequence number, in order, valid during the
	// call. An error of apply ends it. [ErrRewound] means that the log does not go on
	// from what was read of it: it is read from 0 then. [journal.ErrReplaced] means that
	// it is another one.
	Since(ctx context.Context, after uint64, apply func(*journal.Record) error) error
	// Append publishes operations as those that follow after, all or none, and returns
	// the worker and the time that their records carry. [ErrConflict] means that the
	// log has moved: nothing is published. An [*journal.UncertainError] means that it
	// is not known.
	Append(ctx context.Context, after uint64, ops [][]byte) (worker, atMillis uint64, err error)
}

// Replica is a [Storage] that folds a [Log] here and publishes there. Its transactions
// run on what it knows; if the log has moved meanwhile it catches up and runs them
// again. Operations that name their worker carry that of the replica.
type Replica struct {
	log    Log
	worker uint64

	updating sync.Mutex // serialises everything but snapshots
	d        Decoder
	state    shared
	closed   bool
}

var _ Storage = (*Replica)(nil)

// OpenReplica replays a log. A worker of nil is drawn at random.
func OpenReplica(ctx context.Context, log Log, worker *uint64) (*Replica, error) {
	r := &Replica{log: log, state: shared{fold: NewFold()}}
	if r.worker = 1 + rand.Uint64N(1<<53-1); worker != nil {
		r.worker = *worker
	}
	return r, r.Refresh(ctx)
}

// Snapshot implements [Storage].
func (r *Replica) Snapshot() *Snapshot { return r.state.snapshot() }

// Worker implements [Storage].
func (r *Replica) Worker() uint64 { return r.worker }

// Close implements [Storage].
func (r *Replica) Close() error {
	r.updating.Lock()
	defer r.updating.Unlock()
	r.closed = true
	return nil
}

// Refresh implements [Storage].
func (r *Replica) Refresh(ctx context.Context) error {
	r.updating.Lock()
	defer r.updating.Unlock()
	return r.refresh(ctx)
}

func (r *Replica) refresh(ctx context.Context) error {
	if r.closed {
		return ErrClosed
	}
	apply := func(rec *journal.Record) error { return r.state.apply(&r.d, rec) }
	err := r.log.Since(ctx, r.state.seq(), apply)
	if errors.Is(err, ErrRewound) {
		r.state.reset()
		err = r.log.Since(ctx, 0, apply)
	}
	if err == nil {
		r.state.release()
	}
	return err
}

const (
	// firstPause is how long a transaction waits that was overtaken, up to mostPause.
	firstPause = time.Millisecond
	mostPause  = 100 * time.Millisecond
)

// Update implements [Storage].
func (r *Replica) Update(ctx context.Context, fn func(tx *Tx) error) error {
	r.updating.Lock()
	defer r.updating.Unlock()
	current := false // whether the state is known to be that of the log
	for pause := firstPause; ; {
		if r.closed {
			return ErrClosed
		}
		ops, err := r.try(fn)
		switch {
		case (err != nil || len(ops) == 0) && current:
			return err
		case err == nil && len(ops) > 0:
			if err = r.publish(ctx, ops); !errors.Is(err, ErrConflict) {
				return err
			}
			if current {
				if err := sleep.For(ctx, pause/2+rand.N(pause)); err != nil {
					return err
				}
				pause = min(2*pause, mostPause)
			}
		}
		if err := r.refresh(ctx); err != nil {
			return err
		}
		current = true
	}
}

// try runs a transaction on a draft and returns its operations.
func (r *Replica) try(fn func(tx *Tx) error) ([][]byte, error) {
	draft := r.state.draft()
	log := &replicaLog{memoryLog: memoryLog{opts: &MemoryOptions{Worker: r.worker, MaxOpBytes: DefaultMaxOpBytes},
		at: uint64(max(0, time.Now().UnixMilli())), seq: draft.Seq}}
	tx := &Tx{draft: draft, log: log}
	err := tx.end(fn(tx))
	return log.ops, err
}

// publish appends operations and folds them as they are in the log.
func (r *Replica) publish(ctx context.Context, ops [][]byte) error {
	seq := r.state.seq()
	worker, at, err := r.log.Append(ctx, seq, ops)
	if err != nil {
		return err
	}
	for i, op := range ops {
		rec := &journal.Record{Seq: seq + uint64(i) + 1, Worker: worker, AtMillis: at, Op: op}
		if err := r.state.apply(&r.d, rec); err != nil {
			return fmt.Errorf("fold what was published: %w", err)
		}
	}
	r.state.release()
	return nil
}

// replicaLog keeps the operations of a transaction.
type replicaLog struct {
	memoryLog
	ops [][]byte
}

// Append implements txLog.
func (l *replicaLog) Append(op []byte) error {
	if err := l.memoryLog.Append(op); err != nil {
		return err
	}
	l.ops = append(l.ops, append([]byte(nil), op...))
	return nil
}
