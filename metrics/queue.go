package metrics

import (
	"sync"
	"time"
)

// urgentRoom is what a full queue still takes of opens, annotations and done,
// in bytes.
const urgentRoom = 1 << 20

// queue is the chunks that wait for one target, bounded by their bytes.
type queue struct {
	limit    int
	patience time.Duration

	mu      sync.Mutex
	chunks  []*chunk
	head    int
	bytes   int
	stuck   bool  // an event has waited in vain and nothing has moved since
	dropped int64 // events
	closed  bool

	wake, room chan struct{} // each holds a token when something has changed
}

func newQueue(limit int, patience time.Duration) *queue {
	return &queue{limit: limit, patience: patience, wake: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

func signalTo(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// put adds a chunk, waiting for room within the patience, or drops it.
func (q *queue) put(c *chunk) {
	var timeout <-chan time.Time
	for !q.tryPut(c) {
		if timeout == nil {
			timer := time.NewTimer(q.patience)
			defer timer.Stop()
			timeout = timer.C
		}
		select {
		case <-q.room:
		case <-timeout:
			q.drop(c)
			return
		}
	}
}

// tryPut is true when the chunk is taken care of, dropped at once included.
func (q *queue) tryPut(c *chunk) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	limit := q.limit
	if c.urgent {
		limit += urgentRoom
	}
	if q.bytes+len(c.b) <= limit || q.bytes == 0 {
		c.refs.Add(1)
		q.chunks = append(q.chunks, c)
		q.bytes += len(c.b)
		signalTo(q.wake)
		return true
	}
	if q.stuck || q.closed || q.patience <= 0 {
		q.dropped += c.events
		return true
	}
	return false
}

func (q *queue) drop(c *chunk) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stuck = true
	q.dropped += c.events
}

// take returns the next chunk, nil if there is none now; more is false when
// there never will be one.
func (q *queue) take() (c *chunk, more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.head == len(q.chunks) {
		return nil, !q.closed
	}
	c = q.chunks[q.head]
	q.chunks[q.head] = nil
	q.head++
	if q.head == len(q.chunks) {
		q.chunks, q.head = q.chunks[:0], 0
	} else if q.head > 64 && q.head*2 > len(q.chunks) {
		n := copy(q.chunks, q.chunks[q.head:])
		q.chunks, q.head = q.chunks[:n], 0
	}
	return c, true
}

// done gives the room of a taken chunk back. It is kept until then, so that
// what a target is busy with counts.
func (q *queue) done(c *chunk) {
	q.mu.Lock()
	q.bytes -= len(c.b)
	q.stuck = false
	q.mu.Unlock()
	c.release()
	signalTo(q.room)
}

// next waits for a chunk; false is the end.
func (q *queue) next() (*chunk, bool) {
	for {
		c, more := q.take()
		if c != nil || !more {
			return c, c != nil
		}
		<-q.wake
	}
}

func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	signalTo(q.wake)
}

// lost counts the events that were dropped, and those that still wait.
func (q *queue) lost() (dropped, waiting int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, c := range q.chunks[q.head:] {
		waiting += c.events
	}
	return q.dropped, waiting
}
