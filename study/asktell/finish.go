package asktell

import (
	"slices"

	"github.com/foldlog/foldlog/study"
)

// Finish ends a managed trial by its owner, and what the policy, if not nil, lets follow
// from that is in the same transaction: a failure is never without the trial that
// repeats it, which is returned.
func Finish(tx *study.Tx, f study.Fence, o study.Outcome, policy *study.RetryPolicy) ([]study.TrialRef, error) {
	if err := tx.LifecycleTerminal(f, o, policy); err != nil || policy == nil {
		return nil, err
	}
	return tx.OutboxSettle(study.EntryKey{Trial: f.Trial, Epoch: f.Epoch})
}

// FinishedBefore tells whether a trial has ended in just this way by this owner, who was
// not told so and ends it again. A raw trial has no owner.
func FinishedBefore(t *study.Trial, f study.Fence, o study.Outcome) bool {
	same := func(a, b float64) bool { return a == b || a != a && b != b }
	return t.State == o.State && slices.EqualFunc(t.Values, o.Values, same) && t.Error == o.Error &&
		(!t.Managed || t.Owner == f.Worker && t.Epoch == f.Epoch)
}
