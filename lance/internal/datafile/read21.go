package datafile

import (
	"context"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/foldlog/foldlog/lance/internal/format"
	"github.com/foldlog/foldlog/lance/internal/wire"
)

// The numbers of the oneof PageLayout.
const (
	layoutMiniBlock = 1
	layoutConstant  = 2
	layoutFullZip   = 3
)

var layoutNames = map[int]string{4: "blob", 5: "sparse"}

// parsePageLayout parses the layout of a page of a 2.1 or 2.2 file.
func parsePageLayout(p *page, typ arrow.DataType) (decoder, error) {
	which, err := oneof(p.body)
	if err != nil {
		return nil, err
	}
	x, err := wire.Parse(which.B)
	if err != nil {
		return nil, err
	}
	switch which.Num {
	case layoutMiniBlock:
		return parseMiniBlock(x, typ)
	case layoutConstant:
		return parseConstant(p, x, typ)
	case layoutFullZip:
		return parseFullZip(x, typ)
	}
	name := layoutNames[which.Num]
	if name == "" {
		name = fmt.Sprintf("%d", which.Num)
	}
	return nil, &format.UnsupportedError{What: "page layout " + name}
}

// flatLayers refuses repetition and everything but nullable or non-nullable items.
func flatLayers(x wire.Message, num int) error {
	layers, err := x.AllUints(num)
	if err != nil {
		return err
	}
	for _, l := range layers {
		if l != 1 && l != 3 && l != 0 { // all valid item, nullable item
			return &format.UnsupportedError{What: fmt.Sprintf("nested values (layer %d)", l)}
		}
	}
	if len(layers) > 1 {
		return &format.UnsupportedError{What: fmt.Sprintf("nested values (%d layers)", len(layers))}
	}
	return nil
}

// values holds decoded values: numbers for fixed widths, bytes for the others.
type values struct {
	nums  []uint64
	bytes [][]byte
}

func (v values) len() int { return max(len(v.nums), len(v.bytes)) }

// builder turns values and their validity into an array.
type builder struct {
	typ      arrow.DataType
	variable *variableBuilder
	width    int
	n        int64
	valid    []byte
	data     []byte
}

func newBuilder(typ arrow.DataType, n, most int64) *builder {
	b := &builder{typ: typ, width: bitWidth(typ)}
	if v, _ := isVariable(typ); v {
		b.variable = newVariableBuilder(typ, n, most)
		return b
	}
	b.valid = make([]byte, 0, (n+7)/8)
	b.data = make([]byte, 0, (n*int64(b.width)+7)/8)
	return b
}

// add appends row i of v, or a null.
func (b *builder) add(v values, i int64, valid bool) error {
	if b.variable != nil {
		if !valid {
			return b.variable.append(nil, false)
		}
		if i >= int64(len(v.bytes)) {
			return corrupt("value %d of %d", i, len(v.bytes))
		}
		return b.variable.append(v.bytes[i], true)
	}
	num := uint64(0)
	if valid {
		if i >= int64(len(v.nums)) {
			return corrupt("value %d of %d", i, len(v.nums))
		}
		num = v.nums[i]
	}
	if b.n%8 == 0 {
		b.valid = append(b.valid, 0)
	}
	if valid {
		b.valid[b.n/8] |= 1 << (b.n % 8)
	}
	b.appendNum(num)
	b.n++
	return nil
}

func (b *builder) appendNum(num uint64) {
	switch b.width {
	case 1:
		if b.n%8 == 0 {
			b.data = append(b.data, 0)
		}
		b.data[b.n/8] |= byte(num&1) << (b.n % 8)
	case 8:
		b.data = append(b.data, byte(num))
	case 16:
		b.data = le.AppendUint16(b.data, uint16(num))
	case 32:
		b.data = le.AppendUint32(b.data, uint32(num))
	default:
		b.data = le.AppendUint64(b.data, num)
	}
}

// upTo is the array of what was added before an error, if that is that it is full.
func (b *builder) upTo(err error) (arrow.Array, error) {
	if err != nil && !errors.Is(err, errFull) {
		return nil, err
	}
	return b.array(), nil
}

func (b *builder) array() arrow.Array {
	if b.variable != nil {
		return b.variable.array()
	}
	return fixedArray(b.typ, b.n, b.valid, b.data)
}

