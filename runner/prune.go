package runner

import (
	"github.com/foldlog/foldlog/study/pruner"
)

// prune stops the command if the study's pruner sees no use in going on with the
// trial: it is asked to end, as when its worker is stopped, and the trial ends
// as pruned however the command does.
func (a *attempt) prune() {
	if _, never := a.pruner.(pruner.None); never {
		return
	}
	snap := a.st.Snapshot()
	st, err := snap.Study(a.t.Study)
	if err != nil {
		return
	}
	t, err := snap.Trial(a.t.ID)
	if err != nil || !a.pruner.Prune(pruner.NewHistory(snap, st), t) {
		return
	}
	a.kill(errPruned)
}
