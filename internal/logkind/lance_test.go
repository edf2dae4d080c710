package logkind

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/lance"
	"github.com/foldlog/foldlog/objstore"
)

// numbersFrom are rows of one column, numbered from first on.
func numbersFrom(first, n int) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64}}, nil))
	for i := first; i < first+n; i++ {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
	}
	return b.NewRecordBatch()
}

// linesFrom are what cat prints of them.
func linesFrom(first, n int) string {
	var s strings.Builder
	for i := first; i < first+n; i++ {
		fmt.Fprintf(&s, "{\"n\":%d}\n", i)
	}
	return s.String()
}

func TestLanceNewRowsAreWrittenOnce(t *testing.T) {
	ctx := t.Context()
	must := func(d *lance.Dataset, err error) *lance.Dataset {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	seen := must(lance.Create(ctx, objstore.NewMemory(), numbersFrom(0, 0).Schema()))
	seen = must(seen.Append(ctx, lance.Batches(numbersFrom(1, 3))))
	seen = must(seen.Append(ctx, lance.Batches(numbersFrom(4, 1))))
	follow := func(want string) {
		t.Helper()
		var out bytes.Buffer
		seen = must(writeNew(ctx, seen, &out))
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("lines (-want +got):\n%s", diff)
		}
	}
	follow("")
	d := must(seen.Append(ctx, lance.Batches(numbersFrom(5, 2))))
	d = must(d.Append(ctx, lance.Batches(numbersFrom(7, 300))))
	d, stats, err := d.Compact(ctx, lance.CompactOptions{})
	if err != nil || stats.Removed != 4 {
		t.Fatalf("compaction removed %d fragments: %v", stats.Removed, err)
	}
	follow(linesFrom(5, 302))
	d = must(d.Delete(ctx, []lance.Condition{{Column: "n", Op: lance.Less, Value: 100}}))
	follow("")
	must(d.Append(ctx, lance.Batches(numbersFrom(400, 1))))
	follow(linesFrom(400, 1))
}
