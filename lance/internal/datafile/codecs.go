package datafile

import (
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/foldlog/foldlog/lance/internal/format"
	"github.com/foldlog/foldlog/lance/internal/wire"
)

// flatNums reads n numbers of a width in bits.
func flatNums(b []byte, width, n int64) ([]uint64, error) {
	switch width {
	case 1, 8, 16, 32, 64:
	default:
		return nil, &format.UnsupportedError{What: fmt.Sprintf("flat values of %d bits", width)}
	}
	if n < 0 || (n*width+7)/8 > int64(len(b)) {
		return nil, corrupt("%d values of %d bits in %d bytes", n, width, len(b))
	}
	out := make([]uint64, n)
	for i := range out {
		if width == 1 {
			out[i] = uint64(b[i/8] >> (i % 8) & 1)
		} else {
			out[i] = readUint(b[int64(i)*width/8:], width)
		}
	}
	return out, nil
}

// cutOffsets cuts bytes at n+1 offsets of a width in bits.
func cutOffsets(b, offsets []byte, width, n int64) ([][]byte, error) {
	if width != 32 && width != 64 {
		return nil, corrupt("offsets of %d bits", width)
	}
	if (n+1)*width/8 > int64(len(offsets)) {
		return nil, corrupt("%d offsets in %d bytes", n+1, len(offsets))
	}
	out := make([][]byte, n)
	lo := readUint(offsets, width)
	for i := range out {
		hi := readUint(offsets[int64(i+1)*width/8:], width)
		if lo > hi || hi > uint64(len(b)) {
			return nil, corrupt("value at %d to %d of %d bytes", lo, hi, len(b))
		}
		out[i] = b[lo:hi:hi]
		lo = hi
	}
	return out, nil
}

// chunkBytes reads Variable in a chunk: offsets relative to the chunk, then bytes.
func chunkBytes(x wire.Message, b []byte, n int64) ([][]byte, error) {
	width, err := nestedBits(x, 1)
	if err != nil {
		return nil, err
	}
	return cutOffsets(b, b, width, n)
}

// blockBytes reads Variable in a block: [bits][start of bytes][offsets][bytes], the
// first two as wide as the offsets.
func blockBytes(b []byte, n int64) ([][]byte, error) {
	if len(b) < 8 {
		return nil, corrupt("block of %d bytes", len(b))
	}
	width := int64(le.Uint32(b))
	if width != 32 {
		width = 64
	}
	if int64(len(b)) < width/4 {
		return nil, corrupt("block of %d bytes", len(b))
	}
	start := readUint(b[width/8:], width)
	if start > uint64(len(b)) {
		return nil, corrupt("bytes begin at %d of %d", start, len(b))
	}
	return cutOffsets(b[start:], b[width/4:], width, n)
}

// packedOrder is the order in which FastLanes visits rows of eight.
var packedOrder = [8]int{0, 4, 2, 6, 1, 5, 3, 7}

const packedChunk = 1024

// unpack decodes 1024 values of w bits, transposed for words of t bits.
func unpack(dst []uint64, t, w int, b []byte) ([]uint64, error) {
	if t != 8 && t != 16 && t != 32 && t != 64 || w < 0 || w > t {
		return nil, corrupt("values packed to %d of %d bits", w, t)
	}
	if len(b) < packedChunk*w/8 {
		return nil, corrupt("%d packed bytes for %d bits", len(b), w)
	}
	var out [packedChunk]uint64
	if w > 0 {
		lanes := packedChunk / t
		mask := ^uint64(0) >> (64 - w)
		for lane := range lanes {
			for row := range t {
				bit := row * w
				k, shift := bit/t, bit%t
				v := readUint(b[(lanes*k+lane)*t/8:], int64(t)) >> shift
				if shift+w > t {
					v |= readUint(b[(lanes*(k+1)+lane)*t/8:], int64(t)) << (t - shift)
				}
				out[packedOrder[row/8]*16+(row%8)*128+lane] = v & mask
			}
		}
	}
	return append(dst, out[:]...), nil
}

// inlinePacked reads a chunk whose first word is the width of its values.
func inlinePacked(t int64, b []byte, n int64) ([]uint64, error) {
	if t != 8 && t != 16 && t != 32 && t != 64 || int64(len(b)) < t/8 || n > packedChunk {
		return nil, corrupt("%d values packed from %d bits in %d bytes", n, t, len(b))
	}
	w := readUint(b, t)
	if w > uint64(t) {
		return nil, corrupt("values packed to %d of %d bits", w, t)
	}
	out, err := unpack(nil, int(t), int(w), b[t/8:])
	if err != nil {
		return nil, err
	}
	return out[:n], nil
}

