package datafile

import (
	"context"
	"fmt"
	"sort"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/foldlog/foldlog/lance/internal/format"
	"github.com/foldlog/foldlog/lance/internal/wire"
)

// File is an open data file. Its methods may be called concurrently.
type File struct {
	src      Source
	size     int64
	version  version
	rows     int64
	columns  []column
	metadata map[string]string
}

// Open reads a file's footer and metadata. The size is in bytes.
func Open(ctx context.Context, src Source, size int64) (*File, error) {
	f := &File{src: src, size: size}
	if err := f.open(ctx); err != nil {
		return nil, corruptly(err)
	}
	return f, nil
}

func (f *File) open(ctx context.Context) error {
	if f.size < footerSize {
		return corrupt("file of %d bytes has no footer", f.size)
	}
	n := min(f.size, tailRead)
	tail, err := f.src.ReadRange(ctx, f.size-n, n)
	if err != nil {
		return err
	}
	foot := tail[len(tail)-footerSize:]
	if string(foot[36:]) != "LANC" {
		return corrupt("file does not end as a data file")
	}
	if f.version, err = footerVersion(le.Uint16(foot[32:]), le.Uint16(foot[34:])); err != nil {
		return err
	}
	globals, columns := uint64(le.Uint32(foot[24:])), uint64(le.Uint32(foot[28:]))
	if globals == 0 || columns > maxColumns || globals > maxColumns {
		return corrupt("%d columns and %d global buffers", columns, globals)
	}
	buffers, err := f.table(ctx, tail, le.Uint64(foot[16:]), globals)
	if err != nil {
		return err
	}
	metas, err := f.table(ctx, tail, le.Uint64(foot[8:]), columns)
	if err != nil {
		return err
	}
	fields, err := f.descriptor(ctx, tail, buffers[0])
	if err != nil {
		return err
	}
	if len(fields) != len(metas) {
		return &format.UnsupportedError{What: fmt.Sprintf("%d schema fields over %d columns", len(fields), len(metas))}
	}
	return f.readColumns(ctx, tail, metas, fields)
}

// bytes returns a part of the file, from its tail if that holds it.
func (f *File) bytes(ctx context.Context, tail []byte, s span) ([]byte, error) {
	if start := f.size - int64(len(tail)); s.off >= start {
		return tail[s.off-start : s.end()-start], nil
	}
	if s.n > maxMetadata {
		return nil, corrupt("metadata of %d bytes", s.n)
	}
	return f.src.ReadRange(ctx, s.off, s.n)
}

// table reads n pairs of position and length.
func (f *File) table(ctx context.Context, tail []byte, off, n uint64) ([]span, error) {
	s, err := within(off, n*16, f.size)
	if err != nil {
		return nil, err
	}
	b, err := f.bytes(ctx, tail, s)
	if err != nil {
		return nil, err
	}
	spans := make([]span, n)
	for i := range spans {
		if spans[i], err = within(le.Uint64(b[16*i:]), le.Uint64(b[16*i+8:]), f.size); err != nil {
			return nil, err
		}
	}
	return spans, nil
}

// descriptor reads global buffer 0.
func (f *File) descriptor(ctx context.Context, tail []byte, s span) ([]format.Field, error) {
	b, err := f.bytes(ctx, tail, s)
	if err != nil {
		return nil, err
	}
	desc, err := wire.Parse(b)
	if err != nil {
		return nil, err
	}
	rows, err := wire.Int(desc.Uint(2))
	if err != nil {
		return nil, err
	}
	f.rows = int64(rows)
	schema, err := desc.Sub(1)
	if err != nil {
		return nil, err
	}
	var fields []format.Field
	f.metadata = map[string]string{}
	for x := range schema.All() {
		switch x.Num {
		case 1:
			field, err := format.ParseField(x.B)
			if err != nil {
				return nil, err
			}
			fields = append(fields, field)
		case 5:
			kv, err := wire.Parse(x.B)
			if err != nil {
				return nil, err
			}
			k, _ := kv.Get(1)
			v, _ := kv.Get(2)
			f.metadata[string(k.B)] = string(v.B)
		}
	}
	return fields, nil
}