// constant is a page of one value, or of nulls, with definition levels or without.
type constant struct {
	typ    arrow.DataType
	value  values
	scalar int // the buffer that holds the value, -1 if it is inline
	def    int // the buffer that holds the levels, -1 if there are none
	null   bool
	levels wire.Message
	count  int64
}

func parseConstant(p *page, x wire.Message, typ arrow.DataType) (decoder, error) {
	if err := flatLayers(x, 5); err != nil {
		return nil, err
	}
	d := constant{typ: typ, scalar: -1, def: -1, count: p.rows}
	inline, hasInline := x.Get(6)
	n := len(p.buffers)
	switch {
	case hasInline:
		variable, _ := isVariable(typ)
		if variable {
			d.value.bytes = [][]byte{inline.B}
		} else if len(inline.B)*8 < bitWidth(typ) || len(inline.B) > 8 {
			return nil, corrupt("inline value of %d bytes for %s", len(inline.B), typ)
		} else {
			d.value.nums = []uint64{littleEndian(inline.B)}
		}
		if n >= 2 {
			d.def = 1
		}
	case n == 1 || n == 3:
		d.scalar = 0
		if n == 3 {
			d.def = 2
		}
	default:
		d.null = true
		return d, nil
	}
	if enc, ok := x.Get(8); ok {
		var err error
		if d.levels, err = wire.Parse(enc.B); err != nil {
			return nil, err
		}
		count := x.Uint(10)
		if count != uint64(p.rows) {
			return nil, corrupt("%d levels for %d rows", count, p.rows)
		}
	}
	return d, nil
}

func littleEndian(b []byte) (v uint64) {
	for i, y := range b {
		v |= uint64(y) << (8 * i)
	}
	return v
}

func (d constant) decode(ctx context.Context, r reader, lo, hi, most int64) (arrow.Array, error) {
	if d.null {
		return Nulls(d.typ, hi-lo), nil
	}
	value := d.value
	if d.scalar >= 0 {
		raw, err := r.whole(ctx, d.scalar)
		if err != nil {
			return nil, err
		}
		if value, err = scalar(raw, d.typ); err != nil {
			return nil, err
		}
	}
	def, err := d.definition(ctx, r, lo, hi)
	if err != nil {
		return nil, err
	}
	b := newBuilder(d.typ, hi-lo, most)
	for i := range hi - lo {
		if err = b.add(value, 0, def == nil || def[i] == 0); err != nil {
			break
		}
	}
	return b.upTo(err)
}

// definition reads the levels of rows [lo, hi): zero is a value, one a null.
func (d constant) definition(ctx context.Context, r reader, lo, hi int64) ([]uint64, error) {
	switch {
	case d.def < 0 || r.bufferSize(d.def) == 0:
		return nil, nil
	case d.levels == nil:
		raw, err := r.read(ctx, d.def, 2*lo, 2*(hi-lo))
		if err != nil {
			return nil, err
		}
		return flatNums(raw, 16, hi-lo)
	}
	raw, err := r.whole(ctx, d.def)
	if err != nil {
		return nil, err
	}
	v, err := decodeBlock(d.levels, raw, d.count, 0)
	if err != nil {
		return nil, err
	}
	if int64(len(v.nums)) < hi {
		return nil, corrupt("%d levels for %d rows", len(v.nums), hi)
	}
	return v.nums[lo:hi], nil
}

// scalar reads the Arrow buffers of an array of one value:
// [u32 buffers][u32 length of each][buffers].
func scalar(b []byte, typ arrow.DataType) (values, error) {
	if len(b) < 4 {
		return values{}, corrupt("scalar of %d bytes", len(b))
	}
	n := int64(le.Uint32(b))
	if n > 3 || int64(len(b)) < 4+4*n {
		return values{}, corrupt("scalar of %d buffers in %d bytes", n, len(b))
	}
	at := 4 + 4*n
	var last []byte
	for i := range n {
		size := int64(le.Uint32(b[4+4*i:]))
		if size > int64(len(b))-at {
			return values{}, corrupt("scalar buffer of %d bytes", size)
		}
		last = b[at : at+size]
		at += size
	}
	if variable, _ := isVariable(typ); variable {
		return values{bytes: [][]byte{last}}, nil
	}
	if len(last) == 0 || len(last)*8 < bitWidth(typ) {
		return values{}, corrupt("scalar of %d bytes for %s", len(last), typ)
	}
	return values{nums: []uint64{littleEndian(last[:min(len(last), 8)])}}, nil
}

