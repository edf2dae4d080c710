package sampler_test

import (
	"context"
	"fmt"
	"log"

	"github.com/foldlog/foldlog/study"
	"github.com/foldlog/foldlog/study/pruner"
	"github.com/foldlog/foldlog/study/sampler"
)

// A study is made together with its sampler and its pruner, which everybody who works on
// it then has, in any process.
func ExampleChoose() {
	st := study.NewMemory(study.MemoryOptions{}) // or study.CreateJournal
	err := st.Update(context.Background(), func(tx *study.Tx) error {
		id, created, err := tx.OpenOrCreateStudy(study.Config{Name: "search", Directions: []study.Direction{study.Minimize}})
		if err != nil || !created {
			return err
		}
		if err := sampler.Choose(tx, id, sampler.TPE{Startup: 20, Multivariate: true}); err != nil {
			return err
		}
		return pruner.Choose(tx, id, pruner.Patient{Patience: 3, Inner: pruner.Median{}})
	})
	if err != nil {
		log.Fatal(err)
	}
	made, _ := st.Snapshot().StudyByName("search")
	fmt.Println(sampler.TextOf(made), pruner.TextOf(made))
	// Output: tpe:startup=20,multivariate patient:patience=3,pruner=median
}
