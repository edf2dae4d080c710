package study

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// DefaultGrace is how long an owner may be silent.
const DefaultGrace = 60 * time.Second

// Observation is a managed trial that has not moved for a while.
type Observation struct {
	// Trial and State are the trial and its observed state.
	Trial TrialID
	State State
	// Owner, Epoch, HeartbeatMillis and HeartbeatSeq are the observed owner
	// and its last sign of life.
	Owner, Epoch                  uint64
	HeartbeatMillis, HeartbeatSeq uint64
	// ElapsedMillis is how long the observer's own monotonic clock saw none
	// of it move, GraceMillis what it takes to be stale.
	ElapsedMillis, GraceMillis uint64
}

// Reason is what the failure of a stale trial gives as its error.
func (o Observation) Reason() string {
	return fmt.Sprintf("stale: worker %d at epoch %d was silent for %v", o.Owner, o.Epoch,
		time.Duration(o.ElapsedMillis)*time.Millisecond)
}

// SweeperOptions configures a [Sweeper]. The zero value is the default.
type SweeperOptions struct {
	// Elapsed is a monotonic clock; nil is the process's own. No wall clock is
	// asked anywhere.
	Elapsed func() time.Duration
	// Grace is how long an owner may be silent; 0 is [DefaultGrace]. An owner
	// that asked for a longer lease ([Tx.SetLease]) has that.
	Grace time.Duration
	// Retry decides whether a stale trial is tried again; nil opens no outbox
	// entry.
	Retry *RetryPolicy
	// Own tells which trials are the observer's own: that they are not stale it
	// knows better than their heartbeats do. Nil means none.
	Own func(TrialID) bool
}

// Sweeper fails managed trials whose owner has gone silent. It trusts no clock
// but its own: a trial is stale once owner, epoch and heartbeat sequence have
// stood still for the grace while the sweeper watched. A fresh sweeper
// therefore fails nothing before the grace has passed. Not for concurrent use;
// any number of sweepers may watch one storage.
type Sweeper struct {
	opts SweeperOptions
	seen map[TrialID]sighting
}

// sighting is when the sweeper saw a trial in this state first.
type sighting struct {
	owner, epoch, heartbeatSeq uint64
	since                      time.Duration
}

// NewSweeper returns a sweeper that has seen nothing yet.
func NewSweeper(opts SweeperOptions) *Sweeper {
	s := &Sweeper{opts: opts, seen: make(map[TrialID]sighting)}
	if s.opts.Elapsed == nil {
		start := time.Now()
		s.opts.Elapsed = func() time.Duration { return time.Since(start) }
	}
	if s.opts.Grace <= 0 {
		s.opts.Grace = DefaultGrace
	}
	return s
}

// Observe looks at the running managed trials and returns those that have been
// silent for the grace.
func (s *Sweeper) Observe(snap *Snapshot) []Observation {
	now := s.opts.Elapsed()
	running := make(map[TrialID]sighting)
	var stale []Observation
	for st := range snap.Studies() {
		for t := range snap.LiveTrials(st.ID, Running) {
			if !t.Managed || s.opts.Own != nil && s.opts.Own(t.ID) {
				continue
			}
			seen, ok := s.seen[t.ID]
			if !ok || seen.owner != t.Owner || seen.epoch != t.Epoch || seen.heartbeatSeq != t.HeartbeatSeq {
				seen = sighting{owner: t.Owner, epoch: t.Epoch, heartbeatSeq: t.HeartbeatSeq, since: now}
			}
			running[t.ID] = seen
			grace := uint64((max(s.opts.Grace, t.Lease()) + time.Millisecond - 1) / time.Millisecond)
			if elapsed := uint64((now - seen.since) / time.Millisecond); now >= seen.since && elapsed >= grace {
				stale = append(stale, Observation{
					Trial: t.ID, State: t.State, Owner: t.Owner, Epoch: t.Epoch,
					HeartbeatMillis: t.HeartbeatMillis, HeartbeatSeq: t.HeartbeatSeq,
					ElapsedMillis: elapsed, GraceMillis: grace,
				})
			}
		}
	}
	s.seen = running
	return stale
}

// Sweep refreshes the storage, looks, and fails what is stale. It returns the
// trials that it failed. A trial that has moved meanwhile is left alone.
func (s *Sweeper) Sweep(ctx context.Context, st Storage) (failed []TrialID, err error) {
	if err := st.Refresh(ctx); err != nil {
		return nil, fmt.Errorf("sweep: %w", err)
	}
	for _, o := range s.Observe(st.Snapshot()) {
		err := st.Update(ctx, func(tx *Tx) error { return tx.LifecycleFailStale(o, o.Reason(), s.opts.Retry) })
		switch {
		case err == nil:
			failed = append(failed, o.Trial)
		case !errors.Is(err, ErrConflict):
			return failed, fmt.Errorf("sweep trial %d: %w", o.Trial, err)
		}
	}
	return failed, nil
}
