//go:build unix

package runner_test

import (
	"context"
	"fmt"
	"log"

	"github.com/foldlog/foldlog/runner"
	"github.com/foldlog/foldlog/study"
)

// Four trials as commands, two at once. Each prints its result as name=value; metrics
// as JSON lines would be kept as its course too.
func ExampleWork() {
	ctx := context.Background()
	st := study.NewMemory(study.MemoryOptions{}) // study.OpenJournal is for several processes
	id, _, err := study.OpenOrCreate(ctx, st, study.Config{
		Name: "s", Directions: []study.Direction{study.Minimize}, MetricNames: []string{"loss"},
		Space: &study.Space{Params: []study.SpaceParam{{Name: "layers", Dist: study.IntDist{Low: 1, High: 8}}}},
	})
	if err != nil {
		log.Fatal(err)
	}
	report, err := runner.Work(ctx, nil, st, runner.Config{
		Study: id, Command: []string{"sh", "-c", "echo loss=0.$1", "sh", "{layers}"}, Trials: 4, Jobs: 2,
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Complete, "complete")
	// Output: 4 complete
}
