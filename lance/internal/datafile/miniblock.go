package datafile

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/foldlog/foldlog/lance/internal/format"
	"github.com/foldlog/foldlog/lance/internal/wire"
)

// miniBlock is a page of chunks of some thousands of values each. Buffer 0 has a
// word per chunk, buffer 1 the chunks, buffer 2 the dictionary if there is one.
type miniBlock struct {
	typ      arrow.DataType
	levels   wire.Message // nil if no row can be null
	encoding wire.Message
	dict     wire.Message
	dictLen  int64
	buffers  int
	large    bool
}

const maxChunkBuffers = 8

func parseMiniBlock(x wire.Message, typ arrow.DataType) (decoder, error) {
	if err := flatLayers(x, 6); err != nil {
		return nil, err
	}
	if x.Has(1) {
		return nil, &format.UnsupportedError{What: "repetition in a mini-block page"}
	}
	d := miniBlock{typ: typ, large: x.Uint(10) == 1}
	for num, dst := range map[int]*wire.Message{2: &d.levels, 3: &d.encoding, 4: &d.dict} {
		if f, ok := x.Get(num); ok {
			var err error
			if *dst, err = wire.Parse(f.B); err != nil {
				return nil, err
			}
		}
	}
	n := x.Uint(7)
	if n == 0 || n > maxChunkBuffers {
		return nil, corrupt("mini-block page of %d buffers per chunk", n)
	}
	d.buffers = int(n)
	items := x.Uint(5)
	if items > maxDictionary {
		return nil, corrupt("dictionary of %d items", items)
	}
	d.dictLen = int64(items)
	return d, nil
}

// chunk is a run of rows, and where its bytes are in buffer 1.
type chunk struct {
	first, rows int64
	at          span
}

func (d miniBlock) chunks(ctx context.Context, r reader) ([]chunk, error) {
	raw, err := r.whole(ctx, 0)
	if err != nil {
		return nil, err
	}
	width := 2
	if d.large {
		width = 4
	}
	if len(raw)%width != 0 {
		return nil, corrupt("chunk words of %d bytes", len(raw))
	}
	n := len(raw) / width
	out := make([]chunk, 0, n)
	row, off := int64(0), int64(0)
	for i := range n {
		word := readUint(raw[i*width:], int64(8*width))
		c := chunk{first: row, rows: 1 << (word & 15), at: span{off, int64(word>>4+1) * 8}}
		if i == n-1 {
			c.rows = r.page.rows - row
		}
		if c.rows <= 0 || c.rows > 1<<16 || row+c.rows > r.page.rows {
			return nil, corrupt("chunk %d of %d rows at row %d of %d", i, c.rows, row, r.page.rows)
		}
		row, off = row+c.rows, off+c.at.n
		out = append(out, c)
	}
	if row != r.page.rows {
		return nil, corrupt("chunks of %d rows in a page of %d", row, r.page.rows)
	}
	return out, nil
}

func (d miniBlock) decode(ctx context.Context, r reader, lo, hi, most int64) (arrow.Array, error) {
	chunks, err := d.chunks(ctx, r)
	if err != nil {
		return nil, err
	}
	for len(chunks) > 0 && chunks[0].first+chunks[0].rows <= lo {
		chunks = chunks[1:]
	}
	for len(chunks) > 0 && chunks[len(chunks)-1].first >= hi {
		chunks = chunks[:len(chunks)-1]
	}
	if len(chunks) == 0 {
		return nil, corrupt("no chunks for rows %d to %d", lo, hi)
	}
	base := chunks[0].at.off
	raw, err := r.read(ctx, 1, base, chunks[len(chunks)-1].at.end()-base)
	if err != nil {
		return nil, err
	}
	var dict values
	if d.dict != nil {
		b, err := r.whole(ctx, 2)
		if err != nil {
			return nil, err
		}
		if dict, err = decodeBlock(d.dict, b, d.dictLen, 0); err != nil {
			return nil, err
		}
	}
	b := newBuilder(d.typ, hi-lo, most)
	for _, c := range chunks {
		if err = d.chunk(b, c, raw[c.at.off-base:c.at.end()-base], dict, lo, hi); err != nil {
			break
		}
	}
	return b.upTo(err)
}

// cutter splits a chunk into parts that are each padded to eight bytes.
type cutter struct {
	b  []byte
	at int
}

func (c *cutter) align() { c.at = (c.at + 7) &^ 7 }

func (c *cutter) cut(n int) ([]byte, error) {
	if n < 0 || c.at > len(c.b) || n > len(c.b)-c.at {
		return nil, corrupt("%d bytes at %d of a chunk of %d", n, c.at, len(c.b))
	}
	part := c.b[c.at : c.at+n : c.at+n]
	c.at += n
	return part, nil
}

func (c *cutter) number(width int) (int, error) {
	b, err := c.cut(width)
	if err != nil {
		return 0, err
	}
	return int(readUint(b, int64(8*width))), nil
}