// readColumns reads the column metadata, in one request where it is contiguous.
func (f *File) readColumns(ctx context.Context, tail []byte, metas []span, fields []format.Field) error {
	if len(metas) == 0 {
		return nil
	}
	all, total := metas[0], int64(0)
	for _, s := range metas {
		if total += s.n; total > f.size {
			return corrupt("columns share their metadata")
		}
		lo, hi := min(all.off, s.off), max(all.end(), s.end())
		all = span{lo, hi - lo}
	}
	b, err := f.bytes(ctx, tail, all)
	if err != nil {
		return err
	}
	for i, s := range metas {
		c, err := parseColumn(b[s.off-all.off:s.end()-all.off], fields[i], f.size, f.rows)
		if err != nil {
			return err
		}
		f.columns = append(f.columns, c)
	}
	return nil
}

// Rows counts the rows.
func (f *File) Rows() int64 { return f.rows }

// Metadata is the schema's metadata.
func (f *File) Metadata() map[string]string { return f.metadata }

// Columns counts the columns.
func (f *File) Columns() int { return len(f.columns) }

// Field describes a column.
func (f *File) Field(col int) format.Field { return f.columns[col].field }

// pageAt finds the page that holds a row.
func (c *column) pageAt(row int64) int {
	return sort.Search(len(c.pages), func(i int) bool { return c.pages[i].first+c.pages[i].rows > row })
}

// Window returns the end of a run of rows from row that lies in one page and that takes
// at most about budget bytes, in memory and, by the page's average, in the file; at least
// one row.
func (f *File) Window(col int, row, budget int64) int64 {
	c := &f.columns[col]
	p := c.pages[c.pageAt(row)]
	n := max(1, 8*budget/c.bits)
	if p.bytes > budget {
		n = min(n, max(1, int64(float64(p.rows)*float64(budget)/float64(p.bytes))))
	}
	return min(row+n, p.first+p.rows)
}

// ErrTooMuch is the error of rows whose bytes are more than are to be read at once. It
// wraps ErrCorrupt.
var ErrTooMuch = fmt.Errorf("%w: the rows take too much memory", format.ErrCorrupt)

// Read decodes rows [lo, hi) of a column, which must not take more than a GiB.
func (f *File) Read(ctx context.Context, col int, lo, hi int64) (arrow.Array, error) {
	return f.ReadWithin(ctx, col, lo, hi, maxExpanded)
}

// ReadWithin decodes rows [lo, hi) of a column. More than one row whose values have more
// bytes than most, as those of a dictionary of long ones have, are ErrTooMuch.
func (f *File) ReadWithin(ctx context.Context, col int, lo, hi, most int64) (arrow.Array, error) {
	a, end, err := f.ReadSome(ctx, col, lo, hi, most)
	if err == nil && end < hi {
		return nil, fmt.Errorf("column %s: rows %d to %d: %w", f.columns[col].field.Name, lo, hi, ErrTooMuch)
	}
	return a, err
}

// ReadSome decodes rows of a column from lo up to hi, or fewer, but at least one, so that
// their values have not many more bytes than most. It returns where they end.
func (f *File) ReadSome(ctx context.Context, col int, lo, hi, most int64) (a arrow.Array, end int64, err error) {
	if col < 0 || col >= len(f.columns) || lo < 0 || hi > f.rows || lo > hi {
		return nil, lo, fmt.Errorf("rows %d to %d of column %d: a file of %d rows and %d columns", lo, hi, col, f.rows, len(f.columns))
	}
	c := &f.columns[col]
	typ, err := format.ArrowType(c.field.Logical)
	if err != nil {
		return nil, lo, fmt.Errorf("column %s: %w", c.field.Name, err)
	}
	if (hi-lo)*c.bits/8 > maxExpanded {
		return nil, lo, fmt.Errorf("column %s: %w", c.field.Name, corrupt("%d rows at once", hi-lo))
	}
	if lo == hi {
		return Nulls(typ, 0), lo, nil
	}
	var parts []arrow.Array
	full := false
	for i := c.pageAt(lo); lo < hi && !full; i++ {
		p := c.pages[i]
		end := min(hi, p.first+p.rows)
		part, err := f.readPage(ctx, p, typ, lo-p.first, end-p.first, most)
		if err != nil {
			return nil, lo, fmt.Errorf("column %s: page %d: %w", c.field.Name, i, corruptly(err))
		}
		parts = append(parts, part)
		lo += int64(part.Len())
		most -= valueBytes(part)
		full = lo < end || most <= 0
	}
	if len(parts) == 1 {
		return parts[0], lo, nil
	}
	a, err = array.Concatenate(parts, memory.DefaultAllocator)
	return a, lo, err
}

