package metrics

import (
	"fmt"
	"sync"
	"time"
)

// EmitterOptions says where events go. The zero value of everything but
// Targets is the documented default.
type EmitterOptions struct {
	Targets []Target
	// QueueBytes is how much waits for one target: DefaultQueueBytes.
	QueueBytes int
	// FlushEvery is how long an event may lie before it is on its way:
	// DefaultFlushEvery.
	FlushEvery time.Duration
	// Patience is how long an event waits for a full queue:
	// DefaultPatience; less than 0 is not at all.
	Patience time.Duration
	// CloseTimeout is how long Close waits for the targets:
	// DefaultCloseTimeout.
	CloseTimeout time.Duration
	// Clock stamps events without a time: time.Now.
	Clock func() time.Time

	openFile func(path string) (appendFile, error) // a seam for tests
}

func (o EmitterOptions) withDefaults() EmitterOptions {
	if o.QueueBytes <= 0 {
		o.QueueBytes = DefaultQueueBytes
	}
	if o.FlushEvery <= 0 {
		o.FlushEvery = DefaultFlushEvery
	}
	if o.Patience == 0 {
		o.Patience = DefaultPatience
	}
	if o.CloseTimeout <= 0 {
		o.CloseTimeout = DefaultCloseTimeout
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.openFile == nil {
		o.openFile = openAppend
	}
	return o
}

// Emitter writes events to several targets at once. Emit costs the spelling of
// a line; writing and sending happen elsewhere. What a target cannot take in
// time is dropped and counted, never waited for long. It is safe for
// concurrent use.
//
// A file has an event at the latest FlushEvery after it was emitted, an open,
// annotation or done at once; done is synced to the disk, and Close syncs
// what is left.
type Emitter struct {
	opts EmitterOptions
	outs []output

	mu     sync.Mutex
	all    *chunk
	finite *chunk // without the non-finite metrics, if a target wants that
	odd    int64  // non-finite metrics so far
	closed bool

	stop    chan struct{}
	flusher sync.WaitGroup
}

// output is a target at work. put is called under the emitter's lock; close
// waits until everything is out or the deadline has come.
type output interface {
	put(c *chunk)
	filtered() bool
	close(deadline time.Time) TargetReport
}

// NewEmitter opens the targets. A file that cannot be opened is an error at
// once, a [TargetError]; a server that is away is not.
func NewEmitter(opts EmitterOptions) (*Emitter, error) {
	m := &Emitter{opts: opts.withDefaults(), all: newChunk(), stop: make(chan struct{})}
	if err := m.openTargets(); err != nil {
		for _, out := range m.outs {
			out.close(time.Now())
		}
		return nil, err
	}
	m.flusher.Add(1)
	go m.flushLoop()
	return m, nil
}

// openTargets opens files first: a server follows the first of them.
func (m *Emitter) openTargets() error {
	file := ""
	for _, t := range m.opts.Targets {
		switch t.Kind {
		case TargetJSONL:
			out, err := newFileOutput(t, m.opts)
			if err != nil {
				return err
			}
			m.outs = append(m.outs, out)
			if file == "" && !t.DropNonFinite {
				file = t.Path
			}
		case TargetStdout:
			m.outs = append(m.outs, newStdoutOutput(t, m.opts))
		case TargetHTTP:
		default:
			return fmt.Errorf("%w: kind %d", ErrTarget, t.Kind)
		}
	}
	for _, t := range m.opts.Targets {
		if t.Kind == TargetHTTP {
			m.outs = append(m.outs, newServerOutput(t, m.opts, file))
		}
	}
	for _, out := range m.outs {
		if out.filtered() && m.finite == nil {
			m.finite = newChunk()
		}
	}
	return nil
}

// Emit writes one event, stamped with the clock if it has no time. The error
// is [ErrClosed] after Close, a [LimitError] for a line longer than
// [MaxLine]; what becomes of the event at its targets is in the report.
func (m *Emitter) Emit(e *Event) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return ErrClosed
	}
	if e.TSMS == 0 {
		e.TSMS = m.opts.Clock().UnixMilli()
	}
	start := len(m.all.b)
	m.all.b = e.Append(m.all.b)
	line := m.all.b[start:]
	if len(line) > MaxLine+1 {
		m.all.b = m.all.b[:start]
		return &LimitError{e.Kind.String() + " event", len(line) - 1, MaxLine, "bytes", ErrLineTooLong}
	}
	m.all.events++
	if m.finite != nil {
		if e.Kind == KindMetric && !e.Value.IsFinite() {
			m.odd++
		} else {
			m.finite.b = append(m.finite.b, line...)
			m.finite.events++
		}
	}
	if e.Kind != KindMetric || len(m.all.b) >= chunkSize {
		m.send(e.Kind != KindMetric, e.Kind == KindDone)
	}
	return nil
}

// send hands what has gathered to the targets.
func (m *Emitter) send(urgent, sync bool) {
	all, finite := m.all, m.finite
	for _, c := range []*chunk{all, finite} {
		if c != nil {
			c.urgent, c.sync = urgent, sync
		}
	}
	for _, out := range m.outs {
		c := all
		if out.filtered() {
			c = finite
		}
		if c.events > 0 || sync {
			out.put(c)
		}
	}
	m.all = newChunk()
	all.release()
	if finite != nil {
		m.finite = newChunk()
		finite.release()
	}
}

// Flush sends what has gathered on its way, without waiting for it to arrive.
func (m *Emitter) Flush() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.closed && m.all.events > 0 {
		m.send(false, false)
	}
}

func (m *Emitter) flushLoop() {
	defer m.flusher.Done()
	tick := time.NewTicker(m.opts.FlushEvery)
	defer tick.Stop()
	for {
		select {
		case <-m.stop:
			return
		case <-tick.C:
			m.Flush()
		}
	}
}

// Close sends everything, syncs files, waits for the targets at most the close
// timeout, and tells what became of the events. A second Close has nothing to
// tell.
func (m *Emitter) Close() Report {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return Report{}
	}
	m.send(true, true)
	m.closed = true
	odd := m.odd
	m.mu.Unlock()
	close(m.stop)
	m.flusher.Wait()
	deadline := time.Now().Add(m.opts.CloseTimeout)
	var r Report
	for _, out := range m.outs {
		t := out.close(deadline)
		if out.filtered() {
			t.NonFinite = odd
		}
		r.Targets = append(r.Targets, t)
	}
	return r
}
