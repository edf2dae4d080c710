package pipeline_test

import (
	"context"
	"strings"
	"testing"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/datagen/pipeline"
	"github.com/foldlog/foldlog/objstore"
)

// TestWhatTheLogRefusesFailsTheStep leaves the other items and the item's log in order.
func TestWhatTheLogRefusesFailsTheStep(t *testing.T) {
	for name, change := range map[string]datagen.Change{
		"a field without a name":               datagen.Set("", datagen.IntValue(1)),
		"a name that is too long":              datagen.Set(strings.Repeat("k", 5000), datagen.IntValue(1)),
		"a value appended to one that was set": datagen.Append("x", datagen.IntValue(1)),
	} {
		t.Run(name, func(t *testing.T) {
			log, err := datagen.OpenOrCreate(t.Context(), objstore.NewMemory(), "p", "e", datagen.Options{})
			if err != nil {
				t.Fatal(err)
			}
			w, err := log.NewWriter(t.Context(), datagen.WriterOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close(context.Background())
			p := &pipeline.Pipeline{Steps: []pipeline.Node{set("x"), &pipeline.Step{Name: "bad", Run: func(_ context.Context, c *pipeline.Call) error {
				if c.Item.ID == "a" {
					c.Change(change)
				}
				return nil
			}}}}
			report, err := pipeline.Run(t.Context(), pipeline.OnLog(log, w), p, sources("a", "b"), pipeline.Options{Workers: 2})
			if err != nil || report.Failed != 1 || report.Completed != 1 {
				t.Fatalf("%+v, %v", report, err)
			}
			v, err := log.View(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			it, err := v.Item(t.Context(), "a", datagen.AsOf{})
			if err != nil || it.Status != datagen.StatusFailed || len(it.Faults) > 0 || len(it.Failures) != 1 {
				t.Errorf("%+v, %v", it, err)
			}
		})
	}
}
