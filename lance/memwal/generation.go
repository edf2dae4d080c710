package memwal

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/foldlog/foldlog/lance/internal/arrays"
	"github.com/foldlog/foldlog/lance/internal/datafile"
	"github.com/foldlog/foldlog/lance/internal/format"
	"github.com/foldlog/foldlog/objstore"
)

// Tombstone is the column of a generation that says that a key is deleted.
const Tombstone = "_tombstone"

// keyPageRows is how many keys are in a page of a generation's key index.
const keyPageRows = 8192

// contents are the rows of a generation in its columns, the newest of each key.
type contents struct {
	fields []format.Field
	cols   []arrow.Array
	keys   datafile.ByteView
	rows   int
}

// fieldsOfGeneration are the table's columns, all but the key nullable, and the
// tombstone.
func fieldsOfGeneration(table []format.Field, key string) []format.Field {
	var out []format.Field
	highest := int32(0)
	for _, f := range table {
		highest = max(highest, f.ID)
		out = append(out, f.AsNullable(f.Name != key))
	}
	return append(out, format.Field{ID: highest + 1, Name: Tombstone, Logical: "bool"})
}

// gather puts batches together and keeps the last row of each key, in their order.
func gather(fields []format.Field, key string, batches []arrow.RecordBatch) (*contents, error) {
	c := &contents{fields: fields, cols: make([]arrow.Array, len(fields))}
	for i, f := range fields {
		var parts []arrow.Array
		for _, rec := range batches {
			a, err := column(rec, f)
			if err != nil {
				return nil, err
			}
			parts = append(parts, a)
		}
		all, err := array.Concatenate(parts, memory.DefaultAllocator)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", f.Name, err)
		}
		c.cols[i] = all
	}
	return c, c.dedup(key)
}

// column finds a column in a batch. A missing one is null; without tombstones no row
// is deleted.
func column(rec arrow.RecordBatch, f format.Field) (arrow.Array, error) {
	t, err := format.ArrowType(f.Logical)
	if err != nil {
		return nil, err
	}
	at := rec.Schema().FieldIndices(f.Name)
	switch {
	case len(at) == 1:
		a := rec.Column(at[0])
		if !arrow.TypeEqual(a.DataType(), t) {
			return nil, fmt.Errorf("column %s holds %s, the table's %s", f.Name, a.DataType(), t)
		}
		return a, nil
	case f.Name == Tombstone:
		bits := make([]byte, (rec.NumRows()+7)/8)
		return array.MakeFromData(array.NewData(t, int(rec.NumRows()), []*memory.Buffer{nil, memory.NewBufferBytes(bits)}, nil, 0, 0)), nil
	case len(at) == 0 && f.Nullable:
		return arrays.Nulls(t, rec.NumRows()), nil
	}
	return nil, fmt.Errorf("batch has %d columns named %q", len(at), f.Name)
}

func (c *contents) dedup(key string) error {
	at := slices.IndexFunc(c.fields, func(f format.Field) bool { return f.Name == key })
	view, ok := datafile.ViewBytes(c.cols[at])
	if !ok || c.cols[at].NullN() > 0 {
		return fmt.Errorf("column %s: a key is null", key)
	}
	n := c.cols[at].Len()
	last := make(map[string]int, n)
	for i := range n {
		last[string(view.At(i))] = i
	}
	if len(last) < n {
		rows := slices.Sorted(func(yield func(int) bool) {
			for _, i := range last {
				if !yield(i) {
					return
				}
			}
		})
		for i := range c.cols {
			a, err := arrays.Pick(c.cols[i], rows)
			if err != nil {
				return err
			}
			c.cols[i] = a
		}
		view, _ = datafile.ViewBytes(c.cols[at])
	}
	c.keys, c.rows = view, len(last)
	return nil
}

