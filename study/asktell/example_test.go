package asktell_test

import (
	"context"
	"fmt"
	"log"

	"github.com/foldlog/foldlog/study"
	"github.com/foldlog/foldlog/study/asktell"
	"github.com/foldlog/foldlog/study/sampler"
	"github.com/foldlog/foldlog/study/space"
)

// A search by a Go program: the sampler suggests, the program measures. Any number of
// processes may do so at once, on one journal.
func Example() {
	ctx := context.Background()
	s := study.NewMemory(study.MemoryOptions{}) // or study.CreateJournal, which others can open too
	defer s.Close()
	vary, err := space.Parse("space", []byte("x: {type: float, low: -5, high: 5}"))
	if err != nil {
		log.Fatal(err)
	}
	config := study.Config{
		Name: "parabola", Directions: []study.Direction{study.Minimize}, MetricNames: []string{"y"}, Space: vary, Seed: new(uint64(7)),
	}
	var id study.StudyID
	err = s.Update(ctx, func(tx *study.Tx) error {
		var created bool
		id, created, err = tx.OpenOrCreateStudy(config)
		if err != nil || !created {
			return err
		}
		return sampler.Choose(tx, id, sampler.TPE{Startup: 5}) // without it the study has sampler.Default
	})
	if err != nil {
		log.Fatal(err)
	}
	for range 30 {
		number, err := asktell.Ask(ctx, s, id, asktell.AskOptions{})
		if err != nil {
			log.Fatal(err)
		}
		trial, err := s.Snapshot().Trial(number)
		if err != nil {
			log.Fatal(err)
		}
		x, _ := trial.Param("x")
		y := x.Value.F64() * x.Value.F64() // stands for the training
		err = s.Update(ctx, func(tx *study.Tx) error { return asktell.End(tx, number, study.Completed(y)) })
		if err != nil {
			log.Fatal(err)
		}
	}
	best, err := s.Snapshot().Best(id)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("near the minimum:", best[0].Values[0] < 0.1)
	// Output: near the minimum: true
}
