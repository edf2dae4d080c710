package study_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/study"
)

// A study in a journal on disk: create it, run three trials, ask for the best.
func Example() {
	dir, err := os.MkdirTemp("", "study")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	s, err := study.CreateJournal(ctx, filepath.Join(dir, "search.atj"), journal.WriterOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	id, _, err := study.OpenOrCreate(ctx, s, study.Config{
		Name: "parabola", Directions: []study.Direction{study.Minimize}, MetricNames: []string{"y"},
	})
	if err != nil {
		log.Fatal(err)
	}
	dist := study.FloatDist{Low: -2, High: 2}
	for _, x := range []float64{-1, 0.5, 2} {
		// Everything in one Update is durable together, or not at all.
		err := s.Update(ctx, func(tx *study.Tx) error {
			trial, err := tx.CreateTrial(id, nil)
			if err != nil {
				return err
			}
			if err := tx.Transition(trial.ID, study.Waiting, study.Running); err != nil {
				return err
			}
			if err := tx.ParamsBatch(trial.ID, []study.Param{{Name: "x", Dist: dist, Value: study.F64(x)}}); err != nil {
				return err
			}
			if err := tx.SetValues(trial.ID, x*x); err != nil {
				return err
			}
			return tx.Transition(trial.ID, study.Running, study.Complete)
		})
		if err != nil {
			log.Fatal(err)
		}
	}
	best, err := s.Snapshot().Best(id)
	if err != nil {
		log.Fatal(err)
	}
	x, _ := best[0].Param("x")
	fmt.Printf("trial %d: x=%v y=%v\n", best[0].Number, x.Value.F64(), best[0].Values[0])
	// Output: trial 1: x=0.5 y=0.25
}
