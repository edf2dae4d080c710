// Package arrays picks rows out of Arrow arrays.
package arrays

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/foldlog/foldlog/lance/internal/datafile"
	"github.com/foldlog/foldlog/lance/internal/format"
)

var le = binary.LittleEndian

// Pick returns the rows of an array with some numbers, in their order.
func Pick(a arrow.Array, rows []int) (arrow.Array, error) {
	if len(rows) == a.Len() && contiguous(rows) {
		return a, nil
	}
	if len(rows) > 0 && contiguous(rows) {
		return array.NewSlice(a, int64(rows[0]), int64(rows[len(rows)-1]+1)), nil
	}
	if v, ok := datafile.ViewBytes(a); ok {
		return pickBytes(a, v, rows)
	}
	if b, ok := a.(*array.Boolean); ok {
		return pickBools(b, rows), nil
	}
	fw, ok := a.DataType().(arrow.FixedWidthDataType)
	if !ok || fw.BitWidth()%8 != 0 {
		return nil, &format.UnsupportedError{What: fmt.Sprintf("picking rows of %s", a.DataType())}
	}
	return pickFixed(a, fw.BitWidth()/8, rows), nil
}

// contiguous reports whether row numbers go up by one.
func contiguous(rows []int) bool {
	for i, r := range rows {
		if r != rows[0]+i {
			return false
		}
	}
	return len(rows) > 0
}

// validity gathers which of the picked rows are null.
func validity(a arrow.Array, rows []int) (*memory.Buffer, int) {
	if a.NullN() == 0 {
		return nil, 0
	}
	bits := make([]byte, (len(rows)+7)/8)
	n := 0
	for i, r := range rows {
		if a.IsValid(r) {
			bits[i/8] |= 1 << (i % 8)
		} else {
			n++
		}
	}
	return memory.NewBufferBytes(bits), n
}

func pickFixed(a arrow.Array, width int, rows []int) arrow.Array {
	valid, n := validity(a, rows)
	out := make([]byte, 0, width*len(rows))
	if len(rows) > 0 {
		src := a.Data().Buffers()[1].Bytes()[a.Data().Offset()*width:]
		for _, r := range rows {
			out = append(out, src[r*width:(r+1)*width]...)
		}
	}
	return array.MakeFromData(array.NewData(a.DataType(), len(rows), []*memory.Buffer{valid, memory.NewBufferBytes(out)}, nil, n, 0))
}

func pickBools(a *array.Boolean, rows []int) arrow.Array {
	valid, n := validity(a, rows)
	out := make([]byte, (len(rows)+7)/8)
	for i, r := range rows {
		if a.IsValid(r) && a.Value(r) {
			out[i/8] |= 1 << (i % 8)
		}
	}
	return array.MakeFromData(array.NewData(a.DataType(), len(rows), []*memory.Buffer{valid, memory.NewBufferBytes(out)}, nil, n, 0))
}

func pickBytes(a arrow.Array, v datafile.ByteView, rows []int) (arrow.Array, error) {
	valid, n := validity(a, rows)
	total := 0
	for _, r := range rows {
		total += len(v.At(r))
	}
	large := a.DataType().ID() == arrow.LARGE_STRING || a.DataType().ID() == arrow.LARGE_BINARY
	if !large && total > math.MaxInt32 {
		return nil, &format.UnsupportedError{What: fmt.Sprintf("%d bytes of %s in one batch", total, a.DataType())}
	}
	data := make([]byte, 0, total)
	offsets := make([]byte, 0, 8*(len(rows)+1))
	add := func(v int) {
		if large {
			offsets = le.AppendUint64(offsets, uint64(v))
		} else {
			offsets = le.AppendUint32(offsets, uint32(v))
		}
	}
	add(0)
	for _, r := range rows {
		if a.IsValid(r) {
			data = append(data, v.At(r)...)
		}
		add(len(data))
	}
	return array.MakeFromData(array.NewData(a.DataType(), len(rows),
		[]*memory.Buffer{valid, memory.NewBufferBytes(offsets), memory.NewBufferBytes(data)}, nil, n, 0)), nil
}
