package datafile

import (
	"fmt"
	"io"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/foldlog/foldlog/lance/internal/format"
	"github.com/foldlog/foldlog/lance/internal/wire"
)

// pageSize is when a page is closed, in bytes. A longer value has a page of
// its own.
const pageSize = 1 << 20

// Writer writes a file of format 2.0. Memory is at most one page per column, and
// one value more.
type Writer struct {
	dst      io.Writer
	off      int64
	rows     int64
	fields   []format.Field
	cols     []*columnWriter
	metadata [][2]string
}

// NewWriter begins a file. The metadata goes into its schema.
func NewWriter(dst io.Writer, fields []format.Field, metadata ...[2]string) (*Writer, error) {
	w := &Writer{dst: dst, fields: fields, metadata: metadata}
	for _, f := range fields {
		t, err := format.ArrowType(f.Logical)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", f.Name, err)
		}
		w.cols = append(w.cols, newColumnWriter(w, f, t))
	}
	return w, nil
}

// Write adds rows. The columns are in the order of the fields and are not kept.
func (w *Writer) Write(cols []arrow.Array) error {
	if len(cols) != len(w.cols) {
		return fmt.Errorf("write %d columns into %d", len(cols), len(w.cols))
	}
	for i, a := range cols {
		if a.Len() != cols[0].Len() {
			return fmt.Errorf("column %s has %d rows, the first %d", w.fields[i].Name, a.Len(), cols[0].Len())
		}
		if err := w.cols[i].append(a); err != nil {
			return fmt.Errorf("column %s: %w", w.fields[i].Name, err)
		}
	}
	if len(cols) > 0 {
		w.rows += int64(cols[0].Len())
	}
	return nil
}

// Rows counts the rows so far; Size counts the bytes that were written.
func (w *Writer) Rows() int64 { return w.rows }

// Size is the number of bytes written so far.
func (w *Writer) Size() int64 { return w.off }

func (w *Writer) write(b []byte) error {
	n, err := w.dst.Write(b)
	w.off += int64(n)
	return err
}

var padding [alignment]byte

func (w *Writer) align() error {
	if rest := w.off % alignment; rest != 0 {
		return w.write(padding[rest:])
	}
	return nil
}

// page writes the buffers of a page and remembers where they are.
func (w *Writer) page(c *columnWriter, rows int64, encoding []byte, buffers ...[]byte) error {
	var offs, sizes []uint64
	for _, b := range buffers {
		if err := w.align(); err != nil {
			return err
		}
		offs, sizes = append(offs, uint64(w.off)), append(sizes, uint64(len(b)))
		if err := w.write(b); err != nil {
			return err
		}
	}
	m := wire.Builder(nil).Packed(1, offs).Packed(2, sizes).Uint(3, uint64(rows)).
		Bytes(4, encodingMessage("/lance.encodings.ArrayEncoding", encoding)).Uint(5, uint64(c.first))
	c.meta = c.meta.Bytes(2, m)
	c.first += rows
	return nil
}

// Close writes what is left and the file's metadata. It does not close the
// destination.
func (w *Writer) Close() error {
	for i, c := range w.cols {
		if err := c.flush(); err != nil {
			return fmt.Errorf("column %s: %w", w.fields[i].Name, err)
		}
	}
	if err := w.align(); err != nil {
		return err
	}
	schema := wire.Builder(nil)
	for _, f := range w.fields {
		schema = f.Append(schema, 1)
	}
	for _, kv := range w.metadata {
		schema = schema.Bytes(5, wire.Builder(nil).String(1, kv[0]).Bytes(2, []byte(kv[1])))
	}
	desc := wire.Builder(nil).Bytes(1, schema).Uint(2, uint64(w.rows))
	return w.write(w.tail(desc))
}

// tail lays out everything from global buffer 0 to the footer.
func (w *Writer) tail(desc []byte) []byte {
	out := slices.Clone(desc)
	at := func() uint64 { return uint64(w.off) + uint64(len(out)) }
	firstMeta := at()
	var table []byte
	for _, c := range w.cols {
		table = le.AppendUint64(table, at())
		table = le.AppendUint64(table, uint64(len(c.meta)))
		out = append(out, c.meta...)
	}
	columnTable := at()
	out = append(out, table...)
	bufferTable := at()
	out = le.AppendUint64(out, uint64(w.off))
	out = le.AppendUint64(out, uint64(len(desc)))
	out = le.AppendUint64(out, firstMeta)
	out = le.AppendUint64(out, columnTable)
	out = le.AppendUint64(out, bufferTable)
	out = le.AppendUint32(out, 1)
	out = le.AppendUint32(out, uint32(len(w.cols)))
	out = le.AppendUint16(out, 0) // 2.0 is stamped 0.3
	out = le.AppendUint16(out, 3)
	return append(out, "LANC"...)
}

// columnWriter gathers the rows of one column's next page.
type columnWriter struct {
	w        *Writer
	field    format.Field
	typ      arrow.DataType
	variable bool
	bits     int
	meta     wire.Builder
	first    int64

	rows, nulls int64
	valid       []byte
	values      []byte
	ends        []byte
}

