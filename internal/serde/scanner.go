package serde

import (
	"fmt"
)

// MaxDepth is how deep arrays and objects may nest.
const MaxDepth = 128

// Scanner is a cursor over one JSON text. Its error is sticky: after a fault
// every method returns a zero value and the loops end, so a caller checks
// [Scanner.Err] or [Scanner.End] once. It does not look for duplicate keys.
//
//	for s.Object(); s.NextKey(); {
//		switch string(s.Key()) {
//		case "seq":
//			rec.Seq = s.Uint64()
//		default:
//			s.Skip()
//		}
//	}
//	err := s.End()
type Scanner struct {
	b     []byte
	pos   int
	depth int
	// fresh is true between an opening bracket and its first member. One
	// flag is enough: an inner container clears it when it ends.
	fresh    bool
	err      error
	key      []byte
	keyStart int
	keyEnd   int
	keyBuf   []byte
	strBuf   []byte
}

// NewScanner returns a scanner at the beginning of b, which must not change
// while it is in use.
func NewScanner(b []byte) Scanner { return Scanner{b: b} }

// Reset starts over on another text and keeps the scratch memory.
func (s *Scanner) Reset(b []byte) {
	s.b, s.pos, s.depth, s.fresh, s.err, s.key = b, 0, 0, false, nil, nil
	s.keyStart, s.keyEnd = 0, 0
}

// Offset is the position of the cursor in bytes; after a fault, the end.
func (s *Scanner) Offset() int { return s.pos }

// Err is the first fault, an [Error], or nil.
func (s *Scanner) Err() error { return s.err }

// Fail makes err, placed at the cursor, the fault of the scanner unless it has
// one already.
func (s *Scanner) Fail(err error) { s.failAt(s.pos, err) }

func (s *Scanner) failAt(pos int, err error) {
	if s.err == nil {
		s.err = &Error{Offset: pos, Err: err}
	}
	s.pos = len(s.b)
}

// failExpect says what was due at the cursor. A bare NaN or Infinity gets its
// own name, since other writers are known to produce them.
func (s *Scanner) failExpect(what string) {
	if s.err != nil {
		return
	}
	switch {
	case s.pos >= len(s.b):
		s.failAt(s.pos, fmt.Errorf("%w: unexpected end, %s expected", ErrSyntax, what))
	case s.nonFiniteAt(s.pos):
		s.failAt(s.pos, fmt.Errorf("%w: bare NaN or Infinity", ErrNonFinite))
	case valueStart[s.b[s.pos]]:
		s.failAt(s.pos, fmt.Errorf("%w: %s expected, not %q", ErrType, what, s.b[s.pos]))
	default:
		s.failAt(s.pos, fmt.Errorf("%w: %s expected, not %q", ErrSyntax, what, s.b[s.pos]))
	}
}

// valueStart marks the bytes that a JSON value can begin with.
var valueStart = [256]bool{'{': true, '[': true, '"': true, '-': true, 't': true, 'f': true, 'n': true,
	'0': true, '1': true, '2': true, '3': true, '4': true, '5': true, '6': true, '7': true, '8': true, '9': true}

func (s *Scanner) nonFiniteAt(pos int) bool {
	rest := s.b[pos:]
	if len(rest) > 0 && (rest[0] == '-' || rest[0] == '+') {
		rest = rest[1:]
	}
	return hasPrefix(rest, "NaN") || hasPrefix(rest, "Infinity")
}

func hasPrefix(b []byte, p string) bool { return len(b) >= len(p) && string(b[:len(p)]) == p }

// space moves to the next byte that is not white space and returns it, 0 at
// the end.
func (s *Scanner) space() byte {
	for s.pos < len(s.b) {
		c := s.b[s.pos]
		if c > ' ' {
			return c
		}
		if c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			return c
		}
		s.pos++
	}
	return 0
}

// Peek returns the first byte of the next value without consuming it, 0 at the
// end or after a fault.
func (s *Scanner) Peek() byte { return s.space() }

// Accept moves past token if it is what comes next, white space aside, and
// reports whether it did. It serves readers that take more than JSON in one
// place, such as a bare NaN, and is not held back by what a value may be.
func (s *Scanner) Accept(token string) bool {
	s.space()
	if s.err != nil || !hasPrefix(s.b[s.pos:], token) {
		return false
	}
	s.pos += len(token)
	return true
}

// End checks that only white space follows and returns the fault, if any.
func (s *Scanner) End() error {
	if s.err == nil && (s.space() != 0 || s.pos < len(s.b)) {
		s.failAt(s.pos, fmt.Errorf("%w: end expected, not %q", ErrSyntax, s.b[s.pos]))
	}
	return s.err
}

