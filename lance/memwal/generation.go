package memwal

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
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

// The files of a generation beside its table.
const (
	keyPages  = "_pk_index/page_data.lance"
	keyLookup = "_pk_index/page_lookup.lance"
	bloomName = "bloom_filter.bin"
)

// contents are the rows of a generation in its columns, the newest of each key. The
// parts, a batch each, come one after the other.
type contents struct {
	fields []format.Field
	parts  []part
	rows   int
}

// part is the rows that one batch gives to a generation.
type part struct {
	cols  []arrow.Array
	keyAt int
	keys  datafile.ByteView
	rows  int
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
	c := &contents{fields: fields}
	for _, rec := range batches {
		p, err := partOf(fields, key, rec)
		if err != nil {
			return nil, err
		}
		c.parts = append(c.parts, p)
	}
	return c, c.dedup()
}

// partOf finds the columns of a batch and its keys.
func partOf(fields []format.Field, key string, rec arrow.RecordBatch) (part, error) {
	p := part{cols: make([]arrow.Array, len(fields)), rows: int(rec.NumRows())}
	for i, f := range fields {
		a, err := column(rec, f)
		if err != nil {
			return p, err
		}
		if f.Name == key {
			p.keyAt = i
			var ok bool
			if p.keys, ok = datafile.ViewBytes(a); !ok || a.NullN() > 0 {
				return p, fmt.Errorf("column %s: a key is null", key)
			}
		}
		if !f.Nullable && a.NullN() > 0 {
			return p, fmt.Errorf("column %s: %d nulls in a column without nulls", f.Name, a.NullN())
		}
		p.cols[i] = a
	}
	return p, nil
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
		return datafile.Nulls(t, rec.NumRows()), nil
	}
	return nil, fmt.Errorf("batch has %d columns named %q", len(at), f.Name)
}

// dedup drops rows that a later one replaces.
func (c *contents) dedup() error {
	total := 0
	for _, p := range c.parts {
		total += p.rows
	}
	seen := make(map[string]struct{}, total)
	for i := len(c.parts) - 1; i >= 0; i-- {
		p := &c.parts[i]
		var newest []int // rows in reverse, made once one is not the newest
		for row := p.rows - 1; row >= 0; row-- {
			before := len(seen)
			seen[string(p.keys.At(row))] = struct{}{}
			switch {
			case len(seen) == before && newest == nil:
				newest = make([]int, 0, p.rows)
				for r := p.rows - 1; r > row; r-- {
					newest = append(newest, r)
				}
			case len(seen) > before && newest != nil:
				newest = append(newest, row)
			}
		}
		if newest == nil {
			continue
		}
		slices.Reverse(newest)
		if err := p.pick(newest); err != nil {
			return err
		}
	}
	c.rows = len(seen)
	return nil
}

func (p *part) pick(rows []int) error {
	for i := range p.cols {
		a, err := arrays.Pick(p.cols[i], rows)
		if err != nil {
			return err
		}
		p.cols[i] = a
	}
	p.keys, _ = datafile.ViewBytes(p.cols[p.keyAt])
	p.rows = len(rows)
	return nil
}

// keys returns the keys in the order of the rows. They share memory with the batches.
func (c *contents) keys() [][]byte {
	keys := make([][]byte, 0, c.rows)
	for _, p := range c.parts {
		for i := range p.rows {
			keys = append(keys, p.keys.At(i))
		}
	}
	return keys
}

