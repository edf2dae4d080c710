package datagen

// life is what decides an item's status and times. It takes events in any order and
// any number of times, so that lists which see events as they lie count the same as
// folds that put them in order. Sequences are plus one, so that zero is none; what
// shares a sequence is a fault, and settled in some way that needs no order.
type life struct {
	last, created, ended, failed, step int64
	lastAt, createdAt                  int64 // microseconds
	attempt, failAttempt               int32
	filtered                           bool
}

// moment is what life needs of an event.
type moment struct {
	kind    Kind
	seq     int64
	attempt int32
	at      int64 // microseconds
	// filtered and failed tell how a terminal event ends the item; whole says that
	// it says so at all.
	filtered, failed, whole bool
}

// statusFailed is how version 2 says that an item or a step failed.
const statusFailed = "failed"

func momentOf(e *Event) moment {
	m := moment{kind: e.Kind, seq: sequence(e.Seq), attempt: e.Attempt}
	if !e.Time.IsZero() {
		m.at = e.Time.UnixMicro()
	}
	m.ending(e.End, e.Frame != nil && e.Frame.Status == statusFailed)
	return m
}

// sequence is a sequence as life counts it.
func sequence(seq int64) int64 { return min(seq, MaxSeq) + 1 }

// ending sets what a terminal event says; in version 2 that may be a failure.
func (m *moment) ending(end End, failed bool) {
	if m.kind == ItemEnded {
		m.filtered = end == EndFiltered
		m.whole = m.filtered || end == EndCompleted
		m.failed = failed && !m.whole
	}
}

func (l *life) add(m moment) {
	l.latest(m.seq, m.at, m.attempt)
	switch {
	case m.kind == ItemCreated:
		l.begin(m.seq, m.at)
	case m.kind == StepCompleted:
		l.step = max(l.step, m.seq)
	case m.kind == StepFailed || m.failed:
		l.fail(m.seq, m.attempt)
	case m.whole:
		l.end(m.seq, m.filtered)
	}
}

func (l *life) latest(seq, at int64, attempt int32) {
	if seq > l.last {
		l.last, l.lastAt, l.attempt = seq, at, attempt
	} else if seq == l.last {
		l.lastAt, l.attempt = max(l.lastAt, at), max(l.attempt, attempt)
	}
}

func (l *life) begin(seq, at int64) {
	if seq > l.created {
		l.created, l.createdAt = seq, at
	} else if seq == l.created {
		l.createdAt = max(l.createdAt, at)
	}
}

func (l *life) fail(seq int64, attempt int32) {
	if seq > l.failed {
		l.failed, l.failAttempt = seq, attempt
	} else if seq == l.failed {
		l.failAttempt = max(l.failAttempt, attempt)
	}
}

func (l *life) end(seq int64, filtered bool) {
	if seq > l.ended {
		l.ended, l.filtered = seq, filtered
	} else if seq == l.ended {
		l.filtered = l.filtered || filtered
	}
}

// status is the item's. A failure stands until a completed step or anything of a
// later attempt follows it.
func (l *life) status() Status {
	switch {
	case l.ended > l.created && l.filtered:
		return StatusFiltered
	case l.ended > l.created:
		return StatusCompleted
	case l.failed > l.created && l.step < l.failed && l.attempt <= l.failAttempt:
		return StatusFailed
	case l.last > l.created:
		return StatusRunning
	}
	return StatusPending
}
