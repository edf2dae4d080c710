package datafile

import (
	"errors"
	"math"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/foldlog/foldlog/lance/internal/format"
)

// isVariable reports whether values of a type have a length of their own, and
// whether their Arrow offsets have 64 bits.
func isVariable(t arrow.DataType) (variable, large bool) {
	switch t.ID() {
	case arrow.STRING, arrow.BINARY:
		return true, false
	case arrow.LARGE_STRING, arrow.LARGE_BINARY:
		return true, true
	}
	return false, false
}

// bitWidth is the size of a value of a fixed-width type, in bits.
func bitWidth(t arrow.DataType) int {
	if fw, ok := t.(arrow.FixedWidthDataType); ok {
		return fw.BitWidth()
	}
	return 0
}

// decodedBits is what a row of a logical type takes in memory besides its bytes, in bits.
func decodedBits(logical string) int64 {
	t, err := format.ArrowType(logical)
	if err != nil {
		return 64 // it is not read
	}
	switch variable, large := isVariable(t); {
	case large:
		return 64
	case variable:
		return 32
	}
	return int64(max(1, bitWidth(t)))
}

func buffer(b []byte) *memory.Buffer {
	if b == nil {
		b = []byte{}
	}
	return memory.NewBufferBytes(b)
}

// fixedArray makes an array over bytes that it keeps. A nil validity means that
// every row is there.
func fixedArray(t arrow.DataType, n int64, validity, values []byte) arrow.Array {
	nulls := 0
	var valid *memory.Buffer
	if validity != nil {
		if nulls = int(n) - countBits(validity, n); nulls > 0 {
			valid = buffer(validity)
		}
	}
	return array.MakeFromData(array.NewData(t, int(n), []*memory.Buffer{valid, buffer(values)}, nil, nulls, 0))
}

func countBits(b []byte, n int64) int {
	c := 0
	for ; n >= 64 && len(b) >= 8; n -= 64 {
		c += bits.OnesCount64(le.Uint64(b))
		b = b[8:]
	}
	for i := int64(0); i < n; i++ {
		c += int(b[i/8] >> (i % 8) & 1)
	}
	return c
}

// Nulls makes an array of n nulls.
func Nulls(t arrow.DataType, n int64) arrow.Array {
	return array.MakeArrayOfNull(memory.DefaultAllocator, t, int(n))
}

// slice returns rows [lo, hi) of an array.
func slice(a arrow.Array, lo, hi int64) arrow.Array {
	if lo == 0 && hi == int64(a.Len()) {
		return a
	}
	return array.NewSlice(a, lo, hi)
}

// errFull says that a value has no place any more in what is read at once: those before
// are what there is.
var errFull = errors.New("full")

// variableBuilder gathers values of varying length, up to so many bytes, but at least one.
type variableBuilder struct {
	most    int64
	typ     arrow.DataType
	large   bool
	n       int64
	nulls   int
	valid   []byte
	offsets []byte
	data    []byte
}

func newVariableBuilder(t arrow.DataType, n, most int64) *variableBuilder {
	_, large := isVariable(t)
	b := &variableBuilder{typ: t, large: large, most: most}
	width := int64(4)
	if large {
		width = 8
	}
	b.offsets = append(make([]byte, 0, (n+1)*width), make([]byte, width)...)
	b.valid = make([]byte, 0, (n+7)/8)
	return b
}

// appendEnd records a row whose bytes end where the data stands now.
func (b *variableBuilder) appendEnd(end uint64, valid bool) error {
	if b.n%8 == 0 {
		b.valid = append(b.valid, 0)
	}
	if valid {
		b.valid[b.n/8] |= 1 << (b.n % 8)
	} else {
		b.nulls++
	}
	b.n++
	if b.large {
		b.offsets = le.AppendUint64(b.offsets, end)
		return nil
	}
	if end > math.MaxInt32 {
		return corrupt("%d bytes in one run of a column with 32-bit offsets", end)
	}
	b.offsets = le.AppendUint32(b.offsets, uint32(end))
	return nil
}

func (b *variableBuilder) append(v []byte, valid bool) error {
	if valid {
		if int64(len(b.data)+len(v)) > b.most && b.n > 0 {
			return errFull
		}
		b.data = append(b.data, v...)
	}
	return b.appendEnd(uint64(len(b.data)), valid)
}

func (b *variableBuilder) array() arrow.Array {
	var valid *memory.Buffer
	if b.nulls > 0 {
		valid = buffer(b.valid)
	}
	return array.MakeFromData(array.NewData(b.typ, int(b.n),
		[]*memory.Buffer{valid, buffer(b.offsets), buffer(b.data)}, nil, b.nulls, 0))
}

// ByteView reads the values of an array of strings or binaries without copying.
type ByteView struct {
	small []int32
	large []int64
	data  []byte
}

// ViewBytes returns the view of an array, or false if it holds something else.
func ViewBytes(a arrow.Array) (v ByteView, ok bool) {
	variable, large := isVariable(a.DataType())
	if !variable {
		return v, false
	}
	d := a.Data()
	if a.Len() == 0 {
		return v, true
	}
	if b := d.Buffers()[2]; b != nil {
		v.data = b.Bytes()
	}
	lo, hi := d.Offset(), d.Offset()+a.Len()+1
	if large {
		v.large = arrow.Int64Traits.CastFromBytes(d.Buffers()[1].Bytes())[lo:hi]
	} else {
		v.small = arrow.Int32Traits.CastFromBytes(d.Buffers()[1].Bytes())[lo:hi]
	}
	return v, true
}

// At returns the bytes of row i, which share memory with the array.
func (v ByteView) At(i int) []byte {
	if v.large != nil {
		return v.data[v.large[i]:v.large[i+1]]
	}
	return v.data[v.small[i]:v.small[i+1]]
}
