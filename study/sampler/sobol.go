package sampler

import "math/bits"

// sobolInitial are the initial numbers of S. Joe and
// F. Y. Kuo, "Constructing Sobol sequences with better two-dimensional
// projections" (2008), from the second dimension on.
var sobolInitial = [][]uint32{
	{1}, {1, 3}, {1, 3, 1}, {1, 1, 1}, {1, 1, 3, 3}, {1, 3, 5, 13},
	{1, 1, 5, 5, 17}, {1, 1, 5, 5, 5}, {1, 1, 7, 11, 19}, {1, 1, 5, 1, 1}, {1, 1, 1, 3, 11}, {1, 3, 5, 5, 31},
	{1, 3, 3, 9, 7, 49}, {1, 1, 1, 15, 21, 21}, {1, 3, 1, 13, 27, 49}, {1, 1, 1, 15, 7, 5}, {1, 3, 1, 15, 13, 25}, {1, 1, 5, 5, 19, 61},
	{1, 3, 7, 11, 23, 15, 103}, {1, 3, 7, 13, 13, 15, 69},
}

// sobolDirections computes the direction numbers of dimension dim, from 0.
// Beyond the table any odd numbers make a sequence that is even in each
// dimension; they are drawn from the dimension's number.
func sobolDirections(dim int, polynomials []uint32) [32]uint32 {
	var v [32]uint32
	if dim == 0 {
		for i := range v {
			v[i] = 1 << (31 - i)
		}
		return v
	}
	poly := polynomials[dim-1]
	degree := bits.Len32(poly) - 1
	for i := range degree {
		m := uint32(mix(uint64(dim)<<32|uint64(i)))&(1<<i-1)<<1 | 1
		if dim-1 < len(sobolInitial) {
			m = sobolInitial[dim-1][i]
		}
		v[i] = (m & (1<<(i+1) - 1)) << (31 - i)
	}
	for i := degree; i < 32; i++ {
		v[i] = v[i-degree] ^ v[i-degree]>>degree
		for k := 1; k < degree; k++ {
			if poly>>(degree-k)&1 == 1 {
				v[i] ^= v[i-k]
			}
		}
	}
	return v
}

// primitivePolynomials are the first n primitive polynomials over GF(2) by
// degree and value; bit i is the coefficient of x^i.
func primitivePolynomials(n int) []uint32 {
	list := make([]uint32, 0, n)
	for poly := uint32(3); len(list) < n; poly += 2 {
		if primitive(poly) {
			list = append(list, poly)
		}
	}
	return list
}

// primitive tells whether x has the order 2^degree-1 modulo poly: that power of x
// is 1, and none is that lacks one of the order's prime factors.
func primitive(poly uint32) bool {
	order := uint32(1)<<(bits.Len32(poly)-1) - 1
	if powerOfX(order, poly) != 1 {
		return false
	}
	left := order
	for p := uint32(3); left > 1; p += 2 {
		if p > left/p {
			p = left
		}
		if left%p != 0 {
			continue
		}
		if powerOfX(order/p, poly) == 1 {
			return false
		}
		for left%p == 0 {
			left /= p
		}
	}
	return true
}

// powerOfX is x to the n modulo poly, n being at least 1.
func powerOfX(n, poly uint32) uint32 {
	y := uint32(1)
	for i := bits.Len32(n) - 1; i >= 0; i-- {
		y = timesModulo(y, y, poly)
		if n>>i&1 == 1 {
			y = timesModulo(y, 2, poly)
		}
	}
	return y
}

// timesModulo is the product of two polynomials modulo poly; a has a lower degree.
func timesModulo(a, b, poly uint32) (product uint32) {
	degree := bits.Len32(poly) - 1
	for ; b != 0; b >>= 1 {
		if b&1 == 1 {
			product ^= a
		}
		if a <<= 1; a>>degree&1 == 1 {
			a ^= poly
		}
	}
	return product
}

// sobol is point index of one dimension, as 32 bits after the binary point.
func sobol(v *[32]uint32, index uint32) (x uint32) {
	for i := 0; index != 0; i, index = i+1, index>>1 {
		if index&1 == 1 {
			x ^= v[i]
		}
	}
	return x
}

// scramble permutes the points of one dimension so that all its halves,
// quarters and so on stay evenly filled: nested uniform scrambling by a hash,
// after B. Burley, "Practical Hash-based Owen Scrambling" (2020).
func scramble(x, seed uint32) uint32 {
	x = bits.Reverse32(x)
	x ^= x * 0x3d20adea
	x += seed
	x *= seed>>16 | 1
	x ^= x * 0x05526c56
	x ^= x * 0x53a22864
	return bits.Reverse32(x)
}

// mix is the finalizer of splitmix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
