package metrics_test

import (
	"fmt"
	"os"
	"strings"
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

const stream = `{"ts_ms":1,"kind":"open","slug":"my-run","description":"mlp","metadata":{"device":"cpu"}}
{"ts_ms":2,"step":0,"kind":"metric","name":"loss","value":2.5,"metadata":{}}
{"ts_ms":3,"step":1,"kind":"metric","name":"loss","value":"NaN","metadata":{}}
{"ts_ms":4,"step":2,"kind":"metric","name":"loss","value":1.25,"metadata":{}}
{"ts_ms":5,"kind":"done","slug":"my-run"}
`

// A stream is read line by line and folded into its run.
func ExampleReadStream() {
	var run metrics.Fold
	err := metrics.ReadStream(strings.NewReader(stream), func(it *metrics.Item) {
		if it.Kind == metrics.ItemEvent {
			run.Apply(&it.Event)
		} else {
			fmt.Println(it.Err) // a bad line ends nothing
		}
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	loss := run.Curve("loss")
	fmt.Println(run.Slug, run.Status)
	fmt.Println("least loss", loss.Stats.Min, "at step", loss.Stats.MinStep)
	points := loss.Read(metrics.Query{})
	fmt.Println(points.Steps, points.Values)
	// Output:
	// my-run done
	// least loss 1.25 at step 2
	// [0 1 2] [2.5 NaN 1.25]
}

// Check reads strictly and says what is wrong where.
func ExampleCheck() {
	sum, err := metrics.Check(strings.NewReader(stream+`{"ts_ms":6,"step":3,"kind":"metric"`), metrics.CheckOptions{}, func(f metrics.Finding) {
		fmt.Println(f.LineError.Error())
	})
	fmt.Println(sum.Events, "events,", sum.Faults, "faults,", err)
	// Output:
	// line 6, column 36: torn last line
	// 5 events, 1 faults, <nil>
}

// What a training program prints is taken apart: events, values, and everything else.
func ExampleMixed() {
	m := metrics.NewMixed(0, func(it *metrics.Item) {
		switch it.Kind {
		case metrics.ItemEvent:
			fmt.Println("event:", it.Event.Kind)
		case metrics.ItemValues:
			for _, v := range it.Values {
				fmt.Println("value:", v.Name, v.Number)
			}
		default:
			fmt.Printf("text: %s\n", it.Line)
		}
	})
	fmt.Fprint(m, "loading data\nstep=4 loss=0.31\n{\"ts_ms\":5,\"kind\":\"done\",\"slug\":\"my-run\"}\n")
	m.Close()
	// Output:
	// text: loading data
	// value: step 4
	// value: loss 0.31
	// event: done
}
