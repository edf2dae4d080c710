package memwal_test

import (
	"context"
	"fmt"
	"log"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/foldlog/foldlog/lance"
	"github.com/foldlog/foldlog/lance/memwal"
	"github.com/foldlog/foldlog/objstore"
)

func Example() {
	ctx := context.Background()
	store := objstore.NewMemory()
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.BinaryTypes.String, Metadata: arrow.NewMetadata([]string{"lance-schema:unenforced-primary-key"}, []string{"true"})},
		{Name: "step", Type: arrow.PrimitiveTypes.Int64},
	}, nil)
	if _, err := lance.OpenOrCreate(ctx, store, schema); err != nil {
		log.Fatal(err)
	}
	table, err := memwal.Open(ctx, store)
	if err != nil {
		log.Fatal(err)
	}
	w, err := table.NewWriter(ctx, memwal.WriterOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close()
	for step := range 3 {
		b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
		b.Field(0).(*array.StringBuilder).Append("job")
		b.Field(1).(*array.Int64Builder).Append(int64(step))
		if err := w.Append(ctx, b.NewRecordBatch()); err != nil { // durable when it returns
			log.Fatal(err)
		}
	}
	view, err := table.View(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for rows, err := range view.Scan(ctx, lance.ScanOptions{}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(rows.Column(0), rows.Column(1)) // the newest row of the key
	}
	merged, err := w.Merge(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("merged", merged.Inserted, "row")
	// Output:
	// ["job"] [2]
	// merged 1 row
}
