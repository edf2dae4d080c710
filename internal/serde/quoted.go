package serde

import (
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// plain marks the bytes of a string that stand for themselves and are ASCII.
var plain = func() (t [256]bool) {
	for c := 0x20; c < 0x80; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

// Bytes reads a string. The result is unescaped; it aliases the input when
// there is no escape and is valid until the next string is read otherwise.
func (s *Scanner) Bytes() []byte {
	if s.space() != '"' {
		s.failExpect("a string")
		return nil
	}
	var out []byte
	out, s.strBuf = s.quoted(s.strBuf)
	return out
}

// String reads a string into memory of its own.
func (s *Scanner) String() string { return string(s.Bytes()) }

// Text returns what a JSON value is for people: a string without its quotes and
// escapes, anything else, broken strings too, as it is written.
func Text(raw []byte) string {
	if s := NewScanner(raw); s.Peek() == '"' {
		if text := s.String(); s.End() == nil {
			return text
		}
	}
	return string(raw)
}

// quoted reads the string at the cursor; buf is the memory for unescaping and
// is returned, grown perhaps.
func (s *Scanner) quoted(buf []byte) (out, scratch []byte) {
	b, i := s.b, s.pos+1
	start := i
	for i < len(b) && plain[b[i]] {
		i++
	}
	if i < len(b) && b[i] == '"' {
		s.pos = i + 1
		return b[start:i], buf
	}
	escaped := s.skipQuoted()
	if s.err != nil {
		return nil, buf
	}
	body := b[start : s.pos-1]
	if !escaped {
		return body, buf
	}
	buf = unescape(buf[:0], body)
	return buf, buf
}

// skipQuoted checks the string at the cursor and moves past it; it tells
// whether there is an escape in it.
func (s *Scanner) skipQuoted() (escaped bool) {
	b, i := s.b, s.pos+1
	for i < len(b) {
		c := b[i]
		switch {
		case plain[c]:
			i++
		case c == '"':
			s.pos = i + 1
			return escaped
		case c == '\\':
			escaped = true
			n := s.checkEscape(i)
			if n == 0 {
				return escaped
			}
			i += n
		case c < 0x20:
			s.failAt(i, fmt.Errorf("%w: control character 0x%02x in a string", ErrSyntax, c))
			return escaped
		default:
			r, n := utf8.DecodeRune(b[i:])
			if r == utf8.RuneError && n <= 1 {
				s.failAt(i, fmt.Errorf("%w: byte 0x%02x", ErrUTF8, c))
				return escaped
			}
			i += n
		}
	}
	s.failAt(i, fmt.Errorf("%w: string without end", ErrSyntax))
	return escaped
}

// checkEscape returns the length of the escape at i (both halves of a
// surrogate pair), 0 after a fault.
func (s *Scanner) checkEscape(i int) int {
	if i+1 < len(s.b) {
		switch s.b[i+1] {
		case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			return 2
		case 'u':
			return s.checkUnicode(i)
		}
	}
	s.failAt(i, fmt.Errorf("%w: unknown escape", ErrSyntax))
	return 0
}

func (s *Scanner) checkUnicode(i int) int {
	r := hex4(s.b, i)
	switch {
	case r < 0:
		s.failAt(i, fmt.Errorf("%w: four hex digits expected after \\u", ErrSyntax))
		return 0
	case !utf16.IsSurrogate(r):
		return 6
	}
	if utf16.DecodeRune(r, hex4(s.b, i+6)) != utf8.RuneError {
		return 12
	}
	s.failAt(i, fmt.Errorf("%w: \\u%04x", ErrSurrogate, r))
	return 0
}

// hex4 reads \uXXXX at i, -1 if there is none.
func hex4(b []byte, i int) rune {
	if i+6 > len(b) || b[i] != '\\' || b[i+1] != 'u' {
		return -1
	}
	var r rune
	for _, c := range b[i+2 : i+6] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

// unescape appends body, which has been checked, without its escapes.
func unescape(dst, body []byte) []byte {
	for i := 0; i < len(body); {
		c := body[i]
		if c != '\\' {
			dst = append(dst, c)
			i++
			continue
		}
		switch e := body[i+1]; e {
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 't':
			c = '\t'
		case 'u':
			r := hex4(body, i)
			if i += 6; utf16.IsSurrogate(r) {
				r = utf16.DecodeRune(r, hex4(body, i))
				i += 6
			}
			dst = utf8.AppendRune(dst, r)
			continue
		default:
			c = e
		}
		dst = append(dst, c)
		i += 2
	}
	return dst
}
