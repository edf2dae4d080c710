package metrics

import (
	"bytes"
	"math"
	"strconv"
)

// The fast path takes a metric line that is spelled in one of two shapes and
// whose name and metadata have been seen, and so checked, before. Everything
// else, faults included, is left to the full scan.

const lineStart = `{"ts_ms":`

// shape is what stands between the values of a metric line.
type shape struct{ start, step, name, value, metadata string }

// shapes are ours and that of Python's json.dumps.
var shapes = [2]shape{
	{lineStart, `,"step":`, `,"kind":"metric","name":"`, `","value":`, `,"metadata":`},
	{`{"ts_ms": `, `, "step": `, `, "kind": "metric", "name": "`, `", "value": `, `, "metadata": `},
}

func (d *Decoder) fastMetric(b []byte, e *Event) bool {
	if len(b) <= len(lineStart) {
		return false
	}
	is := &shapes[0]
	if b[len(lineStart)] == ' ' {
		is = &shapes[1]
	}
	i, ok := follow(b, 0, is.start)
	if !ok {
		return false
	}
	ts, i, ok := shortInt(b, i)
	if !ok {
		return false
	}
	if i, ok = follow(b, i, is.step); !ok {
		return false
	}
	step, i, ok := shortInt(b, i)
	if !ok {
		return false
	}
	if i, ok = follow(b, i, is.name); !ok {
		return false
	}
	end := bytes.IndexByte(b[i:], '"')
	if end < 0 {
		return false
	}
	name, ok := d.names.find(b[i : i+end])
	if !ok {
		return false
	}
	if i, ok = follow(b, i+end, is.value); !ok {
		return false
	}
	value, i, ok := fastNumber(b, i)
	if !ok {
		return false
	}
	if i, ok = follow(b, i, is.metadata); !ok || b[len(b)-1] != '}' || i >= len(b) {
		return false
	}
	meta, ok := d.metas.find(b[i : len(b)-1])
	if !ok {
		return false
	}
	*e = Event{Kind: KindMetric, TSMS: ts, Step: step, Name: name, Value: value, Metadata: Metadata(meta)}
	return true
}

// follow moves past a fixed text.
func follow(b []byte, i int, text string) (int, bool) {
	end := i + len(text)
	return end, end <= len(b) && string(b[i:end]) == text
}

// shortInt reads an integer of at most 18 digits.
func shortInt(b []byte, i int) (v int64, end int, ok bool) {
	neg := i < len(b) && b[i] == '-'
	if neg {
		i++
	}
	first := i
	for i < len(b) && b[i]-'0' <= 9 && i-first < 18 {
		v = v*10 + int64(b[i]-'0')
		i++
	}
	if neg {
		v = -v
	}
	n := i - first
	return v, i, n > 0 && (n == 1 || b[first] != '0')
}

var pow10 = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12,
	1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// fastNumber reads a plain JSON number that is at most 18 digits long, and
// hands the digits of a longer one or one with an exponent to strconv.
func fastNumber(b []byte, start int) (n Number, end int, ok bool) {
	i := start
	neg := i < len(b) && b[i] == '-'
	if neg {
		i++
	}
	first := i
	var mant uint64
	for i < len(b) && b[i]-'0' <= 9 {
		mant = mant*10 + uint64(b[i]-'0')
		i++
	}
	digits := i - first
	if digits == 0 || digits > 1 && b[first] == '0' {
		return Number{}, i, false
	}
	if i == len(b) || b[i] != '.' {
		return wholeNumber(b, start, i, int64(mant), neg, digits)
	}
	i++
	point := i
	for i < len(b) && b[i]-'0' <= 9 {
		mant = mant*10 + uint64(b[i]-'0')
		i++
	}
	fraction := i - point
	switch {
	case fraction == 0:
		return Number{}, i, false
	case i < len(b) && b[i]|0x20 == 'e', digits+fraction > 18 || mant >= 1<<53:
		return longNumber(b, start, i)
	}
	// Exact: both factors are, and one division rounds once.
	f := float64(mant) / pow10[fraction]
	if neg {
		f = math.Copysign(f, -1)
	}
	return Float(f), i, true
}

func wholeNumber(b []byte, start, end int, v int64, neg bool, digits int) (Number, int, bool) {
	if digits > 18 || end < len(b) && b[end]|0x20 == 'e' {
		return Number{}, end, false
	}
	if neg {
		v = -v
	}
	return Int(v), end, v != 0 || !neg
}

// longNumber is past the fraction of a float that needs all of strconv.
func longNumber(b []byte, start, i int) (Number, int, bool) {
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		if i < len(b) && (b[i] == '-' || b[i] == '+') {
			i++
		}
		first := i
		for i < len(b) && b[i]-'0' <= 9 {
			i++
		}
		if i == first {
			return Number{}, i, false
		}
	}
	f, err := strconv.ParseFloat(string(b[start:i]), 64)
	return Float(f), i, err == nil
}
