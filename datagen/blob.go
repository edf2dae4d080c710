package datagen

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/foldlog/foldlog/lance"
	"github.com/foldlog/foldlog/lance/memwal"
)

// Blob reads the bytes that a reference stands for, with one ranged read of that value
// alone, and verifies their size and checksum. It is ErrNoBlob if the log does not have
// them, ErrBlob if they are not those that were written.
func (v *View) Blob(ctx context.Context, ref BlobRef) (b []byte, err error) {
	if ref.Bytes != nil {
		return ref.Bytes, nil
	}
	err = v.read(ctx, func(m *memwal.View) error {
		b, err = readBlob(ctx, m, ref)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("blob of event %s: %w", ref.Event, err)
	}
	return b, nil
}

func readBlob(ctx context.Context, m *memwal.View, ref BlobRef) ([]byte, error) {
	columns := []string{fields[colPayloadSize].Name, fields[colChecksum].Name}
	for rec, err := range m.Lookup(ctx, []string{ref.Event}, columns) {
		if err != nil {
			return nil, err
		}
		addrs, ok := rec.Column(int(rec.NumCols()) - 1).(*array.Uint64)
		if !ok || rec.ColumnName(int(rec.NumCols())-1) != lance.RowAddressColumn {
			return nil, fmt.Errorf("%w: no addresses", ErrNoBlob)
		}
		at := max(0, rowWith(rec.Column(1), ref.Checksum)) // copies of an event may differ
		got, err := m.Take(ctx, rec.Place, addrs.Uint64Values()[at:at+1], []string{BlobColumn})
		if err != nil {
			return nil, err
		}
		return checkedBlob(got.Column(0), ref)
	}
	return nil, ErrNoBlob
}

// rowWith is the row with a text, -1 if there is none.
func rowWith(col arrow.Array, text string) int {
	a, ok := col.(texts)
	if !ok {
		return -1
	}
	for i := range a.Len() {
		if !a.IsNull(i) && a.Value(i) == text {
			return i
		}
	}
	return -1
}

// checkedBlob verifies the one value of a column.
func checkedBlob(col any, ref BlobRef) ([]byte, error) {
	a, ok := col.(bytesArray)
	if !ok || a.Len() != 1 || a.IsNull(0) {
		return nil, ErrNoBlob
	}
	b := a.Value(0)
	if b == nil {
		b = []byte{}
	}
	if int64(len(b)) != ref.Size {
		return nil, fmt.Errorf("%w: %d bytes, not %d", ErrBlob, len(b), ref.Size)
	}
	if sum := Checksum(b); sum != ref.Checksum {
		return nil, fmt.Errorf("%w: checksum %s, not %s", ErrBlob, sum, ref.Checksum)
	}
	return b, nil
}