func newColumnWriter(w *Writer, f format.Field, t arrow.DataType) *columnWriter {
	c := &columnWriter{w: w, field: f, typ: t, bits: bitWidth(t)}
	c.variable, _ = isVariable(t)
	c.meta = wire.Builder(nil).Bytes(1, encodingMessage("/lance.encodings.ColumnEncoding", wire.Builder(nil).Bytes(1, nil)))
	return c
}

func (c *columnWriter) append(a arrow.Array) error {
	if !arrow.TypeEqual(a.DataType(), c.typ) {
		return fmt.Errorf("holds %s, the schema says %s", a.DataType(), c.typ)
	}
	if a.NullN() > 0 && !c.field.Nullable {
		return fmt.Errorf("%d nulls in a column without nulls", a.NullN())
	}
	if c.variable {
		return c.appendVariable(a)
	}
	return c.appendFixed(a)
}

// setValid appends the validity of a row.
func (c *columnWriter) setValid(valid bool) {
	if c.rows%8 == 0 {
		c.valid = append(c.valid, 0)
	}
	if valid {
		c.valid[c.rows/8] |= 1 << (c.rows % 8)
	} else {
		c.nulls++
	}
	c.rows++
}

func (c *columnWriter) appendVariable(a arrow.Array) error {
	src, ok := ViewBytes(a)
	if !ok {
		return fmt.Errorf("cannot read %T", a)
	}
	for i := range a.Len() {
		var v []byte
		valid := a.IsValid(i)
		if valid {
			v = src.At(i)
		}
		if c.rows > 0 && len(c.ends)+len(c.values)+len(v) > pageSize {
			if err := c.flush(); err != nil {
				return err
			}
		}
		c.values = append(c.values, v...)
		c.ends = le.AppendUint64(c.ends, uint64(len(c.values)))
		c.setValid(valid)
	}
	return nil
}

func (c *columnWriter) appendFixed(a arrow.Array) error {
	if a.Len() == 0 {
		return nil
	}
	if c.bits == 1 {
		return c.appendBool(a.(*array.Boolean))
	}
	width := c.bits / 8
	data := a.Data().Buffers()[1].Bytes()[a.Data().Offset()*width:]
	perPage := pageSize / width
	for i := 0; i < a.Len(); {
		n := min(a.Len()-i, perPage-int(c.rows))
		c.values = append(c.values, data[i*width:(i+n)*width]...)
		for k := range n {
			c.setValid(a.IsValid(i + k))
		}
		if i += n; int(c.rows) == perPage {
			if err := c.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *columnWriter) appendBool(a *array.Boolean) error {
	for i := range a.Len() {
		if c.rows%8 == 0 {
			c.values = append(c.values, 0)
		}
		valid := a.IsValid(i)
		if valid && a.Value(i) {
			c.values[c.rows/8] |= 1 << (c.rows % 8)
		}
		c.setValid(valid)
		if len(c.values) == pageSize && c.rows%8 == 0 {
			if err := c.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// flush writes the page. A page without rows is never written.
func (c *columnWriter) flush() error {
	if c.rows == 0 {
		return nil
	}
	var err error
	switch {
	case c.variable:
		err = c.flushVariable()
	case c.nulls == 0:
		err = c.w.page(c, c.rows, nullable(1, wire.Builder(nil).Bytes(1, flatEncoding(c.bits, 0))), c.values)
	case c.nulls == c.rows:
		err = c.w.page(c, c.rows, nullable(3, nil))
	default:
		some := wire.Builder(nil).Bytes(1, flatEncoding(1, 0)).Bytes(2, flatEncoding(c.bits, 1))
		err = c.w.page(c, c.rows, nullable(2, some), c.valid, c.values)
	}
	c.rows, c.nulls = 0, 0
	c.valid, c.ends = c.valid[:0], c.ends[:0]
	if c.values = c.values[:0]; cap(c.values) > 4*pageSize {
		c.values = nil
	}
	return err
}

// flushVariable marks null rows by adding to their ends more than any end can be.
func (c *columnWriter) flushVariable() error {
	adjust := uint64(len(c.values)) + 1
	if c.nulls > 0 {
		for i := range c.rows {
			if c.valid[i/8]>>(i%8)&1 == 0 {
				le.PutUint64(c.ends[8*i:], le.Uint64(c.ends[8*i:])+adjust)
			}
		}
	}
	ends := nullable(1, wire.Builder(nil).Bytes(1, flatEncoding(64, 0)))
	enc := wire.Builder(nil).Bytes(1, ends).Bytes(2, flatEncoding(8, 1)).Uint(3, adjust)
	return c.w.page(c, c.rows, wire.Builder(nil).Bytes(encBinary, enc), c.ends, c.values)
}

func flatEncoding(bits int, buf uint64) wire.Builder {
	ref := wire.Builder(nil).Uint(1, buf)
	return wire.Builder(nil).Bytes(encFlat, wire.Builder(nil).Uint(1, uint64(bits)).Bytes(2, ref))
}

func nullable(which int, inner []byte) wire.Builder {
	return wire.Builder(nil).Bytes(encNullable, wire.Builder(nil).Bytes(which, inner))
}