// fullZip is a page of values each with its own control word and length.
type fullZip struct {
	typ     arrow.DataType
	control bool
	lenBits int64
	value   func([]byte) ([]byte, error)
}

func parseFullZip(x wire.Message, typ arrow.DataType) (decoder, error) {
	if err := flatLayers(x, 8); err != nil {
		return nil, err
	}
	if x.Uint(1) != 0 {
		return nil, &format.UnsupportedError{What: "repetition in a full-zip page"}
	}
	d := fullZip{typ: typ}
	switch def := x.Uint(2); {
	case def > 8:
		return nil, &format.UnsupportedError{What: fmt.Sprintf("definition levels of %d bits", def)}
	default:
		d.control = def > 0
	}
	variable, _ := isVariable(typ)
	if bits, ok := x.Get(4); ok && variable {
		if d.lenBits = int64(bits.V); d.lenBits != 32 && d.lenBits != 64 {
			return nil, corrupt("lengths of %d bits", bits.V)
		}
	} else {
		return nil, &format.UnsupportedError{What: fmt.Sprintf("full-zip page of %s", typ)}
	}
	enc, err := x.Sub(7)
	if err != nil {
		return nil, err
	}
	d.value, err = valueDecoder(enc, 0)
	return d, err
}

// decode finds the rows by the offsets in buffer 1: one number per row, and the end.
func (d fullZip) decode(ctx context.Context, r reader, lo, hi, most int64) (arrow.Array, error) {
	start, end, err := d.bounds(ctx, r, lo, hi)
	if err != nil {
		return nil, err
	}
	raw, err := r.read(ctx, 0, start, end-start)
	if err != nil {
		return nil, err
	}
	b := newBuilder(d.typ, hi-lo, most)
	for range hi - lo {
		var v []byte
		var valid bool
		if v, valid, raw, err = d.next(raw); err != nil {
			return nil, err
		}
		if err = b.add(values{bytes: [][]byte{v}}, 0, valid); err != nil {
			break
		}
	}
	return b.upTo(err)
}

func (d fullZip) bounds(ctx context.Context, r reader, lo, hi int64) (start, end int64, err error) {
	size := r.bufferSize(0)
	index := r.bufferSize(1)
	if index <= 0 {
		if lo == 0 && hi == r.page.rows {
			return 0, size, nil
		}
		return 0, 0, &format.UnsupportedError{What: "full-zip page without row offsets"}
	}
	width := index / (r.page.rows + 1)
	if width != 1 && width != 2 && width != 4 && width != 8 {
		return 0, 0, corrupt("row offsets of %d bytes for %d rows", index, r.page.rows)
	}
	raw, err := r.read(ctx, 1, lo*width, (hi-lo+1)*width)
	if err != nil {
		return 0, 0, err
	}
	start, end = int64(readUint(raw, 8*width)), int64(readUint(raw[(hi-lo)*width:], 8*width))
	if start < 0 || end < start || end > size {
		return 0, 0, corrupt("rows at %d to %d of %d bytes", start, end, size)
	}
	return start, end, nil
}

// next splits the first row off.
func (d fullZip) next(raw []byte) (v []byte, valid bool, rest []byte, err error) {
	if d.control {
		if len(raw) == 0 {
			return nil, false, nil, corrupt("full-zip page ends within a row")
		}
		null := raw[0] != 0
		if raw = raw[1:]; null {
			return nil, false, raw, nil
		}
	}
	width := d.lenBits / 8
	if int64(len(raw)) < width {
		return nil, false, nil, corrupt("full-zip page ends within a row")
	}
	n := readUint(raw, d.lenBits)
	raw = raw[width:]
	if n > uint64(len(raw)) {
		return nil, false, nil, corrupt("value of %d bytes, %d are left", n, len(raw))
	}
	v, err = d.value(raw[:n])
	return v, true, raw[n:], err
}
