package lance

import (
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/foldlog/foldlog/internal/lancetest"
	"github.com/foldlog/foldlog/objstore"
)

// TestLongValuesThatRepeatAreReadInParts reads tables of the real library, which has each
// of few values once, however many rows have it.
func TestLongValuesThatRepeatAreReadInParts(t *testing.T) {
	real, there := lancetest.Real(t)
	if !there {
		return
	}
	const rows, size, distinct = 3000, 20_000, 10
	schema := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "text", Type: arrow.BinaryTypes.String}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	for i := range rows {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		b.Field(1).(*array.StringBuilder).Append(strings.Repeat(string(rune('a'+i%distinct)), size))
	}
	written := lancetest.WriteRows(t, b.NewRecordBatch())
	for _, version := range []string{"2.0", "2.1", "2.2"} {
		dir := t.TempDir()
		real.Do(t, "create", lancetest.On(dir, "format", version, "rows", written), nil)
		store, err := objstore.OpenLocal(dir+"/log.lance", objstore.LocalOptions{})
		ok(t, err)
		d, err := Open(t.Context(), store, OpenOptions{})
		ok(t, err)
		for name, opts := range map[string]ScanOptions{
			"all":       {BatchRows: rows},
			"by number": {BatchRows: rows, Filter: []Condition{{Column: "id", Op: GreaterOrEqual, Value: 0}}},
		} {
			n := 0
			for rec, err := range d.Scan(t.Context(), opts) {
				ok(t, err)
				texts := rec.Column(1).(*array.String)
				if rec.NumRows()*size > mostBytes+size {
					t.Errorf("%s of %s: a batch of %d rows", name, version, rec.NumRows())
				}
				for i := range texts.Len() {
					if v := texts.Value(i); len(v) != size || v[size-1] != byte('a'+(n+i)%distinct) {
						t.Fatalf("%s of %s: row %d is wrong", name, version, n+i)
					}
				}
				n += texts.Len()
			}
			if n != rows {
				t.Errorf("%s of %s: %d rows", name, version, n)
			}
		}
	}
}
