package datafile

import (
	"context"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/foldlog/foldlog/lance/internal/format"
	"github.com/foldlog/foldlog/lance/internal/wire"
)

// The numbers of the oneof ArrayEncoding.
const (
	encFlat       = 1
	encNullable   = 2
	encBinary     = 6
	encDictionary = 7
)

var arrayEncodingNames = map[int]string{
	3: "fixed-size list", 4: "list", 5: "simple struct", 8: "fsst", 9: "packed struct", 10: "bitpacked",
	11: "fixed-size binary", 12: "bitpacked for non-negative", 13: "constant", 14: "delta", 15: "run-length", 16: "packed struct",
}

// parseArrayEncoding parses the encoding of a page of a 2.0 file.
func parseArrayEncoding(p *page, typ arrow.DataType) (decoder, error) {
	enc, err := oneof(p.body)
	if err != nil {
		return nil, err
	}
	variable, _ := isVariable(typ)
	switch {
	case enc.Num == encBinary && variable:
		return parseBinary(enc.B, typ)
	case enc.Num == encDictionary && variable:
		return parseDictionary(enc.B, typ)
	case enc.Num == encNullable:
		return parseNullable(enc.B, typ)
	case enc.Num == encFlat && !variable:
		return newFixed(enc.B, -1, typ)
	}
	return nil, unsupportedArray(enc.Num, typ)
}

func unsupportedArray(num int, typ arrow.DataType) error {
	name := arrayEncodingNames[num]
	if name == "" {
		name = fmt.Sprintf("encoding %d", num)
	}
	return &format.UnsupportedError{What: fmt.Sprintf("array encoding %s of %s", name, typ)}
}

// oneof returns the only field of a message.
func oneof(b []byte) (wire.Field, error) {
	fields, err := wire.Parse(b)
	if err != nil {
		return wire.Field{}, err
	}
	f, ok := fields.Last()
	if !ok {
		return wire.Field{}, corrupt("empty encoding")
	}
	return f, nil
}

// flat parses Flat{bits per value, buffer, compression}.
func flat(b []byte) (bits, buf int, err error) {
	fields, err := wire.Parse(b)
	if err != nil {
		return 0, 0, err
	}
	if fields.Has(3) {
		return 0, 0, &format.UnsupportedError{What: "compressed flat buffer"}
	}
	ref, err := fields.Sub(2)
	if err != nil {
		return 0, 0, err
	}
	if kind := ref.Uint(2); kind != 0 {
		return 0, 0, &format.UnsupportedError{What: fmt.Sprintf("buffer kind %d", kind)}
	}
	if bits, err = wire.Int(fields.Uint(1)); err != nil {
		return 0, 0, err
	}
	buf, err = wire.Int(ref.Uint(1))
	return bits, buf, err
}

// flatOf parses an ArrayEncoding that must be Flat, or Nullable without nulls of it.
func flatOf(b []byte) (bits, buf int, err error) {
	enc, err := oneof(b)
	if err != nil {
		return 0, 0, err
	}
	if enc.Num == encNullable {
		inner, err := wire.Parse(enc.B)
		if err != nil {
			return 0, 0, err
		}
		if !inner.Has(1) {
			return 0, 0, &format.UnsupportedError{What: "nulls in an inner encoding"}
		}
		noNulls, err := inner.Sub(1)
		if err != nil {
			return 0, 0, err
		}
		v, _ := noNulls.Get(1)
		if enc, err = oneof(v.B); err != nil {
			return 0, 0, err
		}
	}
	if enc.Num != encFlat {
		return 0, 0, unsupportedArray(enc.Num, arrow.Null)
	}
	return flat(enc.B)
}

// parseNullable parses Nullable{no nulls | some nulls | all nulls}.
func parseNullable(b []byte, typ arrow.DataType) (decoder, error) {
	which, err := oneof(b)
	if err != nil {
		return nil, err
	}
	inner, err := wire.Parse(which.B)
	if err != nil {
		return nil, err
	}
	switch which.Num {
	case 1:
		v, _ := inner.Get(1)
		return fixedOf(v.B, -1, typ)
	case 2:
		validity, _ := inner.Get(1)
		bits, buf, err := flatOf(validity.B)
		if err != nil {
			return nil, err
		}
		if bits != 1 {
			return nil, corrupt("validity of %d bits", bits)
		}
		v, _ := inner.Get(2)
		return fixedOf(v.B, buf, typ)
	case 3:
		return allNull{typ}, nil
	}
	return nil, corrupt("nullability %d", which.Num)
}

