package pruner_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/foldlog/foldlog/study"
	"github.com/foldlog/foldlog/study/pruner"
)

// A trial that runs asks after each report whether it is worth going on with.
func Example() {
	ctx := context.Background()
	st := study.NewMemory(study.MemoryOptions{})
	var trial study.TrialRef
	err := st.Update(ctx, func(tx *study.Tx) error {
		id, err := tx.CreateStudy(study.Config{Name: "s", Directions: []study.Direction{study.Minimize}})
		if err != nil {
			return err
		}
		if err := pruner.Choose(tx, id, pruner.Threshold{Upper: new(10.0)}); err != nil {
			return err
		}
		if trial, err = tx.CreateTrial(id, nil); err != nil {
			return err
		}
		return errors.Join(tx.Transition(trial.ID, study.Waiting, study.Running), tx.Report(trial.ID, 1, 0.5), tx.Report(trial.ID, 2, 12))
	})
	if err != nil {
		log.Fatal(err)
	}
	snap := st.Snapshot()
	t, err := snap.Trial(trial.ID)
	if err != nil {
		log.Fatal(err)
	}
	its, err := snap.Study(t.Study)
	if err != nil {
		log.Fatal(err)
	}
	p, err := pruner.Of(its)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("stop:", p.Prune(pruner.NewHistory(snap, its), t))
	// Output: stop: true
}