// outOfLinePacked reads blocks of 1024 values; the rest is packed or plain, as its
// length tells.
func outOfLinePacked(x wire.Message, b []byte, n int64) (out []uint64, err error) {
	t := int64(x.Uint(1))
	w, err := nestedBits(x, 3)
	if err != nil {
		return nil, err
	}
	size := packedChunk * w / 8
	if n < 0 || n/packedChunk*size > int64(len(b)) {
		return nil, corrupt("%d values of %d bits in %d bytes", n, w, len(b))
	}
	for ; n >= packedChunk; n -= packedChunk {
		if out, err = unpack(out, int(t), int(w), b); err != nil {
			return nil, err
		}
		b = b[size:]
	}
	if n == 0 {
		return out, nil
	}
	if int64(len(b)) == n*t/8 {
		rest, err := flatNums(b, t, n)
		return append(out, rest...), err
	}
	full := int64(len(out))
	if out, err = unpack(out, int(t), int(w), b); err != nil {
		return nil, err
	}
	return out[:full+n], nil
}

// runLengths reads values and how often each repeats.
func runLengths(x wire.Message, vals, lengths []byte, n int64) ([]uint64, error) {
	vb, err := nestedBits(x, 1)
	if err != nil {
		return nil, err
	}
	lb, err := nestedBits(x, 2)
	if err != nil {
		return nil, err
	}
	runs := min(int64(len(vals))*8/vb, int64(len(lengths))*8/lb)
	vs, err := flatNums(vals, vb, runs)
	if err != nil {
		return nil, err
	}
	ls, err := flatNums(lengths, lb, runs)
	if err != nil {
		return nil, err
	}
	if n < 0 || n > maxExpanded/8 {
		return nil, corrupt("%d values of runs", n)
	}
	out := make([]uint64, 0, n)
	for i, v := range vs {
		for k := uint64(0); k < ls[i] && int64(len(out)) < n; k++ {
			out = append(out, v)
		}
	}
	if int64(len(out)) < n {
		return nil, corrupt("runs of %d values for %d rows", len(out), n)
	}
	return out, nil
}

// byteStreamSplit reads the first bytes of all values, then the second bytes, ...
func byteStreamSplit(x wire.Message, b []byte, n int64) ([]uint64, error) {
	width, err := nestedBits(x, 1)
	if err != nil {
		return nil, err
	}
	width /= 8
	if n < 0 || width*n > int64(len(b)) {
		return nil, corrupt("%d split values of %d bytes in %d", n, width, len(b))
	}
	out := make([]uint64, n)
	for i := range n {
		for k := range width {
			out[i] |= uint64(b[k*n+i]) << (8 * k)
		}
	}
	return out, nil
}

// decodeBlock decodes n values that are compressed as a whole: levels and
// dictionaries.
func decodeBlock(enc wire.Message, b []byte, n int64, depth int) (v values, err error) {
	num, x, err := compression(enc, depth)
	if err != nil {
		return v, err
	}
	switch num {
	case compFlat:
		v.nums, err = flatNums(b, int64(x.Uint(1)), n)
	case compVariable:
		v.bytes, err = blockBytes(b, n)
	case compConstant:
		v.nums, err = constantBlock(x, n)
	case compOutOfLinePacked:
		v.nums, err = outOfLinePacked(x, b, n)
	case compInlinePacked:
		v.nums, err = inlinePacked(int64(x.Uint(1)), b, n)
	case compFSST:
		return fsstValues(x, n, func(inner wire.Message) (values, error) { return decodeBlock(inner, b, n, depth+1) })
	case compRLE:
		if len(b) < 8 || le.Uint64(b) > uint64(len(b)-8) {
			return v, corrupt("runs of %d bytes", len(b))
		}
		split := 8 + le.Uint64(b)
		v.nums, err = runLengths(x, b[8:split], b[split:], n)
	case compGeneral:
		raw, err := decompress(x, b)
		if err != nil {
			return v, err
		}
		inner, err := x.Sub(3)
		if err != nil {
			return v, err
		}
		return decodeBlock(inner, raw, n, depth+1)
	default:
		return v, unsupportedCompression("block", num)
	}
	return v, err
}

func constantBlock(x wire.Message, n int64) ([]uint64, error) {
	c, _ := x.Get(1)
	if len(c.B) > 8 || n < 0 || n > maxExpanded/8 {
		return nil, corrupt("%d constants of %d bytes", n, len(c.B))
	}
	out := make([]uint64, n)
	for i := range out {
		out[i] = littleEndian(c.B)
	}
	return out, nil
}

// valueDecoder returns what decodes one value of a full-zip page.
func valueDecoder(enc wire.Message, depth int) (func([]byte) ([]byte, error), error) {
	num, x, err := compression(enc, depth)
	if err != nil {
		return nil, err
	}
	switch num {
	case compVariable:
		return func(b []byte) ([]byte, error) { return b, nil }, nil
	case compGeneral:
		inner, err := innerDecoder(x, 3, depth)
		if err != nil {
			return nil, err
		}
		return func(b []byte) ([]byte, error) {
			b, err := decompress(x, b)
			if err != nil {
				return nil, err
			}
			return inner(b)
		}, nil
	case compFSST:
		inner, err := innerDecoder(x, 2, depth)
		if err != nil {
			return nil, err
		}
		table, _ := x.Get(1)
		t, err := parseSymbols(table.B)
		if err != nil {
			return nil, err
		}
		return func(b []byte) ([]byte, error) {
			b, err := inner(b)
			if err != nil {
				return nil, err
			}
			return t.expand(b)
		}, nil
	}
	return nil, unsupportedCompression("full-zip", num)
}

