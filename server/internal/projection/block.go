package projection

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
)

// A block is
//
//	magic 4 | header length 4 | data length 8 | header checksum 4 | header | data
//
// little-endian; the header lists the entries, one for each curve of the block,
// with the place and checksum of its columns in the data.
const (
	blockMagic  = 0x31424c46 // "FLB1"
	blockPrefix = 20
	maxHeader   = 64 << 20
)

// entry is one curve's part of a block.
type entry struct {
	curve  int
	offset int64 // of its columns in the file
	n      int32
	sum    uint32
	series int32    // mixed: there is a column for it
	memory *columns // the points themselves, where there is no block yet
	chunks []chunk
}

func (e *entry) bytes() int64 {
	if e.series == mixed {
		return int64(e.n) * 28
	}
	return int64(e.n) * 24
}

// encodeBlock spells the curves that have points, from the source bytes from to
// to.
func encodeBlock(from, to int64, curves []growing) (block []byte, entries []entry) {
	var head encoder
	var data []byte
	head.int(from)
	head.int(to)
	count := 0
	for i := range curves {
		if len(curves[i].steps) > 0 {
			count++
		}
	}
	head.uint(uint64(count))
	for i := range curves {
		g := &curves[i]
		if len(g.steps) == 0 {
			continue
		}
		e := entry{curve: i, offset: int64(len(data)), n: int32(len(g.steps)), series: uniform(g.chunks), chunks: g.chunks}
		data = appendColumns(data, &g.columns, e.series == mixed)
		e.sum = checksum(data[e.offset:])
		head.entry(&e)
		entries = append(entries, e)
	}
	block = make([]byte, 0, blockPrefix+len(head.b)+len(data))
	block = binary.LittleEndian.AppendUint32(block, blockMagic)
	block = binary.LittleEndian.AppendUint32(block, uint32(len(head.b)))
	block = binary.LittleEndian.AppendUint64(block, uint64(len(data)))
	block = binary.LittleEndian.AppendUint32(block, checksum(head.b))
	base := int64(blockPrefix + len(head.b))
	for i := range entries {
		entries[i].offset += base
	}
	return append(append(block, head.b...), data...), entries
}

func uniform(chunks []chunk) int32 {
	for i := range chunks {
		if chunks[i].series != chunks[0].series {
			return mixed
		}
	}
	return chunks[0].series
}

func appendColumns(b []byte, c *columns, series bool) []byte {
	for _, v := range c.steps {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	for _, v := range c.times {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	for _, v := range c.values {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	if series {
		for _, v := range c.series {
			b = binary.LittleEndian.AppendUint32(b, uint32(v))
		}
	}
	return b
}

func (e *encoder) entry(en *entry) {
	e.uint(uint64(en.curve))
	e.int(en.offset)
	e.uint(uint64(en.n))
	e.u32(en.sum)
	e.int(int64(en.series))
	e.uint(uint64(len(en.chunks)))
	for i := range en.chunks {
		e.chunk(&en.chunks[i])
	}
}

func (e *encoder) chunk(c *chunk) {
	e.uint(uint64(c.n))
	e.int(int64(c.segment))
	e.int(int64(c.series))
	for _, v := range [...]int64{c.minStep, c.maxStep, c.minTime, c.maxTime} {
		e.int(v)
	}
	for _, x := range [...]*extreme{&c.first, &c.last, &c.low, &c.high, &c.odd} {
		e.int(int64(x.at))
		if x.at >= 0 {
			e.int(int64(x.series))
			e.int(x.step)
			e.int(x.time)
			e.float(x.value)
		}
	}
}

func (d *decoder) entry(base int64) entry {
	e := entry{curve: int(d.uint()), offset: base + d.int(), n: int32(d.uint()), sum: d.u32(), series: int32(d.int())}
	e.chunks = make([]chunk, d.count())
	start := int32(0)
	for i := range e.chunks {
		e.chunks[i] = d.chunk()
		e.chunks[i].start = start
		start += e.chunks[i].n
	}
	if start != e.n || e.n < 0 {
		d.fail()
	}
	return e
}

func (d *decoder) chunk() chunk {
	c := chunk{n: int32(d.uint()), segment: int32(d.int()), series: int32(d.int())}
	for _, v := range [...]*int64{&c.minStep, &c.maxStep, &c.minTime, &c.maxTime} {
		*v = d.int()
	}
	for _, x := range [...]*extreme{&c.first, &c.last, &c.low, &c.high, &c.odd} {
		if x.at = int32(d.int()); x.at >= 0 {
			x.series, x.step, x.time, x.value = int32(d.int()), d.int(), d.int(), d.float()
		}
	}
	if c.n < 1 || c.n > chunkPoints {
		d.fail()
	}
	return c
}

// readBlock reads the header of the block at an offset and returns where the next
// one begins.
func readBlock(f io.ReaderAt, at int64, curves int) (from, to, next int64, entries []entry, err error) {
	var prefix [blockPrefix]byte
	if _, err := f.ReadAt(prefix[:], at); err != nil {
		return 0, 0, 0, nil, fmt.Errorf("%w: %w", errCodec, err)
	}
	length := binary.LittleEndian.Uint32(prefix[4:])
	data := binary.LittleEndian.Uint64(prefix[8:])
	if binary.LittleEndian.Uint32(prefix[:]) != blockMagic || length > maxHeader || data > 1<<40 {
		return 0, 0, 0, nil, errCodec
	}
	head := make([]byte, length)
	if _, err := f.ReadAt(head, at+blockPrefix); err != nil {
		return 0, 0, 0, nil, fmt.Errorf("%w: %w", errCodec, err)
	}
	if checksum(head) != binary.LittleEndian.Uint32(prefix[16:]) {
		return 0, 0, 0, nil, errCodec
	}
	d := decoder{b: head}
	from, to = d.int(), d.int()
	base := at + blockPrefix + int64(length)
	entries = make([]entry, d.count())
	for i := range entries {
		entries[i] = d.entry(base)
		if entries[i].curve < 0 || entries[i].curve >= curves {
			return 0, 0, 0, nil, errCodec
		}
	}
	return from, to, base + int64(data), entries, d.err()
}

// readColumns reads the points of an entry.
func readColumns(f *os.File, e *entry) (*columns, error) {
	b := make([]byte, e.bytes())
	if _, err := f.ReadAt(b, e.offset); err != nil {
		return nil, fmt.Errorf("%w: %w", errCodec, err)
	}
	if checksum(b) != e.sum {
		return nil, errCodec
	}
	n := int(e.n)
	c := &columns{steps: make([]int64, n), times: make([]int64, n), values: make([]float64, n)}
	for i := range n {
		c.steps[i] = int64(binary.LittleEndian.Uint64(b[8*i:]))
		c.times[i] = int64(binary.LittleEndian.Uint64(b[8*(n+i):]))
		c.values[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*(2*n+i):]))
	}
	if e.series == mixed {
		c.series = make([]int32, n)
		for i := range n {
			c.series[i] = int32(binary.LittleEndian.Uint32(b[24*n+4*i:]))
		}
	}
	return c, nil
}
