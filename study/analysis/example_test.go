package analysis_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/foldlog/foldlog/study"
	"github.com/foldlog/foldlog/study/analysis"
)

// The result depends on x and not on y, which the importances say.
func ExampleImportances() {
	st := study.NewMemory(study.MemoryOptions{})
	unit := study.FloatDist{Low: 0, High: 1}
	err := st.Update(context.Background(), func(tx *study.Tx) error {
		id, err := tx.CreateStudy(study.Config{Name: "s", Directions: []study.Direction{study.Minimize}})
		if err != nil {
			return err
		}
		for i := range 40 {
			x, y := float64(i%8)/8, float64(i%5)/5
			t, err := tx.CreateTrial(id, nil)
			if err != nil {
				return err
			}
			err = errors.Join(tx.Transition(t.ID, study.Waiting, study.Running),
				tx.ParamsBatch(t.ID, []study.Param{{Name: "x", Dist: unit, Value: study.F64(x)}, {Name: "y", Dist: unit, Value: study.F64(y)}}),
				tx.SetValues(t.ID, x*x), tx.Transition(t.ID, study.Running, study.Complete))
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	snap := st.Snapshot()
	its, _ := snap.StudyByName("s")
	report, err := analysis.Importances(snap, its, analysis.ImportanceOptions{})
	if err != nil {
		log.Fatal(err)
	}
	most := report.Params[0]
	fmt.Println(most.Param, most.Share > 0.95, report.Trials)
	// Output: x true 40
}