type allNull struct{ typ arrow.DataType }

func (d allNull) decode(_ context.Context, _ reader, lo, hi, _ int64) (arrow.Array, error) {
	return Nulls(d.typ, hi-lo), nil
}

// fixed is a page of values of one width, with a validity bitmap or without.
type fixed struct {
	typ              arrow.DataType
	bits             int64
	values, validity int
}

func fixedOf(b []byte, validity int, typ arrow.DataType) (decoder, error) {
	enc, err := oneof(b)
	if err != nil {
		return nil, err
	}
	if variable, _ := isVariable(typ); variable || enc.Num != encFlat {
		return nil, unsupportedArray(enc.Num, typ)
	}
	return newFixed(enc.B, validity, typ)
}

func newFixed(b []byte, validity int, typ arrow.DataType) (decoder, error) {
	bits, buf, err := flat(b)
	if err != nil {
		return nil, err
	}
	if bits == 0 || bits != bitWidth(typ) {
		return nil, corrupt("values of %d bits in a column of %s", bits, typ)
	}
	return fixed{typ, int64(bits), buf, validity}, nil
}

// decode reads from a multiple of eight rows, where bits begin a byte.
func (d fixed) decode(ctx context.Context, r reader, lo, hi, _ int64) (arrow.Array, error) {
	start := lo &^ 7
	n := hi - start
	off, size := start/8*d.bits, (n*d.bits+7)/8
	if d.validity < 0 {
		values, err := r.read(ctx, d.values, off, size)
		if err != nil {
			return nil, err
		}
		return slice(fixedArray(d.typ, n, nil, values), lo-start, hi-start), nil
	}
	validity, values, err := r.readBoth(ctx, d.validity, start/8, (n+7)/8, d.values, off, size)
	if err != nil {
		return nil, err
	}
	return slice(fixedArray(d.typ, n, validity, values), lo-start, hi-start), nil
}

// binaryPage is a page of values of varying length: per row the end of its bytes,
// plus the null adjustment if the row is null, and the bytes.
type binaryPage struct {
	typ          arrow.DataType
	ends, values int
	adjust       uint64
}

func parseBinary(b []byte, typ arrow.DataType) (decoder, error) {
	fields, err := wire.Parse(b)
	if err != nil {
		return nil, err
	}
	ends, _ := fields.Get(1)
	bits, endsBuf, err := flatOf(ends.B)
	if err != nil {
		return nil, err
	}
	if bits != 64 {
		return nil, &format.UnsupportedError{What: fmt.Sprintf("binary indices of %d bits", bits)}
	}
	values, _ := fields.Get(2)
	bits, valuesBuf, err := flatOf(values.B)
	if err != nil {
		return nil, err
	}
	if bits != 8 {
		return nil, corrupt("bytes of %d bits", bits)
	}
	return binaryPage{typ, endsBuf, valuesBuf, fields.Uint(3)}, nil
}

func (d binaryPage) decode(ctx context.Context, r reader, lo, hi, _ int64) (arrow.Array, error) {
	if lo == 0 && hi == r.page.rows && d.values < len(r.page.buffers) && d.values >= 0 { // both buffers at once
		ends, data, err := r.readBoth(ctx, d.ends, 0, 8*hi, d.values, 0, r.page.buffers[d.values].n)
		if err != nil {
			return nil, err
		}
		return d.build(ends, 0, func(int64, int64) ([]byte, error) { return data, nil }, hi, int64(len(data)))
	}
	first := max(lo-1, 0)
	ends, err := r.read(ctx, d.ends, 8*first, 8*(hi-first))
	if err != nil {
		return nil, err
	}
	start := uint64(0)
	if lo > 0 {
		start, _ = d.end(ends)
		ends = ends[8:]
	}
	return d.build(ends, start, func(off, n int64) ([]byte, error) { return r.read(ctx, d.values, off, n) }, hi-lo, r.bufferSize(d.values))
}

func (d binaryPage) end(b []byte) (end uint64, valid bool) {
	end = le.Uint64(b)
	if d.adjust > 0 && end >= d.adjust {
		return end - d.adjust, false
	}
	return end, true
}