// write puts the files of a generation into a new directory of a shard. They are all
// durable when it returns; nothing names them yet.
func (c *contents) write(ctx context.Context, store objstore.Store, shard ID, number uint64) (generation, error) {
	var token [4]byte
	_, _ = rand.Read(token[:])
	g := generation{number: number, dir: fmt.Sprintf("%s_gen_%d", hex.EncodeToString(token[:]), number), rows: uint64(c.rows)}
	files, err := c.files(&g)
	if err != nil {
		return g, err
	}
	dir := shardDir(shard) + g.dir + "/"
	var wg sync.WaitGroup
	errs := make(chan error, len(files))
	for name, data := range files {
		wg.Go(func() {
			if err := store.Put(ctx, dir+name, data); err != nil {
				errs <- err
			}
		})
	}
	wg.Wait()
	select {
	case err := <-errs:
		return g, err
	default:
		return g, nil
	}
}

// files lays a generation out: a table of one version and one fragment, an index of
// its keys, and a bloom filter.
func (c *contents) files(g *generation) (map[string][]byte, error) {
	data, err := fileOf(c.fields, c.cols)
	if err != nil {
		return nil, err
	}
	path := format.DataFileName()
	m := &format.Manifest{Fields: c.fields, Version: 1, Time: time.Now(), FileVersion: "2.0"}
	m.Fragments = []format.Fragment{{Files: []format.DataFile{format.DataFileOf(path, c.fields, int64(len(data)))}, Rows: int64(c.rows)}}
	m.Reserve(0)
	files, err := c.keyIndex()
	if err != nil {
		return nil, err
	}
	filter := newBloom()
	for i := range c.rows {
		filter.add(keyHash(c.keys.At(i)))
		g.keyBytes += uint64(len(c.keys.At(i)))
	}
	g.memory = uint64(len(data))
	files["data/"+path] = data
	files[format.ManifestKey(1)] = m.File()
	files["bloom_filter.bin"] = filter.bytes()
	return files, nil
}

func fileOf(fields []format.Field, cols []arrow.Array, metadata ...[2]string) ([]byte, error) {
	var b bytes.Buffer
	w, err := datafile.NewWriter(&b, fields, metadata...)
	if err != nil {
		return nil, err
	}
	if err := w.Write(cols); err != nil {
		return nil, err
	}
	err = w.Close()
	return b.Bytes(), err
}

// keyIndex is a BTREE of the keys and their row numbers.
func (c *contents) keyIndex() (map[string][]byte, error) {
	order := make([]int, c.rows)
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return bytes.Compare(c.keys.At(a), c.keys.At(b)) })
	values, mins, maxs := array.NewStringBuilder(memory.DefaultAllocator), array.NewStringBuilder(memory.DefaultAllocator), array.NewStringBuilder(memory.DefaultAllocator)
	ids := array.NewUint64Builder(memory.DefaultAllocator)
	nulls, pages := array.NewUint32Builder(memory.DefaultAllocator), array.NewUint32Builder(memory.DefaultAllocator)
	for at, i := range order {
		values.Append(string(c.keys.At(i)))
		ids.Append(uint64(i))
		if at%keyPageRows == 0 {
			mins.Append(string(c.keys.At(i)))
			maxs.Append(string(c.keys.At(order[min(at+keyPageRows, c.rows)-1])))
			nulls.Append(0)
			pages.Append(uint32(at / keyPageRows))
		}
	}
	data, err := fileOf([]format.Field{
		{ID: 0, Name: "values", Logical: "string", Nullable: true}, {ID: 1, Name: "ids", Logical: "uint64"},
	}, []arrow.Array{values.NewArray(), ids.NewArray()})
	if err != nil {
		return nil, err
	}
	lookup, err := fileOf([]format.Field{
		{ID: 0, Name: "min", Logical: "string", Nullable: true}, {ID: 1, Name: "max", Logical: "string", Nullable: true},
		{ID: 2, Name: "null_count", Logical: "uint32"}, {ID: 3, Name: "page_idx", Logical: "uint32"},
	}, []arrow.Array{mins.NewArray(), maxs.NewArray(), nulls.NewArray(), pages.NewArray()},
		[2]string{"batch_size", fmt.Sprint(keyPageRows)}, [2]string{"range_partitioned", "false"})
	if err != nil {
		return nil, err
	}
	return map[string][]byte{"_pk_index/page_data.lance": data, "_pk_index/page_lookup.lance": lookup}, nil
}

// newestFirst orders generations.
func newestFirst(gens []generation) {
	slices.SortFunc(gens, func(a, b generation) int { return cmp.Compare(b.number, a.number) })
}
