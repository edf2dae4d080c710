package tensorboard

import (
	"encoding/binary"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/foldlog/foldlog/metrics"
)

// The element types of a TensorProto that a scalar can have.
const (
	dtFloat, dtDouble, dtInt32, dtUint8, dtInt16, dtInt8 = 1, 2, 3, 4, 5, 6
	dtInt64, dtBool, dtBFloat16, dtUint16, dtHalf        = 9, 10, 14, 17, 19
	dtUint32, dtUint64                                   = 22, 23
)

// scalarOf reads a TensorProto with exactly one number in it. Another is no
// error: it is just no scalar.
func scalarOf(b []byte) (n metrics.Number, ok bool, err error) {
	dtype, size := uint64(0), int64(1)
	var content []byte
	var typed []protoField
	err = eachField(b, func(f protoField) error {
		switch f.number {
		case tensorType:
			dtype = f.bits
		case tensorShape:
			var err error
			size, err = shapeSize(f.bytes)
			return err
		case tensorContent:
			content = f.bytes
		case tensorFloats, tensorDoubles, tensorInts, tensorInt64s, tensorBools, tensorHalfs, tensorUint32s, tensorUint64s:
			typed = append(typed, f)
		}
		return nil
	})
	if err != nil || size != 1 {
		return n, false, err
	}
	if len(content) > 0 {
		n, ok = contentNumber(dtype, content)
		return n, ok, nil
	}
	if len(typed) == 0 {
		// The default of a scalar is left out on the wire.
		n, ok = elementNumber(dtype, 0)
		return n, ok, nil
	}
	bits, ok := firstElement(typed[0])
	if !ok {
		return n, false, nil
	}
	n, ok = elementNumber(dtype, bits)
	return n, ok, nil
}

// shapeSize is how many elements a shape has; 1 without dimensions.
func shapeSize(b []byte) (size int64, err error) {
	size = 1
	err = eachField(b, func(f protoField) error {
		if f.number != shapeDim {
			return nil
		}
		dim := int64(0)
		err := eachField(f.bytes, func(f protoField) error {
			if f.number == dimSize {
				dim = int64(f.bits)
			}
			return nil
		})
		if dim != 1 {
			size = 0 // not one element; how many does not matter
		}
		return err
	})
	return size, err
}

// firstElement is the only element of a repeated field, packed or not.
func firstElement(f protoField) (bits uint64, ok bool) {
	if f.kind != protowire.BytesType {
		return f.bits, true
	}
	var n int
	switch f.number {
	case tensorFloats:
		var bits32 uint32
		bits32, n = protowire.ConsumeFixed32(f.bytes)
		bits = uint64(bits32)
	case tensorDoubles:
		bits, n = protowire.ConsumeFixed64(f.bytes)
	default:
		bits, n = protowire.ConsumeVarint(f.bytes)
	}
	return bits, n > 0 && n == len(f.bytes)
}

// elementNumber reads an element as its typed field has it.
func elementNumber(dtype, bits uint64) (n metrics.Number, ok bool) {
	switch dtype {
	case dtFloat:
		return metrics.Float(float64(math.Float32frombits(uint32(bits)))), true
	case dtDouble:
		return metrics.Float(math.Float64frombits(bits)), true
	case dtHalf:
		return metrics.Float(halfFloat(uint16(bits))), true
	case dtBFloat16:
		return metrics.Float(float64(math.Float32frombits(uint32(bits) << 16))), true
	case dtInt32, dtInt16, dtInt8, dtInt64:
		return metrics.Int(int64(bits)), true
	case dtUint8, dtUint16, dtUint32, dtUint64, dtBool:
		return metrics.Uint(bits), true
	}
	return n, false
}

// contentNumber reads an element from the raw bytes, little endian.
func contentNumber(dtype uint64, b []byte) (n metrics.Number, ok bool) {
	width := map[uint64]int{dtFloat: 4, dtDouble: 8, dtInt32: 4, dtUint8: 1, dtInt16: 2, dtInt8: 1, dtInt64: 8,
		dtBool: 1, dtBFloat16: 2, dtUint16: 2, dtHalf: 2, dtUint32: 4, dtUint64: 8}[dtype]
	if width == 0 || len(b) != width {
		return n, false
	}
	var whole [8]byte
	copy(whole[:], b)
	bits := binary.LittleEndian.Uint64(whole[:])
	switch dtype {
	case dtInt32, dtInt16, dtInt8:
		shift := 64 - 8*width
		bits = uint64(int64(bits<<shift) >> shift)
	}
	return elementNumber(dtype, bits)
}

// halfFloat reads an IEEE 754 binary16.
func halfFloat(h uint16) float64 {
	sign := 1.0
	if h>>15 != 0 {
		sign = -1
	}
	exp, frac := int(h>>10&31), float64(h&1023)
	switch exp {
	case 0:
		return sign * math.Ldexp(frac, -24)
	case 31:
		if frac != 0 {
			return math.NaN()
		}
		return math.Inf(int(sign))
	}
	return sign * math.Ldexp(1+frac/1024, exp-15)
}
