package child

import (
	"bytes"
	"strings"
	"sync"
	"unicode/utf8"
)

// tailBytes is how much of the end of a command's output is kept as the reason
// of its failure.
const tailBytes = 4 << 10

// Tail keeps the end of what is written to it. It is safe for concurrent use:
// standard output and standard error share one.
type Tail struct {
	mu  sync.Mutex
	buf []byte
	cut bool
}

// Write implements io.Writer; it does not fail.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - 2*tailBytes; over > 0 {
		t.buf = append(t.buf[:0], t.buf[len(t.buf)-tailBytes:]...)
		t.cut = true
	}
	return len(p), nil
}

// String returns the end of the output as valid text, beginning with a whole
// line where one begins within it.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.buf
	if len(b) > tailBytes {
		b, t.cut = b[len(b)-tailBytes:], true
	}
	if t.cut {
		for len(b) > 0 && !utf8.RuneStart(b[0]) {
			b = b[1:]
		}
		if _, after, ok := bytes.Cut(b, []byte("\n")); ok && len(after) > 0 {
			b = after
		}
	}
	return strings.TrimSpace(strings.ToValidUTF8(string(b), "\uFFFD"))
}