// split reads a chunk's header: [u16 levels][u16 size of levels]?[size per buffer].
func (d miniBlock) split(raw []byte) (levels int, def []byte, buffers [][]byte, err error) {
	c := &cutter{b: raw}
	if levels, err = c.number(2); err != nil {
		return 0, nil, nil, err
	}
	defSize, width := 0, 2
	if d.levels != nil {
		if defSize, err = c.number(2); err != nil {
			return 0, nil, nil, err
		}
	}
	if d.large {
		width = 4
	}
	sizes := make([]int, d.buffers)
	for i := range sizes {
		if sizes[i], err = c.number(width); err != nil {
			return 0, nil, nil, err
		}
	}
	c.align()
	if d.levels != nil {
		if def, err = c.cut(defSize); err != nil {
			return 0, nil, nil, err
		}
		c.align()
	}
	for _, n := range sizes {
		b, err := c.cut(n)
		if err != nil {
			return 0, nil, nil, err
		}
		c.align()
		buffers = append(buffers, b)
	}
	return levels, def, buffers, nil
}

// chunk decodes the rows of one chunk that lie in [lo, hi).
func (d miniBlock) chunk(b *builder, c chunk, raw []byte, dict values, lo, hi int64) error {
	count, rawDef, buffers, err := d.split(raw)
	if err != nil {
		return err
	}
	var def []uint64
	if d.levels != nil {
		v, err := decodeBlock(d.levels, rawDef, int64(count), 0)
		if err != nil {
			return err
		}
		if def = v.nums; int64(len(def)) < c.rows {
			return corrupt("%d levels for %d rows", len(def), c.rows)
		}
	}
	v, err := decodeMiniBlock(d.encoding, buffers, c.rows, 0)
	if err != nil {
		return err
	}
	for i := max(lo-c.first, 0); i < min(hi-c.first, c.rows); i++ {
		valid := def == nil || def[i] == 0
		if d.dict == nil {
			if err := b.add(v, i, valid); err != nil {
				return err
			}
			continue
		}
		if i >= int64(len(v.nums)) {
			return corrupt("index %d of %d", i, len(v.nums))
		}
		if valid && v.nums[i] >= uint64(dict.len()) {
			return corrupt("item %d of a dictionary of %d", v.nums[i], dict.len())
		}
		if err := b.add(dict, int64(v.nums[i]), valid); err != nil {
			return err
		}
	}
	return nil
}

// The numbers of the oneof CompressiveEncoding.
const (
	compFlat            = 1
	compVariable        = 2
	compConstant        = 3
	compOutOfLinePacked = 4
	compInlinePacked    = 5
	compFSST            = 6
	compDictionary      = 7
	compRLE             = 8
	compByteStreamSplit = 9
	compGeneral         = 10
)

const (
	// maxDepth bounds how deep encodings nest.
	maxDepth = 8
	// maxExpanded bounds what one read may decompress to, in bytes.
	maxExpanded = 1 << 30
)

// compression parses one encoding of the oneof.
func compression(enc wire.Message, depth int) (int, wire.Message, error) {
	if depth > maxDepth {
		return 0, nil, corrupt("encodings nested deeper than %d", maxDepth)
	}
	which, err := oneof(enc)
	if err != nil {
		return 0, nil, err
	}
	x, err := wire.Parse(which.B)
	return which.Num, x, err
}

func unsupportedCompression(where string, num int) error {
	names := map[int]string{compDictionary: "dictionary", 11: "fixed-size list", 12: "packed struct", 13: "variable packed struct"}
	name := names[num]
	if name == "" {
		name = fmt.Sprintf("%d", num)
	}
	return &format.UnsupportedError{What: fmt.Sprintf("%s encoding %s", where, name)}
}

// nestedBits reads the width of a Flat that is field num of x.
func nestedBits(x wire.Message, num int) (int64, error) {
	inner, err := x.Sub(num)
	if err != nil {
		return 0, err
	}
	fl, err := inner.Sub(compFlat)
	if err != nil {
		return 0, err
	}
	bits := fl.Uint(1)
	if bits == 0 || bits > 64 {
		return 0, corrupt("flat of %d bits", bits)
	}
	return int64(bits), nil
}

// decodeMiniBlock decodes the value buffers of a chunk of n rows.
func decodeMiniBlock(enc wire.Message, bufs [][]byte, n int64, depth int) (v values, err error) {
	num, x, err := compression(enc, depth)
	if err != nil {
		return v, err
	}
	need := 1
	if num == compRLE {
		need = 2
	}
	if len(bufs) < need {
		return v, corrupt("%d buffers in a chunk", len(bufs))
	}
	switch num {
	case compFlat:
		v.nums, err = flatNums(bufs[0], int64(x.Uint(1)), n)
	case compVariable:
		v.bytes, err = chunkBytes(x, bufs[0], n)
	case compInlinePacked:
		v.nums, err = inlinePacked(int64(x.Uint(1)), bufs[0], n)
	case compFSST:
		return fsstValues(x, n, func(inner wire.Message) (values, error) { return decodeMiniBlock(inner, bufs, n, depth+1) })
	case compRLE:
		v.nums, err = runLengths(x, bufs[0], bufs[1], n)
	case compByteStreamSplit:
		v.nums, err = byteStreamSplit(x, bufs[0], n)
	case compGeneral:
		raw, err := decompress(x, bufs[0])
		if err != nil {
			return v, err
		}
		inner, err := x.Sub(3)
		if err != nil {
			return v, err
		}
		return decodeMiniBlock(inner, append([][]byte{raw}, bufs[1:]...), n, depth+1)
	default:
		return v, unsupportedCompression("mini-block", num)
	}
	return v, err
}
