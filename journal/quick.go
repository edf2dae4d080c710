package journal

import (
	"bytes"
	"math"

	"github.com/foldlog/foldlog/internal/serde"
)

// Almost every line that a reader meets is spelled exactly as this package spells
// it. What follows reads those in one pass over fixed text and digits. It answers
// false for everything else, right or wrong, which the scanner then judges.

// quick consumes a line. Once something is not as expected nothing is any more.
type quick struct {
	b   []byte
	bad bool
}

func (q *quick) text(s string) {
	if len(q.b) < len(s) || string(q.b[:len(s)]) != s {
		q.bad, q.b = true, nil
		return
	}
	q.b = q.b[len(s):]
}

// number consumes a decimal without leading zeros that fits 64 bits.
func (q *quick) number() uint64 {
	n, i := uint64(0), 0
	for ; i < len(q.b) && i < 19; i++ {
		c := q.b[i] - '0'
		if c > 9 {
			break
		}
		n = n*10 + uint64(c)
	}
	if i == 19 && len(q.b) > i {
		if c := q.b[i] - '0'; c <= 9 {
			if n > math.MaxUint64/10 || n*10 > math.MaxUint64-uint64(c) {
				q.bad = true
			}
			n = n*10 + uint64(c)
			i++
		}
	}
	if i == 0 || i > 1 && q.b[0] == '0' {
		q.bad, q.b = true, nil
		return 0
	}
	q.b = q.b[i:]
	return n
}

// size consumes a number that fits a file.
func (q *quick) size() int64 {
	n := q.number()
	if n > math.MaxInt64 {
		q.bad = true
	}
	return int64(n & math.MaxInt64)
}

// name consumes a string of plain characters up to its closing quote.
func (q *quick) name() []byte {
	for i, c := range q.b {
		switch {
		case c == '"':
			name := q.b[:i]
			q.b = q.b[i+1:]
			return name
		case c == '\\' || c < ' ' || c >= 0x7f:
			q.bad, q.b = true, nil
			return nil
		}
	}
	q.bad, q.b = true, nil
	return nil
}

var openBrace, openBracket = []byte("{"), []byte("[")

// quickRecord is decodeRecord for the usual spelling.
func quickRecord(line []byte, rec *Record) bool {
	q := quick{b: line}
	q.text(`{"record":"op","seq":`)
	rec.Seq = q.number()
	q.text(`,"worker":`)
	rec.Worker = q.number()
	q.text(`,"at_millis":`)
	rec.AtMillis = q.number()
	q.text(`,"op":`)
	if q.bad || len(q.b) < 3 || q.b[0] != '{' || q.b[len(q.b)-1] != '}' {
		return false
	}
	op := q.b[:len(q.b)-1]
	if bytes.Count(op, openBrace)+bytes.Count(op, openBracket) >= serde.MaxDepth {
		return false // it may nest deeper than a line may
	}
	s := serde.NewScanner(op)
	rec.Op = s.Raw()
	return s.End() == nil
}

// names keeps one copy of each data file's name.
type names interface{ shared(name []byte) string }

// quickExtentHeader is decodeExtentHeader for the usual spelling.
func quickExtentHeader(line []byte, known names) (e extentHeader, ok bool) {
	q := quick{b: line}
	q.text(`{"magic":"` + extentMagic + `","previous":`)
	if len(q.b) > 0 && q.b[0] == 'n' {
		q.text(`null`)
	} else {
		q.text(`{"file":"`)
		file := q.name()
		q.text(`,"offset":`)
		p := &Pointer{Offset: q.size()}
		q.text(`,"len":`)
		p.Len = q.size()
		q.text(`}`)
		if q.bad {
			return e, false
		}
		p.File = known.shared(file)
		if p.check() != nil {
			return e, false
		}
		e.previous = p
	}
	q.text(`,"first":`)
	e.first = q.number()
	q.text(`,"last":`)
	e.last = q.number()
	q.text(`,"start":`)
	e.start = q.number()
	q.text(`,"payload_len":`)
	e.payloadLen = q.size()
	q.text(`,"checksum":`)
	e.checksum = q.number()
	q.text(`}`)
	return e, !q.bad && len(q.b) == 0
}
