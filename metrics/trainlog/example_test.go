package trainlog_test

import (
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/foldlog/foldlog/metrics"
	"github.com/foldlog/foldlog/metrics/trainlog"
)

// A stream of the JSON lines that a training program has left behind.
func ExampleImporter() {
	im := &trainlog.Importer{Slug: "my-run", Reading: trainlog.Reading{Step: "step"}}
	lines := strings.NewReader(`{"step": 1, "loss": 0.8}` + "\n" + `{"step": 2, "loss": 0.5}` + "\n")
	if err := im.Read(trainlog.File{Name: "train.jsonl", Modified: time.UnixMilli(1000), Reader: lines}); err != nil {
		log.Fatal(err)
	}
	stream, err := im.Stream()
	if err != nil {
		log.Fatal(err)
	}
	var run metrics.Fold
	err = metrics.ReadStream(strings.NewReader(string(stream)), func(it *metrics.Item) { run.Apply(&it.Event) })
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(run.Slug, run.Status, run.Curve("loss").Stats.Last)
	// Output: my-run done 0.5
}