// build makes an array from the ends of its rows; fetch reads the bytes from start.
func (d binaryPage) build(ends []byte, start uint64, fetch func(off, n int64) ([]byte, error), rows, size int64) (arrow.Array, error) {
	b := newVariableBuilder(d.typ, rows, maxExpanded)
	last := start
	for ; len(ends) > 0; ends = ends[8:] {
		end, valid := d.end(ends)
		if end < last || size < 0 || end > uint64(size) {
			return nil, corrupt("a value ends at %d, after %d, of %d bytes", end, last, size)
		}
		if err := b.appendEnd(end-start, valid); err != nil {
			return nil, err
		}
		last = end
	}
	if size < 0 || start > uint64(size) {
		return nil, corrupt("a value begins at %d of %d bytes", start, size)
	}
	data, err := fetch(int64(start), int64(last-start))
	if err != nil {
		return nil, err
	}
	b.data = data
	return b.array(), nil
}

// dictionaryPage is a page of numbers of items; zero is null.
type dictionaryPage struct {
	typ      arrow.DataType
	bits     int64
	indices  int
	items    binaryPage
	numItems int64
}

const maxDictionary = 1 << 20

func parseDictionary(b []byte, typ arrow.DataType) (decoder, error) {
	fields, err := wire.Parse(b)
	if err != nil {
		return nil, err
	}
	indices, _ := fields.Get(1)
	bits, buf, err := flatOf(indices.B)
	if err != nil {
		return nil, err
	}
	if bits != 8 && bits != 16 && bits != 32 && bits != 64 {
		return nil, corrupt("dictionary indices of %d bits", bits)
	}
	items, _ := fields.Get(2)
	enc, err := oneof(items.B)
	if err != nil {
		return nil, err
	}
	if enc.Num != encBinary {
		return nil, unsupportedArray(enc.Num, typ)
	}
	d, err := parseBinary(enc.B, typ)
	if err != nil {
		return nil, err
	}
	n := fields.Uint(3)
	if n > maxDictionary {
		return nil, corrupt("dictionary of %d items", n)
	}
	return dictionaryPage{typ, int64(bits), buf, d.(binaryPage), int64(n)}, nil
}

func (d dictionaryPage) decode(ctx context.Context, r reader, lo, hi, most int64) (arrow.Array, error) {
	ends, data, err := r.readBoth(ctx, d.items.ends, 0, 8*d.numItems, d.items.values, 0, r.bufferSize(d.items.values))
	if err != nil {
		return nil, err
	}
	items, err := d.items.build(ends, 0, func(int64, int64) ([]byte, error) { return data, nil }, d.numItems, int64(len(data)))
	if err != nil {
		return nil, err
	}
	width := d.bits / 8
	raw, err := r.read(ctx, d.indices, lo*width, (hi-lo)*width)
	if err != nil {
		return nil, err
	}
	return gather(d.typ, items, hi-lo, most, func(i int64) (int64, bool) {
		k := readUint(raw[i*width:], d.bits)
		return int64(k) - 1, k != 0
	})
}

func (r reader) bufferSize(buf int) int64 {
	if buf < 0 || buf >= len(r.page.buffers) {
		return -1
	}
	return r.page.buffers[buf].n
}

// readUint reads a little-endian number of 8, 16, 32 or 64 bits.
func readUint(b []byte, bits int64) uint64 {
	switch bits {
	case 8:
		return uint64(b[0])
	case 16:
		return uint64(le.Uint16(b))
	case 32:
		return uint64(le.Uint32(b))
	}
	return le.Uint64(b)
}

// gather builds an array of items picked by number, as many as have place.
func gather(typ arrow.DataType, items arrow.Array, n, most int64, pick func(i int64) (int64, bool)) (arrow.Array, error) {
	src, ok := ViewBytes(items)
	if !ok {
		return nil, corrupt("dictionary of %s", items.DataType())
	}
	b := newVariableBuilder(typ, n, most)
	for i := range n {
		k, valid := pick(i)
		if valid && (k < 0 || k >= int64(items.Len())) {
			return nil, corrupt("item %d of a dictionary of %d", k, items.Len())
		}
		if valid = valid && items.IsValid(int(k)); !valid {
			if err := b.append(nil, false); err != nil {
				return nil, err
			}
			continue
		}
		err := b.append(src.At(int(k)), true)
		if errors.Is(err, errFull) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	return b.array(), nil
}