func innerDecoder(x wire.Message, num, depth int) (func([]byte) ([]byte, error), error) {
	enc, err := x.Sub(num)
	if err != nil {
		return nil, err
	}
	return valueDecoder(enc, depth+1)
}

var zstdDecoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxExpanded))
})

const (
	schemeLZ4  = 1
	schemeZstd = 2
	zstdMagic  = 0xFD2FB528
)

// decompress undoes General{compression{scheme}}.
func decompress(x wire.Message, b []byte) ([]byte, error) {
	c, err := x.Sub(1)
	if err != nil {
		return nil, err
	}
	switch scheme := c.Uint(1); scheme {
	case schemeLZ4:
		return unLZ4(b)
	case schemeZstd:
		return unzstd(b)
	default:
		return nil, &format.UnsupportedError{What: fmt.Sprintf("compression scheme %d", scheme)}
	}
}

// unLZ4 reads a u32 length and an LZ4 block, which cannot grow more than 255 times.
func unLZ4(b []byte) ([]byte, error) {
	if len(b) < 4 {
		return nil, corrupt("lz4 block of %d bytes", len(b))
	}
	n := int64(le.Uint32(b))
	if n > 255*int64(len(b)) || n > maxExpanded {
		return nil, corrupt("lz4 block of %d bytes that claims %d", len(b), n)
	}
	out := make([]byte, n)
	got, err := lz4.UncompressBlock(b[4:], out)
	if err != nil {
		return nil, corrupt("lz4 block: %v", err)
	}
	return out[:got], nil
}

// unzstd reads a zstd frame, or a u64 length and a frame.
func unzstd(b []byte) ([]byte, error) {
	dec, err := zstdDecoder()
	if err != nil {
		return nil, err
	}
	if len(b) < 4 {
		return nil, corrupt("zstd frame of %d bytes", len(b))
	}
	if le.Uint32(b) != zstdMagic {
		if len(b) < 12 {
			return nil, corrupt("zstd frame of %d bytes", len(b))
		}
		b = b[8:]
	}
	out, err := dec.DecodeAll(b, nil)
	if err != nil {
		return nil, corrupt("zstd frame: %v", err)
	}
	return out, nil
}

// symbols is an FSST symbol table: each code stands for up to eight bytes.
type symbols struct {
	raw     bool
	bytes   [256][8]byte
	lengths [256]int
}

const (
	fsstMagic  = 0x46535354 // "FSST"
	fsstEscape = 255
)

func parseSymbols(b []byte) (*symbols, error) {
	if len(b) < 8 {
		return nil, corrupt("symbol table of %d bytes", len(b))
	}
	head := le.Uint64(b)
	if head>>32 != fsstMagic {
		return nil, corrupt("symbol table without its mark")
	}
	t := &symbols{raw: head>>24&1 == 0}
	n := int(head & 255)
	if len(b) < 8+9*n {
		return nil, corrupt("symbol table of %d bytes for %d symbols", len(b), n)
	}
	for i := range n {
		copy(t.bytes[i][:], b[8+8*i:])
		if t.lengths[i] = int(b[8+8*n+i]); t.lengths[i] > 8 {
			return nil, corrupt("symbol of %d bytes", t.lengths[i])
		}
	}
	return t, nil
}

func (t *symbols) expand(b []byte) ([]byte, error) {
	if t.raw {
		return b, nil
	}
	out := make([]byte, 0, 3*len(b))
	for i := 0; i < len(b); i++ {
		if b[i] != fsstEscape {
			out = append(out, t.bytes[b[i]][:t.lengths[b[i]]]...)
			continue
		}
		if i++; i == len(b) {
			return nil, corrupt("escape at the end of a value")
		}
		out = append(out, b[i])
	}
	return out, nil
}

// fsstValues expands the values of an inner encoding.
func fsstValues(x wire.Message, n int64, inner func(wire.Message) (values, error)) (values, error) {
	table, _ := x.Get(1)
	t, err := parseSymbols(table.B)
	if err != nil {
		return values{}, err
	}
	enc, err := x.Sub(2)
	if err != nil {
		return values{}, err
	}
	v, err := inner(enc)
	if err != nil {
		return v, err
	}
	if int64(len(v.bytes)) != n {
		return v, corrupt("symbols of values without bytes")
	}
	for i := range v.bytes {
		if v.bytes[i], err = t.expand(v.bytes[i]); err != nil {
			return v, err
		}
	}
	return v, nil
}