// valueBytes is how many bytes the values of an array have that have a length of their own.
func valueBytes(a arrow.Array) int64 {
	if variable, _ := isVariable(a.DataType()); !variable || a.Data().Buffers()[2] == nil {
		return 0
	}
	return int64(a.Data().Buffers()[2].Len())
}

func (f *File) readPage(ctx context.Context, p *page, typ arrow.DataType, lo, hi, most int64) (arrow.Array, error) {
	dec, err := f.decoderOf(p, typ)
	if err != nil {
		return nil, err
	}
	return dec.decode(ctx, reader{f.src, p}, lo, hi, most)
}

// decoder decodes rows [lo, hi) of one page, or fewer, but at least one, where values that
// are stored once for many rows would have more bytes than most.
type decoder interface {
	decode(ctx context.Context, r reader, lo, hi, most int64) (arrow.Array, error)
}

// decoderOf parses a page's encoding. It is cheap next to reading the page, and
// keeping nothing makes a File safe to share.
func (f *File) decoderOf(p *page, typ arrow.DataType) (decoder, error) {
	switch {
	case f.version == version20 && p.url == "/lance.encodings.ArrayEncoding":
		return parseArrayEncoding(p, typ)
	case f.version != version20 && p.url == "/lance.encodings21.PageLayout":
		return parsePageLayout(p, typ)
	}
	return nil, &format.UnsupportedError{What: fmt.Sprintf("page encoding %s in a %s file", p.url, f.version)}
}

// reader reads parts of a page's buffers.
type reader struct {
	src  Source
	page *page
}

// read reads n bytes at an offset of a buffer.
func (r reader) read(ctx context.Context, buf int, off, n int64) ([]byte, error) {
	s, err := r.span(buf, off, n)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, nil
	}
	return r.src.ReadRange(ctx, s.off, s.n)
}

func (r reader) span(buf int, off, n int64) (span, error) {
	if buf < 0 || buf >= len(r.page.buffers) {
		return span{}, corrupt("buffer %d of %d", buf, len(r.page.buffers))
	}
	s := r.page.buffers[buf]
	if off < 0 || n < 0 || off > s.n || n > s.n-off {
		return span{}, corrupt("%d bytes at %d of a buffer of %d", n, off, s.n)
	}
	return span{s.off + off, n}, nil
}

// readBoth reads from two buffers, at once if they lie close together.
func (r reader) readBoth(ctx context.Context, a int, aOff, aN int64, b int, bOff, bN int64) ([]byte, []byte, error) {
	sa, err := r.span(a, aOff, aN)
	if err != nil {
		return nil, nil, err
	}
	sb, err := r.span(b, bOff, bN)
	if err != nil {
		return nil, nil, err
	}
	if gap := sb.off - sa.end(); gap < 0 || gap > 4096 || aN == 0 || bN == 0 {
		x, err := r.read(ctx, a, aOff, aN)
		if err != nil {
			return nil, nil, err
		}
		y, err := r.read(ctx, b, bOff, bN)
		return x, y, err
	}
	all, err := r.src.ReadRange(ctx, sa.off, sb.end()-sa.off)
	if err != nil {
		return nil, nil, err
	}
	return all[:aN:aN], all[sb.off-sa.off:], nil
}

// whole reads a whole buffer.
func (r reader) whole(ctx context.Context, buf int) ([]byte, error) {
	if buf < 0 || buf >= len(r.page.buffers) {
		return nil, corrupt("buffer %d of %d", buf, len(r.page.buffers))
	}
	return r.read(ctx, buf, 0, r.page.buffers[buf].n)
}

// MetadataCost is about what an open file holds in memory, in bytes.
func (f *File) MetadataCost() int64 {
	cost := int64(1024)
	for _, c := range f.columns {
		for _, p := range c.pages {
			cost += 200 + int64(len(p.body)+16*len(p.buffers))
		}
	}
	return cost
}

// RowBytes is about the size of a row of a column, in the page that holds it or in memory,
// in bytes, at least one.
func (f *File) RowBytes(col int, row int64) int64 {
	c := &f.columns[col]
	p := c.pages[c.pageAt(row)]
	return max(1, c.bits/8, p.bytes/p.rows)
}
