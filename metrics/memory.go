package metrics

import (
	"bytes"
	"io"
	"sync"
)

// backlog is the end of a stream in memory: what a server without a file
// beside it has not yet got. It is bounded; what does not fit is dropped as
// whole lines, before they become part of the stream.
type backlog struct {
	limit int

	mu      sync.Mutex
	b       []byte
	base    int64 // offset of b in the stream
	dropped int64 // events
}

func (m *backlog) put(c *chunk) {
	m.mu.Lock()
	defer m.mu.Unlock()
	limit := m.limit
	if c.urgent {
		limit += urgentRoom
	}
	if len(m.b)+len(c.b) > limit && len(m.b) > 0 {
		m.dropped += c.events
		return
	}
	m.b = append(m.b, c.b...)
}

func (m *backlog) end() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.base + int64(len(m.b))
}

// ReadAt implements [io.ReaderAt] for what is left of the stream.
func (m *backlog) ReadAt(p []byte, off int64) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if off < m.base || off > m.base+int64(len(m.b)) {
		return 0, io.EOF
	}
	n := copy(p, m.b[off-m.base:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// trim forgets what the server has.
func (m *backlog) trim(to int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := int(to - m.base)
	if n <= 0 {
		return
	}
	m.b = append(m.b[:0], m.b[n:]...)
	if cap(m.b) > 4*uploadBatch && len(m.b) < cap(m.b)/4 {
		m.b = bytes.Clone(m.b)
	}
	m.base = to
}

// lost counts the events that were dropped, and those that wait from an offset.
func (m *backlog) lost(from int64) (dropped, waiting int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	skip := min(max(from-m.base, 0), int64(len(m.b)))
	return m.dropped, int64(bytes.Count(m.b[skip:], newline))
}
