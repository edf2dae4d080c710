package serde

import (
	"fmt"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// escapeOf tells how a byte is spelled inside a string: 0 as itself, 'u' as
// \u00xx, anything else as a backslash and that letter.
var escapeOf = func() (t [256]byte) {
	for c := range 0x20 {
		t[c] = 'u'
	}
	t['\b'], t['\t'], t['\n'], t['\f'], t['\r'] = 'b', 't', 'n', 'f', 'r'
	t['"'], t['\\'] = '"', '\\'
	return t
}()

// AppendString appends s as a JSON string. Only the quote, the backslash and
// U+0000 to U+001F are escaped; everything else stays as UTF-8. It does not
// look for bad UTF-8: see [ValidString].
func AppendString(dst []byte, s string) []byte { return appendQuoted(dst, s) }

// appendStringBytes is [AppendString] for bytes.
func appendStringBytes(dst, s []byte) []byte { return appendQuoted(dst, s) }

func appendQuoted[T string | []byte](dst []byte, s T) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); i++ {
		esc := escapeOf[s[i]]
		if esc == 0 {
			continue
		}
		dst = append(dst, s[start:i]...)
		if esc == 'u' {
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[s[i]>>4], hexDigits[s[i]&15])
		} else {
			dst = append(dst, '\\', esc)
		}
		start = i + 1
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

// ValidString refuses a string that JSON cannot hold: one that is not UTF-8.
// The error is an [Error] around [ErrUTF8] with the offset of the first bad
// byte.
func ValidString(s string) error {
	if utf8.ValidString(s) {
		return nil
	}
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			return &Error{Offset: i, Err: fmt.Errorf("%w: byte 0x%02x", ErrUTF8, s[i])}
		}
		i += n
	}
	return nil
}
