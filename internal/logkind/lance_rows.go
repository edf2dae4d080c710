package logkind

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/foldlog/foldlog/internal/sleep"
	"github.com/foldlog/foldlog/lance"
)

const (
	lancePoll = 500 * time.Millisecond // how often a tail looks for new versions
	lanceTake = 256                    // rows that are read by address at once
)

// Cat streams the rows of the latest version.
func (k lanceKind) Cat(ctx context.Context, log string, w io.Writer, opts CatOptions) error {
	_, d, err := k.openLance(ctx, log)
	if err != nil {
		return err
	}
	skip := max(0, opts.From-1)
	for rows, err := range d.Scan(ctx, lance.ScanOptions{NoIndex: true}) {
		if err != nil {
			return err
		}
		n := min(skip, rows.NumRows())
		skip -= n
		if err := writeRows(w, rows.NewSlice(n, rows.NumRows())); err != nil {
			return err
		}
	}
	return nil
}

// Tail reads the last rows by their addresses, so that a large table is not read.
func (k lanceKind) Tail(ctx context.Context, log string, w io.Writer, opts TailOptions) error {
	_, d, err := k.openLance(ctx, log)
	if err != nil {
		return err
	}
	skip := max(0, d.Rows()-opts.Last)
	err = writeSome(ctx, d, w, func(uint64) bool { skip--; return skip < 0 })
	for err == nil && opts.Follow {
		if err := sleep.For(ctx, lancePoll); err != nil {
			return err
		}
		d, err = writeNew(ctx, d, w)
	}
	return err
}

// writeNew writes the rows that came in the versions after d, and returns the
// latest. Versions are gone through one by one, for a compaction moves rows that
// the one before it may have added.
func writeNew(ctx context.Context, d *lance.Dataset, w io.Writer) (*lance.Dataset, error) {
	latest, err := d.Latest(ctx)
	if err != nil {
		return d, err
	}
	for v := d.Version() + 1; v <= latest.Version(); v++ {
		next, err := d.At(ctx, v)
		if errors.Is(err, lance.ErrNotFound) {
			continue // cleaned up meanwhile
		}
		if err != nil {
			return d, err
		}
		if err := writeAdded(ctx, d, next, w); err != nil {
			return d, err
		}
		d = next
	}
	return d, nil
}

// writeAdded writes the rows of the fragments that one version has and the one
// before has not. Where fragments went and the number of rows stayed, rows were
// moved and none is new.
func writeAdded(ctx context.Context, before, after *lance.Dataset, w io.Writer) error {
	old, now := fragmentKeys(before), fragmentKeys(after)
	lost := false
	for key := range old {
		_, kept := now[key]
		lost = lost || !kept
	}
	added := map[uint64]bool{}
	for key, id := range now {
		if _, known := old[key]; !known {
			added[id] = true
		}
	}
	if len(added) == 0 || lost && before.Rows() == after.Rows() {
		return nil
	}
	return writeSome(ctx, after, w, func(addr uint64) bool { return added[addr>>32] })
}

// fragmentKeys are the fragments of a version by what tells them apart even if
// a table is overwritten and counts them anew.
func fragmentKeys(d *lance.Dataset) map[string]uint64 {
	keys := map[string]uint64{}
	for _, f := range d.Fragments() {
		key := fmt.Sprint(f.ID)
		if len(f.Files) > 0 {
			key += " " + f.Files[0]
		}
		keys[key] = f.ID
	}
	return keys
}

// writeSome writes the rows whose addresses are wanted, in the table's order.
func writeSome(ctx context.Context, d *lance.Dataset, w io.Writer, wanted func(addr uint64) bool) error {
	var addrs []uint64
	for rows, err := range d.Scan(ctx, lance.ScanOptions{Columns: []string{}, WithRowAddress: true, NoIndex: true}) {
		if err != nil {
			return err
		}
		column, ok := rows.Column(0).(*array.Uint64)
		if !ok {
			return fmt.Errorf("row addresses are %s", rows.Column(0).DataType())
		}
		for _, addr := range column.Uint64Values() {
			if wanted(addr) {
				addrs = append(addrs, addr)
			}
		}
		if len(addrs) >= lanceTake {
			if err := writeTaken(ctx, d, w, addrs); err != nil {
				return err
			}
			addrs = addrs[:0]
		}
	}
	return writeTaken(ctx, d, w, addrs)
}

func writeTaken(ctx context.Context, d *lance.Dataset, w io.Writer, addrs []uint64) error {
	for some := range slices.Chunk(addrs, lanceTake) {
		rows, err := d.Take(ctx, some, nil)
		if err != nil {
			return err
		}
		if err := writeRows(w, rows); err != nil {
			return err
		}
	}
	return nil
}

// writeRows writes a batch as lines of JSON, whole ones at each Write.
func writeRows(w io.Writer, rows arrow.RecordBatch) error {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	put := func(v any) error {
		if err := enc.Encode(v); err != nil {
			return err
		}
		buf.Truncate(buf.Len() - 1) // the newline of Encode
		return nil
	}
	for i := range int(rows.NumRows()) {
		for c, column := range rows.Columns() {
			buf.WriteByte("{,"[min(c, 1)])
			if err := put(rows.ColumnName(c)); err != nil {
				return err
			}
			buf.WriteByte(':')
			if err := put(jsonValue(column, i)); err != nil {
				return fmt.Errorf("column %s: %w", rows.ColumnName(c), err)
			}
		}
		if rows.NumCols() == 0 {
			buf.WriteByte('{')
		}
		buf.WriteString("}\n")
	}
	if buf.Len() == 0 {
		return nil
	}
	_, err := w.Write(buf.Bytes())
	return err
}

// jsonValue is a value as JSON has it: binaries become base64, times RFC 3339.
func jsonValue(column arrow.Array, i int) any {
	if column.IsNull(i) {
		return nil
	}
	switch a := column.(type) {
	case *array.Timestamp:
		if typ, ok := a.DataType().(*arrow.TimestampType); ok {
			return a.Value(i).ToTime(typ.Unit).UTC().Format(time.RFC3339Nano)
		}
	case *array.Float64:
		return jsonFloat(a.Value(i), a.Value(i))
	case *array.Float32:
		return jsonFloat(float64(a.Value(i)), a.Value(i))
	}
	return column.GetOneForMarshal(i)
}

// jsonFloat is v, or the name of the float that JSON has no number for.
func jsonFloat(f float64, v any) any {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	return v
}