// Object opens the object that is due; [Scanner.NextKey] walks it.
func (s *Scanner) Object() { s.open('{', "an object") }

// Array opens the array that is due; [Scanner.NextElem] walks it.
func (s *Scanner) Array() { s.open('[', "an array") }

func (s *Scanner) open(c byte, what string) {
	if s.space() != c || s.err != nil {
		s.failExpect(what)
		return
	}
	if s.depth == MaxDepth {
		s.failAt(s.pos, fmt.Errorf("%w: more than %d levels", ErrDepth, MaxDepth))
		return
	}
	s.depth++
	s.pos++
	s.fresh = true
}

// NextKey moves to the next member of the open object, past its key and colon;
// false means that the object has ended or the scanner has failed.
func (s *Scanner) NextKey() bool {
	if !s.next('}', "',' or '}'") {
		return false
	}
	if s.space() != '"' {
		s.failSyntax("a key")
		return false
	}
	s.keyStart = s.pos
	s.key, s.keyBuf = s.quoted(s.keyBuf)
	s.keyEnd = s.pos
	if s.space() != ':' || s.err != nil {
		s.failSyntax("':'")
		return false
	}
	s.pos++
	return true
}

// NextElem moves to the next element of the open array; false means that the
// array has ended or the scanner has failed.
func (s *Scanner) NextElem() bool { return s.next(']', "',' or ']'") }

// next handles what stands between members: nothing before the first, a comma
// before the others, the closing bracket at the end.
func (s *Scanner) next(end byte, what string) bool {
	if s.err != nil {
		return false
	}
	c := s.space()
	if c == end {
		s.pos++
		s.depth--
		s.fresh = false
		return false
	}
	if s.fresh {
		s.fresh = false
		return true
	}
	if c != ',' {
		s.failSyntax(what)
		return false
	}
	s.pos++
	return true
}

func (s *Scanner) failSyntax(what string) {
	if s.err != nil {
		return
	}
	if s.pos >= len(s.b) {
		s.failAt(s.pos, fmt.Errorf("%w: unexpected end, %s expected", ErrSyntax, what))
		return
	}
	s.failAt(s.pos, fmt.Errorf("%w: %s expected, not %q", ErrSyntax, what, s.b[s.pos]))
}

// Key is the key that NextKey moved past, unescaped. It is valid until the
// next call of NextKey and aliases the input when it has no escape.
func (s *Scanner) Key() []byte { return s.key }

// RawKey is the same key as it is written, quotes included; it aliases the
// input.
func (s *Scanner) RawKey() []byte { return s.b[s.keyStart:s.keyEnd] }

// Bool reads true or false.
func (s *Scanner) Bool() bool {
	switch s.space() {
	case 't':
		return s.literal("true")
	case 'f':
		s.literal("false")
		return false
	}
	s.failExpect("true or false")
	return false
}

// Null consumes a null and returns true if one is next.
func (s *Scanner) Null() bool { return s.space() == 'n' && s.literal("null") }

func (s *Scanner) literal(word string) bool {
	if !hasPrefix(s.b[s.pos:], word) {
		s.failAt(s.pos, fmt.Errorf("%w: %s expected", ErrSyntax, word))
		return false
	}
	s.pos += len(word)
	return true
}

// Raw returns the next value as it is written, fully checked; it aliases the
// input.
func (s *Scanner) Raw() []byte {
	s.space()
	start := s.pos
	s.Skip()
	if s.err != nil {
		return nil
	}
	return s.b[start:s.pos]
}

// Skip checks and passes over the next value.
func (s *Scanner) Skip() {
	switch c := s.space(); c {
	case '{':
		for s.Object(); s.nextSkippedKey(); {
			s.Skip()
		}
	case '[':
		for s.Array(); s.NextElem(); {
			s.Skip()
		}
	case '"':
		s.skipQuoted()
	case 't':
		s.literal("true")
	case 'f':
		s.literal("false")
	case 'n':
		s.literal("null")
	default:
		s.number()
	}
}

// nextSkippedKey is NextKey without unescaping.
func (s *Scanner) nextSkippedKey() bool {
	if !s.next('}', "',' or '}'") {
		return false
	}
	if s.space() != '"' {
		s.failSyntax("a key")
		return false
	}
	s.skipQuoted()
	if s.space() != ':' || s.err != nil {
		s.failSyntax("':'")
		return false
	}
	s.pos++
	return true
}
