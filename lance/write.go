package lance

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/foldlog/foldlog/lance/internal/datafile"
	"github.com/foldlog/foldlog/lance/internal/format"
	"github.com/foldlog/foldlog/objstore"
)

// The sizes at which a new fragment is begun.
const (
	maxFragmentRows  = 1 << 20
	maxFragmentBytes = 4 << 30
)

// Batches is a sequence of record batches in memory, as the writing calls take it.
func Batches(batches ...arrow.RecordBatch) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		for _, b := range batches {
			if !yield(b, nil) {
				return
			}
		}
	}
}

// Create makes an empty table, version 1, at the root of a store. It is ErrExists if
// there is one. A column whose metadata says
// "lance-schema:unenforced-primary-key" = "true" becomes the primary key.
func Create(ctx context.Context, store objstore.Store, schema *arrow.Schema) (*Dataset, error) {
	fields, err := format.FieldsOf(schema)
	if err != nil {
		return nil, fmt.Errorf("create dataset: %w", err)
	}
	if len(fields) == 0 {
		return nil, errors.New("create dataset: the schema has no columns")
	}
	if _, err := latestVersion(ctx, store); !errors.Is(err, ErrNotFound) {
		if err == nil {
			err = ErrExists
		}
		return nil, fmt.Errorf("create dataset: %w", err)
	}
	txn := &format.Transaction{Kind: format.Overwrite, UUID: format.NewUUID().String(), Fields: fields}
	if err := store.PutIfAbsent(ctx, transactionsDir+txn.FileName(), txn.Message()); err != nil {
		return nil, fmt.Errorf("create dataset: %w", err)
	}
	m := &format.Manifest{Fields: fields, Version: 1, Time: time.Now(), TransactionFile: txn.FileName(), FileVersion: "2.0"}
	err = store.PutIfAbsent(ctx, manifestKey(1), m.File())
	if errors.Is(err, objstore.ErrExists) {
		err = ErrExists
	}
	if err != nil {
		return nil, fmt.Errorf("create dataset: %w", err)
	}
	m.Writer = format.WriterName + " " + format.WriterVersion
	return newDataset(store, m, newCache())
}

// OpenOrCreate opens the latest version, making the table first if there is none.
// Any number of processes may do so at once.
func OpenOrCreate(ctx context.Context, store objstore.Store, schema *arrow.Schema) (*Dataset, error) {
	d, err := Open(ctx, store, OpenOptions{})
	if !errors.Is(err, ErrNotFound) {
		return d, err
	}
	d, err = Create(ctx, store, schema)
	if errors.Is(err, ErrExists) {
		return Open(ctx, store, OpenOptions{})
	}
	return d, err
}

// Append adds rows and returns the version that has them. The batches need the
// table's columns, in any order; nullable ones may be missing. Nothing is added if
// an error is returned, unless it is objstore.ErrAmbiguous.
func (d *Dataset) Append(ctx context.Context, rows iter.Seq2[arrow.RecordBatch, error]) (*Dataset, error) {
	start := time.Now()
	frags, err := d.writeFragments(ctx, rows)
	if err != nil {
		return nil, fmt.Errorf("append: %w", err)
	}
	if len(frags) == 0 {
		return d, nil
	}
	txn := &format.Transaction{Kind: format.Append, Fragments: frags}
	return d.commit(ctx, change{txn: txn, start: start, apply: func(m *format.Manifest) error {
		return addFragments(m, frags)
	}})
}

// addFragments numbers new fragments after those that ever were.
func addFragments(m *format.Manifest, frags []format.Fragment) error {
	first, err := m.Reserve(uint64(len(frags)))
	if err != nil {
		return err
	}
	for i, f := range frags {
		f.ID = first + uint64(i)
		m.Fragments = append(m.Fragments, f)
	}
	return nil
}

// writeFragments writes rows as data files that no version names yet.
func (d *Dataset) writeFragments(ctx context.Context, rows iter.Seq2[arrow.RecordBatch, error]) ([]format.Fragment, error) {
	if err := d.m.Writable(); err != nil {
		return nil, err
	}
	var frags []format.Fragment
	var w *fragmentWriter
	defer func() { w.abort() }()
	for rec, err := range rows {
		if err != nil {
			return nil, err
		}
		for rec.NumRows() > 0 {
			if w == nil {
				if w, err = newFragmentWriter(ctx, d.store, d.m.Fields); err != nil {
					return nil, err
				}
			}
			part := rec.NewSlice(0, min(rec.NumRows(), maxFragmentRows-w.file.Rows()))
			if err := w.write(part); err != nil {
				return nil, err
			}
			if rec = rec.NewSlice(part.NumRows(), rec.NumRows()); w.full() {
				f, err := w.close()
				if err != nil {
					return nil, err
				}
				frags, w = append(frags, f), nil
			}
		}
	}
	if w != nil {
		f, err := w.close()
		if err != nil {
			return nil, err
		}
		frags, w = append(frags, f), nil
	}
	return frags, nil
}

// fragmentWriter writes one data file.
type fragmentWriter struct {
	fields []format.Field
	path   string
	dst    objstore.Writer
	file   *datafile.Writer
}

func newFragmentWriter(ctx context.Context, store objstore.Store, fields []format.Field) (*fragmentWriter, error) {
	w := &fragmentWriter{fields: fields, path: format.DataFileName()}
	dst, err := store.Create(ctx, dataDir+w.path)
	if err != nil {
		return nil, err
	}
	w.dst = dst
	if w.file, err = datafile.NewWriter(dst, fields); err != nil {
		_ = dst.Abort()
		return nil, err
	}
	return w, nil
}

func (w *fragmentWriter) full() bool {
	return w.file.Rows() >= maxFragmentRows || w.file.Size() >= maxFragmentBytes
}

func (w *fragmentWriter) write(rec arrow.RecordBatch) error {
	cols, err := columnsOf(rec, w.fields)
	if err != nil {
		return err
	}
	return w.file.Write(cols)
}

// columnsOf puts the columns of a batch in the order of the fields.
func columnsOf(rec arrow.RecordBatch, fields []format.Field) ([]arrow.Array, error) {
	cols := make([]arrow.Array, len(fields))
	for i, f := range fields {
		switch at := rec.Schema().FieldIndices(f.Name); {
		case len(at) == 1:
			cols[i] = rec.Column(at[0])
		case len(at) == 0 && f.Nullable:
			t, err := format.ArrowType(f.Logical)
			if err != nil {
				return nil, err
			}
			cols[i] = nulls(t, rec.NumRows())
		default:
			return nil, fmt.Errorf("batch has %d columns named %q", len(at), f.Name)
		}
	}
	for _, f := range rec.Schema().Fields() {
		if !hasField(fields, f.Name) {
			return nil, fmt.Errorf("the table has no column %q", f.Name)
		}
	}
	return cols, nil
}

func hasField(fields []format.Field, name string) bool {
	for _, f := range fields {
		if f.Name == name {
			return true
		}
	}
	return false
}

// close finishes the file and describes the fragment, which has no id yet.
func (w *fragmentWriter) close() (format.Fragment, error) {
	if err := w.file.Close(); err != nil {
		return format.Fragment{}, err
	}
	if err := w.dst.Close(); err != nil {
		return format.Fragment{}, err
	}
	return format.Fragment{Files: []format.DataFile{format.DataFileOf(w.path, w.fields, w.file.Size())}, Rows: w.file.Rows()}, nil
}

func (w *fragmentWriter) abort() {
	if w != nil {
		_ = w.dst.Abort()
	}
}
