package cli

import (
	"cmp"
	"strings"
)

// CompareNames orders names and paths as people do: run-9 is before run-10, and what is
// in a directory before the names that go on where that of the directory ends. Names that
// differ are never equal.
func CompareNames(a, b string) int {
	for x, y := a, b; ; {
		var p, q string
		p, x = chunk(x)
		q, y = chunk(y)
		if c := compareChunks(p, q); c != 0 {
			return c
		}
		if x == "" || y == "" {
			return cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(a, b))
		}
	}
}

// chunk cuts off the digits, or the one byte, that a name begins with.
func chunk(s string) (first, rest string) {
	n := 0
	for n < len(s) && isDigit(s[n]) {
		n++
	}
	n = min(max(n, 1), len(s))
	return s[:n], s[n:]
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func compareChunks(a, b string) int {
	if a == "" || b == "" {
		return cmp.Compare(len(a), len(b))
	}
	if isDigit(a[0]) && isDigit(b[0]) {
		a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
		return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
	}
	return cmp.Compare(rank(a[0]), rank(b[0]))
}

// rank lets a separator of paths come first.
func rank(c byte) int {
	if c == '/' {
		return -1
	}
	return int(c)
}
