package lance

import (
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/foldlog/foldlog/objstore"
)

// keyed makes rows of a key and a number, -1 for null.
func keyed(rows ...[2]any) arrow.RecordBatch {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "key", Type: arrow.BinaryTypes.String, Metadata: arrow.MetadataFrom(map[string]string{"lance-schema:unenforced-primary-key": "true"})},
		{Name: "n", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	for _, r := range rows {
		b.Field(0).(*array.StringBuilder).Append(r[0].(string))
		if n := r[1].(int); n < 0 {
			b.Field(1).AppendNull()
		} else {
			b.Field(1).(*array.Int64Builder).Append(int64(n))
		}
	}
	return b.NewRecordBatch()
}

func TestMergeKeepsCopiesThatDiffer(t *testing.T) {
	first := keyed([2]any{"a", 1}, [2]any{"b", 2}, [2]any{"c", -1})
	d, err := Create(t.Context(), objstore.NewMemory(), first.Schema())
	ok(t, err)
	d, err = d.Append(t.Context(), Batches(first))
	ok(t, err)
	d, stats, err := d.Merge(t.Context(), Merge{
		Rows:         Batches(keyed([2]any{"a", 1}, [2]any{"b", 3}, [2]any{"d", 4}), keyed([2]any{"c", 0}, [2]any{"b", 3}, [2]any{"d", 4}, [2]any{"e", 5}, [2]any{"e", 6})),
		KeepExisting: true, Differing: []string{"key", "n"},
	})
	ok(t, err)
	if stats.Inserted != 5 {
		t.Errorf("merged %+v", stats)
	}
	var got []string
	for rec, err := range d.Scan(t.Context(), ScanOptions{}) {
		ok(t, err)
		for i := range int(rec.NumRows()) {
			got = append(got, rec.Column(0).ValueStr(i)+rec.Column(1).ValueStr(i))
		}
	}
	slices.Sort(got)
	if want := []string{"a1", "b2", "b3", "c(null)", "c0", "d4", "e5", "e6"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
