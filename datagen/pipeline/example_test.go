package pipeline_test

import (
	"context"
	"fmt"
	"iter"
	"log"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/datagen/pipeline"
	"github.com/foldlog/foldlog/objstore"
)

// A loop refines an item until it is good. Every round is a checkpoint, so a run that is
// killed and begun again goes on with the next one.
func Example() {
	ctx := context.Background()
	l, err := datagen.OpenOrCreate(ctx, objstore.NewMemory(), "digits", "v1", datagen.Options{})
	if err != nil {
		log.Fatal(err)
	}
	w, err := l.NewWriter(ctx, datagen.WriterOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close(ctx)
	refine := &pipeline.Step{Name: "refine", Run: func(_ context.Context, c *pipeline.Call) error {
		confidence, err := c.Float("confidence")
		if err != nil {
			return err
		}
		c.Set("confidence", datagen.FloatValue(confidence+0.25))
		return nil
	}}
	p := &pipeline.Pipeline{Steps: []pipeline.Node{
		&pipeline.Loop{Name: "improve", Max: 10, Steps: []pipeline.Node{refine}, Until: func(s *pipeline.State) (bool, error) {
			confidence, err := s.Float("confidence")
			return confidence >= 0.9, err
		}},
	}}
	report, err := pipeline.Run(ctx, pipeline.OnLog(l, w), p, digits("digit-7", "digit-8"), pipeline.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d items completed in %d steps\n", report.Completed, report.Steps)
	// Output: 2 items completed in 6 steps
}

// digits are the items of the example, with what they begin with.
func digits(keys ...string) iter.Seq2[pipeline.Source, error] {
	return func(yield func(pipeline.Source, error) bool) {
		for _, key := range keys {
			s := pipeline.Source{Key: key, Fields: func() ([]datagen.Change, error) {
				return []datagen.Change{datagen.Set("confidence", datagen.FloatValue(0.25))}, nil
			}}
			if !yield(s, nil) {
				return
			}
		}
	}
}
