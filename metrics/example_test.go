package metrics_test

import (
	"fmt"
	"os"
	"time"

	"github.com/foldlog/foldlog/metrics"
)

// A training loop reports to a file, a pipe and a server at once; here to
// standard output.
func Example() {
	clock := time.UnixMilli(1790189597000)
	rt, err := metrics.Start(metrics.Options{
		Slug: "my-run", Description: "mlp: 2 steps of easy", Open: `{"device":"cpu"}`, Metadata: metrics.Meta("stage", "easy"),
		EmitterOptions: metrics.EmitterOptions{
			Targets: []metrics.Target{{Kind: metrics.TargetStdout, Stdout: os.Stdout}},
			Clock:   func() time.Time { return clock },
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	run, train := rt.Run(), metrics.Meta("split", "train")
	for step := range int64(2) {
		if err := run.Metric(step, "train/loss", metrics.Float(2/float64(step+1)), train); err != nil {
			fmt.Println(err)
		}
	}
	if err := rt.Annotate(1, metrics.Checkpoint("/ckpt/1", 0.041)); err != nil {
		fmt.Println(err)
	}
	fmt.Println(rt.Done())
	// Output:
	// {"ts_ms":1790189597000,"kind":"open","slug":"my-run","description":"mlp: 2 steps of easy","metadata":{"device":"cpu"}}
	// {"ts_ms":1790189597000,"step":0,"kind":"metric","name":"train/loss","value":2.0,"metadata":{"split":"train","stage":"easy"}}
	// {"ts_ms":1790189597000,"step":1,"kind":"metric","name":"train/loss","value":1.0,"metadata":{"split":"train","stage":"easy"}}
	// {"ts_ms":1790189597000,"step":1,"kind":"annotation","annotation":"checkpoint /ckpt/1","metadata":{"checkpoint":"/ckpt/1","seconds":0.041}}
	// {"ts_ms":1790189597000,"kind":"done","slug":"my-run"}
	// stdout: 5 events
}
