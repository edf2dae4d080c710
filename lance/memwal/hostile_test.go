package memwal

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/foldlog/foldlog/lance"
	"github.com/foldlog/foldlog/objstore"
)

// TestALogEntryWhoseOffsetsGoBackIsRefused: the Arrow library looks at the last only.
func TestALogEntryWhoseOffsetsGoBackIsRefused(t *testing.T) {
	store := objstore.NewMemory()
	table := newTable(t, store, small)
	shard := NewID()
	meta := arrow.NewMetadata([]string{metaEpoch}, []string{"1"})
	rec := kv("aaaa", 1, "bbbb", 2, "cccc", 3)
	var b bytes.Buffer
	w := ipc.NewWriter(&b, ipc.WithSchema(arrow.NewSchema(small.Fields(), &meta)))
	ok(t, w.Write(array.NewRecordBatch(arrow.NewSchema(small.Fields(), &meta), rec.Columns(), rec.NumRows())))
	ok(t, w.Close())
	offsets := func(vs ...uint32) (out []byte) {
		for _, v := range vs {
			out = binary.LittleEndian.AppendUint32(out, v)
		}
		return out
	}
	broken := bytes.Replace(b.Bytes(), offsets(0, 4, 8, 12), offsets(0, 4_000_000_000, 8, 12), 1)
	if bytes.Equal(broken, b.Bytes()) {
		t.Fatal("no offsets were found")
	}
	ok(t, store.Put(t.Context(), manifestKey(shard, 1), (&state{version: 1, epoch: 1, next: 1, id: shard}).message()))
	ok(t, store.Put(t.Context(), walKey(shard, 1), broken))
	_, err := table.NewWriter(t.Context(), WriterOptions{Shard: shard, MergeAfter: -1})
	want(t, err, lance.ErrCorrupt)
}

// TestTombstonesOfAnotherTypeAreRefused reads a generation that another made.
func TestTombstonesOfAnotherTypeAreRefused(t *testing.T) {
	table := newTable(t, objstore.NewMemory(), small)
	d, err := table.install(t.Context())
	ok(t, err)
	sh, err := claim(t.Context(), d, NewID(), false)
	ok(t, err)
	sh.fields[len(sh.fields)-1].Logical = "int64"
	rec := kv("a", 1)
	schema := arrow.NewSchema(append(small.Fields(), arrow.Field{Name: Tombstone, Type: arrow.PrimitiveTypes.Int64}), nil)
	ok(t, sh.flush(t.Context(), []arrow.RecordBatch{array.NewRecordBatch(schema, append(rec.Columns(), rec.Column(1)), 1)}, 0))
	v, err := table.View(t.Context())
	ok(t, err)
	for _, err = range v.Scan(t.Context(), lance.ScanOptions{}) {
	}
	want(t, err, lance.ErrCorrupt)
}

// TestABaseWhoseKeyIsNoStringIsRefused beside a generation whose key is one.
func TestABaseWhoseKeyIsNoStringIsRefused(t *testing.T) {
	store := objstore.NewMemory()
	numbers := arrow.NewSchema([]arrow.Field{
		{Name: "k", Type: arrow.PrimitiveTypes.Int64, Metadata: small.Field(0).Metadata}, small.Field(1),
	}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, numbers)
	b.Field(0).(*array.Int64Builder).Append(5)
	b.Field(1).(*array.Int64Builder).Append(5)
	d, err := lance.Create(t.Context(), store, numbers)
	ok(t, err)
	_, err = d.Append(t.Context(), lance.Batches(b.NewRecordBatch()))
	ok(t, err)
	other := newTable(t, objstore.NewMemory(), small)
	w := newWriter(t, other, manual)
	ok(t, w.Append(t.Context(), kv("a", 1)))
	for info, err := range other.store.List(t.Context(), objstore.ListOptions{Prefix: root}) {
		ok(t, err)
		b, err := other.store.Get(t.Context(), info.Key, 1<<30)
		ok(t, err)
		ok(t, store.Put(t.Context(), info.Key, b))
	}
	table, err := Open(t.Context(), store)
	ok(t, err)
	v, err := table.View(t.Context())
	ok(t, err)
	for _, err = range v.Scan(t.Context(), lance.ScanOptions{}) {
	}
	if err == nil {
		t.Error("keys of two types were compared")
	}
}
