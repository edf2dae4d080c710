package memwal

import (
	"encoding/binary"
	"math/bits"
)

// A bloom filter of a generation's keys, as Parquet splits it: blocks of eight words,
// one of which a key selects, and in each word one bit.
type bloom []uint32

// bloomBytes is sized for 8192 keys at 0.057 % wrong answers.
const bloomBytes = 32768

var bloomSalt = [8]uint32{0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d, 0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31}

func newBloom() bloom { return make(bloom, bloomBytes/4) }

func parseBloom(b []byte) bloom {
	f := make(bloom, len(b)/32*8)
	for i := range f {
		f[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return f
}

func (f bloom) block(hash uint64) bloom {
	at := (hash >> 32) * uint64(len(f)/8) >> 32 * 8
	return f[at : at+8]
}

func (f bloom) add(hash uint64) {
	b := f.block(hash)
	for i, salt := range bloomSalt {
		b[i] |= 1 << (uint32(hash) * salt >> 27)
	}
}

// may reports whether a key may have been added.
func (f bloom) may(hash uint64) bool {
	if len(f) == 0 {
		return true
	}
	b := f.block(hash)
	for i, salt := range bloomSalt {
		if b[i]&(1<<(uint32(hash)*salt>>27)) == 0 {
			return false
		}
	}
	return true
}

func (f bloom) bytes() []byte {
	out := make([]byte, 0, 4*len(f))
	for _, w := range f {
		out = binary.LittleEndian.AppendUint32(out, w)
	}
	return out
}

// keyHash is SipHash-1-3, keyed with zeros, over a zero byte, the key and 0xff.
func keyHash(key []byte) uint64 {
	m := make([]byte, 0, len(key)+2)
	m = append(m, 0)
	m = append(m, key...)
	return sipHash13(append(m, 0xff))
}

type sipState [4]uint64

func (v *sipState) round() {
	v[0] += v[1]
	v[1] = bits.RotateLeft64(v[1], 13) ^ v[0]
	v[0] = bits.RotateLeft64(v[0], 32)
	v[2] += v[3]
	v[3] = bits.RotateLeft64(v[3], 16) ^ v[2]
	v[0] += v[3]
	v[3] = bits.RotateLeft64(v[3], 21) ^ v[0]
	v[2] += v[1]
	v[1] = bits.RotateLeft64(v[1], 17) ^ v[2]
	v[2] = bits.RotateLeft64(v[2], 32)
}

func (v *sipState) word(m uint64) {
	v[3] ^= m
	v.round()
	v[0] ^= m
}

func sipHash13(p []byte) uint64 {
	v := sipState{0x736f6d6570736575, 0x646f72616e646f6d, 0x6c7967656e657261, 0x7465646279746573}
	n := uint64(len(p))
	for ; len(p) >= 8; p = p[8:] {
		v.word(binary.LittleEndian.Uint64(p))
	}
	var last [8]byte
	copy(last[:], p)
	v.word(binary.LittleEndian.Uint64(last[:]) | n<<56)
	v[2] ^= 0xff
	v.round()
	v.round()
	v.round()
	return v[0] ^ v[1] ^ v[2] ^ v[3]
}
