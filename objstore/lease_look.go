package objstore

import (
	"context"
	"fmt"
	"time"
)

// LeaseInfo is what an observer knows of a lease.
type LeaseInfo struct {
	// Holder is the text that whoever has it, or had it last, gave.
	Holder string
	// Number is that of the latest object.
	Number uint64
	// Term is how long the lease lasts unrenewed.
	Term time.Duration
	// Unmoved is for how long this observer has seen the same number.
	Unmoved time.Duration
	// Free says that the lease was released or has stood still for its term.
	Free bool
}

// Look says how the lease stands without asking for it. A lease that was never taken
// is ErrNotFound. As with Try, only repeated calls on the same Election can find a
// lease dead.
func (e *Election) Look(ctx context.Context) (LeaseInfo, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	n, _, err := e.latest(ctx)
	if err != nil {
		return LeaseInfo{}, err
	}
	if n == 0 {
		return LeaseInfo{}, fmt.Errorf("lease %s: %w", e.dir, ErrNotFound)
	}
	free, err := e.free(ctx, n)
	if err != nil {
		return LeaseInfo{}, err
	}
	if e.seen != n { // it was succeeded and tidied while we read it
		return LeaseInfo{Number: n}, nil
	}
	return LeaseInfo{
		Holder: e.doc.Holder, Number: n, Term: time.Duration(e.doc.TermMS) * time.Millisecond,
		Unmoved: time.Since(e.since), Free: free,
	}, nil
}
