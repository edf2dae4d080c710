package export_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/datagen/export"
	"github.com/foldlog/foldlog/objstore"
)

// The items that are completed, one a line.
func ExampleJSONL() {
	ctx := context.Background()
	l, err := datagen.OpenOrCreate(ctx, objstore.NewMemory(), "stories", "v1", datagen.Options{})
	if err != nil {
		log.Fatal(err)
	}
	w, err := l.NewWriter(ctx, datagen.WriterOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close(ctx)
	item, err := w.Open(ctx, "story-1", datagen.CreateOptions{})
	if err != nil {
		log.Fatal(err)
	}
	write := datagen.Step{Name: "write", Instance: "write"}
	text := datagen.Set("text", datagen.StrValue("once upon a time"))
	if err := item.CheckpointEnd(ctx, write, []datagen.Change{text}, datagen.EndCompleted); err != nil {
		log.Fatal(err)
	}
	v, err := l.View(ctx)
	if err != nil {
		log.Fatal(err)
	}
	done := export.Having(v.Folds(ctx), datagen.StatusCompleted)
	var lines strings.Builder
	stats, err := export.JSONL(ctx, &lines, done, export.Options{NoProvenance: true})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(stats.Items, "item,", strings.Contains(lines.String(), "once upon a time"))
	// Output: 1 item, true
}
