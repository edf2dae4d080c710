package lance_test

import (
	"context"
	"fmt"
	"log"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/foldlog/foldlog/lance"
	"github.com/foldlog/foldlog/objstore"
)

func Example() {
	ctx := context.Background()
	store := objstore.NewMemory() // or OpenLocal, or OpenS3 and Prefix
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "city", Type: arrow.BinaryTypes.String},
		{Name: "people", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	}, nil)
	table, err := lance.Create(ctx, store, schema)
	if err != nil {
		log.Fatal(err)
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	b.Field(0).(*array.StringBuilder).AppendValues([]string{"Basel", "Bern", "Chur"}, nil)
	b.Field(1).(*array.Int64Builder).AppendValues([]int64{178, 134, 0}, []bool{true, true, false})
	if table, err = table.Append(ctx, lance.Batches(b.NewRecordBatch())); err != nil {
		log.Fatal(err)
	}
	if table, err = table.CreateIndex(ctx, "city"); err != nil {
		log.Fatal(err)
	}
	if table, err = table.Delete(ctx, []lance.Condition{{Column: "people", Op: lance.IsNull}}); err != nil {
		log.Fatal(err)
	}
	opts := lance.ScanOptions{Columns: []string{"people"}, Filter: []lance.Condition{{Column: "city", Op: lance.Equal, Value: "Bern"}}}
	for rows, err := range table.Scan(ctx, opts) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(rows.Column(0))
	}
	fmt.Println("version", table.Version(), "has", table.Rows(), "rows")
	// Output:
	// [134]
	// version 4 has 2 rows
}
