package metrics

import "bytes"

// Names and metadata repeat from line to line. A table keeps one string of
// each and knows that it has been checked. It forgets everything when full, so
// that a stream in which nothing repeats costs time but not memory.
const (
	internEntries = 1 << 14
	internBytes   = 4 << 20
	internLongest = 4 << 10
)

type intern struct {
	m    map[string]string
	size int
}

// find returns the string kept for a spelling.
func (t *intern) find(spelled []byte) (string, bool) {
	s, ok := t.m[string(spelled)]
	return s, ok
}

// keep stores what a spelling stands for and returns it.
func (t *intern) keep(spelled []byte, text []byte) string {
	if s, ok := t.m[string(spelled)]; ok {
		return s
	}
	key := string(spelled)
	value := key
	if !bytes.Equal(spelled, text) {
		value = string(text)
	}
	if len(key) > internLongest {
		return value
	}
	if t.m == nil || len(t.m) >= internEntries || t.size > internBytes {
		t.m, t.size = make(map[string]string), 0
	}
	t.m[key] = value
	t.size += len(key) + len(value)
	return value
}