// layout makes the files of a generation in a new directory of a shard: a table of one
// version and one fragment, an index of its keys, and a bloom filter.
func (c *contents) layout(shard ID, number uint64) (generation, []objstore.Object, error) {
	var token [4]byte
	_, _ = rand.Read(token[:])
	g := generation{number: number, dir: hex.EncodeToString(token[:]) + "_gen_" + strconv.FormatUint(number, 10), rows: uint64(c.rows)}
	data, err := fileOf(c.fields, func(w *datafile.Writer) (err error) {
		for i := 0; err == nil && i < len(c.parts); i++ {
			err = w.Write(c.parts[i].cols)
		}
		return err
	})
	if err != nil {
		return g, nil, err
	}
	path := format.DataFileName()
	m := &format.Manifest{Fields: c.fields, Version: 1, Time: time.Now(), FileVersion: "2.0", MaxFragment: new(uint32)}
	m.Fragments = []format.Fragment{{Files: []format.DataFile{format.DataFileOf(path, c.fields, int64(len(data)))}, Rows: int64(c.rows)}}
	keys := c.keys()
	pages, lookup, err := keyIndex(keys)
	if err != nil {
		return g, nil, err
	}
	filter := newBloom()
	for _, k := range keys {
		filter.add(keyHash(k))
		g.keyBytes += uint64(len(k))
	}
	g.memory = uint64(len(data))
	dir := shardDir(shard) + g.dir + "/"
	return g, []objstore.Object{
		{Key: dir + "data/" + path, Data: data},
		{Key: dir + format.ManifestKey(1), Data: m.File()},
		{Key: dir + keyPages, Data: pages},
		{Key: dir + keyLookup, Data: lookup},
		{Key: dir + bloomName, Data: filter.bytes()},
	}, nil
}

func fileOf(fields []format.Field, write func(*datafile.Writer) error, metadata ...[2]string) ([]byte, error) {
	b := bytes.NewBuffer(make([]byte, 0, 4096))
	w, err := datafile.NewWriter(b, fields, metadata...)
	if err != nil {
		return nil, err
	}
	if err := write(w); err != nil {
		return nil, err
	}
	err = w.Close()
	return b.Bytes(), err
}

// The columns of a key index.
var (
	keyPageFields   = []format.Field{{ID: 0, Name: "values", Logical: "string", Nullable: true}, {ID: 1, Name: "ids", Logical: "uint64"}}
	keyLookupFields = []format.Field{
		{ID: 0, Name: "min", Logical: "string", Nullable: true}, {ID: 1, Name: "max", Logical: "string", Nullable: true},
		{ID: 2, Name: "null_count", Logical: "uint32"}, {ID: 3, Name: "page_idx", Logical: "uint32"},
	}
)

// keyIndex is a BTREE of the keys and their row numbers.
func keyIndex(keys [][]byte) (data, lookup []byte, err error) {
	order := make([]int, len(keys))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return bytes.Compare(keys[a], keys[b]) })
	values, mins, maxs := array.NewStringBuilder(memory.DefaultAllocator), array.NewStringBuilder(memory.DefaultAllocator), array.NewStringBuilder(memory.DefaultAllocator)
	ids := array.NewUint64Builder(memory.DefaultAllocator)
	nulls, pages := array.NewUint32Builder(memory.DefaultAllocator), array.NewUint32Builder(memory.DefaultAllocator)
	values.Reserve(len(keys))
	ids.Reserve(len(keys))
	for at, i := range order {
		values.BinaryBuilder.Append(keys[i])
		ids.Append(uint64(i))
		if at%keyPageRows == 0 {
			mins.BinaryBuilder.Append(keys[i])
			maxs.BinaryBuilder.Append(keys[order[min(at+keyPageRows, len(order))-1]])
			nulls.Append(0)
			pages.Append(uint32(at / keyPageRows))
		}
	}
	data, err = fileOf(keyPageFields, func(w *datafile.Writer) error {
		return w.Write([]arrow.Array{values.NewArray(), ids.NewArray()})
	})
	if err != nil {
		return nil, nil, err
	}
	lookup, err = fileOf(keyLookupFields, func(w *datafile.Writer) error {
		return w.Write([]arrow.Array{mins.NewArray(), maxs.NewArray(), nulls.NewArray(), pages.NewArray()})
	}, [2]string{"batch_size", strconv.Itoa(keyPageRows)}, [2]string{"range_partitioned", "false"})
	return data, lookup, err
}

// newestFirst orders generations.
func newestFirst(gens []generation) {
	slices.SortFunc(gens, func(a, b generation) int { return cmp.Compare(b.number, a.number) })
}
