package metrics

import (
	"sync"
	"sync/atomic"
)

// chunkSize is about how many bytes of lines travel to the targets together.
const chunkSize = 64 << 10

// chunk is some whole lines on their way. Every target that has it holds a
// reference and does not change it.
type chunk struct {
	b      []byte
	events int64
	sync   bool // make durable what has been written
	urgent bool // may use the room that is kept from metrics
	refs   atomic.Int32
}

var chunks = sync.Pool{New: func() any { return &chunk{b: make([]byte, 0, chunkSize+chunkSize/4)} }}

func newChunk() *chunk {
	c := chunks.Get().(*chunk)
	c.b, c.events, c.sync, c.urgent = c.b[:0], 0, false, false
	c.refs.Store(1)
	return c
}

func (c *chunk) release() {
	if c.refs.Add(-1) == 0 && cap(c.b) <= 4*chunkSize {
		chunks.Put(c)
	}
}
